//! The invariants of the rows. Every query returns its violations: the subject (`id` or `name`), the value that was
//! `found`, and the value that was `expected`.

use crate::records::files::counts;
use crate::records::totals;
use landfall_core::clock::Time;
use landfall_store::{Arg, Tx, args};

pub struct Invariant {
    pub name: &'static str,
    /// The kind of subject and the quantity that is checked.
    pub of: &'static str,
    pub quantity: &'static str,
    pub sql: String,
    pub args: Vec<Arg>,
    /// The fix, if there is one without guessing.
    pub fix: Option<Fix>,
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
             LEFT JOIN (SELECT file_id, MAX(id) AS last FROM events
                        WHERE kind = 'file:status-changed' GROUP BY file_id) h ON h.file_id = f.id
             LEFT JOIN events e ON e.id = h.last
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
            "SELECT f.id, CAST(NULL AS TEXT) AS name, COUNT(c.id) AS found,
                    CAST(COALESCE(f.chunk_count, 0) AS BIGINT) AS expected
             FROM files f LEFT JOIN chunks c ON c.file_id = f.id
             WHERE f.status = 'ready' AND f.chunk_count IS NOT NULL
             GROUP BY f.id, f.chunk_count HAVING COUNT(c.id) <> f.chunk_count OR f.chunk_count = 0",
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
            "SELECT f.id, CAST(NULL AS TEXT) AS name, COALESCE(i.entries, 0) AS found,
                    CASE WHEN f.status = 'ready' THEN COALESCE(f.chunk_count, 0) ELSE 0 END AS expected
             FROM files f
             LEFT JOIN (SELECT file_id, COUNT(*) AS entries FROM chunk_index GROUP BY file_id) i ON i.file_id = f.id
             WHERE COALESCE(i.entries, 0)
                <> CASE WHEN f.status = 'ready' THEN COALESCE(f.chunk_count, 0) ELSE 0 END",
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
        "SELECT b.id, CAST(NULL AS TEXT) AS name, b.registered_files - b.deleted_files AS found,
                COALESCE(c.rows, 0) AS expected
         FROM batches b
         LEFT JOIN (SELECT batch_id, COUNT(*) AS rows FROM files WHERE status <> 'deleted' AND batch_id IS NOT NULL
                    GROUP BY batch_id) c ON c.batch_id = b.id
         WHERE b.registered_files - b.deleted_files <> COALESCE(c.rows, 0)",
    ));
    all.into_iter().map(|invariant| invariant.of("batch").fixed_by(Fix::Batch)).collect()
}

fn accounts() -> Vec<Invariant> {
    let all = vec![
        quota("reserved_bytes", "SUM(CASE WHEN confirmed_at IS NULL THEN size_bytes ELSE 0 END)"),
        quota("reserved_files", "SUM(CASE WHEN confirmed_at IS NULL THEN 1 ELSE 0 END)"),
        quota("used_bytes", "SUM(CASE WHEN confirmed_at IS NULL THEN 0 ELSE size_bytes END)"),
        quota("used_files", "SUM(CASE WHEN confirmed_at IS NULL THEN 0 ELSE 1 END)"),
        of_file(
            "quota equals the rows",
            "number of accounts",
            "SELECT CAST(NULL AS UUID) AS id, f.tenant_id AS name, CAST(0 AS BIGINT) AS found,
                    CAST(1 AS BIGINT) AS expected
             FROM files f
             WHERE f.status <> 'deleted' AND NOT EXISTS (SELECT 1 FROM tenants t WHERE t.id = f.tenant_id)
             GROUP BY f.tenant_id",
        ),
    ];
    all.into_iter().map(|invariant| invariant.of("tenant").fixed_by(Fix::Account)).collect()
}

fn of_file(name: &'static str, quantity: &'static str, sql: &str) -> Invariant {
    Invariant { name, of: "file", quantity, sql: sql.to_owned(), args: args![], fix: None }
}

fn batch_count(status: &'static str) -> Invariant {
    let quantity = match status {
        "ready" => "count of ready files",
        "failed" => "count of failed files",
        _ => "count of cancelled files",
    };
    let sql = format!(
        "SELECT b.id, CAST(NULL AS TEXT) AS name, b.{status}_files AS found, COALESCE(c.rows, 0) AS expected
         FROM batches b
         LEFT JOIN (SELECT batch_id, COUNT(*) AS rows FROM files WHERE status = '{status}' AND batch_id IS NOT NULL
                    GROUP BY batch_id) c ON c.batch_id = b.id
         WHERE b.{status}_files <> COALESCE(c.rows, 0)"
    );
    of_file("batch counts equal the rows", quantity, &sql)
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
                CAST(COALESCE(f.amount, 0) + COALESCE(p.amount, 0) AS BIGINT) AS expected
         FROM tenants t
         LEFT JOIN (SELECT tenant_id, {sum} AS amount FROM files WHERE status <> 'deleted' GROUP BY tenant_id) f
                ON f.tenant_id = t.id
         LEFT JOIN (SELECT tenant_id, SUM({part}) AS amount FROM resumable_uploads
                    WHERE kind = 'part' AND joined_into IS NULL AND NOT is_over GROUP BY tenant_id) p
                ON p.tenant_id = t.id
         WHERE t.{column} <> COALESCE(f.amount, 0) + COALESCE(p.amount, 0)"
    );
    of_file("quota equals the rows", column, &sql)
}

/// The stored totals and the counted ones, side by side.
fn totals() -> Invariant {
    let kept = totals::COLUMNS.map(|column| {
        format!("SELECT user_id, tenant_id, '{column}' AS counted_in, {column} AS found, CAST(0 AS BIGINT) AS expected FROM user_totals")
    });
    let sql = format!(
        "SELECT CAST(NULL AS UUID) AS id, user_id AS name, CAST(SUM(found) AS BIGINT) AS found,
                CAST(SUM(expected) AS BIGINT) AS expected
         FROM ({} UNION ALL
               SELECT user_id, tenant_id, {} AS counted_in, CAST(0 AS BIGINT), COUNT(*) FROM files
               WHERE status <> 'deleted' GROUP BY user_id, tenant_id, counted_in) AS both_sides
         GROUP BY user_id, tenant_id, counted_in HAVING SUM(found) <> SUM(expected)",
        kept.join(" UNION ALL "),
        counts::COLUMN_OF_TOTALS
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
         FROM chunk_terms t WHERE t.chunk_id NOT IN (SELECT id FROM chunk_postings_docsize)
         UNION ALL
         SELECT NULL, CAST(d.id AS TEXT), 1, 0
         FROM chunk_postings_docsize d WHERE d.id NOT IN (SELECT chunk_id FROM chunk_terms)"
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
