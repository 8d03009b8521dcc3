//! The examples of the description, which are all here: each is in a file of `examples/`, under the name of its schema. A body
//! that has no schema of its own has an example under the name of its operation.
//!
//! `{ "$example": "FileView" }` stands for another example. A test checks each against its schema.

use std::sync::LazyLock;

use serde_json::{Map, Value};

const FILES: [&str; 6] = [
    include_str!("examples/access.json"),
    include_str!("examples/administration.json"),
    include_str!("examples/failures.json"),
    include_str!("examples/files.json"),
    include_str!("examples/uploads.json"),
    include_str!("examples/webhooks.json"),
];

static EXAMPLES: LazyLock<Map<String, Value>> = LazyLock::new(|| {
    let read = |text: &&str| serde_json::from_str::<Map<String, Value>>(text).expect("an object of examples");
    FILES.iter().flat_map(read).collect()
});

/// Adds an example to each JSON body of a request, and of a response that is a success.
pub fn add(operation: &mut Value) {
    let id = operation["operationId"].as_str().unwrap_or_default().to_owned();
    if let Some(body) = operation.get_mut("requestBody") {
        add_to(&id, body);
    }
    let responses = operation["responses"].as_object_mut().into_iter().flat_map(Map::iter_mut);
    for (_, response) in responses.filter(|(status, _)| status.starts_with('2')) {
        add_to(&id, response);
    }
}

fn add_to(operation: &str, body: &mut Value) {
    let Some(media) = body.pointer_mut("/content/application~1json") else { return };
    let name = schema_of(&media["schema"]).unwrap_or(operation);
    if let Some(example) = EXAMPLES.get(name) {
        media["example"] = expanded(example);
    }
}

/// The name of the schema of a body, which may also be null.
fn schema_of(schema: &Value) -> Option<&str> {
    let choices = schema["oneOf"].as_array().into_iter().flatten();
    let mut references = std::iter::once(schema).chain(choices).filter_map(|one| one["$ref"].as_str());
    references.next()?.rsplit('/').next()
}

fn expanded(example: &Value) -> Value {
    match example {
        Value::Object(fields) => match fields.get("$example").and_then(Value::as_str) {
            Some(name) => {
                expanded(EXAMPLES.get(name).unwrap_or_else(|| panic!("there is no example {name:?}")))
            }
            None => fields.iter().map(|(name, value)| (name.clone(), expanded(value))).collect(),
        },
        Value::Array(items) => items.iter().map(expanded).collect(),
        plain => plain.clone(),
    }
}
