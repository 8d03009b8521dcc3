//! Reads a little of every table, each time at another place, so that a damaged database is noticed before a request needs
//! the damaged part.

use crate::{Db, Error, Tx, args};

/// How many places a table has.
const PLACES: i64 = 1 << 16;

impl Db {
    /// Reads a row of every table. `place`, of all places of a table, says where. The cost does not grow with the tables.
    pub async fn sample(&self, place: u16) -> Result<(), Error> {
        let mut tx = self.read().await?;
        let place = i64::from(place);
        if tx.is_postgres() {
            sample_postgres(&mut tx, place).await
        } else {
            sample_sqlite(&mut tx, place).await
        }
    }
}

async fn sample_sqlite(tx: &mut Tx, place: i64) -> Result<(), Error> {
    // The tables of an extension are made of others, which are in the list themselves.
    let tables: Vec<(String,)> = tx
        .rows(
            "SELECT name FROM sqlite_schema
             WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%' AND sql NOT LIKE '%WITHOUT ROWID%'",
            args![],
        )
        .await?;
    for (table,) in tables {
        // By the table itself, and not by an index that has what is asked for. Each subquery goes straight to one end.
        let [first, last] =
            ["MIN(rowid)", "MAX(rowid)"].map(|end| format!("(SELECT {end} FROM \"{table}\" NOT INDEXED)"));
        let sql = format!(
            "SELECT * FROM \"{table}\" NOT INDEXED
             WHERE rowid >= COALESCE({first} + ({last} - {first}) * $1 / {PLACES}, 0) ORDER BY rowid LIMIT 1"
        );
        tx.execute(sql, args![place]).await?;
    }
    Ok(())
}

async fn sample_postgres(tx: &mut Tx, place: i64) -> Result<(), Error> {
    let tables: Vec<(String, i64)> = tx
        .rows(
            "SELECT CAST(c.oid::regclass AS TEXT), GREATEST(CAST(c.relpages AS BIGINT), 1) FROM pg_class c
             WHERE c.relkind = 'r' AND c.relnamespace = CAST(current_schema() AS regnamespace)",
            args![],
        )
        .await?;
    for (table, pages) in tables {
        let page = pages * place / PLACES;
        // By the addresses of its rows one page is read, however many rows of the table are dead.
        let sql = format!(
            "SELECT * FROM {table} WHERE ctid IN ('({page},1)', '({page},2)', '({page},3)', '({page},4)')"
        );
        tx.execute(sql, args![]).await?;
    }
    Ok(())
}
