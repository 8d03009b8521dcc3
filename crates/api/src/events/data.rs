//! What an event tells: the field `data` of each type of event, as it is in the stream and in the body of a webhook.
//!
//! A field that does not apply is left out. Events of batches that version 0.1.0 recorded have fewer counts, until their retention
//! ends.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::batches::Summary;
use crate::files::{ActorView, WarningView};
use landfall_core::failure::Class;
use landfall_core::lifecycle::{Stage, Status};
use landfall_core::schemas::StoredCode;
use landfall_core::service::Service;
use landfall_core::states::{CircuitState, NotificationKind};

/// A step of a file from one state to another.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileStatusChangedData {
    pub file_id: Uuid,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub batch_id: Option<Uuid>,
    /// Left out where the file was registered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub from: Option<Status>,
    pub to: Status,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub stage: Option<Stage>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub attempt: Option<i64>,
    /// Left out only in events that an earlier version recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub actor: Option<ActorView>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub error: Option<EventError>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub chunk_count: Option<i64>,
    /// Why, where the states do not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub reason: Option<String>,
    /// With `to: ready`, if something is missing of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub warning_count: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub warnings: Option<Vec<WarningView>>,
}

/// The failure that a step of a file is about.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
pub struct EventError {
    #[schema(value_type = StoredCode)]
    pub code: String,
    pub class: Class,
    pub message: String,
}

/// The worker died or lost track of the file. The file continues by itself.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileProcessingStalledData {
    pub file_id: Uuid,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub batch_id: Option<Uuid>,
    pub stage: Stage,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub attempt: Option<i64>,
    pub retry_count: i64,
}

/// The server deleted a file by itself.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileCleanedUpData {
    pub file_id: Uuid,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub batch_id: Option<Uuid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub attempt: Option<i64>,
    pub tenant_id: String,
    pub reason: String,
    /// In bytes.
    pub size_reclaimed: i64,
}

/// How many files of a batch are in each state, and what became of the promised ones. An event that version 0.1.0 recorded
/// has fewer counts.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BatchCountsData {
    pub batch_id: Uuid,
    pub total: i64,
    /// How many files the batch was opened for.
    pub file_count: i64,
    pub registered: i64,
    pub uploaded: i64,
    pub queued: i64,
    pub scanning: i64,
    pub extracting: i64,
    pub chunking: i64,
    pub embedding: i64,
    pub ready: i64,
    pub failed: i64,
    pub cancelled: i64,
    pub deleted: i64,
    pub never_uploaded: i64,
    pub summary: Summary,
}

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BatchCancelledData {
    pub batch_id: Uuid,
    pub summary: Summary,
}

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotificationCreatedData {
    pub notification_id: Uuid,
    #[serde(rename = "type")]
    pub kind: NotificationKind,
    pub message: String,
    /// Left out, like the name, if the notification is about no file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub file_id: Option<Uuid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub file_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub batch_id: Option<Uuid>,
}

/// A stage reached its rate limit.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
pub struct QueueRateLimitExceededData {
    /// The name of the stage's queue.
    pub queue: String,
    pub timestamp: DateTime<Utc>,
}

/// The circuit of a service opened or closed.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
pub struct CircuitChangedData {
    pub service: Service,
    pub from: CircuitState,
    pub to: CircuitState,
    /// When the service is tried again, if the circuit is open.
    pub until: Option<DateTime<Utc>>,
}

/// A maintenance job ended.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobCompletedData {
    pub job: String,
    pub run_id: Uuid,
    #[schema(value_type = Object)]
    pub metrics: Map<String, Value>,
    pub errors: Vec<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AlertRaisedData {
    pub alert: String,
    pub message: String,
}

/// What a test delivery of a webhook has.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebhookTestData {
    pub webhook_id: Uuid,
    pub message: String,
}

/// Whose event it is: in the body of a webhook that gets the events of several users.
#[derive(Debug, Clone, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventOwner {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub tenant_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub user_id: Option<String>,
}

/// Events may be missing between these two ids.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StreamGapData {
    pub after: i64,
    pub resumes_after: i64,
}

/// The server's database was restored from a backup since the client saw the event `after`.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StreamResetData {
    /// `restored`.
    pub reason: String,
    pub after: i64,
    pub resumes_after: i64,
}

/// Why a stream ends.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
pub struct StreamEndData {
    pub code: StreamEndCode,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum StreamEndCode {
    ServerStopping,
    EventsUnavailable,
    TokenExpired,
    TooSlow,
    CaughtUp,
}
