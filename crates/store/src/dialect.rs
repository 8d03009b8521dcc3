//! Where the two databases differ, in one place: how rows are held, how ids are taken, what a transaction may exclude.
//!
//! Full text and vectors have no common language at all; the index writes those statements twice.

use std::collections::HashSet;

use crate::{Db, Error, Tx, Write, args};

impl Tx {
    /// What a `SELECT` ends with that holds its rows against other writers until the transaction ends. SQLite has one
    /// writer, so there it is empty.
    pub fn for_update(&self) -> &'static str {
        if self.is_postgres() { "FOR UPDATE" } else { "" }
    }

    /// The same for a `SELECT` that passes over rows which another transaction holds.
    pub fn skip_locked(&self) -> &'static str {
        if self.is_postgres() { "FOR UPDATE SKIP LOCKED" } else { "" }
    }

    /// What a `SELECT` ends with that keeps its rows from being removed until the transaction ends.
    pub fn key_share(&self) -> &'static str {
        if self.is_postgres() { "FOR KEY SHARE" } else { "" }
    }

    /// What follows `RETURNING` in an `UPDATE … FROM`, for all columns of the table that is updated. SQLite knows no
    /// `table.*` there, and PostgreSQL's `*` takes in the columns of the other side.
    pub fn all_of(&self, table: &str) -> String {
        if self.is_postgres() { format!("{table}.*") } else { "*".to_owned() }
    }

    /// The rows of `lanes` joined with the rows that a subquery finds for each of them. `subquery` selects ids of `table` and
    /// may refer to the columns of `lanes`.
    pub fn for_each(&self, lanes: &str, table: &str, subquery: &str) -> String {
        if self.is_postgres() {
            format!("SELECT found.id FROM {lanes} CROSS JOIN LATERAL ({subquery}) AS found")
        } else {
            format!("SELECT found.id FROM {lanes} CROSS JOIN {table} AS found ON found.id IN ({subquery})")
        }
    }

    /// What follows the name of a table to make SQLite use an index of it. SQLite has no statistics, and where several indexes
    /// serve it may take the largest. PostgreSQL has them and knows no such words.
    pub fn indexed_by(&self, index: &str) -> String {
        if self.is_postgres() { String::new() } else { format!("INDEXED BY {index}") }
    }

    /// Lets PostgreSQL plan each statement of this transaction for the tables as they are. Otherwise it keeps the plan of a
    /// statement that it has seen before, perhaps when they were nearly empty.
    pub async fn plan_anew(&mut self) -> Result<(), Error> {
        if self.is_postgres() {
            self.script("SET LOCAL plan_cache_mode = force_custom_plan").await?;
        }
        Ok(())
    }

    /// Whether no other transaction can write while this one does.
    pub fn is_only_writer(&self) -> bool {
        !self.is_postgres()
    }

    /// Waits until no other transaction is in the section of this name, and keeps others out until this one ends.
    pub async fn enter_section(&mut self, name: &str) -> Result<(), Error> {
        if !self.is_only_writer() {
            self.execute("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", args![name]).await?;
        }
        Ok(())
    }

    /// The id of `table` that was taken last. Its row need not be visible yet.
    pub async fn last_id(&mut self, table: &str) -> Result<i64, Error> {
        if self.is_postgres() {
            let last: Option<(i64, bool)> =
                self.row(format!("SELECT last_value, is_called FROM {table}_id_seq"), args![]).await?;
            // A sequence that was never used holds the value that it will give first.
            Ok(last.map_or(0, |(value, is_called)| if is_called { value } else { value - 1 }))
        } else {
            // Not the highest in the table: that goes down when the last rows are removed.
            let last: Option<(i64,)> =
                self.row("SELECT seq FROM sqlite_sequence WHERE name = $1", args![table]).await?;
            Ok(last.map_or(0, |(value,)| value))
        }
    }

    /// Lets the next id of `table` be the one after `last`, which must be above all that were taken.
    pub async fn skip_ids(&mut self, table: &str, last: i64) -> Result<(), Error> {
        if self.is_postgres() {
            return self.execute(format!("SELECT setval('{table}_id_seq', $1)"), args![last]).await.map(drop);
        }
        // A table without rows has no entry yet.
        self.execute("DELETE FROM sqlite_sequence WHERE name = $1", args![table]).await?;
        self.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ($1, $2)", args![table, last])
            .await
            .map(drop)
    }

    /// The transactions that are writing to `table` now. They may have taken ids that no other transaction sees yet.
    pub async fn writers_of(&mut self, table: &str) -> Result<HashSet<String>, Error> {
        if !self.is_postgres() {
            // Its ids become visible in their order.
            return Ok(HashSet::new());
        }
        let sql = format!(
            "SELECT DISTINCT virtualtransaction FROM pg_locks
             WHERE locktype = 'relation' AND relation = '{table}'::regclass AND mode = 'RowExclusiveLock' AND granted
                 AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        );
        let writers: Vec<(String,)> = self.rows(sql, args![]).await?;
        Ok(writers.into_iter().map(|(one,)| one).collect())
    }
}

impl Db {
    /// What the database is called, for people and metrics.
    pub fn kind(&self) -> &'static str {
        if self.is_postgres() { "postgresql" } else { "sqlite" }
    }

    /// Leaves a gap in the ids of `table`. A power cut can take the last rows of the commits that were not synced; without a
    /// gap new rows would get their ids, and a client that saw the lost rows would miss the new ones.
    pub async fn leave_gap(&self, table: &'static str) -> Result<(), Error> {
        // PostgreSQL syncs every commit that adds rows to such a table.
        if self.is_postgres() { Ok(()) } else { self.write(Gap { table }).await }
    }
}

struct Gap {
    table: &'static str,
}

impl Write for Gap {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        let sql = "UPDATE sqlite_sequence SET seq = seq + 1000000 WHERE name = $1";
        tx.execute(sql, args![self.table]).await.map(drop)
    }
}
