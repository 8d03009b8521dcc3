//! The settings of a server, for administrators.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SettingsView {
    pub groups: Vec<SettingsGroup>,
}

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SettingsGroup {
    #[schema(example = "Server")]
    pub name: String,
    pub settings: Vec<SettingView>,
}

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SettingView {
    #[schema(example = "PORT")]
    pub name: String,
    /// Empty if it is not set. Secrets, and passwords in URLs, are shown as `***`.
    pub value: String,
    /// `default`, `environment` or `.env`.
    pub source: String,
    pub description: String,
}
