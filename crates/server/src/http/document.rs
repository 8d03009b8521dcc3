//! The description of the API, for programs and for people.
//!
//! A route is made from its annotated handler, so every route has a description. What follows from the rest, and so
//! need not be in an annotation, is added here: the ids in the path, the refusals for a token, a body, a cursor or
//! a key, and the form of all refusals.

mod bodies;
mod events;
mod examples;

use std::collections::{BTreeMap, BTreeSet};

use axum::Json;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Redirect, Response};
use serde_json::{Map, Value, json};
use utoipa::OpenApi;
use utoipa_swagger_ui::Config;

use super::health;
use super::permissions;
use super::request::InPath;
use crate::http::error::ApiError;
use landfall_api::events::data::{
    AlertRaisedData, BatchCancelledData, BatchCountsData, CircuitChangedData, EventOwner, FileCleanedUpData,
    FileProcessingStalledData, FileStatusChangedData, JobCompletedData, NotificationCreatedData,
    QueueRateLimitExceededData, StreamEndData, StreamGapData, StreamResetData, WebhookTestData,
};
use landfall_api::refusal::RefusalView;
use landfall_core::refusal::Refusal;
use landfall_core::refusal::RefusalCode;
use landfall_store::Error;

/// The page loads nothing from other servers and connects only to this one.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
     img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Landfall",
        description = "Takes file uploads, makes their text searchable, and brings every file to an end: to \
            `ready`, or to `failed` with a reason and a retry that works.\n\n\
            Every refusal has the same form, with a code that says which it is. A file or batch that is not the \
            caller's is reported as missing. Lists come in pages: `nextCursor` is the `cursor` of the \
            next one, and null on the last.",
        contact(name = "The operator of this server"),
        license(name = "MIT or Apache-2.0", identifier = "MIT OR Apache-2.0")
    ),
    servers((url = "/", description = "The server that this description comes from")),
    components(schemas(
        RefusalView, FileStatusChangedData, FileProcessingStalledData, FileCleanedUpData, BatchCountsData, BatchCancelledData,
        NotificationCreatedData, QueueRateLimitExceededData, CircuitChangedData, JobCompletedData, AlertRaisedData,
        WebhookTestData, EventOwner, StreamGapData, StreamResetData, StreamEndData,
    )),
    security(("token" = []), ("session" = [])),
    tags(
        (name = "batches", description = "Files that are uploaded together"),
        (name = "uploads", description = "Upload a file: register it, send the bytes, confirm"),
        (name = "files", description = "Files, their state, and their content"),
        (name = "search", description = "Search the text of the files"),
        (name = "dead letters", description = "Files that failed permanently, and their retries"),
        (name = "stuck", description = "Files that make no progress"),
        (name = "notifications", description = "Notifications of the caller"),
        (name = "events", description = "Events, live"),
        (name = "webhooks", description = "Addresses that events are sent to"),
        (name = "keys", description = "API keys for programs"),
        (name = "jobs", description = "The same files under the names of an older API"),
        (name = "administration", description = "For administrators"),
        (name = "sign-in", description = "People sign in on the page"),
        (name = "health", description = "Health, version and metrics of this process"),
    )
)]
pub struct Base;

/// The whole description: that of the handlers, and what follows from it.
pub fn complete(api: utoipa::openapi::OpenApi) -> Value {
    let mut document = serde_json::to_value(api).expect("a description is JSON");
    document["components"]["securitySchemes"]["token"] = json!({
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "JWT",
        "description": "A token of `landfall token --user NAME` or of the identity provider, or an API key (`lf_…`). A key needs the \
            scope that `x-scope` names.",
    });
    document["components"]["securitySchemes"]["session"] = json!({
        "type": "apiKey",
        "in": "cookie",
        "name": "__Host-landfall-session",
        "description": "The session of a person who signed in on the page. A request that changes something also needs \
            the header `X-CSRF-Token`, which `GET /auth/session` has. Without https the cookie is called \
            `landfall-session-` and the port.",
    });
    let Some(paths) = document["paths"].as_object_mut() else { return document };
    for (path, item) in paths {
        for (method, operation) in item.as_object_mut().into_iter().flat_map(Map::iter_mut) {
            complete_operation(path, method, operation);
            examples::add(operation);
            if !operation["security"].is_array() {
                operation["x-scope"] = permissions::scope_of(method, operation).name().into();
            }
        }
    }
    bodies::require_what_is_always_there(&mut document);
    bodies::describe_bytes(&mut document);
    events::describe(&mut document);
    document
}

fn complete_operation(path: &str, method: &str, operation: &mut Value) {
    let mut parameters = ids_in(path);
    parameters.extend(operation["parameters"].as_array().cloned().unwrap_or_default());
    for parameter in &mut parameters {
        // A parameter is present or missing; it is never null.
        let schema = &mut parameter["schema"];
        if let Some(kind) = schema["type"].as_array().and_then(|kinds| kinds.first().cloned()) {
            schema["type"] = kind;
        }
        let other_than_null = |kinds: &Vec<Value>| kinds.iter().find(|kind| kind["type"] != "null").cloned();
        if let Some(one) = schema["oneOf"].as_array().and_then(other_than_null) {
            *schema = one;
        }
    }
    let mut refusals = named_refusals(operation);
    if refusals.contains("IDEMPOTENCY_KEY_REUSED") {
        parameters.push(json!({
            "name": "Idempotency-Key",
            "in": "header",
            "description": "The same key with the same request runs once and gets the same response",
            "schema": { "type": "string", "minLength": 1, "maxLength": 255 },
        }));
    }
    refusals.extend(refusals_that_follow(operation, &parameters));
    if !health::is_monitoring(path) {
        refusals.extend(["UNKNOWN_HOST", "SERVER_BUSY", "TOO_MANY_CONNECTIONS"].map(str::to_owned));
    }
    if refusals.contains("INVALID_TOKEN") || refusals.contains("INVALID_TICKET") {
        refusals.insert("TOO_MANY_AUTH_FAILURES".to_owned());
    }
    if method != "get" && refusals.contains("INVALID_TOKEN") {
        refusals.insert("TOO_MANY_WRITES".to_owned());
    }
    operation["parameters"] = parameters.into();
    let mut by_status: BTreeMap<u16, Vec<RefusalCode>> = BTreeMap::new();
    for name in refusals {
        let known = RefusalCode::find(&name).unwrap_or_else(|| panic!("{path} names the refusal {name:?}"));
        by_status.entry(known.status()).or_default().push(known);
    }
    for (status, known) in by_status {
        operation["responses"][status.to_string()] = refused(&known);
    }
    for response in operation["responses"].as_object_mut().into_iter().flat_map(Map::values_mut) {
        response["headers"]["X-Request-Id"] = json!({
            "description": "The id of this request in the log: the client's own, or a new one",
            "schema": { "type": "string" },
        });
        if response["description"].as_str().is_none_or(str::is_empty) {
            response["description"] = "Success".into();
        }
    }
}

/// The parameters in the braces of a path.
fn ids_in(path: &str) -> Vec<Value> {
    let names = path.split('{').skip(1).filter_map(|rest| rest.split_once('}').map(|(name, _)| name));
    let described = names.map(|name| {
        let (schema, description) = match name {
            "tenantId" => {
                (json!({ "type": "string", "minLength": 1, "maxLength": 255 }), "The tenant's name")
            }
            "stage" => (json!({ "type": "string" }), "The name of a stage, or of its queue"),
            "jobName" => (json!({ "type": "string" }), "The name of a job"),
            "consoleFile" => (json!({ "type": "string" }), "The name of a file of the console"),
            "asset" => (json!({ "type": "string" }), "The name of a file of the page"),
            _ => (json!({ "type": "string", "format": "uuid" }), "Its id"),
        };
        json!({ "name": name, "in": "path", "required": true, "description": description, "schema": schema })
    });
    described.collect()
}

/// The codes in the annotation, which are written in the place of a response.
fn named_refusals(operation: &mut Value) -> BTreeSet<String> {
    let named = operation["responses"].as_object_mut().and_then(|responses| responses.remove("4XX"));
    let named = named.as_ref().and_then(|named| named["description"].as_str()).unwrap_or_default();
    named.split_whitespace().map(str::to_owned).collect()
}

/// The codes that follow from the parts of the request.
fn refusals_that_follow(operation: &Value, parameters: &[Value]) -> Vec<String> {
    let mut codes = Vec::new();
    let public = operation["security"].is_array();
    if !public {
        codes.push("INSUFFICIENT_SCOPE");
        codes.extend(["UNAUTHENTICATED", "INVALID_TOKEN", "TOKEN_EXPIRED", "AUTH_UNAVAILABLE"]);
        codes.extend(["SESSION_EXPIRED", "CROSS_SITE_REQUEST"]);
        codes.extend(["DATABASE_FILE_GONE", "DATABASE_UNAVAILABLE", "REQUEST_TIMEOUT", "INTERNAL"]);
    }
    if operation["requestBody"]["content"]["application/json"].is_object() {
        codes.extend(["INVALID_JSON", "INVALID_REQUEST", "BODY_BROKEN", "BODY_TOO_LARGE"]);
    }
    let has = |place: &str, name: &str| {
        let named = |one: &&Value| one["in"] == place && (name.is_empty() || one["name"] == name);
        parameters.iter().any(|one| named(&one))
    };
    if has("query", "") || has("path", "") {
        codes.push("INVALID_REQUEST");
    }
    if has("query", "cursor") {
        codes.push("INVALID_CURSOR");
    }
    if has("header", "Idempotency-Key") {
        codes.push("INVALID_IDEMPOTENCY_KEY");
    }
    if has("query", "scope") || operation["tags"][0] == "administration" {
        codes.push("FORBIDDEN");
    }
    codes.into_iter().map(str::to_owned).collect()
}

fn refused(known: &[RefusalCode]) -> Value {
    let meanings: Vec<String> =
        known.iter().map(|known| format!("`{}`: {}", known.code(), known.meaning())).collect();
    let codes: Vec<&str> = known.iter().map(|known| known.code()).collect();
    json!({
        "description": meanings.join("\n\n"),
        // Beside the reference and not in an `allOf`: generators then use the one type for all refusals.
        "content": { "application/json": { "schema": {
            "$ref": "#/components/schemas/Refusal",
            "properties": { "error": { "properties": { "code": { "enum": codes } } } },
        } } },
    })
}

/// This description.
///
/// It needs no token, and it is the same for every caller.
#[utoipa::path(
    get, path = "/api/openapi.json", operation_id = "describeApi", tag = "health", security(()),
    responses((status = 200, body = Object))
)]
pub async fn document() -> Json<&'static Value> {
    Json(super::document())
}

/// The page that shows this description and can send requests.
///
/// It opens without a token. The requests that it sends need one.
#[utoipa::path(
    get, path = "/api/docs", operation_id = "openDocs", tag = "health", security(()),
    responses((status = 307, description = "Redirects to the page"))
)]
pub async fn docs() -> Redirect {
    Redirect::temporary("/api/docs/index.html")
}

/// A file of that page.
///
/// The name comes from the page. All files are part of the program, so the page loads nothing from other servers.
#[utoipa::path(
    get, path = "/api/docs/{asset}", operation_id = "showDocs", tag = "health", security(()),
    responses((status = 200, body = Vec<u8>, content_type = "*/*"), (status = "4XX", description = "NOT_FOUND"))
)]
pub async fn asset(InPath(asset): InPath<String>) -> Result<Response, ApiError> {
    let config = Config::from("/api/openapi.json").try_it_out_enabled(true).use_base_layout();
    let file = utoipa_swagger_ui::serve(&asset, config.into())
        .map_err(|error| Error::Internal(format!("the page of the API's description: {error}")))?
        .ok_or_else(Refusal::nothing_here)?;
    let kind = HeaderValue::from_str(&file.content_type)
        .unwrap_or(HeaderValue::from_static("application/octet-stream"));
    let headers = [(header::CONTENT_TYPE, kind), (header::CONTENT_SECURITY_POLICY, POLICY)];
    Ok((headers, file.bytes.into_owned()).into_response())
}
