//! What could not be cleaned, and why: a row for each item, until a later run of the same part cleans it.

use uuid::Uuid;

use landfall_api::maintenance::CleanupFailure;
use landfall_core::clock::Time;
use landfall_store::Error;
use landfall_store::{Db, Rows, Tx, Write, args};

/// The parts of Landfall that clean.
pub const SCOPES: [&str; 3] = ["orphan-cleanup", "upload-expiry", "unfinished-deletions"];
/// Failures of one run that are kept one by one.
const MAX_KEPT: usize = 1_000;

/// An item that could not be cleaned.
#[derive(Debug, Clone)]
pub struct Uncleaned {
    /// The file, or the key of a blob, in words.
    pub subject: String,
    pub file: Option<Uuid>,
    pub error: String,
}

/// What a run could not clean.
#[derive(Debug)]
pub struct Leftovers {
    pub scope: &'static str,
    pub failures: Vec<Uncleaned>,
    /// Whether it tried all that there was. What it did not fail with is then clean.
    pub is_complete: bool,
    pub now: Time,
}

impl Leftovers {
    /// Writes it down, unless there is nothing to write and nothing to remove.
    pub async fn keep(self, db: &Db) -> Result<(), Error> {
        let known = "SELECT COUNT(*) FROM cleanup_failures WHERE scope = $1";
        if self.failures.is_empty() && db.read().await?.number(known, args![self.scope]).await? == 0 {
            return Ok(());
        }
        db.write(self).await
    }
}

impl Write for Leftovers {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        let mut rows = Rows::default();
        let mut failures: Vec<&Uncleaned> = self.failures.iter().take(MAX_KEPT).collect();
        // In one order, so that two processes never wait for one another; each once, as one statement requires.
        failures.sort_by(|one, other| one.subject.cmp(&other.subject));
        failures.dedup_by(|one, other| one.subject == other.subject);
        for failure in failures {
            rows.push(args![
                &failure.subject,
                self.scope,
                failure.file,
                &failure.error,
                1,
                self.now,
                self.now
            ]);
        }
        tx.insert(
            "cleanup_failures (subject, scope, file_id, error, attempts, first_at, last_at)",
            rows,
            "ON CONFLICT (scope, subject) DO UPDATE SET error = excluded.error, last_at = excluded.last_at,
                 attempts = cleanup_failures.attempts + 1",
        )
        .await?;
        if self.is_complete {
            let sql = "DELETE FROM cleanup_failures WHERE scope = $1 AND last_at < $2";
            tx.execute(sql, args![self.scope, self.now]).await?;
        }
        Ok(())
    }
}

#[derive(Debug, landfall_store::FromRow)]
struct Row {
    subject: String,
    scope: String,
    file_id: Option<Uuid>,
    error: String,
    attempts: i64,
    first_at: Time,
    last_at: Time,
}

/// The items that could not be cleaned, those that wait longest first.
pub async fn list(tx: &mut Tx, limit: i64) -> Result<Vec<CleanupFailure>, Error> {
    let rows: Vec<Row> = tx
        .rows(
            "SELECT subject, scope, file_id, error, attempts, first_at, last_at FROM cleanup_failures
             ORDER BY first_at, scope, subject LIMIT $1",
            args![limit],
        )
        .await?;
    let view = |Row { subject, scope, file_id, error, attempts, first_at, last_at }| CleanupFailure {
        subject,
        scope,
        file_id,
        error,
        attempts,
        first_at,
        last_at,
    };
    Ok(rows.into_iter().map(view).collect())
}

/// How many there are of each scope, zeros included.
pub async fn count(tx: &mut Tx) -> Result<Vec<(&'static str, i64)>, Error> {
    let found: Vec<(String, i64)> =
        tx.rows("SELECT scope, COUNT(*) FROM cleanup_failures GROUP BY scope", args![]).await?;
    let count = |scope: &str| found.iter().find(|(name, _)| name == scope).map_or(0, |(_, count)| *count);
    Ok(SCOPES.map(|scope| (scope, count(scope))).to_vec())
}
