//! The bodies of requests and responses, where the annotations do not say enough.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

/// A response has all its fields, with null for a missing value; a field that may be left out is never null. A
/// request may leave out a field that may be null.
pub fn require_what_is_always_there(document: &mut Value) {
    let mut asked = BTreeSet::new();
    let paths = document["paths"].as_object().into_iter().flat_map(Map::values);
    for operation in paths.flat_map(|item| item.as_object().into_iter().flat_map(Map::values)) {
        names_in(&operation["requestBody"], &mut asked);
    }
    // The parts of a body are asked for with it.
    loop {
        let mut all = asked.clone();
        for name in &asked {
            names_in(&document["components"]["schemas"][name], &mut all);
        }
        if all.len() == asked.len() {
            break;
        }
        asked = all;
    }
    let Some(schemas) = document["components"]["schemas"].as_object_mut() else { return };
    for (name, schema) in schemas {
        let Some(properties) = schema["properties"].as_object().filter(|_| !asked.contains(name)) else {
            continue;
        };
        let mut required: Vec<Value> = schema["required"].as_array().cloned().unwrap_or_default();
        for (field, one) in properties {
            if may_be_null(one) && !required.contains(&json!(field)) {
                required.push(json!(field));
            }
        }
        schema["required"] = required.into();
    }
}

fn may_be_null(schema: &Value) -> bool {
    let kinds = schema["type"].as_array().into_iter().flatten();
    let choices = schema["oneOf"].as_array().into_iter().flatten();
    kinds.chain(choices.map(|choice| &choice["type"])).any(|kind| kind == "null")
}

/// The names of the schemas that are referred to.
fn names_in(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            let name = fields.get("$ref").and_then(Value::as_str).and_then(|path| path.rsplit('/').next());
            names.extend(name.map(str::to_owned));
            fields.values().for_each(|field| names_in(field, names));
        }
        Value::Array(items) => items.iter().for_each(|item| names_in(item, names)),
        _ => {}
    }
}

/// An annotation says `Vec<u8>` for bytes, which would be described as a list of numbers.
pub fn describe_bytes(document: &mut Value) {
    let paths = document["paths"].as_object_mut().into_iter().flat_map(Map::values_mut);
    for operation in paths.flat_map(|item| item.as_object_mut().into_iter().flat_map(Map::values_mut)) {
        let mut bodies: Vec<&mut Value> = Vec::new();
        let Some(parts) = operation.as_object_mut() else { continue };
        for (part, value) in parts {
            match part.as_str() {
                "requestBody" => bodies.push(value),
                "responses" => bodies.extend(value.as_object_mut().into_iter().flat_map(Map::values_mut)),
                _ => {}
            }
        }
        let contents = bodies.into_iter().filter_map(|body| body.get_mut("content")?.as_object_mut());
        for (kind, media) in contents.flatten() {
            if !kind.contains("json") && media["schema"]["items"].is_object() {
                media["schema"] = json!({ "type": "string", "format": "binary" });
            }
        }
    }
}
