//! The audit log.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::page::{Listed, Page};
use landfall_core::caller::Role;
use landfall_core::states::{AuditOutcome, Scope};

/// An action of an administrator, or a request that was refused for lack of permission.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditEntry {
    pub id: i64,
    pub at: DateTime<Utc>,
    /// Who asked; null, like the next three, if the request had no valid credential.
    pub actor_tenant_id: Option<String>,
    pub actor_user_id: Option<String>,
    pub actor_role: Option<Role>,
    /// `token`, `session`, `ticket`, or the id of an API key.
    pub credential: Option<String>,
    /// The address of the client.
    pub address: Option<String>,
    /// The id of the request in the log.
    pub request_id: Option<String>,
    /// The operation of this description.
    pub action: String,
    pub method: String,
    pub path: String,
    /// Whose it was, where that is known.
    pub target_tenant_id: Option<String>,
    pub target_user_id: Option<String>,
    pub outcome: AuditOutcome,
    /// The status of the response, and the code of its refusal.
    pub status: Option<i64>,
    pub code: Option<String>,
}

impl Listed for AuditEntry {
    const FIELD: &'static str = "entries";
    const SCHEMA: &'static str = "AuditEntryList";
}

pub type AuditLog = Page<AuditEntry>;

/// Which entries to list.
#[derive(Debug, Clone, Default, Serialize, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct AuditLogQuery {
    #[param(minimum = 1, maximum = 200, default = 50)]
    pub limit: Option<i64>,
    /// The `nextCursor` of the page before.
    pub cursor: Option<String>,
    /// The name of the user who asked.
    pub actor: Option<String>,
    /// The operation, such as `deleteFile`.
    pub action: Option<String>,
    pub outcome: Option<AuditOutcome>,
    /// The address of the client.
    pub address: Option<String>,
    /// From this time on.
    pub since: Option<DateTime<Utc>>,
    /// Before this time.
    pub until: Option<DateTime<Utc>>,
    /// `tenant`: the actions of the tenant's users and those about its files, for its administrators. `all`: everything, for
    /// operators. Without it, all that the caller may see.
    pub scope: Option<Scope>,
}
