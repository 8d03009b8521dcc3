//! Webhooks: one's own, and for administrators those that get everybody's events.

use axum::Json;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::request::{Page, PageParams, Params, Received, require_admin};
use crate::app::App;
use crate::error::{Error, Refusal};
use crate::events::tail;
use crate::file::Caller;
use crate::intake::idempotency::Idempotent;
use crate::webhooks::deliveries::{DeliveryView, Redeliver, SendTest};
use crate::webhooks::register::{
    Change, Changes, NewWebhook, Register, Registered, Remove, RemoveLog, RotateSecret, Rotated, Scope,
};
use crate::webhooks::signature::Secret;
use crate::webhooks::target::Checked;
use crate::webhooks::{Webhook, WebhookView};

pub async fn register(
    State(app): State<App>,
    caller: Caller,
    request: Request,
) -> Result<(StatusCode, Json<Registered>), Error> {
    let received = Received::read(request, app.config.http.max_body_bytes).await?;
    let webhook: NewWebhook = received.json()?;
    if webhook.scope == Scope::All {
        require_admin(&caller)?;
    }
    let url = webhook.check()?;
    app.webhooks.target().check(&url).await?;
    let cursor = tail::settled_up_to(&app.db).await?;
    let now = app.clock.now();
    let registered = app
        .db
        .write(Idempotent {
            key: received.key(&caller)?,
            now,
            change: Register {
                caller,
                id: app.clock.new_id(),
                webhook,
                secret: Secret::random(),
                cursor,
                most: app.config.webhooks.per_user,
                now,
            },
        })
        .await?;
    Ok((StatusCode::CREATED, Json(registered)))
}

pub async fn list(
    State(app): State<App>,
    caller: Caller,
    Params(params): Params<PageParams>,
) -> Result<Json<Value>, Error> {
    let page: Page<Uuid> = Page::new(params.limit, params.cursor.as_deref())?;
    let before = page.after.unwrap_or(Uuid::max());
    let webhooks = Webhook::list(&mut app.db.read().await?, &caller, before, page.limit).await?;
    let next = page.next(&webhooks, |webhook| webhook.id.to_string());
    let webhooks: Vec<WebhookView> = webhooks.into_iter().map(WebhookView::from).collect();
    Ok(Json(json!({ "webhooks": webhooks, "nextCursor": next })))
}

pub async fn show(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<WebhookView>, Error> {
    let webhook = Webhook::find_for(&mut app.db.read().await?, &caller, webhook_id(&id)?).await?;
    Ok(Json(webhook.into()))
}

pub async fn change(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    request: Request,
) -> Result<Json<WebhookView>, Error> {
    let webhook = webhook_id(&id)?;
    let received = Received::read(request, app.config.http.max_body_bytes).await?;
    let changes: Changes = received.json()?;
    // Before anybody is asked where the address leads: whose webhook it is.
    Webhook::find_for(&mut app.db.read().await?, &caller, webhook).await?;
    if let Some(url) = &changes.url {
        app.webhooks.target().check(&Checked::parse(url)?).await?;
    }
    let cursor = tail::settled_up_to(&app.db).await?;
    let changed = app.db.write(Change { caller, webhook, changes, cursor, now: app.clock.now() }).await?;
    app.wake.delivery_due();
    Ok(Json(changed.into()))
}

pub async fn remove(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, Error> {
    let webhook = webhook_id(&id)?;
    app.db.write(Remove { caller, webhook }).await?;
    while app.db.write(RemoveLog { webhook }).await? == RemoveLog::MOST {}
    Ok(StatusCode::NO_CONTENT)
}

pub async fn rotate_secret(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    request: Request,
) -> Result<Json<Rotated>, Error> {
    let webhook = webhook_id(&id)?;
    let received = Received::read(request, app.config.http.max_body_bytes).await?;
    let now = app.clock.now();
    let key = received.key(&caller)?;
    let change = RotateSecret { caller, webhook, fresh: Secret::random(), now };
    app.db.write(Idempotent { key, now, change }).await.map(Json)
}

pub async fn test(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    request: Request,
) -> Result<(StatusCode, Json<DeliveryView>), Error> {
    let webhook = webhook_id(&id)?;
    let received = Received::read(request, app.config.http.max_body_bytes).await?;
    let now = app.clock.now();
    let key = received.key(&caller)?;
    let change = SendTest { caller, webhook, id: app.clock.new_id(), now };
    let delivery = app.db.write(Idempotent { key, now, change }).await?;
    app.wake.delivery_due();
    Ok((StatusCode::ACCEPTED, Json(delivery)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeliveryParams {
    limit: Option<i64>,
    cursor: Option<String>,
    status: Option<String>,
}

pub async fn deliveries(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Params(params): Params<DeliveryParams>,
) -> Result<Json<Value>, Error> {
    let page: Page<i64> = Page::new(params.limit, params.cursor.as_deref())?;
    let status = params.status.as_deref();
    if status.is_some_and(|status| !["pending", "delivered", "exhausted"].contains(&status)) {
        let message = "status must be pending, delivered or exhausted";
        return Err(Refusal::new(400, "INVALID_REQUEST", message).into());
    }
    let mut tx = app.db.read().await?;
    let webhook = Webhook::find_for(&mut tx, &caller, webhook_id(&id)?).await?;
    let before = page.after.unwrap_or(i64::MAX);
    let found = DeliveryView::list(&mut tx, webhook.id, status, before, page.limit).await?;
    let next = page.next(&found, |delivery| delivery.number.to_string());
    Ok(Json(json!({ "deliveries": found, "nextCursor": next })))
}

#[derive(Deserialize)]
pub struct InWebhook {
    id: String,
    delivery: String,
}

pub async fn redeliver(
    State(app): State<App>,
    caller: Caller,
    Path(InWebhook { id, delivery }): Path<InWebhook>,
    request: Request,
) -> Result<(StatusCode, Json<DeliveryView>), Error> {
    let webhook = webhook_id(&id)?;
    let delivery = Uuid::parse_str(&delivery).map_err(|_| Refusal::no_such_delivery())?;
    let received = Received::read(request, app.config.http.max_body_bytes).await?;
    let now = app.clock.now();
    let key = received.key(&caller)?;
    let change = Redeliver { caller, webhook, delivery, id: app.clock.new_id(), now };
    let delivery = app.db.write(Idempotent { key, now, change }).await?;
    app.wake.delivery_due();
    Ok((StatusCode::ACCEPTED, Json(delivery)))
}

/// An id that is not one names nothing.
fn webhook_id(text: &str) -> Result<Uuid, Refusal> {
    Uuid::parse_str(text).map_err(|_| Refusal::no_such_webhook())
}
