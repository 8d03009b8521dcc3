//! Notifications of the object store.

use serde::{Deserialize, Serialize};

/// What came of the notifications of an object store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StorageEventsTaken {
    /// How many files go on because of them.
    pub adopted: usize,
    /// What Azure's Event Grid wants back when a subscription begins.
    #[serde(default)]
    pub validation_response: Option<String>,
}

/// A request to the S3 API that a client wants to send for the bytes of a file. Other fields are ignored, so that clients may
/// send what they have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct S3Request {
    pub method: S3Method,
    /// The multipart upload. Without it, `PUT` stores the whole object and `POST` begins a multipart upload.
    #[serde(default)]
    pub upload_id: Option<String>,
    /// From 1 to 10000.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 10000)]
    pub part_number: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum S3Method {
    Get,
    Post,
    Put,
    Delete,
}

/// Where and how to send a request to the object store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SignedS3Request {
    pub url: String,
    /// The request must have these.
    #[schema(value_type = std::collections::HashMap<String, String>)]
    pub headers: serde_json::Map<String, serde_json::Value>,
}
