//! Health checks.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = Liveness)]
pub struct Alive {
    pub status: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Readiness {
    pub status: Verdict,
    pub checks: BTreeMap<String, Check>,
}

/// Whether the process can do its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = ReadinessStatus)]
pub enum Verdict {
    #[serde(rename = "ready")]
    Ready,
    #[serde(rename = "not ready")]
    NotReady,
}

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = HealthCheck)]
pub struct Check {
    pub status: CheckResult,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub message: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = HealthCheckStatus)]
pub enum CheckResult {
    Ok,
    Failed,
}
