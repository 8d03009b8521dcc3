//! The settings of the process that answers, for administrators.

use axum::Json;
use axum::extract::State;

use super::request::require_operator;
use crate::app::App;
use crate::config::{Config, GROUPS};
use crate::http::error::ApiError;
use landfall_api::settings::{SettingView, SettingsGroup, SettingsView};
use landfall_core::caller::Caller;

/// The settings of this process, by group.
pub fn view(config: &Config) -> SettingsView {
    let groups = GROUPS.iter().map(|group| {
        let settings = config.settings_of(group).map(|(setting, declared)| SettingView {
            name: setting.name.to_owned(),
            value: setting.value.clone(),
            source: setting.source.name().to_owned(),
            description: declared.description.to_owned(),
        });
        SettingsGroup { name: group.title.to_owned(), settings: settings.collect() }
    });
    SettingsView { groups: groups.collect() }
}

/// The settings in force in the process that answers, and where each comes from.
///
/// Secrets, and passwords in URLs, are shown as `***`. Another process may have other settings.
#[utoipa::path(
    get, path = "/api/v2/admin/config", operation_id = "showConfig", tag = "administration",
    responses((status = 200, body = SettingsView))
)]
pub async fn show(State(app): State<App>, caller: Caller) -> Result<Json<SettingsView>, ApiError> {
    require_operator(&caller)?;
    Ok(Json(view(&app.config)))
}
