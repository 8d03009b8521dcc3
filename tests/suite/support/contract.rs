//! Every response to a test client is compared with the description of the API: its status, its code, its
//! content type, and every field of its body. So is every message of an event stream.

use landfall_server::http::document;
use serde_json::{Map, Value};

/// The entry of a request in the description.
pub struct Described {
    operation: Option<&'static Value>,
    name: String,
}

/// The entry for this path and method.
pub fn described(method: &str, path: &str) -> Option<Described> {
    let paths = document()["paths"].as_object().expect("paths");
    // The template with the fewest parameters is the right one.
    let matching = paths.iter().filter(|(template, _)| fits(template, path));
    let (template, item) = matching.min_by_key(|(template, _)| template.matches('{').count())?;
    let operation = item.get(method.to_ascii_lowercase());
    Some(Described { operation, name: format!("{method} {template}") })
}

fn fits(template: &str, path: &str) -> bool {
    let (mut template, mut path) = (template.split('/'), path.split('/'));
    loop {
        match (template.next(), path.next()) {
            (None, None) => return true,
            (Some(one), Some(other)) if one == other || (one.starts_with('{') && !other.is_empty()) => {}
            _ => return false,
        }
    }
}

/// Fails the test unless the description has this response. `body`: the body of the response, if it is JSON.
pub fn check(method: &str, path: &str, status: u16, content_type: Option<&str>, body: &Value) {
    let code = body["error"]["code"].as_str().unwrap_or_default();
    let Some(Described { operation, name }) = described(method, path) else {
        assert_eq!((status, code), (404, "NOT_FOUND"), "{method} {path} is not described");
        return;
    };
    let Some(operation) = operation else {
        assert_eq!((status, code), (405, "METHOD_NOT_ALLOWED"), "{name} is not described");
        return;
    };
    let answer = &operation["responses"][status.to_string()];
    assert!(answer.is_object(), "{name} does not describe the status {status}: {body}");
    let Some(content) = answer["content"].as_object() else { return };
    if method == "HEAD" {
        // It has the headers of a body and none.
        return;
    }
    let essence = content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    let described = content.get(essence).or_else(|| content.get("*/*"));
    let described = described.unwrap_or_else(|| panic!("{name} {status} does not describe {essence:?}"));
    if essence == "application/json" && !content.contains_key("*/*") {
        let complaints = complaints(&described["schema"], body);
        assert!(complaints.is_empty(), "{name} {status}: {complaints:?} in {body}");
    }
}

/// Fails the test unless the description has this message of an event stream.
pub fn check_message(message: &Value) {
    let is_event = !message["type"].as_str().is_some_and(|kind| kind.starts_with("stream:"));
    check_as(if is_event { "Event" } else { "StreamMessage" }, message);
}

/// Fails the test unless the value is as this schema says.
pub fn check_as(name: &str, value: &Value) {
    let complaints =
        complaints(&serde_json::json!({ "$ref": format!("#/components/schemas/{name}") }), value);
    assert!(complaints.is_empty(), "{name}: {complaints:?} in {value}");
}

/// What is wrong with a value according to its schema. A field that is not described is wrong.
pub fn complaints(schema: &Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    check_value(schema, value, "", true, &mut found);
    found
}

fn check_value(schema: &Value, value: &Value, at: &str, strict: bool, found: &mut Vec<String>) {
    let mut strict = strict;
    if let Some(target) = target_of(schema) {
        check_value(target, value, at, strict, found);
        // What stands beside the reference adds to it.
        strict = false;
    }
    if let Some(parts) = schema["allOf"].as_array() {
        for part in parts {
            check_value(part, value, at, false, found);
        }
        let undescribed = value.as_object().into_iter().flatten().map(|(name, _)| name);
        let undescribed = undescribed.filter(|name| !parts.iter().any(|part| describes(part, name)));
        if strict {
            found.extend(undescribed.map(|name| format!("{at}/{name} is not described")));
        }
    }
    if let Some(chosen) = chosen_by_discriminator(schema, value) {
        return check_value(chosen, value, at, strict, found);
    }
    if let Some(choices) = schema["oneOf"].as_array().or(schema["anyOf"].as_array()) {
        let fits = |choice: &&Value| {
            let mut wrong = Vec::new();
            check_value(choice, value, at, strict, &mut wrong);
            wrong.is_empty()
        };
        if !choices.iter().any(|choice| fits(&choice)) {
            found.push(format!("{at} matches none of its choices"));
        }
    }
    let kinds: Vec<&str> = match &schema["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if !kinds.is_empty() && !kinds.iter().any(|kind| is_a(kind, value)) {
        found.push(format!("{at} is not of the type {kinds:?}"));
        return;
    }
    if schema.get("const").is_some_and(|only| only != value) {
        found.push(format!("{at} is not {}", schema["const"]));
    }
    if schema["enum"].as_array().is_some_and(|allowed| !allowed.contains(value)) {
        found.push(format!("{at} is not one of {}", schema["enum"]));
    }
    match value {
        Value::String(text) => check_text(schema, text, at, found),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                check_value(&schema["items"], item, &format!("{at}/{index}"), strict, found);
            }
        }
        Value::Object(fields) => check_fields(schema, fields, at, strict, found),
        _ => {}
    }
}

/// What a reference refers to.
fn target_of(schema: &Value) -> Option<&'static Value> {
    let reference = schema["$ref"].as_str()?;
    Some(document().pointer(reference.trim_start_matches('#')).expect(reference))
}

/// The schema for the value among the choices, where a field says which one it is.
fn chosen_by_discriminator(schema: &Value, value: &Value) -> Option<&'static Value> {
    let field = schema["discriminator"]["propertyName"].as_str()?;
    let reference = schema["discriminator"]["mapping"].get(value[field].as_str()?)?;
    target_of(&serde_json::json!({ "$ref": reference }))
}

/// Whether a schema has this field, in one of its parts.
fn describes(schema: &Value, field: &str) -> bool {
    let parts = schema["allOf"].as_array().into_iter().flatten();
    schema["properties"].get(field).is_some()
        || schema["additionalProperties"].is_object()
        || target_of(schema).is_some_and(|target| describes(target, field))
        || parts.into_iter().any(|part| describes(part, field))
}

fn check_text(schema: &Value, text: &str, at: &str, found: &mut Vec<String>) {
    let wrong = match schema["format"].as_str() {
        Some("uuid") => uuid::Uuid::parse_str(text).is_err(),
        Some("date-time") => text.parse::<landfall_core::clock::Time>().is_err(),
        _ => false,
    };
    let choices = schema["pattern"].as_str().and_then(|it| it.strip_prefix("^(")?.strip_suffix(")$"));
    // Other patterns are not read here.
    let choices = choices.filter(|choices| !choices.contains(['[', '(', '{', '*', '+', '?', '\\']));
    if wrong || choices.is_some_and(|choices| !choices.split('|').any(|choice| choice == text)) {
        found.push(format!("{at} does not match its format"));
    }
}

fn check_fields(
    schema: &Value,
    fields: &Map<String, Value>,
    at: &str,
    strict: bool,
    found: &mut Vec<String>,
) {
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !fields.contains_key(name) {
            found.push(format!("{at}/{name} is missing"));
        }
    }
    for (name, value) in fields {
        let at = format!("{at}/{name}");
        if let Some(known) = schema["properties"].get(name) {
            check_value(known, value, &at, strict, found);
        } else if schema["additionalProperties"].is_object() {
            check_value(&schema["additionalProperties"], value, &at, strict, found);
        } else if strict && schema["properties"].is_object() {
            found.push(format!("{at} is not described"));
        }
    }
}

fn is_a(kind: &str, value: &Value) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("an unknown type: {other}"),
    }
}
