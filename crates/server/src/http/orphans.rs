//! What is left over in the storage and in the database: the caller's own, or with `scope=all` that of all users, for
//! administrators.

use axum::Json;
use axum::extract::State;

use super::request::{Params, is_for_all, require_admin};
use crate::app::App;
use crate::http::error::ApiError;
use landfall_api::orphans::{OrphanQuery, OrphanReport};
use landfall_core::caller::Caller;

/// What is left over in the storage and in the database.
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
        require_admin(&caller)?;
    }
    let user = (!is_for_all(&caller, query.scope)?).then_some(caller.user.as_str());
    Ok(Json(app.orphans.report(user, refresh).await?))
}
