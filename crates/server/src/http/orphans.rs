//! What is left over in the storage and in the database: the caller's own, that of the tenant, or
//! that of all tenants.

use axum::Json;
use axum::extract::State;

use super::request::{Params, require_operator};
use crate::app::App;
use crate::http::error::ApiError;
use landfall_api::orphans::{OrphanQuery, OrphanReport};
use landfall_core::caller::Caller;

/// What is left over in the storage and in the database.
///
/// The report is that of the last scan, unless `refresh` asks for a new one.
#[utoipa::path(
    get, path = "/orphans", operation_id = "showOrphans", tag = "stuck", params(OrphanQuery),
    responses((status = 200, body = OrphanReport), (status = "4XX", description = "FORBIDDEN"))
)]
pub async fn report(
    State(app): State<App>,
    caller: Caller,
    Params(query): Params<OrphanQuery>,
) -> Result<Json<OrphanReport>, ApiError> {
    let refresh = query.refresh == Some(true);
    if refresh {
        require_operator(&caller)?;
    }
    let reach = caller.reach(query.scope.unwrap_or_default())?;
    Ok(Json(app.orphans.report(&reach, refresh).await?))
}
