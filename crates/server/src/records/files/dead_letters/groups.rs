//! Dead letters by their causes.

use chrono::TimeDelta;
use uuid::Uuid;

use super::Filter;
use landfall_api::dead_letters::{Group, GroupOwner, GroupOwners, Sample};
use landfall_core::clock::Time;
use landfall_core::failure::{Code, Help};
use landfall_core::lifecycle::{Stage, Status};
use landfall_core::reason;
use landfall_store::{Arg, Error};
use landfall_store::{Tx, args, places};

/// The hours of a trend.
const HOURS: usize = 24;
/// Owners that are named; the others are counted.
const NAMED_OWNERS: i64 = 5;

#[derive(Debug, landfall_store::FromRow)]
struct GroupRow {
    fingerprint: String,
    #[row(try_from = "String")]
    stage: Stage,
    code: String,
    file_id: Uuid,
    file_name: String,
    message: String,
    count: i64,
    first_seen: Time,
    last_seen: Time,
}

impl From<GroupRow> for Group {
    fn from(row: GroupRow) -> Self {
        // A newer version may have written a code that this one does not know.
        let code = Code::parse(&row.code).unwrap_or(Code::Unknown);
        Self {
            fingerprint: row.fingerprint,
            stage: row.stage,
            sample: Sample {
                file_id: row.file_id,
                file_name: row.file_name,
                message: reason::sentences(&row.code, &row.message, Status::Failed),
            },
            code: row.code,
            count: row.count,
            first_seen: row.first_seen,
            last_seen: row.last_seen,
            trend: vec![0; HOURS],
            owners: GroupOwners::default(),
            retry_helps: code.help() == Help::Retry,
            advice: format!("{}.", code.advice()),
        }
    }
}

/// The causes of most dead letters, the largest first. Must run in a snapshot.
pub async fn groups(tx: &mut Tx, filter: &Filter, limit: i64, now: Time) -> Result<Vec<Group>, Error> {
    let mut groups = largest(tx, filter, limit).await?;
    if !groups.is_empty() {
        add_owners(tx, filter, &mut groups).await?;
        add_trends(tx, filter, &mut groups, now).await?;
    }
    Ok(groups)
}

async fn largest(tx: &mut Tx, filter: &Filter, limit: i64) -> Result<Vec<Group>, Error> {
    let mut arguments = args![limit];
    let counted = filter.condition("files", &mut arguments);
    let sampled = filter.condition("s", &mut arguments);
    let rows: Vec<GroupRow> = tx.rows(
        format!(
            "SELECT g.fingerprint, f.error_stage AS stage, f.error_code AS code, f.id AS file_id, f.file_name,
                    f.error_message AS message, g.count, g.first_seen, g.last_seen
             FROM (SELECT fingerprint, CAST(SUM(count) AS BIGINT) AS count, MIN(first_seen) AS first_seen,
                          MAX(last_seen) AS last_seen
                   -- By owner first, as the index is ordered: it alone is read, also for all owners.
                   FROM (SELECT error_fingerprint AS fingerprint, COUNT(*) AS count, MIN(failed_at) AS first_seen,
                                MAX(failed_at) AS last_seen
                         FROM files WHERE {counted} GROUP BY tenant_id, user_id, error_fingerprint) AS u
                   GROUP BY fingerprint ORDER BY 2 DESC, fingerprint LIMIT $1) AS g
             JOIN files f ON f.id = (SELECT s.id FROM files s
                                     WHERE {sampled} AND s.error_fingerprint = g.fingerprint
                                       AND s.failed_at = g.last_seen
                                     ORDER BY s.id DESC LIMIT 1)
             ORDER BY g.count DESC, g.fingerprint"
        ),
        arguments,
    )
    .await?;
    Ok(rows.into_iter().map(Group::from).collect())
}

/// The condition that a dead letter is of one of these groups.
fn of_groups(groups: &[Group], arguments: &mut Vec<Arg>) -> String {
    let places = places(groups.iter().map(|group| &group.fingerprint), arguments);
    format!("files.error_fingerprint IN ({places})")
}

fn find<'a>(groups: &'a mut [Group], fingerprint: &str) -> Option<&'a mut Group> {
    groups.iter_mut().find(|group| group.fingerprint == fingerprint)
}

async fn add_owners(tx: &mut Tx, filter: &Filter, groups: &mut [Group]) -> Result<(), Error> {
    let mut arguments = args![NAMED_OWNERS];
    let counted = filter.condition("files", &mut arguments);
    let of_groups = of_groups(groups, &mut arguments);
    let owners: Vec<(String, String, String, i64, i64)> = tx
        .rows(
            format!(
                "SELECT fingerprint, tenant_id, user_id, count, owners
                 FROM (SELECT u.*, COUNT(*) OVER (PARTITION BY fingerprint) AS owners,
                              ROW_NUMBER() OVER (PARTITION BY fingerprint ORDER BY count DESC, tenant_id, user_id)
                                  AS place
                       FROM (SELECT error_fingerprint AS fingerprint, tenant_id, user_id, COUNT(*) AS count
                             FROM files WHERE {counted} AND {of_groups}
                             GROUP BY tenant_id, user_id, error_fingerprint) AS u) AS ranked
                 WHERE place <= $1 ORDER BY fingerprint, place"
            ),
            arguments,
        )
        .await?;
    for (fingerprint, tenant_id, user_id, count, owners) in owners {
        if let Some(group) = find(groups, &fingerprint) {
            group.owners.count = owners;
            group.owners.top.push(GroupOwner { tenant_id, user_id, count });
        }
    }
    Ok(())
}

/// Counts what failed in each of the last hours. The last of them ends now.
async fn add_trends(tx: &mut Tx, filter: &Filter, groups: &mut [Group], now: Time) -> Result<(), Error> {
    let mut arguments = args![];
    let mut hours = Vec::with_capacity(HOURS);
    for (place, ago) in (0..HOURS).rev().enumerate() {
        let end = now - TimeDelta::hours(i64::try_from(ago).unwrap_or_default());
        arguments.extend(args![place, end - TimeDelta::hours(1), end]);
        hours.push(format!("(${}, ${}, ${})", place * 3 + 1, place * 3 + 2, place * 3 + 3));
    }
    let counted = filter.condition("files", &mut arguments);
    let of_groups = of_groups(groups, &mut arguments);
    // An hour is a range of the index of dead letters by their time.
    let found: Vec<(String, i64, i64)> = tx
        .rows(
            format!(
                "SELECT files.error_fingerprint, hours.column1, COUNT(*) FROM (VALUES {}) AS hours
                 JOIN files ON files.failed_at > hours.column2 AND files.failed_at <= hours.column3
                 WHERE {counted} AND {of_groups} GROUP BY files.error_fingerprint, hours.column1",
                hours.join(", ")
            ),
            arguments,
        )
        .await?;
    for (fingerprint, place, count) in found {
        let place = usize::try_from(place).unwrap_or(usize::MAX);
        if let Some(slot) = find(groups, &fingerprint).and_then(|group| group.trend.get_mut(place)) {
            *slot = count;
        }
    }
    Ok(())
}
