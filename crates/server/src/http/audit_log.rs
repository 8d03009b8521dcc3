//! The audit log, in pages and as JSON lines.

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures_util::stream;

use super::request::{Paging, Params};
use crate::app::App;
use crate::http::error::ApiError;
use crate::records::audit_log::{self, Filter};
use landfall_api::audit_log::{AuditLog, AuditLogQuery};
use landfall_core::caller::{Caller, Reach, Role};
use landfall_core::refusal::{Refusal, RefusalCode};
use landfall_store::Error;

/// Entries that an export reads at a time.
const EXPORT_PAGE: i64 = 500;

fn filter(caller: &Caller, query: &AuditLogQuery) -> Result<Filter, Refusal> {
    let reach = match (query.scope, caller.role) {
        (Some(scope), _) if caller.role != Role::Member => caller.reach(scope)?,
        (_, Role::Operator) => Reach::All,
        (_, Role::TenantAdmin) => Reach::Tenant(caller.tenant.clone()),
        (_, Role::Member) => {
            let message = "The audit log is for administrators and operators";
            return Err(Refusal::new(RefusalCode::Forbidden, message));
        }
    };
    Ok(Filter {
        reach,
        actor: query.actor.clone(),
        action: query.action.clone(),
        outcome: query.outcome,
        address: query.address.clone(),
        since: query.since,
        until: query.until,
    })
}

/// What administrators and operators did, and which requests were refused for lack of permission, newest first.
///
/// Administrators of a tenant see what its users did and what was done to its files; operators see everything.
#[utoipa::path(
    get, path = "/api/v2/admin/audit-log", operation_id = "listAuditLog", tag = "administration", params(AuditLogQuery),
    responses((status = 200, body = AuditLog))
)]
pub async fn list(
    State(app): State<App>,
    caller: Caller,
    Params(query): Params<AuditLogQuery>,
) -> Result<Json<AuditLog>, ApiError> {
    let filter = filter(&caller, &query)?;
    let paging: Paging<i64> = Paging::new(query.limit, query.cursor.as_deref())?;
    let before = paging.after.unwrap_or(i64::MAX);
    let found = audit_log::list(&mut app.db.read().await?, &filter, before, paging.fetched()).await?;
    Ok(Json(paging.page(found, |entry| entry.id.to_string())))
}

/// The same as JSON lines, all of them.
///
/// Each line is an entry. `limit` and `cursor` do not apply.
#[utoipa::path(
    get, path = "/api/v2/admin/audit-log/export", operation_id = "exportAuditLog", tag = "administration",
    params(AuditLogQuery),
    responses((status = 200, body = String, content_type = "application/x-ndjson"))
)]
pub async fn export(
    State(app): State<App>,
    caller: Caller,
    Params(query): Params<AuditLogQuery>,
) -> Result<Response, ApiError> {
    let filter = filter(&caller, &query)?;
    // Values that no list accepts are refused here as well.
    let _: Paging<i64> = Paging::new(query.limit, query.cursor.as_deref())?;
    let pages = stream::try_unfold((app, filter, Some(i64::MAX)), |(app, filter, before)| async move {
        let Some(before) = before else { return Ok::<_, Error>(None) };
        let page = audit_log::list(&mut app.db.read().await?, &filter, before, EXPORT_PAGE).await?;
        let is_last = i64::try_from(page.len()) != Ok(EXPORT_PAGE);
        let next = page.last().filter(|_| !is_last).map(|entry| entry.id);
        let mut lines = String::new();
        for entry in &page {
            lines.push_str(&serde_json::to_string(entry).expect("an entry is plain JSON"));
            lines.push('\n');
        }
        Ok(Some((Bytes::from(lines), (app, filter, next))))
    });
    let name = "attachment; filename=\"landfall-audit-log.jsonl\"";
    let headers = [(header::CONTENT_TYPE, "application/x-ndjson"), (header::CONTENT_DISPOSITION, name)];
    Ok((headers, Body::from_stream(pages)).into_response())
}
