//! The quota of a tenant, and its usage.

use axum::Json;
use axum::extract::{Request, State};

use super::request::{InPath, Received, require_operator};
use crate::app::App;
use crate::http::error::ApiError;
use crate::records::quota::{self, SetQuota};
use landfall_api::quotas::{NewQuota, QuotaView};
use landfall_core::caller::Caller;
use landfall_core::refusal::{Refusal, RefusalCode};

/// The quota of the caller's tenant, and its usage.
#[utoipa::path(
    get, path = "/quota", operation_id = "showQuota", tag = "uploads",
    responses((status = 200, body = QuotaView))
)]
pub async fn quota(State(app): State<App>, caller: Caller) -> Result<Json<QuotaView>, ApiError> {
    Ok(Json(quota::view(&mut app.db.read().await?, &caller.tenant, &app.config.intake.quota).await?))
}

/// Sets the limits of a tenant.
#[utoipa::path(
    put, path = "/api/v2/admin/tenants/{tenantId}/quota", operation_id = "setQuota", tag = "administration",
    request_body = NewQuota, responses((status = 200, body = QuotaView))
)]
pub async fn set_quota(
    State(app): State<App>,
    caller: Caller,
    InPath(tenant): InPath<String>,
    request: Request,
) -> Result<Json<QuotaView>, ApiError> {
    require_operator(&caller)?;
    let quota: NewQuota = Received::read(request, app.config.http.max_body_bytes).await?.json()?;
    if tenant.is_empty() || tenant.len() > 255 || tenant.contains('\0') {
        return Err(Refusal::new(
            RefusalCode::InvalidRequest,
            "A tenant's name has 1 to 255 bytes and no NUL",
        )
        .into());
    }
    if [quota.bytes, quota.files].into_iter().flatten().any(|limit| limit < 0) {
        return Err(Refusal::new(RefusalCode::InvalidRequest, "A quota must not be negative").into());
    }
    app.db.write(SetQuota { tenant: tenant.clone(), bytes: quota.bytes, files: quota.files }).await?;
    tracing::info!(
        administrator = caller.user,
        tenantId = tenant,
        bytes = quota.bytes,
        files = quota.files,
        "an administrator changed a quota"
    );
    Ok(Json(quota::view(&mut app.db.read().await?, &tenant, &app.config.intake.quota).await?))
}
