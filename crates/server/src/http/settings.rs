//! The settings of the process that answers, for administrators.

use axum::Json;
use axum::extract::State;
use serde::Serialize;

use super::request::require_admin;
use crate::app::App;
use crate::config::{Config, GROUPS};
use crate::http::error::ApiError;
use landfall_core::caller::Caller;

#[derive(Serialize, utoipa::ToSchema)]
pub struct SettingsView {
    groups: Vec<SettingsGroup>,
}

#[derive(Serialize, utoipa::ToSchema)]
struct SettingsGroup {
    #[schema(example = "Server")]
    name: &'static str,
    settings: Vec<SettingView>,
}

#[derive(Serialize, utoipa::ToSchema)]
struct SettingView {
    #[schema(example = "PORT")]
    name: &'static str,
    /// Empty if it is not set. Secrets, and passwords in URLs, are shown as `***`.
    value: String,
    /// `default`, `environment` or `.env`.
    source: &'static str,
    description: &'static str,
}

impl SettingsView {
    fn new(config: &Config) -> Self {
        let groups = GROUPS.iter().map(|group| {
            let settings = config.settings_of(group).map(|(setting, declared)| SettingView {
                name: setting.name,
                value: setting.value.clone(),
                source: setting.source.name(),
                description: declared.description,
            });
            SettingsGroup { name: group.title, settings: settings.collect() }
        });
        Self { groups: groups.collect() }
    }
}

/// The settings in force in the process that answers, and where each comes from.
#[utoipa::path(
    get, path = "/api/v2/admin/config", operation_id = "showConfig", tag = "administration",
    responses((status = 200, body = SettingsView))
)]
pub async fn show(State(app): State<App>, caller: Caller) -> Result<Json<SettingsView>, ApiError> {
    require_admin(&caller)?;
    Ok(Json(SettingsView::new(&app.config)))
}
