//! The few files that a list can be taken from, where an index has only those.

use landfall_core::lifecycle::Status;
use landfall_store::{Arg, Error, Tx, places};

use super::wanted::Wanted;
use super::{FILES, LISTED, id_bounds};
use crate::records::reach;

/// So many files are found and sorted for one page at most.
const MAX_FOUND: i64 = 10_000;

/// An index that has all files that can match, and perhaps few others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Narrow {
    /// What workers hold: few files at a time.
    Held,
    /// Files with certain bytes.
    Bytes,
    /// The files of a batch.
    Batch,
    WithWarnings,
    /// Files that failed or were cancelled, and those that are tried again.
    WithError,
    /// Files that are not confirmed.
    Unconfirmed,
    /// Files that are confirmed and did not come to their end.
    UnderWay,
    /// Files that were registered in a certain time.
    Registered,
}

impl Narrow {
    /// The index for a list. `is_compared`: without one, rows must be compared with the filters.
    pub async fn find(tx: &mut Tx, wanted: &Wanted, is_compared: bool) -> Result<Option<Self>, Error> {
        let states =
            |all: &[Status]| !wanted.states.is_empty() && wanted.states.iter().all(|s| all.contains(s));
        // Their numbers are limited.
        if wanted.md5s.is_some() {
            return Ok(Some(Self::Bytes));
        }
        if wanted.batch.is_some() {
            return Ok(Some(Self::Batch));
        }
        if !wanted.states.is_empty() && wanted.states.iter().all(|status| status.is_running()) {
            return Ok(Some(Self::Held));
        }
        if !is_compared {
            return Ok(None);
        }
        let under_way =
            [Status::Queued, Status::Scanning, Status::Extracting, Status::Chunking, Status::Embedding];
        let candidates = [
            (wanted.has_warnings, Self::WithWarnings),
            (!wanted.codes.is_empty() || states(&[Status::Failed, Status::Cancelled]), Self::WithError),
            (states(&[Status::Registered, Status::Uploaded]), Self::Unconfirmed),
            (states(&under_way), Self::UnderWay),
            (wanted.created_after.is_some() || wanted.created_before.is_some(), Self::Registered),
        ];
        for (_, narrow) in candidates.into_iter().filter(|(can, _)| *can) {
            let mut arguments = Vec::new();
            let rows = narrow.rows(tx, wanted, &mut arguments);
            let sql =
                format!("SELECT COUNT(*) FROM (SELECT 1 FROM {rows} LIMIT {}) AS counted", MAX_FOUND + 1);
            if tx.number(sql, arguments).await? <= MAX_FOUND {
                return Ok(Some(narrow));
            }
        }
        Ok(None)
    }

    /// The table that has the index.
    pub const fn table(self) -> &'static str {
        match self {
            Self::Registered => LISTED,
            _ => FILES,
        }
    }

    /// The table and the condition.
    pub fn rows(self, tx: &Tx, wanted: &Wanted, arguments: &mut Vec<Arg>) -> String {
        let index = match self {
            Self::Held | Self::Bytes | Self::Batch | Self::Registered => None,
            Self::WithWarnings => Some("files_with_warnings"),
            Self::WithError => Some("files_with_error"),
            Self::Unconfirmed => Some("files_to_confirm"),
            Self::UnderWay => Some("files_under_way"),
        };
        let index = index.map(|index| tx.indexed_by(index)).unwrap_or_default();
        format!("{} {index} WHERE {}", self.table(), self.condition(wanted, arguments))
    }

    /// In the exact terms of the index, so that the databases use it.
    fn condition(self, wanted: &Wanted, arguments: &mut Vec<Arg>) -> String {
        let whose = |arguments: &mut Vec<Arg>| reach::condition(&wanted.reach, arguments);
        let index = match self {
            // Few, or found by other columns than their owners.
            Self::Held => return "claimed_by IS NOT NULL".to_owned(),
            Self::Bytes => {
                let md5s = places(wanted.md5s.as_deref().unwrap_or_default(), arguments);
                return format!("COALESCE(md5, declared_md5) IN ({md5s}) AND deleted_at IS NULL");
            }
            Self::Batch => {
                arguments.push(wanted.batch.into());
                let are_idle = wanted.states.iter().all(|status| status.is_idle());
                let idle = if are_idle { "idle_" } else { "" };
                let states =
                    wanted.in_states().map(|states| format!(" AND {idle}{states}")).unwrap_or_default();
                return format!("batch_id = ${}{states}", arguments.len());
            }
            Self::WithWarnings => "warning_count > 0 AND deleted_at IS NULL".to_owned(),
            Self::WithError => "error_code IS NOT NULL AND deleted_at IS NULL".to_owned(),
            Self::Unconfirmed => "upload_until IS NOT NULL".to_owned(),
            Self::UnderWay => {
                "confirmed_at IS NOT NULL AND ready_at IS NULL AND failed_at IS NULL AND deleted_at IS NULL"
                    .to_owned()
            }
            Self::Registered => {
                return [id_bounds(wanted, arguments), vec![whose(arguments)]].concat().join(" AND ");
            }
        };
        format!("{index} AND {}", whose(arguments))
    }
}
