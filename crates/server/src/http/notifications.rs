//! The notifications of the caller. Administrators also see only their own.

use axum::Json;
use axum::extract::State;
use uuid::Uuid;

use super::request::{InPath, Paging, Params};
use crate::app::App;
use crate::http::error::ApiError;
use crate::records::notifications::{MarkBatchRead, MarkRead, Notification};
use landfall_api::notifications::{MarkedRead, NotificationList, NotificationQuery, NotificationView};
use landfall_core::caller::Caller;
use landfall_core::refusal::Refusal;

/// The caller's notifications, newest first.
///
/// `unreadCount` is the number of all that were not read, counted up to 1000, also where the page has fewer.
#[utoipa::path(
    get, path = "/api/v2/notifications", operation_id = "listNotifications", tag = "notifications",
    params(NotificationQuery), responses((status = 200, body = NotificationList))
)]
pub async fn list(
    State(app): State<App>,
    caller: Caller,
    Params(query): Params<NotificationQuery>,
) -> Result<Json<NotificationList>, ApiError> {
    let paging: Paging<Uuid> = Paging::new(query.limit, query.cursor.as_deref())?;
    let before = paging.after.unwrap_or(Uuid::max());
    let mut tx = app.db.read().await?;
    let only_unread = query.unread == Some(true);
    let found = Notification::list(&mut tx, &caller.owner(), only_unread, before, paging.fetched()).await?;
    let unread_count = Notification::count_unread(&mut tx, &caller.owner()).await?;
    let page = paging.page(found, |row| row.id.to_string()).map(NotificationView::from);
    Ok(Json(NotificationList { page, unread_count }))
}

/// Marks a notification as read.
///
/// Repeating it changes nothing: the time of the first reading stays.
#[utoipa::path(
    post, path = "/api/v2/notifications/{notificationId}/read", operation_id = "readNotification",
    tag = "notifications",
    responses((status = 200, body = NotificationView), (status = "4XX", description = "NOTIFICATION_NOT_FOUND"))
)]
pub async fn read(
    State(app): State<App>,
    caller: Caller,
    InPath(id): InPath<String>,
) -> Result<Json<NotificationView>, ApiError> {
    let notification = Uuid::parse_str(&id).map_err(|_| Refusal::no_such_notification())?;
    let mark = MarkRead { owner: caller.owner(), notification, now: app.clock.now() };
    Ok(Json(app.db.write(mark).await?.into()))
}

/// Marks all current notifications as read.
///
/// A notification that comes at the same moment stays unread.
#[utoipa::path(
    post, path = "/api/v2/notifications/read-all", operation_id = "readNotifications", tag = "notifications",
    responses((status = 200, body = MarkedRead))
)]
pub async fn read_all(State(app): State<App>, caller: Caller) -> Result<Json<MarkedRead>, ApiError> {
    let now = app.clock.now();
    let mut marked = 0;
    loop {
        let batch = app.db.write(MarkBatchRead { owner: caller.owner(), now }).await?;
        marked += batch;
        if batch < MarkBatchRead::MAX {
            return Ok(Json(MarkedRead { marked_count: marked }));
        }
    }
}
