//! The notifications of the caller. Administrators also see only their own.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::request::{InPath, Page, Params};
use crate::app::App;
use crate::http::error::ApiError;
use crate::records::notifications::{MarkPortionRead, MarkRead, Notification};
use landfall_core::caller::Caller;
use landfall_core::refusal::Refusal;

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListParams {
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<i64>,
    /// The `nextCursor` of the previous page.
    cursor: Option<String>,
    /// Only unread ones.
    unread: Option<bool>,
}

#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotificationList {
    notifications: Vec<Notification>,
    /// Counted up to a limit.
    unread_count: i64,
    next_cursor: Option<String>,
}

/// The caller's notifications, newest first.
#[utoipa::path(
    get, path = "/api/v2/notifications", operation_id = "listNotifications", tag = "notifications",
    params(ListParams), responses((status = 200, body = NotificationList))
)]
pub async fn list(
    State(app): State<App>,
    caller: Caller,
    Params(params): Params<ListParams>,
) -> Result<Json<NotificationList>, ApiError> {
    let page: Page<Uuid> = Page::new(params.limit, params.cursor.as_deref())?;
    let before = page.after.unwrap_or(Uuid::max());
    let mut tx = app.db.read().await?;
    let only_unread = params.unread == Some(true);
    let found = Notification::list(&mut tx, &caller.user, only_unread, before, page.limit).await?;
    let unread_count = Notification::count_unread(&mut tx, &caller.user).await?;
    let next = page.next(&found, |notification| notification.id.to_string());
    Ok(Json(NotificationList { notifications: found, unread_count, next_cursor: next }))
}

/// Marks a notification as read.
#[utoipa::path(
    post, path = "/api/v2/notifications/{notificationId}/read", operation_id = "readNotification",
    tag = "notifications",
    responses((status = 200, body = Notification), (status = "4XX", description = "NOTIFICATION_NOT_FOUND"))
)]
pub async fn read(
    State(app): State<App>,
    caller: Caller,
    InPath(id): InPath<String>,
) -> Result<Json<Notification>, ApiError> {
    let notification = Uuid::parse_str(&id).map_err(|_| Refusal::no_such_notification())?;
    let mark = MarkRead { user: caller.user, notification, now: app.clock.now() };
    Ok(Json(app.db.write(mark).await?))
}

#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MarkedRead {
    marked_count: u64,
}

/// Marks all current notifications as read.
#[utoipa::path(
    post, path = "/api/v2/notifications/read-all", operation_id = "readNotifications", tag = "notifications",
    responses((status = 200, body = MarkedRead))
)]
pub async fn read_all(State(app): State<App>, caller: Caller) -> Result<Json<MarkedRead>, ApiError> {
    let now = app.clock.now();
    let mut marked = 0;
    loop {
        let portion = app.db.write(MarkPortionRead { user: caller.user.clone(), now }).await?;
        marked += portion;
        if portion < MarkPortionRead::MOST {
            return Ok(Json(MarkedRead { marked_count: marked }));
        }
    }
}
