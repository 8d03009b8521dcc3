//! Webhooks: the caller's own, and for administrators those with the events of all users.

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use serde::Deserialize;
use uuid::Uuid;

use super::request::{InPath, Paging, Params, Received};
use crate::app::App;
use crate::delivery::tail;
use crate::delivery::webhooks::Webhook;
use crate::delivery::webhooks::deliveries::{Delivery, Redeliver, SendTest};
use crate::delivery::webhooks::register::{self, Change, RegisterWebhook, Remove, RemoveLog, RotateSecret};
use crate::delivery::webhooks::sealing;
use crate::delivery::webhooks::signature::Secret;
use crate::delivery::webhooks::target::TargetCheck;
use crate::http::error::ApiError;
use crate::intake::idempotency::Idempotent;
use landfall_api::page::PageQuery;
use landfall_api::webhooks::{
    DeliveryList, DeliveryQuery, DeliveryView, NewWebhook, RegisteredWebhook, RotatedSecret, WebhookChanges,
    WebhookList, WebhookView,
};
use landfall_core::caller::Caller;
use landfall_core::refusal::Refusal;

/// Registers an address that events are sent to.
///
/// Only this response contains the secret that signs them. Bodies and headers follow Standard Webhooks.
#[utoipa::path(
    post, path = "/api/v2/webhooks", operation_id = "registerWebhook", tag = "webhooks", request_body = NewWebhook,
    responses(
        (status = 201, body = RegisteredWebhook),
        (status = "4XX", description = "FORBIDDEN INVALID_EVENT_TYPE INVALID_WEBHOOK_URL UNKNOWN_WEBHOOK_HOST \
            PRIVATE_WEBHOOK_ADDRESS TOO_MANY_WEBHOOKS IDEMPOTENCY_KEY_REUSED")
    )
)]
pub async fn register(
    State(app): State<App>,
    caller: Caller,
    request: Request,
) -> Result<(StatusCode, Json<RegisteredWebhook>), ApiError> {
    let received = Received::read(request, app.config.http.max_body_bytes).await?;
    let webhook: NewWebhook = received.json()?;
    caller.reach(webhook.scope)?;
    let url = register::check(&webhook)?;
    app.webhooks.target().check(&url).await?;
    let cursor = tail::settled_up_to(&app.db).await?;
    let now = app.clock.now();
    let mut registered = app
        .db
        .write(Idempotent {
            key: received.key(&caller)?,
            now,
            change: RegisterWebhook {
                caller,
                id: app.clock.new_id(),
                webhook,
                secret: Secret::random(),
                key: app.secret.clone(),
                cursor,
                most: app.config.webhooks.per_user,
                now,
            },
        })
        .await?;
    registered.secret = sealing::reveal(&app.secret, registered.id, &registered.secret)?;
    Ok((StatusCode::CREATED, Json(registered)))
}

/// The caller's webhooks, newest first.
///
/// They come without their secrets.
#[utoipa::path(
    get, path = "/api/v2/webhooks", operation_id = "listWebhooks", tag = "webhooks", params(PageQuery),
    responses((status = 200, body = WebhookList))
)]
pub async fn list(
    State(app): State<App>,
    caller: Caller,
    Params(query): Params<PageQuery>,
) -> Result<Json<WebhookList>, ApiError> {
    let paging: Paging<Uuid> = Paging::new(query.limit, query.cursor.as_deref())?;
    let before = paging.after.unwrap_or(Uuid::max());
    let webhooks = Webhook::list(&mut app.db.read().await?, &caller, before, paging.fetched()).await?;
    Ok(Json(paging.page(webhooks, |row| row.id.to_string()).map(WebhookView::from)))
}

/// One webhook, without its secret.
///
/// `failingSince` and `disabledReason` say whether its endpoint accepts what is sent.
#[utoipa::path(
    get, path = "/api/v2/webhooks/{webhookId}", operation_id = "showWebhook", tag = "webhooks",
    responses((status = 200, body = WebhookView), (status = "4XX", description = "WEBHOOK_NOT_FOUND"))
)]
pub async fn show(
    State(app): State<App>,
    caller: Caller,
    InPath(id): InPath<String>,
) -> Result<Json<WebhookView>, ApiError> {
    let webhook = Webhook::find_for(&mut app.db.read().await?, &caller, webhook_id(&id)?).await?;
    Ok(Json(webhook.into()))
}

/// Changes the fields in the body, and nothing else.
///
/// Events that happened while it was disabled are not sent when it is enabled again.
#[utoipa::path(
    patch, path = "/api/v2/webhooks/{webhookId}", operation_id = "changeWebhook", tag = "webhooks",
    request_body = WebhookChanges,
    responses(
        (status = 200, body = WebhookView),
        (status = "4XX", description = "WEBHOOK_NOT_FOUND INVALID_EVENT_TYPE INVALID_WEBHOOK_URL \
            UNKNOWN_WEBHOOK_HOST PRIVATE_WEBHOOK_ADDRESS")
    )
)]
pub async fn change(
    State(app): State<App>,
    caller: Caller,
    InPath(id): InPath<String>,
    request: Request,
) -> Result<Json<WebhookView>, ApiError> {
    let webhook = webhook_id(&id)?;
    let received = Received::read(request, app.config.http.max_body_bytes).await?;
    let changes: WebhookChanges = received.json()?;
    // The owner is checked before the address is resolved.
    Webhook::find_for(&mut app.db.read().await?, &caller, webhook).await?;
    if let Some(url) = &changes.url {
        app.webhooks.target().check(&TargetCheck::parse(url)?).await?;
    }
    let cursor = tail::settled_up_to(&app.db).await?;
    let changed = app.db.write(Change { caller, webhook, changes, cursor, now: app.clock.now() }).await?;
    Ok(Json(changed.into()))
}

/// Removes a webhook and its log.
///
/// Nothing more is sent to it, not even what already waits.
#[utoipa::path(
    delete, path = "/api/v2/webhooks/{webhookId}", operation_id = "removeWebhook", tag = "webhooks",
    responses((status = 204), (status = "4XX", description = "WEBHOOK_NOT_FOUND"))
)]
pub async fn remove(
    State(app): State<App>,
    caller: Caller,
    InPath(id): InPath<String>,
) -> Result<StatusCode, ApiError> {
    let webhook = webhook_id(&id)?;
    app.db.write(Remove { caller, webhook }).await?;
    while app.db.write(RemoveLog { webhook }).await? == RemoveLog::BATCH_SIZE {}
    Ok(StatusCode::NO_CONTENT)
}

/// Rotates the secret of a webhook.
///
/// Only this response contains the new one. The previous one also signs for a day.
#[utoipa::path(
    post, path = "/api/v2/webhooks/{webhookId}/rotate-secret", operation_id = "rotateWebhookSecret",
    tag = "webhooks",
    responses(
        (status = 200, body = RotatedSecret),
        (status = "4XX", description = "WEBHOOK_NOT_FOUND BODY_BROKEN BODY_TOO_LARGE IDEMPOTENCY_KEY_REUSED")
    )
)]
pub async fn rotate_secret(
    State(app): State<App>,
    caller: Caller,
    InPath(id): InPath<String>,
    request: Request,
) -> Result<Json<RotatedSecret>, ApiError> {
    let webhook = webhook_id(&id)?;
    let received = Received::read(request, app.config.http.max_body_bytes).await?;
    let now = app.clock.now();
    let key = received.key(&caller)?;
    let change = RotateSecret { caller, webhook, fresh: Secret::random(), key: app.secret.clone(), now };
    let mut rotated = app.db.write(Idempotent { key, now, change }).await?;
    rotated.secret = sealing::reveal(&app.secret, webhook, &rotated.secret)?;
    Ok(Json(rotated))
}

/// Sends a test delivery, to see whether it arrives.
///
/// Its type is `webhook:test`. It is sent in the background; the list of deliveries shows the reply.
#[utoipa::path(
    post, path = "/api/v2/webhooks/{webhookId}/test", operation_id = "testWebhook", tag = "webhooks",
    responses(
        (status = 202, body = DeliveryView),
        (status = "4XX", description = "WEBHOOK_NOT_FOUND WEBHOOK_DISABLED TOO_MANY_DELIVERIES BODY_BROKEN \
            BODY_TOO_LARGE IDEMPOTENCY_KEY_REUSED")
    )
)]
pub async fn test(
    State(app): State<App>,
    caller: Caller,
    InPath(id): InPath<String>,
    request: Request,
) -> Result<(StatusCode, Json<DeliveryView>), ApiError> {
    let webhook = webhook_id(&id)?;
    let received = Received::read(request, app.config.http.max_body_bytes).await?;
    let now = app.clock.now();
    let key = received.key(&caller)?;
    let change = SendTest { caller, webhook, id: app.clock.new_id(), now };
    let delivery = app.db.write(Idempotent { key, now, change }).await?;
    Ok((StatusCode::ACCEPTED, Json(delivery)))
}

/// The deliveries of a webhook, newest first.
///
/// Each says how often it was tried and what the endpoint replied last.
#[utoipa::path(
    get, path = "/api/v2/webhooks/{webhookId}/deliveries", operation_id = "listDeliveries", tag = "webhooks",
    params(DeliveryQuery),
    responses((status = 200, body = DeliveryList), (status = "4XX", description = "WEBHOOK_NOT_FOUND"))
)]
pub async fn deliveries(
    State(app): State<App>,
    caller: Caller,
    InPath(id): InPath<String>,
    Params(query): Params<DeliveryQuery>,
) -> Result<Json<DeliveryList>, ApiError> {
    let paging: Paging<i64> = Paging::new(query.limit, query.cursor.as_deref())?;
    let mut tx = app.db.read().await?;
    let webhook = Webhook::find_for(&mut tx, &caller, webhook_id(&id)?).await?;
    let before = paging.after.unwrap_or(i64::MAX);
    let found = Delivery::list(&mut tx, webhook.id, query.status, before, paging.fetched()).await?;
    Ok(Json(paging.page(found, |row| row.number.to_string()).map(DeliveryView::from)))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InWebhook {
    webhook_id: String,
    delivery_id: String,
}

/// Sends a delivery again.
///
/// One that still waits is sent at once; otherwise it is a new delivery with the same message id and a day of
/// retries of its own.
#[utoipa::path(
    post, path = "/api/v2/webhooks/{webhookId}/deliveries/{deliveryId}/redeliver", operation_id = "redeliver",
    tag = "webhooks",
    responses(
        (status = 202, body = DeliveryView),
        (status = "4XX", description = "WEBHOOK_NOT_FOUND DELIVERY_NOT_FOUND WEBHOOK_DISABLED TOO_MANY_DELIVERIES \
            BODY_BROKEN BODY_TOO_LARGE IDEMPOTENCY_KEY_REUSED")
    )
)]
pub async fn redeliver(
    State(app): State<App>,
    caller: Caller,
    InPath(InWebhook { webhook_id: id, delivery_id: delivery }): InPath<InWebhook>,
    request: Request,
) -> Result<(StatusCode, Json<DeliveryView>), ApiError> {
    let webhook = webhook_id(&id)?;
    let delivery = Uuid::parse_str(&delivery).map_err(|_| Refusal::no_such_delivery())?;
    let received = Received::read(request, app.config.http.max_body_bytes).await?;
    let now = app.clock.now();
    let key = received.key(&caller)?;
    let change = Redeliver { caller, webhook, delivery, id: app.clock.new_id(), now };
    let delivery = app.db.write(Idempotent { key, now, change }).await?;
    Ok((StatusCode::ACCEPTED, Json(delivery)))
}

/// An invalid id names nothing.
fn webhook_id(text: &str) -> Result<Uuid, Refusal> {
    Uuid::parse_str(text).map_err(|_| Refusal::no_such_webhook())
}
