//! The invariants of the rows. Every query returns its violations: the subject (`id` or `name`), the value that was
//! `found`, and the value that was `expected`.
//!
//! SQLite sorts in memory, so no query sorts or groups a table that has a row for each file, chunk or event: it looks
//! things up file by file, or follows an index that has the groups in their order.

use crate::records::files::counts;
use crate::records::totals;
use landfall_core::clock::Time;
use landfall_store::{Arg, Error, Tx, args};
use uuid::Uuid;

pub struct Invariant {
    pub name: &'static str,
    /// The kind of subject and the quantity that is checked.
    pub of: &'static str,
    pub quantity: &'static str,
    sql: String,
    args: Vec<Arg>,
    /// The fix, if there is one without guessing.
    pub fix: Option<Fix>,
}

#[derive(landfall_store::FromRow)]
pub struct Violation {
    pub id: Option<Uuid>,
    pub name: Option<String>,
    found: i64,
    expected: i64,
}

impl Violation {
    pub fn what(&self, invariant: &Invariant) -> String {
        let subject = self.id.map(|id| id.to_string()).or_else(|| self.name.clone()).unwrap_or_default();
        format!(
            "{} {subject}: {} is {}, should be {}",
            invariant.of, invariant.quantity, self.found, self.expected
        )
    }
}

/// How a violation is fixed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fix {
    /// The file is released to the queue.
    Claim,
    /// The current state is appended to the history.
    History,
    /// The index entries of a file that is not ready are removed.
    Index,
    /// What lists are sorted by is written anew from the file.
    List,
    /// Words without a vector are removed, and missing words are made again after the next start.
    Words,
    /// The batch is recounted.
    Batch,
    /// The tenant's account is recomputed.
    Account,
    /// The user's files are recounted.
    Totals,
}

impl Invariant {
    /// Some of its violations: `most`, behind so many others.
    pub async fn violations(&self, tx: &mut Tx, most: usize, behind: usize) -> Result<Vec<Violation>, Error> {
        let sql = format!("SELECT * FROM ({}) AS found LIMIT {most} OFFSET {behind}", self.sql);
        tx.rows(sql, self.args.clone()).await
    }

    /// The number of its violations.
    pub async fn count(&self, tx: &mut Tx) -> Result<usize, Error> {
        let sql = format!("SELECT COUNT(*) FROM ({}) AS found", self.sql);
        Ok(usize::try_from(tx.number(sql, self.args.clone()).await?).unwrap_or_default())
    }

    fn fixed_by(self, fix: Fix) -> Self {
        Self { fix: Some(fix), ..self }
    }

    fn of(self, of: &'static str) -> Self {
        Self { of, ..self }
    }
}

pub fn all(tx: &Tx, oldest_heartbeat: Time) -> Vec<Invariant> {
    let mut all = files(oldest_heartbeat);
    all.extend(index());
    all.push(words_equal_vectors(tx));
    all.extend(batches());
    all.extend(accounts());
    all.push(totals());
    all
}

fn files(oldest_heartbeat: Time) -> Vec<Invariant> {
    let held = of_file(
        "running files are held by living workers",
        "number of living holders",
        "SELECT f.id, CAST(NULL AS TEXT) AS name, CAST(0 AS BIGINT) AS found, CAST(1 AS BIGINT) AS expected
         FROM files f WHERE f.claimed_by IS NOT NULL
           AND NOT EXISTS (SELECT 1 FROM workers w WHERE w.id = f.claimed_by AND w.heartbeat_at >= $1)",
    );
    vec![
        Invariant { args: args![oldest_heartbeat], ..held }.fixed_by(Fix::Claim),
        of_file(
            "confirmed files are in the queue, at work or at rest",
            "number of those states that it is in",
            "SELECT f.id, CAST(NULL AS TEXT) AS name, CAST(0 AS BIGINT) AS found, CAST(1 AS BIGINT) AS expected
             FROM files f WHERE f.confirmed_at IS NOT NULL AND f.status IN ('registered', 'uploaded')",
        ),
        of_file(
            "histories end where their files are",
            "number of last entries with its status",
            "SELECT f.id, CAST(NULL AS TEXT) AS name, CAST(0 AS BIGINT) AS found, CAST(1 AS BIGINT) AS expected
             FROM files f
             LEFT JOIN events e ON e.id = (SELECT h.id FROM events h
                                           WHERE h.file_id = f.id AND h.kind = 'file:status-changed'
                                           ORDER BY h.id DESC LIMIT 1)
             WHERE e.id IS NULL OR e.to_state <> f.status",
        )
        .fixed_by(Fix::History),
        of_file(
            "stored bytes are those that arrived",
            "number of right blobs at the last comparison",
            "SELECT f.id, CAST(NULL AS TEXT) AS name, CAST(0 AS BIGINT) AS found, CAST(1 AS BIGINT) AS expected
             FROM files f WHERE f.blob_damaged_at IS NOT NULL AND f.blob_key IS NOT NULL AND f.status <> 'deleted'",
        ),
        of_file(
            "lists have each file with its values",
            "number of rows in the lists with its values",
            "SELECT f.id, CAST(NULL AS TEXT) AS name, CAST(0 AS BIGINT) AS found, CAST(1 AS BIGINT) AS expected
             FROM files f LEFT JOIN listed_files l ON l.id = f.id
             WHERE f.deleted_at IS NULL
               AND (l.id IS NULL OR l.tenant_id <> f.tenant_id OR l.user_id <> f.user_id OR l.file_name <> f.file_name
                    OR l.size_bytes <> f.size_bytes OR l.created_at <> f.created_at)
             UNION ALL
             SELECT l.id, CAST(NULL AS TEXT), CAST(1 AS BIGINT), CAST(0 AS BIGINT) FROM listed_files l
             WHERE NOT EXISTS (SELECT 1 FROM files f WHERE f.id = l.id AND f.deleted_at IS NULL)",
        )
        .fixed_by(Fix::List),
        of_file(
            "ready files have their chunks",
            "number of chunks",
            "SELECT id, name, found, expected
             FROM (SELECT f.id, CAST(NULL AS TEXT) AS name,
                          (SELECT COUNT(*) FROM chunks c WHERE c.file_id = f.id) AS found,
                          CAST(f.chunk_count AS BIGINT) AS expected
                   FROM files f WHERE f.status = 'ready' AND f.chunk_count IS NOT NULL) AS counted
             WHERE found <> expected OR expected = 0",
        ),
        of_file(
            "archives have the batch of their files",
            "number of batches that name it",
            "SELECT f.id, CAST(NULL AS TEXT) AS name, CAST(0 AS BIGINT) AS found, CAST(1 AS BIGINT) AS expected
             FROM files f LEFT JOIN batches b ON b.id = f.archive_batch AND b.archive_id = f.id
             WHERE f.archive_batch IS NOT NULL AND b.id IS NULL",
        ),
        of_file(
            "files of deleted archives are deleted or about to be",
            "number of living archives that it is from",
            "SELECT f.id, CAST(NULL AS TEXT) AS name, CAST(0 AS BIGINT) AS found, CAST(1 AS BIGINT) AS expected
             FROM files f JOIN batches b ON b.id = f.batch_id
             WHERE b.archive_id IS NOT NULL AND f.status <> 'deleted' AND NOT b.deletes_files
               AND NOT EXISTS (SELECT 1 FROM files a WHERE a.id = b.archive_id AND a.status <> 'deleted')",
        ),
    ]
}

fn index() -> Vec<Invariant> {
    let all = vec![
        of_file(
            "the index equals the chunks of ready files",
            "number of index entries",
            "SELECT id, name, found, expected
             FROM (SELECT f.id, CAST(NULL AS TEXT) AS name,
                          (SELECT COUNT(*) FROM chunk_index i WHERE i.file_id = f.id) AS found,
                          CASE WHEN f.status = 'ready' THEN COALESCE(f.chunk_count, 0) ELSE 0 END AS expected
                   FROM files f) AS counted
             WHERE found <> expected",
        ),
        of_file(
            "index entries belong to chunks",
            "number of entries without a chunk",
            "SELECT i.file_id AS id, CAST(NULL AS TEXT) AS name, COUNT(*) AS found, CAST(0 AS BIGINT) AS expected
             FROM chunk_index i WHERE NOT EXISTS (SELECT 1 FROM chunks c WHERE c.id = i.chunk_id)
             GROUP BY i.file_id",
        ),
        of_file(
            "the vectors of a file are of the model that it was embedded with",
            "number of vectors of that model",
            "SELECT i.file_id AS id, CAST(NULL AS TEXT) AS name,
                    CAST(SUM(CASE WHEN i.model = m.model THEN 1 ELSE 0 END) AS BIGINT) AS found, COUNT(*) AS expected
             FROM chunk_index i LEFT JOIN indexed_files m ON m.file_id = i.file_id
             GROUP BY i.file_id
             HAVING CAST(SUM(CASE WHEN i.model = m.model THEN 1 ELSE 0 END) AS BIGINT) <> COUNT(*)
             UNION ALL
             SELECT m.file_id, CAST(NULL AS TEXT), CAST(0 AS BIGINT), CAST(1 AS BIGINT) FROM indexed_files m
             WHERE NOT EXISTS (SELECT 1 FROM chunk_index i WHERE i.file_id = m.file_id)",
        ),
    ];
    all.into_iter().map(|invariant| invariant.fixed_by(Fix::Index)).collect()
}

fn batches() -> Vec<Invariant> {
    let mut all = vec![of_file(
        "batches are completed exactly when all their files are terminal",
        "number of terminal files",
        "SELECT id, CAST(NULL AS TEXT) AS name,
                ready_files + failed_files + cancelled_files + deleted_files AS found, file_count AS expected
         FROM batches
         WHERE (status = 'active' AND ready_files + failed_files + cancelled_files + deleted_files >= file_count)
            OR (status = 'completed' AND ready_files + failed_files + cancelled_files + deleted_files < file_count)",
    )];
    all.push(of_file(
        "batches are expired exactly when files never came",
        "number of files that never came and cannot come any more",
        "SELECT id, CAST(NULL AS TEXT) AS name, never_uploaded_files + file_count - registered_files AS found,
                CAST(CASE WHEN status = 'expired' THEN 1 ELSE 0 END AS BIGINT) AS expected
         FROM batches
         WHERE (status = 'expired' AND never_uploaded_files + file_count - registered_files = 0)
            OR (status = 'completed' AND never_uploaded_files > 0)",
    ));
    all.extend(["ready", "failed", "cancelled"].map(batch_count));
    // Deleted files are removed after a while; their batch keeps their number.
    all.push(of_file(
        "batch counts equal the rows",
        "count of files that were registered and not deleted",
        &of_batch("b.registered_files - b.deleted_files", "f.status <> 'deleted'"),
    ));
    all.into_iter().map(|invariant| invariant.of("batch").fixed_by(Fix::Batch)).collect()
}

fn accounts() -> Vec<Invariant> {
    let all = vec![
        quota("reserved_bytes", "SUM(CASE WHEN f.confirmed_at IS NULL THEN f.size_bytes ELSE 0 END)"),
        quota("reserved_files", "SUM(CASE WHEN f.confirmed_at IS NULL THEN 1 ELSE 0 END)"),
        quota("used_bytes", "SUM(CASE WHEN f.confirmed_at IS NULL THEN 0 ELSE f.size_bytes END)"),
        quota("used_files", "SUM(CASE WHEN f.confirmed_at IS NULL THEN 0 ELSE 1 END)"),
        of_file(
            "quota equals the rows",
            "number of accounts",
            "SELECT CAST(NULL AS UUID) AS id, f.tenant_id AS name, CAST(0 AS BIGINT) AS found,
                    CAST(1 AS BIGINT) AS expected
             FROM (SELECT l.tenant_id FROM listed_files l GROUP BY l.tenant_id) AS f
             WHERE NOT EXISTS (SELECT 1 FROM tenants t WHERE t.id = f.tenant_id)",
        ),
    ];
    all.into_iter().map(|invariant| invariant.of("tenant").fixed_by(Fix::Account)).collect()
}

/// The files that are not deleted, in the order of their owners, which only the index of the lists has. That the lists have
/// all of them is an invariant of its own, and is fixed before those that are counted here.
const LIVING: &str = "listed_files l CROSS JOIN files f WHERE f.id = l.id AND f.status <> 'deleted'";

fn of_file(name: &'static str, quantity: &'static str, sql: &str) -> Invariant {
    Invariant { name, of: "file", quantity, sql: sql.to_owned(), args: args![], fix: None }
}

fn batch_count(status: &'static str) -> Invariant {
    let quantity = match status {
        "ready" => "count of ready files",
        "failed" => "count of failed files",
        _ => "count of cancelled files",
    };
    let sql = of_batch(&format!("b.{status}_files"), &format!("f.status = '{status}'"));
    of_file("batch counts equal the rows", quantity, &sql)
}

/// The batches that have kept another number than they have files of a kind.
fn of_batch(kept: &str, files: &str) -> String {
    format!(
        "SELECT id, name, found, expected
         FROM (SELECT b.id, CAST(NULL AS TEXT) AS name, {kept} AS found,
                      (SELECT COUNT(*) FROM files f WHERE f.batch_id = b.id AND {files}) AS expected
               FROM batches b) AS counted
         WHERE found <> expected"
    )
}

fn quota(column: &'static str, sum: &str) -> Invariant {
    // Room is also reserved for the parts of files that are still to be joined.
    let part = match column {
        "reserved_bytes" => "length",
        "reserved_files" => "1",
        _ => "0",
    };
    let sql = format!(
        "SELECT CAST(NULL AS UUID) AS id, t.id AS name, t.{column} AS found,
                CAST(COALESCE(of_files.amount, 0) + COALESCE(of_parts.amount, 0) AS BIGINT) AS expected
         FROM tenants t
         LEFT JOIN (SELECT l.tenant_id, {sum} AS amount FROM {LIVING} GROUP BY l.tenant_id) AS of_files
                ON of_files.tenant_id = t.id
         LEFT JOIN (SELECT tenant_id, SUM({part}) AS amount FROM resumable_uploads
                    WHERE kind = 'part' AND joined_into IS NULL AND NOT is_over GROUP BY tenant_id) AS of_parts
                ON of_parts.tenant_id = t.id
         WHERE t.{column} <> COALESCE(of_files.amount, 0) + COALESCE(of_parts.amount, 0)"
    );
    of_file("quota equals the rows", column, &sql)
}

/// The stored totals and the counted ones, side by side.
fn totals() -> Invariant {
    let counted = totals::COLUMNS
        .map(|column| {
            let is_counted_here = format!("{} = '{column}'", counts::COLUMN_OF_TOTALS);
            format!("CAST(SUM(CASE WHEN {is_counted_here} THEN 1 ELSE 0 END) AS BIGINT) AS {column}")
        })
        .join(", ");
    let each = totals::COLUMNS.map(|column| {
        format!(
            "SELECT CAST(NULL AS UUID) AS id, user_id AS name, kept_{column} AS found, {column} AS expected
             FROM both_sides WHERE kept_{column} <> {column}"
        )
    });
    let kept = totals::COLUMNS.map(|column| format!("u.{column} AS kept_{column}")).join(", ");
    let or_none =
        totals::COLUMNS.map(|column| format!("COALESCE(counted.{column}, 0) AS {column}")).join(", ");
    let none_kept = totals::COLUMNS.map(|column| format!("CAST(0 AS BIGINT) AS kept_{column}")).join(", ");
    let sql = format!(
        "WITH counted AS MATERIALIZED (
             SELECT l.tenant_id, l.user_id, {counted} FROM {LIVING} GROUP BY l.tenant_id, l.user_id),
         both_sides AS MATERIALIZED (
             SELECT u.user_id, {kept}, {or_none}
             FROM user_totals u LEFT JOIN counted ON counted.tenant_id = u.tenant_id AND counted.user_id = u.user_id
             UNION ALL
             SELECT counted.user_id, {none_kept}, {} FROM counted WHERE NOT EXISTS (
                 SELECT 1 FROM user_totals u WHERE u.tenant_id = counted.tenant_id AND u.user_id = counted.user_id))
         {}",
        totals::COLUMNS.map(|column| format!("counted.{column}")).join(", "),
        each.join(" UNION ALL ")
    );
    of_file("totals equal the rows", "count of files in one state", &sql).of("user").fixed_by(Fix::Totals)
}

/// A file that an earlier version indexed gets its terms later. SQLite keeps the terms a second time, by term.
fn words_equal_vectors(tx: &Tx) -> Invariant {
    let postings = if tx.is_postgres() {
        ""
    } else {
        "UNION ALL
         SELECT NULL, CAST(t.chunk_id AS TEXT), 0, 1
         FROM chunk_terms t WHERE NOT EXISTS (SELECT 1 FROM chunk_postings_docsize d WHERE d.id = t.chunk_id)
         UNION ALL
         SELECT NULL, CAST(d.id AS TEXT), 1, 0
         FROM chunk_postings_docsize d WHERE NOT EXISTS (SELECT 1 FROM chunk_terms t WHERE t.chunk_id = d.id)"
    };
    let sql = format!(
        "SELECT CAST(NULL AS UUID) AS id, CAST(i.chunk_id AS TEXT) AS name, CAST(0 AS BIGINT) AS found,
                CAST(1 AS BIGINT) AS expected
         FROM chunk_index i JOIN indexed_files m ON m.file_id = i.file_id
         WHERE m.terms_format > 0 AND NOT EXISTS (SELECT 1 FROM chunk_terms t WHERE t.chunk_id = i.chunk_id)
         UNION ALL
         SELECT CAST(NULL AS UUID), CAST(t.chunk_id AS TEXT), CAST(1 AS BIGINT), CAST(0 AS BIGINT)
         FROM chunk_terms t WHERE NOT EXISTS (SELECT 1 FROM chunk_index i WHERE i.chunk_id = t.chunk_id)
         {postings}"
    );
    of_file("the index has words for every vector", "number of word entries", &sql)
        .of("chunk")
        .fixed_by(Fix::Words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::index;
    use landfall_core::clock::Clock;
    use landfall_store::Db;

    /// What SQLite keeps in memory for a query: sorted rows, and tables or indexes that it makes for itself.
    const KEPT: [&str; 3] = ["TEMP B-TREE", "AUTOMATIC", "MATERIALIZE"];
    /// These have a row for each tenant or user.
    const SMALL: [&str; 4] = ["of_files", "of_parts", "counted", "both_sides"];

    #[tokio::test]
    async fn no_invariant_keeps_a_row_for_each_file_in_memory() {
        let folder = tempfile::tempdir().expect("a folder");
        let db = Db::open(&format!("sqlite://{}/a.db", folder.path().display()), 2).await.expect("it opens");
        index::install(&db).await.expect("it is installed");
        let mut tx = db.read().await.expect("a connection");
        for invariant in all(&tx, Clock::System.now()) {
            let sql = format!("EXPLAIN QUERY PLAN {}", invariant.sql);
            let plan: Vec<(i64, i64, i64, String)> = tx.rows(sql, invariant.args).await.expect("a plan");
            for (.., step) in plan {
                let is_kept = KEPT.iter().any(|kept| step.contains(kept));
                // "MATERIALIZE counted", "SEARCH counted USING AUTOMATIC COVERING INDEX …".
                let is_small = step.split(' ').nth(1).is_some_and(|of| SMALL.contains(&of));
                assert!(!is_kept || is_small, "{}: {step}", invariant.name);
            }
        }
    }
}
