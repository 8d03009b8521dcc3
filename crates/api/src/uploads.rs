//! Uploads: register a file, send its bytes, confirm it.

use std::borrow::Cow;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, OneOfBuilder, Schema, SchemaType, Type};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};
use uuid::Uuid;

use landfall_core::lifecycle::Status;

/// What a client declares about a file before it sends the bytes.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = NewFile)]
pub struct Announcement {
    #[schema(min_length = 1, max_length = 255)]
    pub file_name: String,
    #[schema(minimum = 0)]
    pub file_size: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255, pattern = "^[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+ *(;[ -~]*)?$")]
    pub content_type: Option<String>,
    /// 32 hexadecimal digits, or 24 characters of base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^([0-9A-Fa-f]{32}|[A-Za-z0-9+/]{21}[AQgw]==)$")]
    pub md5: Option<String>,
    /// 64 hexadecimal digits, or 44 characters of base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^([0-9A-Fa-f]{64}|[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=)$")]
    pub sha256: Option<String>,
    /// Up to 16 names of up to 64 characters, each with a string of up to 512 characters, a number or a boolean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub attributes: Option<Map<String, Value>>,
    /// For the operator's own extraction: up to 16 KB of JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = mapping_schema)]
    pub mapping: Option<Value>,
}

/// A mapping in the API description.
pub(crate) fn mapping_schema() -> Schema {
    let of_type = |kind: Type| ObjectBuilder::new().schema_type(kind);
    let array = ArrayBuilder::new().items(ObjectBuilder::new().schema_type(SchemaType::AnyValue));
    OneOfBuilder::new().item(of_type(Type::Object)).item(array).item(of_type(Type::Null)).into()
}

/// Where and how to send the bytes of one file.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UploadTicket {
    pub file_id: Uuid,
    pub upload_url: String,
    pub method: String,
    #[schema(value_type = std::collections::HashMap<String, String>)]
    pub headers: Map<String, Value>,
    /// When the URL expires. Ask for a fresh one then; the registration lives longer.
    pub expires_at: DateTime<Utc>,
    /// The same as a number of milliseconds, for a client whose clock may be wrong.
    #[serde(default)]
    #[schema(required = true)]
    pub expires_in_ms: i64,
}

/// A single value or a list of them.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(untagged)]
pub enum OneOrMany<T> {
    One(T),
    Many(Vec<T>),
}

/// Not derived: the derived schema would have a name like `OneOrMany_NewFile` and repeat that of the value.
impl<T: ToSchema> PartialSchema for OneOrMany<T> {
    fn schema() -> RefOr<Schema> {
        let one = || Ref::from_schema_name(T::name());
        OneOfBuilder::new().item(one()).item(ArrayBuilder::new().items(one())).into()
    }
}

impl<T: ToSchema> ToSchema for OneOrMany<T> {
    fn name() -> Cow<'static, str> {
        format!("{}OrList", T::name()).into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((T::name().into_owned(), T::schema()));
        T::schemas(schemas);
    }
}

/// The bodies of a registration of one file or several.
pub type NewFileOrList = OneOrMany<Announcement>;
pub type UploadTicketOrList = OneOrMany<UploadTicket>;

/// The response to the bytes of a file.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = UploadedFile)]
pub struct Uploaded {
    pub file_id: Uuid,
    pub status: Status,
    pub size: u64,
    pub md5: String,
}

/// What the client believes to have sent. Both are checked if given.
#[derive(Debug, Clone, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ConfirmRequest {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0)]
    pub size: Option<i64>,
    /// 32 hexadecimal digits, or 24 characters of base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^([0-9A-Fa-f]{32}|[A-Za-z0-9+/]{21}[AQgw]==)$")]
    pub md5: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ConfirmedFile)]
pub struct Confirmed {
    pub file_id: Uuid,
    pub status: Status,
}
