//! Sends events to addresses that users register, signed according to Standard Webhooks.
//!
//! Events become deliveries ([`collect`]), a row for each webhook that wants them, in the order of the events. A
//! process that finds a due delivery takes the webhook for a turn ([`turn`]) and sends its deliveries one by one
//! ([`dispatcher`], [`send`]).
//!
//! Guarantees, whatever crashes:
//!
//! - Every event that a webhook wanted when it happened is sent **at least once**, or is in the log as `exhausted`.
//!   An attempt is recorded after it was made, so if the process dies in between, it is made again; receivers
//!   recognize it by its `webhook-id`.
//! - **First attempts** at one webhook are made in the order of the events, one at a time. A delivery that fails is
//!   retried later (`schedule.rs`), and the next ones do not wait for it.
//! - Without a crash no attempt is made twice: one process holds a webhook at a time, and the hold ends with the
//!   process.
//! - A webhook does not delay another: each is sent one request at a time, and failing ones have only half of the
//!   slots.
//! - While a webhook is disabled no deliveries are made for it. Those that were waiting keep waiting.

pub mod collect;
pub mod deliveries;
pub mod dispatcher;
pub mod register;
mod rows;
pub mod schedule;
pub mod sealing;
pub mod send;
pub mod signature;
pub mod target;
pub mod turn;

use std::time::Duration;

use serde_json::Value;
use uuid::Uuid;

use crate::auth::secret::{CannotOpen, SecretKey};
use landfall_api::webhooks::WebhookView;
use landfall_core::caller::Caller;
use landfall_core::clock::Time;
use landfall_core::states::Scope;
use sealing::Sealed;
use signature::Secret;

/// The type of a test delivery, sent only to see whether it arrives.
pub const WEBHOOK_TEST: &str = "webhook:test";

/// The maximum number of deliveries that wait for one webhook. Later events stay in the event log until there is
/// room.
pub const MAX_WAITING: i64 = 1_000;

#[derive(Debug, Clone)]
pub struct WebhookConfig {
    pub per_user: i64,
    /// Whether a webhook may have an address in a private network.
    pub allow_private: bool,
    /// How long an endpoint may take to respond.
    pub timeout: Duration,
    /// How many webhooks are sent to at once.
    pub concurrency: usize,
    /// A webhook that received nothing for this long is disabled.
    pub disable_after: Duration,
}

/// The row.
#[derive(Debug, Clone, landfall_store::FromRow)]
pub struct Webhook {
    pub id: Uuid,
    pub tenant_id: String,
    pub user_id: String,
    #[row(try_from = "String")]
    pub scope: Scope,
    pub url: String,
    pub description: Option<String>,
    pub event_types: Option<Value>,
    secret: Sealed,
    old_secret: Option<Sealed>,
    old_secret_until: Option<Time>,
    pub enabled: bool,
    pub disabled_at: Option<Time>,
    pub disabled_reason: Option<String>,
    pub cursor_id: i64,
    pub held_by: Option<Uuid>,
    pub turn_at: Time,
    pub failures: i64,
    pub failing_since: Option<Time>,
    pub rest_until: Option<Time>,
    pub created_at: Time,
    pub updated_at: Time,
}

impl Webhook {
    /// Whether the caller may manage it. A webhook for a tenant belongs to all of its administrators, one for all events to
    /// every operator, and neither to the user who registered it and lost that role.
    fn is_of(&self, caller: &Caller) -> bool {
        match self.scope {
            Scope::Own => caller.is(&self.tenant_id, &self.user_id),
            Scope::Tenant => caller.administers(&self.tenant_id),
            Scope::All => caller.is_operator(),
        }
    }

    /// The secrets that sign now: the current one, and the previous one while it is valid. Fails if the current one cannot
    /// be decrypted.
    pub fn secrets(&self, key: &SecretKey, now: Time) -> Result<Vec<Secret>, CannotOpen> {
        let mut secrets = vec![self.secret.open(key, self.id)?];
        if self.old_secret_until.is_some_and(|until| now < until) {
            secrets.extend(self.old_secret.as_ref().and_then(|old| old.open(key, self.id).ok()));
        }
        Ok(secrets)
    }
}

/// Without the secret.
impl From<Webhook> for WebhookView {
    fn from(webhook: Webhook) -> Self {
        Self {
            id: webhook.id,
            url: webhook.url,
            description: webhook.description,
            event_types: webhook.event_types.and_then(|types| serde_json::from_value(types).ok()),
            scope: webhook.scope,
            enabled: webhook.enabled,
            disabled_at: webhook.disabled_at,
            disabled_reason: webhook.disabled_reason,
            failing_since: webhook.failing_since,
            old_secret_valid_until: webhook.old_secret_until,
            created_by: webhook.user_id,
            created_at: webhook.created_at,
            updated_at: webhook.updated_at,
        }
    }
}
