//! The list of files, in each of its orders.
//!
//! One page costs the same whatever number of files there is. A list without filters follows the index of its order, in the
//! table `listed_files`. With filters there are two ways. If some index has only few files that can match, these are found and
//! sorted. Otherwise the list follows the index of its order, and a limited number of rows is compared with the filters
//! ([`MAX_COMPARED`]).

mod narrow;
mod position;
mod wanted;

use std::collections::BTreeMap;

use landfall_core::caller::Reach;
use landfall_core::clock::Time;
use landfall_core::lifecycle::Status;
use landfall_core::states::FileSort;
use landfall_store::{Arg, Error, Tx, places};
use uuid::Uuid;

use crate::records::file::File;
use crate::records::reach;
use narrow::Narrow;
use position::After;
pub use position::{Position, Sorting};
pub use wanted::Wanted;

/// The maximum number of rows that one request compares with its filters. If there are more, the page may have few files or
/// none, and the list continues behind the last that was compared.
pub const MAX_COMPARED: i64 = 5_000;
/// How far the time in the id of a file may be from the time of its registration. A process whose clock is set back makes ids
/// that are ahead of the time, until the clock has caught up.
const MAX_ID_DRIFT: chrono::TimeDelta = chrono::TimeDelta::days(1);
/// The tables that a list is taken from, and what the filters and the orders need to know of their rows.
const FILES: &str = "files";
const FILES_COLUMNS: &str = "id, tenant_id, user_id, batch_id, file_name, size_bytes, status, error_code, \
                             warning_count, created_at, deleted_at";
const LISTED: &str = "listed_files";
const LISTED_COLUMNS: &str = "id, tenant_id, user_id, file_name, size_bytes, created_at";

/// A list of files, behind a position.
#[derive(Debug)]
pub struct Listing {
    sorting: Sorting,
    /// The few files that the list is taken from, if it is not all.
    found: Option<Found>,
    /// What every row meets, along the index.
    conditions: Vec<String>,
    /// Lists that make up this one, each along an index of its own. None if it is one list.
    branches: Vec<Branch>,
    /// What rows are compared with.
    compared: Vec<String>,
    arguments: Vec<Arg>,
    /// How many of the arguments come before those of `compared`.
    uncompared: usize,
}

/// Few files: a table and a condition.
#[derive(Debug)]
struct Found {
    table: &'static str,
    rows: String,
}

#[derive(Debug)]
struct Branch {
    table: &'static str,
    condition: String,
    /// Whether all its rows have the same key, so that only their ids have an order.
    is_of_one_key: bool,
}

impl Listing {
    /// The list that is found in the cheapest way.
    pub async fn open(
        tx: &mut Tx,
        wanted: &Wanted,
        sorting: Sorting,
        after: Option<&Position>,
    ) -> Result<Self, Error> {
        let walked = Self::new(wanted, sorting, after);
        let narrow = Narrow::find(tx, wanted, !walked.compared.is_empty()).await?;
        Ok(narrow.map_or(walked, |narrow| Self::taken_from(tx, narrow, wanted, sorting, after)))
    }

    /// The list along the index of its order, of which a limited number of rows is compared at a time.
    pub fn new(wanted: &Wanted, sorting: Sorting, after: Option<&Position>) -> Self {
        let mut listing = Self::unfiltered(None, Vec::new(), wanted, sorting, after);
        let is_by_time = sorting.by == FileSort::CreatedAt;
        if is_by_time {
            listing.conditions.extend(id_bounds(wanted, &mut listing.arguments));
            listing.conditions.extend(wanted.created(&mut listing.arguments));
        }
        let mut of_files = Vec::new();
        if is_by_time && matches!(wanted.reach, Reach::User(_)) {
            listing.branches = branches(&wanted.states);
        } else {
            of_files.extend(wanted.in_states());
        }
        listing.uncompared = listing.arguments.len();
        if !is_by_time {
            listing.compared.extend(wanted.created(&mut listing.arguments));
        }
        listing.compared.extend(wanted.of_lists(&mut listing.arguments));
        of_files.extend(wanted.of_files(&mut listing.arguments));
        let of_files = listing.in_files("walked", of_files);
        listing.compared.extend(of_files);
        listing
    }

    /// The list of a few files, all of which are compared and sorted.
    fn taken_from(
        tx: &Tx,
        narrow: Narrow,
        wanted: &Wanted,
        sorting: Sorting,
        after: Option<&Position>,
    ) -> Self {
        let mut arguments = Vec::new();
        let found = Found { table: narrow.table(), rows: narrow.rows(tx, wanted, &mut arguments) };
        let mut listing = Self::unfiltered(Some(found), arguments, wanted, sorting, after);
        listing.conditions.extend(wanted.created(&mut listing.arguments));
        listing.conditions.extend(wanted.of_lists(&mut listing.arguments));
        let mut of_files: Vec<String> = wanted.in_states().into_iter().collect();
        of_files.extend(wanted.of_files(&mut listing.arguments));
        let of_files = listing.in_files("found", of_files);
        listing.conditions.extend(of_files);
        listing.uncompared = listing.arguments.len();
        listing
    }

    fn unfiltered(
        found: Option<Found>,
        mut arguments: Vec<Arg>,
        wanted: &Wanted,
        sorting: Sorting,
        after: Option<&Position>,
    ) -> Self {
        let mut conditions = vec![reach::condition(&wanted.reach, &mut arguments)];
        let mut branches = Vec::new();
        match after.map(|after| sorting.after(after, &mut arguments)) {
            None => {}
            Some(After::One(condition)) => conditions.push(condition),
            Some(After::Either(one, other)) if found.is_some() => {
                conditions.push(format!("({one} OR {other})"));
            }
            Some(After::Either(one, other)) => {
                let branch = |condition, is_of_one_key| Branch { table: LISTED, condition, is_of_one_key };
                branches.extend([branch(one, true), branch(other, false)]);
            }
        }
        let uncompared = arguments.len();
        Self { sorting, found, conditions, branches, compared: Vec::new(), arguments, uncompared }
    }

    /// The table that the rows come from.
    fn table(&self) -> &'static str {
        match (&self.found, self.branches.first()) {
            (Some(found), _) => found.table,
            (None, Some(branch)) if branch.table == LISTED => LISTED,
            (None, Some(_)) => FILES,
            (None, None) => LISTED,
        }
    }

    fn columns(&self) -> &'static str {
        if self.table() == LISTED { LISTED_COLUMNS } else { FILES_COLUMNS }
    }

    /// Conditions on columns that only `files` has, for rows that are called `rows`. Rows of the lists are looked up there, one
    /// by one: with the offset PostgreSQL does not make a join of it, for which it might read the whole table.
    fn in_files(&self, rows: &str, conditions: Vec<String>) -> Vec<String> {
        if conditions.is_empty() || self.table() != LISTED {
            return conditions;
        }
        let conditions = conditions.join(" AND ");
        vec![format!(
            "EXISTS (SELECT 1 FROM files WHERE files.id = {rows}.id AND {conditions} LIMIT 1 OFFSET 0)"
        )]
    }

    /// The tables that the list is made of. The databases would rather walk through all files of a user in the order of the
    /// list than find the few that match, so those are found first.
    fn with(&self) -> String {
        let columns = self.columns();
        let table =
            |name: &str, rows: &str| format!("WITH {name} AS MATERIALIZED (SELECT {columns} FROM {rows})");
        match &self.found {
            Some(found) => table("found", &found.rows),
            None if self.branches.iter().any(|branch| branch.table == HELD) => {
                table(HELD, "files WHERE claimed_by IS NOT NULL")
            }
            None => String::new(),
        }
    }

    /// The first rows of the list, in its order, before they are compared.
    fn walk(&self, limit: i64) -> String {
        let (order, columns) = (self.sorting.sql(""), self.columns());
        let mut conditions = self.conditions.join(" AND ");
        if self.table() != LISTED {
            conditions.push_str(" AND deleted_at IS NULL");
        }
        let key = self.sorting.key();
        let rows = |table: &str, more: &str, order: &str| {
            format!(
                "SELECT {columns}{key} FROM {table} WHERE {conditions}{more} ORDER BY {order} LIMIT {limit}"
            )
        };
        let by_id = Sorting { by: FileSort::CreatedAt, ..self.sorting }.sql("");
        let of = |branch: &Branch| {
            let order = if branch.is_of_one_key { &by_id } else { &order };
            rows(branch.table, &format!(" AND {}", branch.condition), order)
        };
        match self.branches.as_slice() {
            [] => rows(if self.found.is_some() { "found" } else { LISTED }, "", &order),
            [branch] => of(branch),
            branches => {
                let all: Vec<String> = branches
                    .iter()
                    .map(|branch| format!("SELECT * FROM ({}) AS branch", of(branch)))
                    .collect();
                let all = all.join(" UNION ALL ");
                let order = self.sorting.walked();
                format!("SELECT * FROM ({all}) AS branches ORDER BY {order} LIMIT {limit}")
            }
        }
    }

    /// The ids of the first files of the list.
    fn ids(&self, limit: i64, offset: i64) -> String {
        let (rows, condition) = if self.compared.is_empty() {
            (self.walk(limit.saturating_add(offset)), String::new())
        } else {
            (self.walk(MAX_COMPARED), format!("WHERE {}", self.compared.join(" AND ")))
        };
        let order = self.sorting.walked();
        format!(
            "SELECT id FROM ({rows}) AS walked {condition} ORDER BY {order} LIMIT {limit} OFFSET {offset}"
        )
    }

    /// The statement for the first files of the list, with its arguments.
    pub fn statement(&self, limit: i64, offset: i64) -> (String, Vec<Arg>) {
        // The page is sorted once more: it is so few that the database must not look for an index that has this order.
        let sql = format!(
            "{} SELECT files.* FROM ({}) AS listed CROSS JOIN files WHERE files.id = listed.id ORDER BY {}",
            self.with(),
            self.ids(limit, offset),
            self.sorting.sql("files.")
        );
        (sql, self.arguments.clone())
    }

    /// The first files of the list.
    pub async fn first(&self, tx: &mut Tx, limit: i64, offset: i64) -> Result<Vec<File>, Error> {
        let (sql, arguments) = self.statement(limit, offset);
        tx.rows(sql, arguments).await
    }

    /// The ids of the first files of the list, and where it continues. Without that, it has ended.
    pub async fn next_ids(&self, tx: &mut Tx, limit: i64) -> Result<(Vec<Uuid>, Option<Position>), Error> {
        let sql = format!("{} {}", self.with(), self.ids(limit, 0));
        let ids: Vec<(Uuid,)> = tx.rows(sql, self.arguments.clone()).await?;
        let ids: Vec<Uuid> = ids.into_iter().map(|(id,)| id).collect();
        let is_full = i64::try_from(ids.len()).is_ok_and(|found| found >= limit);
        let next = match ids.last() {
            Some(last) if is_full && self.sorting.by == FileSort::CreatedAt => Some(Position::at(*last)),
            _ => self.last_compared(tx).await?,
        };
        Ok((ids, next))
    }

    /// The last file that is compared with the filters, if there are more.
    pub async fn last_compared(&self, tx: &mut Tx) -> Result<Option<Position>, Error> {
        if self.compared.is_empty() {
            return Ok(None);
        }
        let sql = format!(
            "{} SELECT id, file_name, size_bytes FROM ({}) AS walked ORDER BY {} LIMIT 1 OFFSET {}",
            self.with(),
            self.walk(MAX_COMPARED),
            self.sorting.walked(),
            MAX_COMPARED - 1
        );
        let last: Option<(Uuid, String, i64)> =
            tx.row(sql, self.arguments[..self.uncompared].to_vec()).await?;
        Ok(last.map(|(id, name, size)| self.sorting.position_of(id, &name, size)))
    }

    /// How many files there are in each state, of the first `most` rows, and whether there are more rows.
    pub async fn count(&self, tx: &mut Tx, most: i64) -> Result<(BTreeMap<Status, i64>, bool), Error> {
        let status = if self.table() == LISTED {
            "(SELECT files.status FROM files WHERE files.id = walked.id)"
        } else {
            "status"
        };
        let matching = if self.compared.is_empty() {
            status.to_owned()
        } else {
            format!("CASE WHEN {} THEN {status} END", self.compared.join(" AND "))
        };
        // Without a status are those that do not match.
        let sql = format!(
            "{} SELECT matching, COUNT(*) FROM (SELECT {matching} AS matching FROM ({}) AS walked) AS counted
             GROUP BY matching",
            self.with(),
            self.walk(most.saturating_add(1)),
        );
        let rows: Vec<(Option<String>, i64)> = tx.rows(sql, self.arguments.clone()).await?;
        let walked: i64 = rows.iter().map(|(_, walked)| walked).sum();
        let count = |(status, matching): (Option<String>, i64)| Some((status?.parse().ok()?, matching));
        Ok((rows.into_iter().filter_map(count).collect(), walked > most))
    }
}

/// Those of these files that are still wanted, locked until the transaction ends, in the order of their ids.
pub async fn lock_wanted(tx: &mut Tx, wanted: &Wanted, ids: &[Uuid]) -> Result<Vec<File>, Error> {
    let mut arguments = Vec::new();
    let mut conditions =
        vec!["deleted_at IS NULL".to_owned(), reach::condition(&wanted.reach, &mut arguments)];
    conditions.extend(wanted.in_states());
    conditions.extend(wanted.created(&mut arguments));
    conditions.extend(wanted.of_lists(&mut arguments));
    conditions.extend(wanted.of_files(&mut arguments));
    lock(tx, ids, &conditions.join(" AND "), arguments).await
}

/// Those of these files that exist, locked until the transaction ends, in the order of their ids.
pub async fn lock_all(tx: &mut Tx, ids: &[Uuid]) -> Result<Vec<File>, Error> {
    lock(tx, ids, "1 = 1", Vec::new()).await
}

/// Those of these files that exist, in the order of their ids.
pub async fn find_all(tx: &mut Tx, ids: &[Uuid]) -> Result<Vec<File>, Error> {
    select(tx, ids, "1 = 1", Vec::new(), "").await
}

async fn lock(tx: &mut Tx, ids: &[Uuid], condition: &str, arguments: Vec<Arg>) -> Result<Vec<File>, Error> {
    let lock = tx.for_update();
    select(tx, ids, condition, arguments, lock).await
}

async fn select(
    tx: &mut Tx,
    ids: &[Uuid],
    condition: &str,
    mut arguments: Vec<Arg>,
    lock: &str,
) -> Result<Vec<File>, Error> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let places = places(ids.iter().copied(), &mut arguments);
    let sql = format!("SELECT * FROM files WHERE id IN ({places}) AND {condition} ORDER BY id {lock}");
    tx.rows(sql, arguments).await
}

const HELD: &str = "held";
/// In these words the index has it on SQLite. PostgreSQL recognises it.
const AT_REST: &str = "(idle_status = 'ready' OR idle_status = 'failed' OR idle_status = 'cancelled')";

/// Lists of a user's files that follow an index each, in its exact terms, as literals, so that the databases use it.
fn branches(states: &[Status]) -> Vec<Branch> {
    let of = |status: &Status, index: &str| Branch {
        table: FILES,
        condition: format!("{} AND {index}", in_state(*status)),
        is_of_one_key: false,
    };
    let mut branches = Vec::new();
    for status in states {
        match status {
            Status::Registered | Status::Uploaded => branches.push(of(status, "upload_until IS NOT NULL")),
            Status::Queued => branches
                .push(of(status, "confirmed_at IS NOT NULL AND ready_at IS NULL AND failed_at IS NULL")),
            Status::Ready | Status::Failed | Status::Cancelled => {
                branches.push(of(status, AT_REST));
            }
            // The list has none.
            Status::Deleted => branches.push(of(status, "deleted_at IS NOT NULL")),
            Status::Scanning | Status::Extracting | Status::Chunking | Status::Embedding => {}
        }
    }
    // Workers hold few files at a time.
    let running: Vec<String> =
        states.iter().filter(|status| status.is_running()).map(|status| format!("'{status}'")).collect();
    if !running.is_empty() {
        let condition = format!("status IN ({})", running.join(", "));
        branches.push(Branch { table: HELD, condition, is_of_one_key: false });
    }
    branches
}

/// Idle files have their state in a column that changes only with it, and not with each stage: indexes have that column.
fn in_state(status: Status) -> String {
    if status.is_idle() { format!("idle_status = '{status}'") } else { format!("status = '{status}'") }
}

/// The ids that files of this time can have, which begin with it.
fn id_bounds(wanted: &Wanted, arguments: &mut Vec<Arg>) -> Vec<String> {
    let id = |time: Time| {
        let milliseconds = u128::try_from(time.timestamp_millis()).unwrap_or(0).min((1 << 48) - 1);
        Uuid::from_u128(milliseconds << 80)
    };
    let after = wanted.created_after.and_then(|time| time.checked_sub_signed(MAX_ID_DRIFT));
    let before = wanted.created_before.and_then(|time| time.checked_add_signed(MAX_ID_DRIFT));
    let mut conditions = Vec::new();
    for (sign, time) in [(">=", after), ("<", before)] {
        if let Some(time) = time {
            arguments.push(id(time).into());
            conditions.push(format!("id {sign} ${}", arguments.len()));
        }
    }
    conditions
}

/// A pattern for `LIKE` with `ESCAPE '!'` that matches exactly these characters.
pub fn contains(part: &str) -> String {
    let literal =
        part.to_lowercase().replace('!', "!!").replace('%', "!%").replace('_', "!_").replace('\0', "");
    format!("%{literal}%")
}

#[cfg(test)]
mod tests;
