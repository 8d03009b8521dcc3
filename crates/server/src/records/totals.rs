//! How many files each user has in each state, kept in the transactions that move them, so that no request has to count a
//! million rows to answer how many they are.
//!
//! A file that waits for a stage and one that is being worked on there are counted together: a claim then changes no total
//! and waits for no other transaction. Those that are being worked on are few, and are counted where they are asked for.

use std::collections::BTreeMap;

use super::files::{counts, held};
use super::reach;
use landfall_core::caller::{Reach, TenantUser};
use landfall_core::lifecycle::{Stage, Status};
use landfall_store::Error;
use landfall_store::{Rows, Tx, args};

/// The columns, in the order of their places in `Counted`.
pub const COLUMNS: [&str; 9] = [
    "registered",
    "uploaded",
    "at_scan",
    "at_extract",
    "at_chunk",
    "at_embed",
    "ready",
    "failed",
    "cancelled",
];

type Counted = [i64; COLUMNS.len()];

/// Where a file in this state is counted; `next_stage` is the stage that it waits for, if it is in the queue.
fn place(status: Status, next_stage: Option<Stage>) -> Option<usize> {
    let at = |stage: Stage| match stage {
        Stage::Scan => 2,
        Stage::Extract => 3,
        Stage::Chunk => 4,
        Stage::Embed => 5,
    };
    match status {
        Status::Registered => Some(0),
        Status::Uploaded => Some(1),
        Status::Queued => next_stage.map(at),
        Status::Scanning | Status::Extracting | Status::Chunking | Status::Embedding => {
            status.stage().map(at)
        }
        Status::Ready => Some(6),
        Status::Failed => Some(7),
        Status::Cancelled => Some(8),
        Status::Deleted => None,
    }
}

/// By how much a transaction changes the totals, by user and tenant.
#[derive(Debug, Default)]
pub struct Totals(BTreeMap<(String, String), Counted>);

impl Totals {
    pub fn moved(
        &mut self,
        user: &str,
        tenant: &str,
        from: Option<Status>,
        to: Status,
        next_stage: Option<Stage>,
    ) {
        let (from, to) = (from.and_then(|from| place(from, next_stage)), place(to, next_stage));
        if from == to {
            return;
        }
        let counted = self.0.entry((user.to_owned(), tenant.to_owned())).or_default();
        for (place, step) in [(from, -1), (to, 1)] {
            if let Some(place) = place {
                counted[place] += step;
            }
        }
    }

    /// Adds them to what was counted. This is the last thing that a transaction does, and it takes the rows in the order of
    /// their names: no transaction holds one while it waits for anything else, and no two wait for one another.
    pub async fn write(self, tx: &mut Tx) -> Result<(), Error> {
        let mut rows = Rows::default();
        for ((user, tenant), counted) in self.0 {
            if counted.iter().any(|change| *change != 0) {
                let mut row = args![user, tenant];
                row.extend(counted.map(Into::into));
                rows.push(row);
            }
        }
        if rows.is_empty() {
            return Ok(());
        }
        let sums =
            COLUMNS.map(|column| format!("{column} = user_totals.{column} + excluded.{column}")).join(", ");
        tx.insert(
            &format!("user_totals (user_id, tenant_id, {})", COLUMNS.join(", ")),
            rows,
            &format!("ON CONFLICT (user_id, tenant_id) DO UPDATE SET {sums}"),
        )
        .await
    }
}

/// How many files there are in each state, of some owners.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Distribution {
    counted: Counted,
    running: BTreeMap<Stage, i64>,
}

impl Distribution {
    /// To be asked in a snapshot: what is at work is counted apart from what waits.
    pub async fn load(tx: &mut Tx, reach: &Reach) -> Result<Self, Error> {
        let mut arguments = args![];
        let whose = reach::condition(reach, &mut arguments);
        let sums = COLUMNS.map(|column| format!("CAST(COALESCE(SUM({column}), 0) AS BIGINT) AS {column}"));
        let sql = format!("SELECT {} FROM user_totals WHERE {whose}", sums.join(", "));
        let sums: Option<Row> = tx.row(sql, arguments).await?;
        let mut distribution =
            Self { counted: sums.map(Row::counted).unwrap_or_default(), ..Self::default() };
        let running = held::count_by_status(tx, reach).await?;
        for (status, count) in running {
            if let Some(stage) = status.parse::<Status>().ok().and_then(Status::stage) {
                distribution.running.insert(stage, count);
            }
        }
        Ok(distribution)
    }

    /// Files that wait for a stage: for a worker, a service, or their next attempt.
    pub fn waiting(&self, stage: Stage) -> i64 {
        self.at(Status::Queued, Some(stage)) - self.running(stage)
    }

    pub fn running(&self, stage: Stage) -> i64 {
        self.running.get(&stage).copied().unwrap_or(0)
    }

    pub fn count(&self, status: Status) -> i64 {
        match (status, status.stage()) {
            (_, Some(stage)) => self.running(stage),
            (Status::Queued, _) => Stage::ALL.into_iter().map(|stage| self.waiting(stage)).sum(),
            _ => self.at(status, None),
        }
    }

    fn at(&self, status: Status, stage: Option<Stage>) -> i64 {
        place(status, stage).map_or(0, |place| self.counted[place])
    }
}

/// The tenants that have a user of this name, up to `most`.
pub async fn tenants_of(tx: &mut Tx, user: &str, most: i64) -> Result<Vec<String>, Error> {
    let sql = "SELECT tenant_id FROM user_totals WHERE user_id = $1 ORDER BY tenant_id LIMIT $2";
    let tenants: Vec<(String,)> = tx.rows(sql, args![user, most]).await?;
    Ok(tenants.into_iter().map(|(tenant,)| tenant).collect())
}

/// The tenants with the most files that wait in the queue or are being worked on, with their number.
pub async fn busiest_tenants(tx: &mut Tx, limit: usize) -> Result<Vec<(String, i64)>, Error> {
    tx.rows(
        "SELECT tenant_id, CAST(SUM(at_scan + at_extract + at_chunk + at_embed) AS BIGINT) AS files FROM user_totals
         GROUP BY tenant_id HAVING SUM(at_scan + at_extract + at_chunk + at_embed) > 0
         ORDER BY files DESC, tenant_id LIMIT $1",
        args![limit],
    )
    .await
}

/// Users with files at a stage, with their number: up to `limit` of these owners.
pub async fn users_at(
    tx: &mut Tx,
    reach: &Reach,
    stage: Stage,
    limit: usize,
) -> Result<Vec<(TenantUser, i64)>, Error> {
    let mut arguments = args![limit];
    let whose = reach::condition(reach, &mut arguments);
    let sql = format!(
        "SELECT tenant_id, user_id, at_{stage} FROM user_totals WHERE {whose} AND at_{stage} > 0 LIMIT $1"
    );
    let users: Vec<(String, String, i64)> = tx.rows(sql, arguments).await?;
    Ok(users.into_iter().map(|(tenant, user, files)| (TenantUser::new(tenant, user), files)).collect())
}

/// Recounts the files of all users of this name, whatever their tenants. Returns whether that changed anything.
pub async fn recount_named(tx: &mut Tx, user: &str) -> Result<bool, Error> {
    let sql = "SELECT tenant_id FROM user_totals WHERE user_id = $1
               UNION SELECT tenant_id FROM files WHERE user_id = $1 AND deleted_at IS NULL ORDER BY tenant_id";
    let tenants: Vec<(String,)> = tx.rows(sql, args![user]).await?;
    let mut changed = false;
    for (tenant,) in tenants {
        changed |= recount(tx, &TenantUser::new(tenant, user)).await?;
    }
    Ok(changed)
}

/// Recounts a user's files. Returns whether that changed anything.
///
/// Every move of a file holds its owner's totals from the end of its transaction to the commit. So what is counted once they
/// are held is what they should say.
pub async fn recount(tx: &mut Tx, owner: &TenantUser) -> Result<bool, Error> {
    let TenantUser { tenant, user } = owner;
    let opened = tx
        .execute(
            "INSERT INTO user_totals (user_id, tenant_id)
             SELECT DISTINCT user_id, tenant_id FROM files
             WHERE tenant_id = $1 AND user_id = $2 AND deleted_at IS NULL
             ON CONFLICT DO NOTHING",
            args![tenant, user],
        )
        .await?;
    let lock = tx.for_update();
    let kept = format!("SELECT ready FROM user_totals WHERE tenant_id = $1 AND user_id = $2 {lock}");
    let kept: Option<(i64,)> = tx.row(kept, args![tenant, user]).await?;
    if kept.is_none() {
        return Ok(false);
    }
    let rows = counts::of_user(tx, owner).await?;
    let count = |column: &str| rows.iter().find(|(name, _)| name == column).map_or(0, |(_, count)| *count);
    let set: Vec<String> = COLUMNS.iter().zip(3..).map(|(name, at)| format!("{name} = ${at}")).collect();
    let differs: Vec<String> = COLUMNS.iter().zip(3..).map(|(name, at)| format!("{name} <> ${at}")).collect();
    let mut arguments = args![tenant, user];
    arguments.extend(COLUMNS.map(|column| count(column).into()));
    let sql = format!(
        "UPDATE user_totals SET {} WHERE tenant_id = $1 AND user_id = $2 AND ({})",
        set.join(", "),
        differs.join(" OR ")
    );
    let changed = tx.execute(sql, arguments).await?;
    Ok(opened + changed > 0)
}

#[derive(landfall_store::FromRow)]
struct Row {
    registered: i64,
    uploaded: i64,
    at_scan: i64,
    at_extract: i64,
    at_chunk: i64,
    at_embed: i64,
    ready: i64,
    failed: i64,
    cancelled: i64,
}

impl Row {
    fn counted(self) -> Counted {
        [
            self.registered,
            self.uploaded,
            self.at_scan,
            self.at_extract,
            self.at_chunk,
            self.at_embed,
            self.ready,
            self.failed,
            self.cancelled,
        ]
    }
}
