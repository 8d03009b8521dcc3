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
}

/// A list of files, newest first, behind one of them.
#[derive(Debug)]
pub struct Listing {
    conditions: String,
    arguments: Vec<Arg>,
    source: &'static str,
}

impl Listing {
    pub fn new(wanted: &Wanted<'_>, before: Uuid) -> Self {
        let mut arguments = args![before];
        let whose = reach::condition(wanted.reach, &mut arguments);
        let conditions = format!("id < $1 AND deleted_at IS NULL AND {whose}");
        let mut listing = Self { conditions, arguments, source: "files" };
        if let Some(first) = wanted.states.first() {
            listing.in_states(*first, wanted.states);
        }
        if let Some(batch) = wanted.batch {
            listing.and("batch_id = ", batch);
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
                self.source = "held";
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

    fn select(&self, what: &str, limit: i64) -> String {
        // Few files are held by workers at a time, so they are found first.
        let held = "WITH held AS MATERIALIZED (SELECT * FROM files WHERE claimed_by IS NOT NULL)";
        let with = if self.source == "held" { held } else { "" };
        format!(
            "{with} SELECT {what} FROM {} WHERE {} ORDER BY id DESC LIMIT {limit}",
            self.source, self.conditions
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
