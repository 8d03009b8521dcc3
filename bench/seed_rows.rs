//! Inserts files directly into the database, as if they had been uploaded.

use landfall_core::clock::{Clock, Time};
use landfall_core::event::EventKind;
use landfall_core::lifecycle::Status;
use landfall_server::records::events::{self, Event};
use landfall_store::Error;
use landfall_store::{Db, Rows, Tx, Write, args};
use uuid::Uuid;

pub const TENANT: &str = "bench";
pub const USER: &str = "bench";
const SIZE_BYTES: i64 = 1_000;
/// Files in one transaction.
const BATCH_SIZE: i64 = 50_000;
/// Files whose rows are in memory at once. More would count as memory of the server, which is in the same process.
const ROWS_AT_ONCE: usize = 500;

/// Opens a batch with so many files that wait for their first stage. Returns the id of the batch.
pub async fn queue_batch(db: &Db, files: usize) -> Result<Uuid, Error> {
    let clock = Clock::System;
    let (batch, now) = (clock.new_id(), clock.now());
    let ids = (0..files).map(|_| clock.new_id()).collect();
    db.write(QueuedBatch { batch, ids, now }).await?;
    Ok(batch)
}

struct QueuedBatch {
    batch: Uuid,
    ids: Vec<Uuid>,
    now: Time,
}

impl Write for QueuedBatch {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        let count = self.ids.len();
        account_for(tx, count).await?;
        tx.execute(
            "INSERT INTO batches (id, tenant_id, user_id, status, file_count, registered_files, created_at,
                                  updated_at, expires_at)
             VALUES ($1, $2, $3, 'active', $4, $4, $5, $5, $6)",
            args![self.batch, TENANT, USER, count, self.now, self.now + chrono::TimeDelta::days(1)],
        )
        .await?;
        for (part, ids) in self.ids.chunks(ROWS_AT_ONCE).enumerate() {
            self.insert(tx, part * ROWS_AT_ONCE, ids).await?;
        }
        if let (Some(first), Some(last)) = (self.ids.iter().min(), self.ids.iter().max()) {
            list_files(tx, *first, *last).await?;
        }
        count_totals(tx, "at_extract", USER, i64::try_from(count).expect("a bench is small")).await
    }
}

impl QueuedBatch {
    /// Inserts some of its files, numbered from `first` on, with the events of their confirmations.
    async fn insert(&self, tx: &mut Tx, first: usize, ids: &[Uuid]) -> Result<(), Error> {
        let mut rows = Rows::default();
        for (number, id) in (first..).zip(ids) {
            rows.push(args![
                *id,
                TENANT,
                USER,
                self.batch,
                format!("report-{number}.txt"),
                "text/plain",
                SIZE_BYTES,
                format!("{}/{}", id.simple(), id.simple()),
                "d41d8cd98f00b204e9800998ecf8427e",
                Status::Queued,
                "extract",
                self.now,
                true,
                self.now,
                self.now,
                self.now,
            ]);
        }
        tx.insert(
            "files (id, tenant_id, user_id, batch_id, file_name, content_type, size_bytes, blob_key, md5, status,
                    next_stage, run_after, is_due, created_at, updated_at, confirmed_at)",
            rows,
            "",
        )
        .await?;
        let arrived = ids.iter().map(|id| Event {
            at: self.now,
            kind: EventKind::FileStatusChanged,
            tenant: TENANT.to_owned(),
            user: USER.to_owned(),
            file: Some(*id),
            batch: Some(self.batch),
            from: Some(Status::Uploaded),
            to: Some(Status::Queued),
            stage: None,
            next_stage: None,
            attempt: Some(0),
            worker: None,
            actor: None,
            failure: None,
            data: None,
        });
        events::write_down(tx, arrived.collect()).await
    }
}

/// Inserts so many users, each with its own tenant, with so many files each that wait for their first stage.
pub async fn add_waiting(db: &Db, users: i64, files_each: i64) -> Result<(), Error> {
    let mut first = 0;
    while first < users * files_each {
        let count = BATCH_SIZE.min(users * files_each - first);
        db.write(Waiting { first, count, users, now: Clock::System.now() }).await?;
        first += count;
    }
    if let Some(pool) = db.postgres() {
        for upkeep in ["VACUUM (ANALYZE) files", "VACUUM (ANALYZE) listed_files"] {
            sqlx::raw_sql(upkeep).execute(pool).await?;
        }
    }
    Ok(())
}

struct Waiting {
    first: i64,
    count: i64,
    users: i64,
    now: Time,
}

impl Write for Waiting {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        let id = ascending_id(tx.is_postgres());
        let numbers = numbers();
        tx.execute(
            format!(
                "{numbers} INSERT INTO files (id, tenant_id, user_id, file_name, content_type, size_bytes, blob_key,
                     md5, status, next_stage, run_after, is_due, created_at, updated_at, confirmed_at)
                 SELECT {id}, 'user-' || (n % $4), 'user-' || (n % $4), 'report-' || n || '.txt', 'text/plain', $5,
                        'ab/' || n || '/' || n, 'd41d8cd98f00b204e9800998ecf8427e', 'queued', 'extract', $6, TRUE,
                        $6, $6, $6
                 FROM numbers"
            ),
            args![
                self.first,
                self.first + self.count - 1,
                self.now.timestamp_millis() - 2_000_000,
                self.users,
                SIZE_BYTES,
                self.now
            ],
        )
        .await?;
        let (first, last) = ids_between(self.first, self.first + self.count - 1, self.now);
        list_files(tx, first, last).await?;
        tx.execute(
            "INSERT INTO user_totals (user_id, tenant_id, at_extract)
             SELECT user_id, tenant_id, COUNT(*) FROM files WHERE status = 'queued' GROUP BY user_id, tenant_id
             ON CONFLICT (user_id, tenant_id) DO UPDATE SET at_extract = excluded.at_extract",
            args![],
        )
        .await
        .map(drop)
    }
}

/// The numbers from `$1` to `$2`.
fn numbers() -> &'static str {
    "WITH RECURSIVE numbers (n) AS (
         SELECT CAST($1 AS BIGINT) UNION ALL SELECT n + 1 FROM numbers WHERE n < $2)"
}

/// An id for file number `n`. The ids ascend from `$3`, like those of real files, which begin with the millisecond.
fn ascending_id(postgres: bool) -> &'static str {
    if postgres {
        "(lpad(to_hex($3 + n), 12, '0') || '7' || substr(md5(n::text), 1, 3)
          || '8' || substr(md5(n::text), 4, 15))::uuid"
    } else {
        "unhex(printf('%012x7%03x8%015x', $3 + n, abs(random()) % 4096, abs(random()) >> 4))"
    }
}

/// The lowest and the highest id that files of these numbers can have.
fn ids_between(first: i64, last: i64, now: Time) -> (Uuid, Uuid) {
    let bound = |number: i64, rest: u8| {
        let mut bytes = [rest; 16];
        let begin = now.timestamp_millis() - 2_000_000 + number;
        bytes[..6].copy_from_slice(&begin.to_be_bytes()[2..]);
        Uuid::from_bytes(bytes)
    };
    (bound(first, 0), bound(last, 0xff))
}

/// Adds the inserted files with these ids to the lists.
pub async fn list_files(tx: &mut Tx, first: Uuid, last: Uuid) -> Result<(), Error> {
    tx.execute(
        "INSERT INTO listed_files (id, tenant_id, user_id, file_name, size_bytes, created_at)
         SELECT id, tenant_id, user_id, file_name, size_bytes, created_at FROM files WHERE id >= $1 AND id <= $2",
        args![first, last],
    )
    .await
    .map(drop)
}

async fn account_for(tx: &mut Tx, files: usize) -> Result<(), Error> {
    let files = i64::try_from(files).expect("a bench is small");
    tx.execute(
        "INSERT INTO tenants (id, used_files, used_bytes) VALUES ($1, $2, $3)
         ON CONFLICT (id) DO UPDATE SET used_files = tenants.used_files + excluded.used_files,
                                        used_bytes = tenants.used_bytes + excluded.used_bytes",
        args![TENANT, files, files * SIZE_BYTES],
    )
    .await
    .map(drop)
}

/// Adds to the totals what the skipped transactions would have counted.
async fn count_totals(tx: &mut Tx, column: &str, user: &str, files: i64) -> Result<(), Error> {
    tx.execute(
        format!(
            "INSERT INTO user_totals (user_id, tenant_id, {column}) VALUES ($1, $1, $2)
             ON CONFLICT (user_id, tenant_id) DO UPDATE SET {column} = user_totals.{column} + excluded.{column}"
        ),
        args![user, files],
    )
    .await
    .map(drop)
}

/// Inserts so many files that are `ready`, each with the seven steps of its history, and updates the statistics of
/// the database.
pub async fn add_finished(db: &Db, files: i64) -> Result<(), Error> {
    let now = Clock::System.now() - chrono::TimeDelta::days(1);
    let mut first = 0;
    while first < files {
        let count = BATCH_SIZE.min(files - first);
        db.write(Finished { first, count, with_history: true, now }).await?;
        first += count;
    }
    if let Some(pool) = db.postgres() {
        // One by one: several statements at once are a transaction, in which VACUUM is not allowed.
        for upkeep in [
            "VACUUM (ANALYZE) files",
            "VACUUM (ANALYZE) listed_files",
            "VACUUM (ANALYZE) events",
            "CHECKPOINT",
        ] {
            sqlx::raw_sql(upkeep).execute(pool).await?;
        }
    }
    Ok(())
}

/// The same without their history, for measurements that do not read it.
pub async fn add_finished_without_history(db: &Db, files: i64) -> Result<(), Error> {
    let now = Clock::System.now() - chrono::TimeDelta::days(1);
    let mut first = 0;
    while first < files {
        let count = BATCH_SIZE.min(files - first);
        db.write(Finished { first, count, with_history: false, now }).await?;
        first += count;
    }
    if let Some(pool) = db.postgres() {
        for upkeep in ["VACUUM (ANALYZE) files", "VACUUM (ANALYZE) listed_files", "CHECKPOINT"] {
            sqlx::raw_sql(upkeep).execute(pool).await?;
        }
    }
    Ok(())
}

struct Finished {
    first: i64,
    count: i64,
    with_history: bool,
    now: Time,
}

impl Write for Finished {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        let (id, numbers) = (ascending_id(tx.is_postgres()), numbers());
        let last = self.first + self.count - 1;
        tx.execute(
            format!(
                "{numbers} INSERT INTO files (id, tenant_id, user_id, file_name, content_type, size_bytes, blob_key,
                     md5, status, next_stage, created_at, updated_at, confirmed_at, ready_at)
                 SELECT {id}, $4, $4, 'report-' || n || '.txt', 'text/plain', $5, 'ab/' || n || '/' || n,
                        'd41d8cd98f00b204e9800998ecf8427e', 'ready', 'embed', $6, $6, $6, $6
                 FROM numbers"
            ),
            args![self.first, last, self.now.timestamp_millis() - 2_000_000, USER, SIZE_BYTES, self.now],
        )
        .await?;
        let (lowest, highest) = ids_between(self.first, last, self.now);
        list_files(tx, lowest, highest).await?;
        if self.with_history {
            self.add_history(tx, lowest, highest).await?;
        }
        count_totals(tx, "ready", USER, self.count).await?;
        account_for(tx, usize::try_from(self.count).expect("not negative")).await
    }
}

impl Finished {
    async fn add_history(&self, tx: &mut Tx, first: Uuid, last: Uuid) -> Result<(), Error> {
        tx.execute(
            "INSERT INTO events (at, kind, tenant_id, user_id, file_id, from_state, to_state, stage, attempt, worker)
             SELECT f.created_at, $3, f.tenant_id, f.user_id, f.id, s.column1, s.column2, s.column3, 1, 'host:1'
             FROM files f CROSS JOIN (VALUES (NULL, 'registered', NULL), ('registered', 'uploaded', NULL),
                 ('uploaded', 'queued', NULL), ('queued', 'extracting', 'extract'),
                 ('extracting', 'chunking', 'extract'), ('chunking', 'embedding', 'chunk'),
                 ('embedding', 'ready', 'embed')) AS s
             WHERE f.id >= $1 AND f.id <= $2",
            args![first, last, EventKind::FileStatusChanged],
        )
        .await
        .map(drop)
    }
}
