//! Quotas: how much a tenant may store.

use serde::{Deserialize, Serialize};

use crate::page::{Listed, Page};

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuotaView {
    pub tenant_id: String,
    pub bytes: Amounts,
    pub files: Amounts,
}

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = QuotaAmounts)]
pub struct Amounts {
    pub limit: i64,
    pub reserved: i64,
    pub used: i64,
    pub free: i64,
}

impl Amounts {
    pub fn new(limit: i64, reserved: i64, used: i64) -> Self {
        Self { limit, reserved, used, free: (limit - reserved - used).max(0) }
    }
}

/// New limits of a tenant. A field that is left out goes back to the default.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewQuota {
    #[schema(minimum = 0)]
    pub bytes: Option<i64>,
    #[schema(minimum = 0)]
    pub files: Option<i64>,
}

/// A tenant in the list of all.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TenantView {
    pub tenant_id: String,
    pub bytes: Amounts,
    pub files: Amounts,
    pub is_default: IsDefault,
}

/// Which limits are the configured default, and not the tenant's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct IsDefault {
    pub bytes: bool,
    pub files: bool,
}

impl Listed for TenantView {
    const FIELD: &'static str = "tenants";
    const SCHEMA: &'static str = "TenantList";
}

pub type TenantList = Page<TenantView>;

/// Which tenants to list.
#[derive(Debug, Clone, Default, Serialize, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct TenantQuery {
    /// Part of the tenant's name.
    pub q: Option<String>,
    #[param(minimum = 1, maximum = 200, default = 50)]
    pub limit: Option<i64>,
    /// The `nextCursor` of the page before.
    pub cursor: Option<String>,
}
