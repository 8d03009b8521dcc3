//! The list of files, newest first.

use landfall_core::caller::Reach;
use landfall_core::lifecycle::Status;
use landfall_store::{Arg, Error, Tx, args};
use uuid::Uuid;

use crate::records::file::File;
use crate::records::reach;

/// The maximum number of names that one request compares. If there are more, the page may have few files or none, and
/// the list continues behind the last that was compared.
pub const MAX_NAMES_COMPARED: i64 = 5_000;

/// Which files are wanted.
#[derive(Debug, Clone)]
pub struct Wanted<'a> {
    pub reach: &'a Reach,
    /// States that are found along the same index; none matches every state.
    pub states: &'a [Status],
    /// `None` matches every batch, and files without one.
    pub batch: Option<Uuid>,
    /// The MD5s that the bytes may have. `None` matches all files.
    pub md5s: Option<Vec<String>>,
}

/// A list of files, newest first, behind one of them.
#[derive(Debug)]
pub struct Listing {
    conditions: String,
    arguments: Vec<Arg>,
    source: Source,
}

/// The rows that a list is taken from. The databases would rather walk through all files of a user in the order of the list
/// than find the few that match, so those are found first.
#[derive(Debug)]
enum Source {
    All,
    /// What workers hold: few files at a time.
    Held,
    /// The condition on the MD5.
    Bytes(String),
}

impl Source {
    fn table(&self) -> &'static str {
        match self {
            Self::All => "files",
            Self::Held | Self::Bytes(_) => "found",
        }
    }

    fn definition(&self) -> String {
        let condition = match self {
            Self::All => return String::new(),
            Self::Held => "claimed_by IS NOT NULL",
            Self::Bytes(condition) => condition,
        };
        format!("WITH found AS MATERIALIZED (SELECT * FROM files WHERE {condition})")
    }
}

impl Listing {
    pub fn new(wanted: &Wanted<'_>, before: Uuid) -> Self {
        let mut arguments = args![before];
        let whose = reach::condition(wanted.reach, &mut arguments);
        let conditions = format!("id < $1 AND deleted_at IS NULL AND {whose}");
        let mut listing = Self { conditions, arguments, source: Source::All };
        if let Some(first) = wanted.states.first() {
            listing.in_states(*first, wanted.states);
        }
        if let Some(batch) = wanted.batch {
            listing.and("batch_id = ", batch);
        }
        if let Some(md5s) = &wanted.md5s {
            listing.with_bytes(md5s);
        }
        listing
    }

    fn and(&mut self, condition: &str, value: impl Into<Arg>) {
        self.arguments.push(value.into());
        self.conditions.push_str(&format!(" AND {condition}${}", self.arguments.len()));
    }

    /// In the exact terms of the partial indexes, as literals, so that the databases use them.
    fn in_states(&mut self, first: Status, states: &[Status]) {
        let index = match first {
            Status::Registered | Status::Uploaded => "upload_until IS NOT NULL",
            Status::Queued => "confirmed_at IS NOT NULL AND ready_at IS NULL AND failed_at IS NULL",
            Status::Scanning | Status::Extracting | Status::Chunking | Status::Embedding => {
                self.source = Source::Held;
                "claimed_by IS NOT NULL"
            }
            Status::Ready | Status::Failed | Status::Cancelled => {
                "status IN ('ready', 'failed', 'cancelled')"
            }
            Status::Deleted => "deleted_at IS NOT NULL",
        };
        let names: Vec<String> = states.iter().map(|status| format!("'{status}'")).collect();
        self.conditions.push_str(&format!(" AND status IN ({}) AND {index}", names.join(", ")));
    }

    /// In the exact terms of the index `files_by_md5`.
    fn with_bytes(&mut self, md5s: &[String]) {
        let mut places = Vec::with_capacity(md5s.len());
        for md5 in md5s {
            self.arguments.push(md5.into());
            places.push(format!("${}", self.arguments.len()));
        }
        let condition =
            format!("COALESCE(md5, declared_md5) IN ({}) AND deleted_at IS NULL", places.join(", "));
        self.source = Source::Bytes(condition);
    }

    fn select(&self, what: &str, limit: i64) -> String {
        format!(
            "{} SELECT {what} FROM {} WHERE {} ORDER BY id DESC LIMIT {limit}",
            self.source.definition(),
            self.source.table(),
            self.conditions
        )
    }

    /// The first files of the list.
    pub async fn first(&self, tx: &mut Tx, limit: i64, offset: i64) -> Result<Vec<File>, Error> {
        tx.rows(format!("{} OFFSET {offset}", self.select("*", limit)), self.arguments.clone()).await
    }

    /// The first files with `part` in their names, of those whose names are compared.
    pub async fn named(&self, tx: &mut Tx, part: &str, limit: i64, offset: i64) -> Result<Vec<File>, Error> {
        let mut arguments = self.arguments.clone();
        arguments.push(contains(part).into());
        let sql = format!(
            "SELECT * FROM files WHERE id IN
                 (SELECT id FROM ({}) AS looked_at WHERE LOWER(file_name) LIKE ${} ESCAPE '!' ORDER BY id DESC LIMIT {} OFFSET {})
             ORDER BY id DESC",
            self.select("id, file_name", MAX_NAMES_COMPARED),
            arguments.len(),
            limit,
            offset
        );
        tx.rows(sql, arguments).await
    }

    /// The last file whose name is compared, if there are more.
    pub async fn last_compared(&self, tx: &mut Tx) -> Result<Option<Uuid>, Error> {
        let last = format!("{} OFFSET {}", self.select("id", 1), MAX_NAMES_COMPARED - 1);
        let last: Option<(Uuid,)> = tx.row(last, self.arguments.clone()).await?;
        Ok(last.map(|(id,)| id))
    }
}

/// A pattern for `LIKE` that matches exactly these characters.
fn contains(part: &str) -> String {
    let literal =
        part.to_lowercase().replace('!', "!!").replace('%', "!%").replace('_', "!_").replace('\0', "");
    format!("%{literal}%")
}

#[cfg(test)]
mod tests {
    use landfall_core::caller::TenantUser;

    use super::*;

    /// Without the order in which the rows are found first, SQLite walks through all files of the user.
    #[tokio::test]
    async fn files_with_certain_bytes_are_found_along_their_index() {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}/landfall.db", folder.path().display());
        let db = landfall_store::Db::open(&url, 4).await.unwrap();
        for reach in
            [Reach::User(TenantUser::new("acme", "ada")), Reach::Tenant("acme".to_owned()), Reach::All]
        {
            let md5s = Some(vec![String::new(), String::new()]);
            let listing =
                Listing::new(&Wanted { reach: &reach, states: &[], batch: None, md5s }, Uuid::max());
            let sql = format!("EXPLAIN QUERY PLAN {}", listing.select("*", 10));
            let plan: Vec<(i64, i64, i64, String)> =
                db.read().await.unwrap().rows(sql, listing.arguments.clone()).await.unwrap();
            let plan: Vec<&str> = plan.iter().map(|(_, _, _, step)| step.as_str()).collect();
            assert!(plan.iter().any(|step| step.contains("USING INDEX files_by_md5")), "{plan:?}");
        }
    }
}
