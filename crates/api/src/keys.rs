//! API keys of programs.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::page::{Listed, Page};
use landfall_core::caller::{KeyScope, Role};
use landfall_core::states::Scope;

/// A key to create.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewKey {
    /// What it is for, for people.
    #[schema(min_length = 1, max_length = 100)]
    pub name: String,
    /// What it may be used for.
    #[schema(min_items = 1)]
    pub scopes: Vec<KeyScope>,
    /// When it expires; without it, never.
    pub expires_at: Option<DateTime<Utc>>,
    /// The role that it uses, if it has the scope `admin`; a member's without it. Not higher than the caller's.
    pub role: Option<Role>,
    /// The user that it acts for, of the tenant below; the caller without it.
    #[schema(min_length = 1, max_length = 255)]
    pub user_id: Option<String>,
    /// The caller's own without it.
    #[schema(min_length = 1, max_length = 255)]
    pub tenant_id: Option<String>,
}

/// A key as it is listed: all but the key itself.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ApiKey)]
pub struct KeyView {
    pub key_id: Uuid,
    pub name: String,
    /// How the key begins.
    pub hint: String,
    pub tenant_id: String,
    pub user_id: String,
    pub role: Role,
    pub scopes: Vec<KeyScope>,
    pub created_by: String,
    pub created_at: DateTime<Utc>,
    pub expires_at: Option<DateTime<Utc>>,
    /// To the minute.
    pub last_used_at: Option<DateTime<Utc>>,
    /// The address of the client that used it then.
    pub last_used_from: Option<String>,
    pub revoked_at: Option<DateTime<Utc>>,
    pub revoked_by: Option<String>,
}

impl Listed for KeyView {
    const FIELD: &'static str = "keys";
    const SCHEMA: &'static str = "ApiKeyList";
}

pub type KeyList = Page<KeyView>;

/// A new key. The key itself is shown only here.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = CreatedApiKey)]
pub struct CreatedKey {
    /// Send it as `Authorization: Bearer lf_…`. It cannot be shown again.
    pub key: String,
    #[serde(flatten)]
    pub about: KeyView,
}

/// Which keys to list.
#[derive(Debug, Clone, Default, Serialize, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct KeyQuery {
    #[param(minimum = 1, maximum = 200, default = 50)]
    pub limit: Option<i64>,
    /// The `nextCursor` of the page before.
    pub cursor: Option<String>,
    /// `tenant`: those of all users of the tenant, for its administrators. `all`: those of all tenants, for operators.
    pub scope: Option<Scope>,
}
