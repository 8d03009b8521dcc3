//! Events in the description: as they are in a stream, and as the bodies of webhooks.
//!
//! The annotations have the schema of each `data`. The messages around them are the same for all types, so they are made
//! here, one for each type, with the type as the discriminator.

use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use crate::delivery::webhooks::WEBHOOK_TEST;
use landfall_api::events::data::{
    AlertRaisedData, BatchCancelledData, BatchCountsData, CircuitChangedData, EventOwner, FileCleanedUpData,
    FileProcessingStalledData, FileStatusChangedData, JobCompletedData, NotificationCreatedData,
    QueueRateLimitExceededData, StreamEndData, StreamGapData, StreamResetData, WebhookTestData,
};
use landfall_core::event::EventKind;

/// The schema of the `data` of an event.
fn data_of(kind: EventKind) -> String {
    match kind {
        EventKind::FileStatusChanged => FileStatusChangedData::name(),
        EventKind::FileProcessingStalled => FileProcessingStalledData::name(),
        EventKind::FileCleanedUp => FileCleanedUpData::name(),
        EventKind::BatchProgress | EventKind::BatchCompleted | EventKind::BatchExpired => {
            BatchCountsData::name()
        }
        EventKind::BatchCancelled => BatchCancelledData::name(),
        EventKind::NotificationCreated => NotificationCreatedData::name(),
        EventKind::QueueRateLimitExceeded => QueueRateLimitExceededData::name(),
        EventKind::CircuitChanged => CircuitChangedData::name(),
        EventKind::JobCompleted => JobCompletedData::name(),
        EventKind::AlertRaised => AlertRaisedData::name(),
    }
    .into_owned()
}

/// What an event tells of, in a sentence.
const fn summary_of(kind: EventKind) -> &'static str {
    match kind {
        EventKind::FileStatusChanged => "A file went from one state to another.",
        EventKind::FileProcessingStalled => {
            "The worker of a file died or lost track of it. The file continues by itself."
        }
        EventKind::FileCleanedUp => "The server deleted a file by itself.",
        EventKind::BatchProgress => {
            "The files of a batch moved: when one ends, and at most once a second for each batch."
        }
        EventKind::BatchCompleted => "All files of a batch have ended.",
        EventKind::BatchExpired => "Files of a batch never came. Those that came go on.",
        EventKind::BatchCancelled => "A batch was cancelled.",
        EventKind::NotificationCreated => "The user has a new notification.",
        EventKind::QueueRateLimitExceeded => "A stage reached its rate limit. For administrators.",
        EventKind::CircuitChanged => "A service failed, is tried again, or works again. For administrators.",
        EventKind::JobCompleted => "A maintenance job ended. For administrators.",
        EventKind::AlertRaised => "Something needs an operator. For administrators.",
    }
}

/// Adds the messages, `Event`, `StreamMessage` and `WebhookMessage`, and the webhooks.
pub fn describe(document: &mut Value) {
    let (mut messages, mut bodies, mut webhooks) = (Vec::new(), Vec::new(), Map::new());
    for kind in EventKind::ALL {
        let (kind, data, summary) = (kind.name(), data_of(*kind), summary_of(*kind));
        let (event, body) = (named(kind, "Event"), named(kind, "Webhook"));
        add(document, &event, of_stream(kind, summary, &reference(&data)));
        let owned = json!({ "allOf": [reference(&data), reference(&EventOwner::name())] });
        add(document, &body, of_webhook(kind, summary, &owned));
        webhooks.insert(kind.to_owned(), webhook(kind, summary, &body));
        messages.push((kind, event));
        bodies.push((kind, body));
    }
    add(document, "Event", one_of("An event. Its type says what `data` has.", &messages));
    let mut about_stream = vec![reference("Event")];
    for (kind, summary, data) in [
        ("stream:open", "The stream begins after `id`.", json!({ "type": "object" })),
        ("stream:gap", "Events are missing. Load the current state.", reference(&StreamGapData::name())),
        (
            "stream:reset",
            "The database was restored. Load the current state.",
            reference(&StreamResetData::name()),
        ),
    ] {
        let name = named(kind, "Message");
        add(document, &name, of_stream(kind, summary, &data));
        about_stream.push(reference(&name));
    }
    let name = named("stream:end", "Message");
    add(document, &name, end_of_stream());
    about_stream.push(reference(&name));
    add(
        document,
        "StreamMessage",
        json!({
            "description": "A message of a stream: an event, or a message about the stream itself.",
            "oneOf": about_stream,
        }),
    );
    describe_stream(document);

    let (summary, body) = ("A test that was asked for.", named(WEBHOOK_TEST, "Webhook"));
    add(document, &body, of_webhook(WEBHOOK_TEST, summary, &reference(&WebhookTestData::name())));
    webhooks.insert(WEBHOOK_TEST.to_owned(), webhook(WEBHOOK_TEST, summary, &body));
    bodies.push((WEBHOOK_TEST, body));
    add(document, "WebhookMessage", one_of("The body of a webhook.", &bodies));
    document["webhooks"] = webhooks.into();
    let mut callback = webhook("message", "A message for the webhook.", "WebhookMessage");
    callback["post"]["operationId"] = "onWebhookMessage".into();
    document["paths"]["/api/v2/webhooks"]["post"]["callbacks"]["message"] =
        json!({ "{$request.body#/url}": callback });
}

/// A body of server-sent events is text: the schema is that of what the text carries.
fn describe_stream(document: &mut Value) {
    let responses = &mut document["paths"]["/api/v2/uploads/events"]["get"]["responses"];
    let message = reference("StreamMessage");
    responses["101"]["content"] = json!({ "application/json": { "schema": message } });
    responses["200"]["content"] = json!({ "text/event-stream": { "schema": {
        "type": "string",
        "contentMediaType": "text/event-stream",
        "contentSchema": message,
    } } });
}

fn add(document: &mut Value, name: &str, schema: Value) {
    document["components"]["schemas"][name] = schema;
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// `file:status-changed` as the name of a type: `FileStatusChanged` and the ending.
fn named(kind: &str, ending: &str) -> String {
    let mut name = String::new();
    for word in kind.split([':', '-']) {
        let (first, rest) = word.split_at(1);
        name.push_str(&first.to_ascii_uppercase());
        name.push_str(rest);
    }
    name + ending
}

fn of_stream(kind: &str, summary: &str, data: &Value) -> Value {
    let owner = |what: &str| json!({ "type": "string", "description": what });
    // The messages about the stream itself have no owner, and say null where there is no epoch.
    let (epoch, mut fields) = if kind.starts_with("stream:") {
        (json!(["string", "null"]), Map::new())
    } else {
        let of = "whose event it is; left out if it is the system's";
        let fields = [("tenantId", format!("The tenant {of}")), ("userId", format!("The user {of}"))];
        (json!("string"), fields.map(|(name, what)| (name.to_owned(), owner(&what))).into_iter().collect())
    };
    let common = json!({
        "id": { "type": "integer", "format": "int64", "description": "Ids ascend, with gaps" },
        "type": { "type": "string", "const": kind },
        "at": { "type": "string", "format": "date-time" },
        "epoch": { "type": epoch, "format": "uuid", "description": "Changes when the database is restored from a backup" },
        "data": data,
    });
    fields.extend(common.as_object().cloned().unwrap_or_default());
    json!({
        "type": "object",
        "description": summary,
        "required": ["id", "type", "at", "data"],
        "properties": fields,
    })
}

fn end_of_stream() -> Value {
    json!({
        "type": "object",
        "description": "The last message, with server-sent events. A WebSocket is closed with the code as its reason.",
        "required": ["type", "data"],
        "properties": {
            "type": { "type": "string", "const": "stream:end" },
            "data": reference(&StreamEndData::name()),
        },
    })
}

fn of_webhook(kind: &str, summary: &str, data: &Value) -> Value {
    json!({
        "type": "object",
        "description": summary,
        "required": ["type", "timestamp", "data"],
        "properties": {
            "type": { "type": "string", "const": kind },
            "timestamp": { "type": "string", "format": "date-time", "description": "When the event happened" },
            "epoch": {
                "type": ["string", "null"],
                "format": "uuid",
                "description": "Changes when the database is restored from a backup. A test has none",
            },
            "data": data,
        },
    })
}

fn one_of(description: &str, choices: &[(&str, String)]) -> Value {
    let mapping: Map<String, Value> =
        choices.iter().map(|(kind, name)| ((*kind).to_owned(), reference(name)["$ref"].take())).collect();
    let schemas: Vec<Value> = choices.iter().map(|(_, name)| reference(name)).collect();
    json!({
        "description": description,
        "oneOf": schemas,
        "discriminator": { "propertyName": "type", "mapping": mapping },
    })
}

/// The request that a receiver gets.
fn webhook(kind: &str, summary: &str, body: &str) -> Value {
    let header = |name: &str, what: &str| {
        let schema = json!({ "type": "string" });
        json!({ "name": name, "in": "header", "required": true, "description": what, "schema": schema })
    };
    json!({ "post": {
        "operationId": format!("on{}", named(kind, "")),
        "tags": ["webhooks"],
        "summary": summary,
        "description": "Landfall sends this to the address of a webhook. Verify the signature before anything else; it follows Standard Webhooks. \
            A message may come more than once, always with the same `webhook-id`.",
        "security": [],
        "parameters": [
            header("webhook-id", "The id of the message"),
            header("webhook-timestamp", "When it was sent, in seconds since 1970"),
            header("webhook-signature", "`v1,` and the signature in base64; several are separated by spaces"),
        ],
        "requestBody": { "required": true, "content": { "application/json": { "schema": reference(body) } } },
        "responses": {
            "2XX": { "description": "Accepted. Every other status is a failure, and the message is sent again." },
            "410": { "description": "Gone. The webhook is disabled." },
        },
    } })
}
