//! Files that may be stuck: held by a worker that is gone, never confirmed, or due further ahead than any wait.
//!
//! These statements name `workers`, a table of a higher layer. Whether a file's worker is gone must be read with the file:
//! one that is claimed between two reads would look abandoned.

use landfall_core::caller::Reach;
use landfall_core::clock::Time;
use landfall_store::{Error, Tx, args};
use uuid::Uuid;

use crate::records::file::File;
use crate::records::reach;

/// A page of the suspects in the order of their ids, behind `after`, of these owners. A file that is due later than
/// `furthest` is one.
pub async fn suspects(
    tx: &mut Tx,
    reach: &Reach,
    after: Uuid,
    furthest: Time,
    limit: usize,
    now: Time,
) -> Result<Vec<File>, Error> {
    let mut arguments = args![after, now, furthest, limit];
    let whose = reach::condition(reach, &mut arguments);
    let suspects = all_suspects("*", "$2", "$3");
    tx.rows(
        format!("{suspects} SELECT * FROM suspects WHERE id > $1 AND {whose} ORDER BY id LIMIT $4"),
        arguments,
    )
    .await
}

/// The suspects of all owners, by the places of the time of the statement and of the furthest time. Each part goes along an
/// index that files at rest are not in, and is empty where all is well. Only afterwards are the owners looked at: along an
/// index of theirs, all files that await their bytes would be compared.
fn all_suspects(columns: &str, now: &str, furthest: &str) -> String {
    format!(
        "WITH suspects AS MATERIALIZED (
             SELECT {columns} FROM files WHERE claimed_by IS NOT NULL
                AND NOT EXISTS (SELECT 1 FROM workers WHERE workers.id = files.claimed_by)
             UNION ALL
             SELECT {columns} FROM files WHERE upload_until IS NOT NULL AND upload_until <= {now}
                AND status = 'uploaded'
             UNION ALL
             SELECT {columns} FROM files WHERE queue_stage IS NOT NULL AND NOT is_due AND run_after > {furthest})"
    )
}

/// What decides whether a suspect is stuck.
#[derive(Debug)]
pub struct Suspect {
    pub status: String,
    pub retry_count: i64,
    pub updated_at: Time,
}

/// The same of up to `most` suspects, in no order.
pub async fn brief_suspects(
    tx: &mut Tx,
    reach: &Reach,
    furthest: Time,
    most: i64,
    now: Time,
) -> Result<Vec<Suspect>, Error> {
    let mut arguments = args![now, furthest, most];
    let whose = reach::condition(reach, &mut arguments);
    let suspects = all_suspects("tenant_id, user_id, status, retry_count, updated_at", "$1", "$2");
    let sql =
        format!("{suspects} SELECT status, retry_count, updated_at FROM suspects WHERE {whose} LIMIT $3");
    let found: Vec<(String, i64, Time)> = tx.rows(sql, arguments).await?;
    let suspects = found.into_iter().map(|(status, retry_count, updated_at)| Suspect {
        status,
        retry_count,
        updated_at,
    });
    Ok(suspects.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_core::caller::TenantUser;
    use landfall_core::clock::Clock;
    use landfall_store::Db;

    #[tokio::test]
    async fn a_users_files_that_await_their_bytes_are_not_looked_at_until_their_time_is_over() {
        let folder = tempfile::tempdir().expect("a folder");
        let db = Db::open(&format!("sqlite://{}/a.db", folder.path().display()), 2).await.expect("it opens");
        let now = Clock::System.now();
        let mut arguments = args![now, now];
        let whose = reach::condition(&Reach::User(TenantUser::new("acme", "alice")), &mut arguments);
        let suspects = all_suspects("tenant_id, user_id", "$1", "$2");
        let sql = format!("EXPLAIN QUERY PLAN {suspects} SELECT 1 FROM suspects WHERE {whose}");
        let mut tx = db.read().await.expect("a connection");
        let plan: Vec<(i64, i64, i64, String)> = tx.rows(sql, arguments).await.expect("a plan");
        let of_files: Vec<&str> =
            plan.iter().map(|(.., step)| &step[..]).filter(|step| step.contains(" files ")).collect();
        for index in [
            "files_claimed",
            "files_awaiting_confirmation (upload_until>? AND upload_until<?)",
            "files_not_due",
        ] {
            assert!(of_files.iter().any(|step| step.contains(index)), "{index}: {of_files:#?}");
        }
        assert_eq!(of_files.len(), 3, "{of_files:#?}");
    }
}
