//! Notifications of a user.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::page::{Listed, Page};
use landfall_core::states::NotificationKind;

/// A notification as its owner sees it.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Notification)]
pub struct NotificationView {
    pub notification_id: Uuid,
    #[serde(rename = "type")]
    pub kind: NotificationKind,
    /// Null, like the name, if it is about no file.
    pub file_id: Option<Uuid>,
    pub file_name: Option<String>,
    pub message: String,
    #[schema(value_type = Object)]
    pub data: Value,
    pub created_at: DateTime<Utc>,
    pub read_at: Option<DateTime<Utc>>,
    /// When it was settled by itself, because its file became ready or was deleted. It then counts as read.
    pub resolved_at: Option<DateTime<Utc>>,
}

impl Listed for NotificationView {
    const FIELD: &'static str = "notifications";
    const SCHEMA: &'static str = "NotificationPage";
}

/// A page of notifications, and how many the caller has not read.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NotificationList {
    #[serde(flatten)]
    pub page: Page<NotificationView>,
    /// Counted up to 1000.
    pub unread_count: i64,
}

/// The fields of the page and the count, side by side as they are on the wire.
impl utoipa::PartialSchema for NotificationList {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        use utoipa::openapi::RefOr;
        use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, Schema, SchemaFormat, Type};
        let RefOr::T(Schema::Object(page)) = <Page<NotificationView>>::schema() else {
            unreachable!("a page is an object");
        };
        let count = ObjectBuilder::new()
            .schema_type(Type::Integer)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)))
            .description(Some("Counted up to 1000."));
        ObjectBuilder::from(page).property("unreadCount", count).required("unreadCount").into()
    }
}

impl utoipa::ToSchema for NotificationList {
    fn schemas(schemas: &mut Vec<(String, utoipa::openapi::RefOr<utoipa::openapi::Schema>)>) {
        <Page<NotificationView> as utoipa::ToSchema>::schemas(schemas);
    }
}

/// Which notifications to list.
#[derive(Debug, Clone, Default, Serialize, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct NotificationQuery {
    #[param(minimum = 1, maximum = 200, default = 50)]
    pub limit: Option<i64>,
    /// The `nextCursor` of the page before.
    pub cursor: Option<String>,
    /// Only those that were not read yet.
    pub unread: Option<bool>,
}

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MarkedRead {
    pub marked_count: u64,
}
