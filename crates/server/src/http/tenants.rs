//! The quota of a tenant, and its usage.

use axum::Json;
use axum::extract::{Request, State};

use super::request::{InPath, Paging, Params, Received, require_operator};
use crate::app::App;
use crate::http::error::ApiError;
use crate::records::quota::{self, SetQuota};
use landfall_api::quotas::{NewQuota, QuotaView, TenantList, TenantQuery};
use landfall_core::caller::Caller;
use landfall_core::refusal::{Refusal, RefusalCode};

/// The quota of the caller's tenant, and its usage.
///
/// `reserved` is for files whose bytes have not come yet. `free` is what a registration can still use.
#[utoipa::path(
    get, path = "/quota", operation_id = "showQuota", tag = "uploads",
    responses((status = 200, body = QuotaView))
)]
pub async fn quota(State(app): State<App>, caller: Caller) -> Result<Json<QuotaView>, ApiError> {
    Ok(Json(quota::view(&mut app.db.read().await?, &caller.tenant, &app.config.intake.quota).await?))
}

/// All tenants with their quotas and usage.
///
/// In the order of their names. `isDefault` says which limits are the server's and not the tenant's own.
#[utoipa::path(
    get, path = "/api/v2/admin/tenants", operation_id = "listTenants", tag = "administration", params(TenantQuery),
    responses((status = 200, body = TenantList))
)]
pub async fn list(
    State(app): State<App>,
    caller: Caller,
    Params(query): Params<TenantQuery>,
) -> Result<Json<TenantList>, ApiError> {
    require_operator(&caller)?;
    let paging: Paging<String> = Paging::new(query.limit, query.cursor.as_deref())?;
    let after = paging.after.as_deref().unwrap_or_default();
    if after.contains('\0') {
        return Err(Refusal::new(RefusalCode::InvalidCursor, "This cursor is not valid").into());
    }
    let part = query.q.as_deref().filter(|part| !part.is_empty());
    let mut tx = app.db.snapshot().await?;
    let tenants = quota::tenants(&mut tx, part, after, paging.fetched()).await?;
    let mut page = paging.page(tenants, |tenant| tenant.id.clone());
    if part.is_some() && page.next_cursor.is_none() {
        // There may be more behind the names that were compared.
        page.next_cursor = quota::last_compared(&mut tx, after).await?;
    }
    Ok(Json(page.map(|tenant| tenant.view(&app.config.intake.quota))))
}

/// Sets the limits of a tenant.
///
/// A limit that is left out goes back to the default of the server. A limit below the usage refuses new files and
/// deletes none.
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
