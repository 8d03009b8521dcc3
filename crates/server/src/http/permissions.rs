//! Which scope of an API key each operation needs. Tokens and sessions have all scopes.

use std::collections::HashMap;
use std::sync::LazyLock;

use axum::http::Method;
use landfall_core::caller::KeyScope;
use serde_json::{Map, Value};

/// The name and the needs of an operation.
#[derive(Debug, Clone, Copy)]
pub struct Operation {
    pub name: &'static str,
    pub scope: KeyScope,
}

/// The operations that bring a file in.
const UPLOADS: [&str; 15] = [
    "openBatch",
    "closeBatch",
    "registerFile",
    "registerFilesInBatch",
    "freshUploadUrl",
    "sendBytes",
    "signS3Request",
    "takeStorageEvents",
    "confirmFile",
    "confirmFileInBatch",
    "createUpload",
    "uploadOffset",
    "appendToUpload",
    "terminateUpload",
    "overrideMethod",
];
/// The operations that change nothing, although they are not a GET.
const READS: [&str; 2] = ["search", "issueTicket"];

/// The scope for an operation of the description.
pub fn scope_of(method: &str, operation: &Value) -> KeyScope {
    let name = operation["operationId"].as_str().unwrap_or_default();
    if operation["tags"][0] == "administration" || name == "showMetrics" {
        KeyScope::Admin
    } else if method == "get" || READS.contains(&name) {
        KeyScope::Read
    } else if UPLOADS.contains(&name) {
        KeyScope::Upload
    } else {
        KeyScope::Manage
    }
}

/// The operation of a route. A route that the description does not have needs every permission.
pub fn operation_of(method: &Method, route: &str) -> Operation {
    static OPERATIONS: LazyLock<HashMap<(String, &str), Operation>> = LazyLock::new(|| {
        let mut operations = HashMap::new();
        for (path, item) in super::document()["paths"].as_object().into_iter().flatten() {
            for (method, operation) in item.as_object().into_iter().flat_map(Map::iter) {
                let name = operation["operationId"].as_str().unwrap_or_default();
                let known = Operation { name, scope: scope_of(method, operation) };
                operations.insert((method.to_ascii_uppercase(), path.as_str()), known);
            }
        }
        operations
    });
    let find = |method: &Method| OPERATIONS.get(&(method.to_string(), route)).copied();
    // Where a HEAD has no handler of its own, that of the GET answers it.
    let found = find(method).or_else(|| (method == Method::HEAD).then(|| find(&Method::GET)).flatten());
    found.unwrap_or(Operation { name: "unknown", scope: KeyScope::Admin })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_in_the_lists_is_an_operation() {
        let known: Vec<&str> = super::super::document()["paths"]
            .as_object()
            .into_iter()
            .flatten()
            .flat_map(|(_, item)| item.as_object().into_iter().flat_map(Map::values))
            .filter_map(|operation| operation["operationId"].as_str())
            .collect();
        for name in UPLOADS.iter().chain(&READS) {
            assert!(known.contains(name), "{name}");
        }
    }

    #[test]
    fn what_changes_something_needs_more_than_read() {
        for (method, route, scope) in [
            (Method::GET, "/api/v2/uploads/files", KeyScope::Read),
            (Method::HEAD, "/api/v2/uploads/files", KeyScope::Read),
            (Method::POST, "/api/v2/search", KeyScope::Read),
            (Method::POST, "/api/v2/uploads/files/init", KeyScope::Upload),
            (Method::HEAD, "/api/v2/uploads/tus/{uploadId}", KeyScope::Upload),
            (Method::DELETE, "/api/v2/uploads/tus/{uploadId}", KeyScope::Upload),
            (Method::DELETE, "/api/v2/uploads/files/{fileId}", KeyScope::Manage),
            (Method::POST, "/api/v2/keys", KeyScope::Manage),
            (Method::GET, "/api/v2/admin/queue-status", KeyScope::Admin),
            (Method::POST, "/no/such/route", KeyScope::Admin),
        ] {
            assert_eq!(operation_of(&method, route).scope, scope, "{method} {route}");
        }
    }
}
