//! What the caller was told of. Only one's own: an administrator's are an administrator's.

use axum::Json;
use axum::extract::{Path, State};
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::request::{Page, Params};
use crate::app::App;
use crate::error::{Error, Refusal};
use crate::file::Caller;
use crate::notifications::{MarkPortionRead, MarkRead, Notification};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListParams {
    limit: Option<i64>,
    cursor: Option<String>,
    unread: Option<bool>,
}

pub async fn list(
    State(app): State<App>,
    caller: Caller,
    Params(params): Params<ListParams>,
) -> Result<Json<Value>, Error> {
    let page: Page<Uuid> = Page::new(params.limit, params.cursor.as_deref())?;
    let before = page.after.unwrap_or(Uuid::max());
    let mut tx = app.db.read().await?;
    let only_unread = params.unread == Some(true);
    let found = Notification::list(&mut tx, &caller.user, only_unread, before, page.limit).await?;
    let unread = Notification::count_unread(&mut tx, &caller.user).await?;
    let next = page.next(&found, |notification| notification.id.to_string());
    Ok(Json(json!({ "notifications": found, "unreadCount": unread, "nextCursor": next })))
}

pub async fn read(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Notification>, Error> {
    let notification = Uuid::parse_str(&id).map_err(|_| Refusal::no_such_notification())?;
    let mark = MarkRead { user: caller.user, notification, now: app.clock.now() };
    app.db.write(mark).await.map(Json)
}

pub async fn read_all(State(app): State<App>, caller: Caller) -> Result<Json<Value>, Error> {
    let now = app.clock.now();
    let mut marked = 0;
    loop {
        let portion = app.db.write(MarkPortionRead { user: caller.user.clone(), now }).await?;
        marked += portion;
        if portion < MarkPortionRead::MOST {
            return Ok(Json(json!({ "markedCount": marked })));
        }
    }
}
