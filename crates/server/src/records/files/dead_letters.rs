//! Files that failed permanently, and what an operator needs to judge them: one by one, newest first, or by cause.

mod groups;
mod list;
pub mod retention;
pub mod retry;

use uuid::Uuid;

pub use groups::groups;
pub use list::{DeadLetter, list};

use landfall_core::caller::Reach;
use landfall_core::clock::Time;
use landfall_core::states::Scope;
use landfall_store::{Arg, Error, Tx, args};

/// Selects dead letters. A field that is `None` matches everything.
#[derive(Debug, Clone, Default, landfall_store::FromRow)]
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

/// How many files failed after `since`, counted up to `most`.
pub async fn count_since(tx: &mut Tx, since: Time, most: i64) -> Result<i64, Error> {
    tx.number(
        "SELECT COUNT(*) FROM (SELECT 1 FROM files WHERE failed_at IS NOT NULL AND failed_at > $1 LIMIT $2)
             AS counted",
        args![since, most],
    )
    .await
}
