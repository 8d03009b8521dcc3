//! Quotas: how much a tenant may store.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuotaView {
    pub tenant_id: String,
    pub bytes: Amounts,
    pub files: Amounts,
}

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
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
