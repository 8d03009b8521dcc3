//! Webhooks: addresses that events are sent to.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Deserializer, Serialize};
use uuid::Uuid;

use crate::page::{Listed, Page};
use landfall_core::states::{DeliveryStatus, Scope};

/// The body that registers a webhook.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewWebhook {
    #[schema(max_length = 2000)]
    pub url: String,
    /// Without it, events of every type.
    pub event_types: Option<Vec<String>>,
    #[schema(max_length = 500)]
    pub description: Option<String>,
    #[serde(default)]
    pub scope: Scope,
}

/// The only response that contains the secret.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegisteredWebhook {
    pub id: Uuid,
    pub secret: String,
    pub url: String,
    pub event_types: Option<Vec<String>>,
    pub description: Option<String>,
    pub scope: Scope,
    pub enabled: bool,
    pub created_at: DateTime<Utc>,
}

/// The body that changes a webhook. A field that is left out stays as it is.
#[derive(Debug, Clone, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WebhookChanges {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// `null`: every type.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<String>>)]
    pub event_types: Option<Option<Vec<String>>>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, max_length = 500)]
    pub description: Option<Option<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
}

/// Distinguishes a field that is `null` from one that is missing.
#[expect(clippy::option_option, reason = "that is the difference")]
fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(from).map(Some)
}

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RotatedSecret {
    pub id: Uuid,
    pub secret: String,
    pub old_secret_valid_until: DateTime<Utc>,
}

/// A webhook as its owner sees it: without the secret.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebhookView {
    pub id: Uuid,
    pub url: String,
    pub description: Option<String>,
    /// `null`: every type.
    pub event_types: Option<Vec<String>>,
    pub scope: Scope,
    pub enabled: bool,
    pub disabled_at: Option<DateTime<Utc>>,
    pub disabled_reason: Option<String>,
    /// Since when no delivery succeeded there.
    pub failing_since: Option<DateTime<Utc>>,
    /// Until when the secret before the last rotation is also used to sign.
    pub old_secret_valid_until: Option<DateTime<Utc>>,
    pub created_by: String,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

impl Listed for WebhookView {
    const FIELD: &'static str = "webhooks";
    const SCHEMA: &'static str = "WebhookList";
}

pub type WebhookList = Page<WebhookView>;

/// A delivery as its owner sees it.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeliveryView {
    pub id: Uuid,
    /// The id that the receiver sees.
    pub message_id: Uuid,
    pub event_id: Option<i64>,
    pub event_type: String,
    pub status: DeliveryStatus,
    pub attempts: i64,
    pub next_attempt_at: Option<DateTime<Utc>>,
    pub last_attempt_at: Option<DateTime<Utc>>,
    pub response_status: Option<i64>,
    pub response_excerpt: Option<String>,
    pub error: Option<String>,
    pub duration_ms: Option<i64>,
    pub created_at: DateTime<Utc>,
    pub ended_at: Option<DateTime<Utc>>,
}

impl Listed for DeliveryView {
    const FIELD: &'static str = "deliveries";
    const SCHEMA: &'static str = "DeliveryList";
}

pub type DeliveryList = Page<DeliveryView>;

/// Which deliveries to list.
#[derive(Debug, Clone, Default, Serialize, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct DeliveryQuery {
    #[param(minimum = 1, maximum = 200, default = 50)]
    pub limit: Option<i64>,
    /// The `nextCursor` of the page before.
    pub cursor: Option<String>,
    pub status: Option<DeliveryStatus>,
}
