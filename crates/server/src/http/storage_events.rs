//! Notifications of an object store: a client sent its bytes, and need not confirm them.
//!
//! Each store has its own form, and what passes them on wraps them once more. They come at least once and in any order. All that
//! counts is which object was written: this server looks itself what is there.

use axum::Json;
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::request::{Params, Received, bearer};
use crate::app::App;
use crate::blobs::Blobs;
use crate::http::error::ApiError;
use crate::intake::adopt;
use crate::outbound;
use crate::recovery::config::Unconfirmed;
use landfall_api::storage::StorageEventsTaken;
use landfall_core::refusal::{Refusal, RefusalCode};

/// More than any store sends at once.
const MAX_EVENTS: usize = 10_000;
/// How deep a notification may be wrapped.
const MAX_WRAPPINGS: usize = 4;

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub struct EventsQuery {
    /// `STORAGE_EVENTS_TOKEN`, for what passes notifications on and cannot send an `Authorization` header.
    token: Option<String>,
}

/// Takes the notifications of the object store that objects were written: of S3 (also through SNS and EventBridge), of Azure
/// (Event Grid) and of Google Cloud Storage (Pub/Sub).
///
/// They are optional: an upload that is not confirmed is found at its deadline. The caller sends `STORAGE_EVENTS_TOKEN`.
#[utoipa::path(
    post, path = "/api/v2/storage/events", operation_id = "takeStorageEvents", tag = "uploads", security(()),
    params(EventsQuery), request_body(content = Value, description = "As the store sends it"),
    responses(
        (status = 200, body = StorageEventsTaken),
        (status = "4XX", description = "UNAUTHENTICATED STORAGE_UNAVAILABLE")
    )
)]
pub async fn take(
    State(app): State<App>,
    Params(query): Params<EventsQuery>,
    headers: HeaderMap,
    request: Request,
) -> Result<Json<StorageEventsTaken>, ApiError> {
    admit(&app, query.token.as_deref(), &headers)?;
    let received = Received::read(request, app.config.http.max_body_bytes).await?;
    let body: Value =
        if received.is_list() { Value::Array(received.json_list()?) } else { received.json()? };
    if let Some(code) = validation_code(&body) {
        return Ok(Json(StorageEventsTaken { adopted: 0, validation_response: Some(code) }));
    }
    if let Some(url) = subscription(&body) {
        confirm_subscription(url).await;
    }
    let mut written = Vec::new();
    collect(&body, 0, &mut written);
    let mut adopted = 0;
    if app.config.healing.unconfirmed == Unconfirmed::Adopt {
        for (bucket, object) in written {
            let Some(key) = app.blobs.key_of_object(&bucket, &object) else { continue };
            let Some(file) = Blobs::file_of(&key).filter(|file| Blobs::direct_key(*file) == key) else {
                continue;
            };
            adopted += usize::from(adopt::adopt_notified(&app.db, &app.blobs, file, app.clock.now()).await?);
        }
    }
    Ok(Json(StorageEventsTaken { adopted, validation_response: None }))
}

fn admit(app: &App, in_query: Option<&str>, headers: &HeaderMap) -> Result<(), ApiError> {
    // Hashes are compared, so that the time of the comparison reveals nothing about the token.
    let is_right = |token: &str| {
        let wanted = app.config.storage_events_token.as_deref();
        wanted.is_some_and(|wanted| Sha256::digest(wanted) == Sha256::digest(token))
    };
    if bearer(headers).or(in_query).is_some_and(is_right) {
        return Ok(());
    }
    let message = "Send the STORAGE_EVENTS_TOKEN of this server: Authorization: Bearer …, or ?token=…";
    Err(Refusal::new(RefusalCode::Unauthenticated, message).into())
}

/// Adds the objects that were written, with their buckets. What is not understood is left out.
fn collect(event: &Value, depth: usize, written: &mut Vec<(String, String)>) {
    if depth > MAX_WRAPPINGS || written.len() >= MAX_EVENTS {
        return;
    }
    match event {
        Value::Array(events) => events.iter().for_each(|event| collect(event, depth + 1, written)),
        Value::Object(fields) => {
            if let Some(records) = fields.get("Records") {
                collect(records, depth + 1, written);
            }
            // SNS has the notification as text.
            let text = fields.get("Message").and_then(Value::as_str);
            if let Some(inner) = text.and_then(|text| serde_json::from_str(text).ok()) {
                collect(&inner, depth + 1, written);
            }
            written.extend(object_of(event));
        }
        _ => {}
    }
}

/// The bucket and the object that a single notification is about, if it says that the object was written.
fn object_of(event: &Value) -> Option<(String, String)> {
    let text = |path: &str| event.pointer(path).and_then(Value::as_str);
    // S3 itself. The key is encoded as in a form.
    if text("/eventName").is_some_and(|name| name.trim_start_matches("s3:").starts_with("ObjectCreated:")) {
        let (bucket, key) = (text("/s3/bucket/name")?, text("/s3/object/key")?);
        let key = url::form_urlencoded::parse(format!("k={key}").as_bytes()).next()?.1.into_owned();
        return Some((bucket.to_owned(), key));
    }
    // EventBridge.
    if text("/detail-type") == Some("Object Created") {
        return Some((text("/detail/bucket/name")?.to_owned(), text("/detail/object/key")?.to_owned()));
    }
    // Event Grid, in its own form and as a CloudEvent.
    if text("/eventType").or_else(|| text("/type")) == Some("Microsoft.Storage.BlobCreated") {
        let below = text("/subject")?.strip_prefix("/blobServices/default/containers/")?;
        let (container, blob) = below.split_once("/blobs/")?;
        return Some((container.to_owned(), blob.to_owned()));
    }
    // Pub/Sub.
    if text("/message/attributes/eventType") == Some("OBJECT_FINALIZE") {
        let (bucket, object) = (text("/message/attributes/bucketId")?, text("/message/attributes/objectId")?);
        return Some((bucket.to_owned(), object.to_owned()));
    }
    None
}

/// The code that Event Grid wants back before it sends anything.
fn validation_code(body: &Value) -> Option<String> {
    let event = body.as_array().and_then(|events| events.first()).unwrap_or(body);
    let is_validation = event["eventType"] == json!("Microsoft.EventGrid.SubscriptionValidationEvent");
    is_validation.then(|| event["data"]["validationCode"].as_str().map(str::to_owned)).flatten()
}

/// The address that SNS wants to be called before it sends anything, if it is one of SNS.
fn subscription(body: &Value) -> Option<url::Url> {
    (body["Type"] == json!("SubscriptionConfirmation")).then_some(())?;
    let url = url::Url::parse(body["SubscribeURL"].as_str()?).ok()?;
    let host = url.host_str()?;
    let is_of_sns =
        host.starts_with("sns.") && (host.ends_with(".amazonaws.com") || host.ends_with(".amazonaws.com.cn"));
    (url.scheme() == "https" && is_of_sns).then_some(url)
}

async fn confirm_subscription(url: url::Url) {
    let timeout = std::time::Duration::from_secs(10);
    let called = outbound::client_without_redirects().get(url).timeout(timeout).send().await;
    match called.and_then(reqwest::Response::error_for_status) {
        Ok(_) => tracing::info!("the subscription to the notifications of the object store was confirmed"),
        Err(error) => {
            let error = error.without_url();
            tracing::warn!(%error, "the subscription to the notifications of the object store could not be confirmed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(event: &Value) -> Vec<(String, String)> {
        let mut written = Vec::new();
        collect(event, 0, &mut written);
        written
    }

    #[test]
    fn each_stores_form_names_the_object() {
        let s3 = json!({ "Records": [
            { "eventName": "ObjectCreated:Put", "s3": { "bucket": { "name": "b" }, "object": { "key": "p/a%2Bb+c" } } },
            { "eventName": "ObjectRemoved:Delete", "s3": { "bucket": { "name": "b" }, "object": { "key": "gone" } } },
            { "eventName": "s3:ObjectCreated:CompleteMultipartUpload",
              "s3": { "bucket": { "name": "b" }, "object": { "key": "large" } } },
        ] });
        let pair = |bucket: &str, key: &str| (bucket.to_owned(), key.to_owned());
        assert_eq!(written(&s3), [pair("b", "p/a+b c"), pair("b", "large")]);
        let sns = json!({ "Type": "Notification", "Message": s3.to_string() });
        assert_eq!(written(&sns), written(&s3));
        let bridge = json!({ "detail-type": "Object Created",
            "detail": { "bucket": { "name": "b" }, "object": { "key": "p/a b" } } });
        assert_eq!(written(&bridge), [pair("b", "p/a b")]);
        let grid = json!([{ "eventType": "Microsoft.Storage.BlobCreated",
            "subject": "/blobServices/default/containers/c/blobs/p/a" }]);
        assert_eq!(written(&grid), [pair("c", "p/a")]);
        let pubsub = json!({ "message": { "attributes":
            { "eventType": "OBJECT_FINALIZE", "bucketId": "g", "objectId": "p/a" } }, "subscription": "s" });
        assert_eq!(written(&pubsub), [pair("g", "p/a")]);
        for other in [json!(null), json!([]), json!({ "Records": 1 }), json!({ "Message": "{" }), json!("x")]
        {
            assert_eq!(written(&other), []);
        }
    }

    #[test]
    fn only_sns_itself_is_called_back() {
        let body = |url: &str| json!({ "Type": "SubscriptionConfirmation", "SubscribeURL": url });
        assert!(
            subscription(&body("https://sns.eu-north-1.amazonaws.com/?Action=ConfirmSubscription")).is_some()
        );
        for url in [
            "http://sns.eu-north-1.amazonaws.com/",
            "https://sns.example.com/",
            "https://example.com/sns.x.amazonaws.com",
            "https://169.254.169.254/",
            "https://sns.x.amazonaws.com.example.com/",
        ] {
            assert!(subscription(&body(url)).is_none(), "{url}");
        }
    }

    #[test]
    fn wrappings_that_never_end_are_left() {
        let mut event = json!({ "eventName": "ObjectCreated:Put",
            "s3": { "bucket": { "name": "b" }, "object": { "key": "k" } } });
        assert_eq!(written(&event).len(), 1);
        // Each wrapping doubles what has to be escaped.
        for _ in 0..=MAX_WRAPPINGS {
            event = json!({ "Message": event.to_string() });
        }
        assert_eq!(written(&event), []);
    }
}
