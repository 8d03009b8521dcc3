//! Files that failed permanently, and what an operator needs to judge them: one by one, newest first, or by cause.

mod groups;
mod list;
pub mod retention;
pub mod retry;

use std::fmt;
use std::str::FromStr;

use chrono::DateTime;
use uuid::Uuid;

pub use groups::groups;
pub use list::{DeadLetter, list};

use landfall_core::caller::Reach;
use landfall_core::clock::Time;
use landfall_core::states::Scope;
use landfall_store::{Arg, Error, Tx, args};

/// Selects dead letters. A field that is `None` matches everything.
#[derive(Debug, Clone, Default, sqlx::FromRow)]
pub struct Filter {
    /// The owners: a tenant, or a user of it.
    pub of_tenant: Option<String>,
    pub of_user: Option<String>,
    pub code: Option<String>,
    pub stage: Option<String>,
    pub batch_id: Option<Uuid>,
    pub fingerprint: Option<String>,
}

impl Filter {
    /// All dead letters of these owners.
    pub fn of(reach: Reach) -> Self {
        let (of_tenant, of_user) = match reach {
            Reach::User(owner) => (Some(owner.tenant), Some(owner.user)),
            Reach::Tenant(tenant) => (Some(tenant), None),
            Reach::All => (None, None),
        };
        Self { of_tenant, of_user, ..Self::default() }
    }

    pub const fn scope(&self) -> Scope {
        match (&self.of_tenant, &self.of_user) {
            (None, _) => Scope::All,
            (Some(_), None) => Scope::Tenant,
            (Some(_), Some(_)) => Scope::Own,
        }
    }

    /// Returns a condition on the rows of `files`, which the statement calls `table`, and appends the values that it
    /// compares with to `arguments`.
    fn condition(&self, table: &str, arguments: &mut Vec<Arg>) -> String {
        // Written like the condition of the partial indices, so that the database uses them.
        let mut condition = format!("{table}.failed_at IS NOT NULL");
        let wanted = [
            ("tenant_id", self.of_tenant.as_ref().map(Arg::from)),
            ("user_id", self.of_user.as_ref().map(Arg::from)),
            ("error_code", self.code.as_ref().map(Arg::from)),
            ("error_stage", self.stage.as_ref().map(Arg::from)),
            ("batch_id", self.batch_id.map(Arg::from)),
            ("error_fingerprint", self.fingerprint.as_ref().map(Arg::from)),
        ];
        for (column, value) in wanted {
            if let Some(value) = value {
                arguments.push(value);
                condition.push_str(&format!(" AND {table}.{column} = ${}", arguments.len()));
            }
        }
        condition
    }
}

/// A position in the order of dead letters, newest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    pub failed_at: Time,
    pub id: Uuid,
}

impl Cursor {
    /// Before everything that failed at `now` or earlier.
    pub const fn newest(now: Time) -> Self {
        Self { failed_at: now, id: Uuid::max() }
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}", self.failed_at.timestamp_micros(), self.id)
    }
}

/// The text is not a valid position.
#[derive(Debug)]
pub struct NoPlace;

impl FromStr for Cursor {
    type Err = NoPlace;

    fn from_str(text: &str) -> Result<Self, NoPlace> {
        let (at, id) = text.split_once('_').ok_or(NoPlace)?;
        let failed_at = at.parse().ok().and_then(DateTime::from_timestamp_micros).ok_or(NoPlace)?;
        Ok(Self { failed_at, id: Uuid::parse_str(id).map_err(|_| NoPlace)? })
    }
}

/// How many files failed after `since`, counted up to `most`.
pub async fn count_since(tx: &mut Tx, since: Time, most: i64) -> Result<i64, Error> {
    tx.number(
        "SELECT COUNT(*) FROM (SELECT 1 FROM files WHERE failed_at IS NOT NULL AND failed_at > $1 LIMIT $2)
             AS counted",
        args![since, most],
    )
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_it_was_written() {
        let place = Cursor { failed_at: "2026-01-02T03:04:05.000007Z".parse().unwrap(), id: Uuid::max() };
        assert_eq!(place.to_string().parse::<Cursor>().unwrap(), place);
        for nonsense in ["", "_", "1", "x_y", "99999999999999999999_x", "1_not-an-id"] {
            assert!(nonsense.parse::<Cursor>().is_err(), "{nonsense}");
        }
    }
}
