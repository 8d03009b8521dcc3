//! A turn: for a while one process holds a webhook, sends its due deliveries, and records the outcomes.
//!
//! The hold is the process's id in the webhook's row. It is valid for as long as the process is registered
//! (`process/liveness.rs`), so it ends with the process, and another process takes over. A process that was
//! declared dead and is still running changes nothing: every write checks that it still holds the webhook.

use std::time::Duration;

use uuid::Uuid;

use super::deliveries::{self, Attempt};
use super::rows::{self, disable, forget_failures};
use super::send::Outcome;
use super::{Webhook, schedule};
use crate::process::workers;
use crate::records::notifications::{self, WebhookOwner};
use landfall_core::clock::{Time, to_delta};
use landfall_core::states::DeliveryStatus;
use landfall_store::Error;
use landfall_store::{Durability, Tx, Write};

/// Takes a webhook, unless another living process holds it.
pub struct Take {
    pub webhook: Uuid,
    pub holder: Uuid,
    pub now: Time,
}

impl Write for Take {
    type Output = bool;

    fn durability(&self) -> Durability {
        Durability::Unsynced
    }

    async fn apply(&self, tx: &mut Tx) -> Result<bool, Error> {
        let Some(held_by) = rows::lock_holder(tx, self.webhook).await? else { return Ok(false) };
        if let Some(other) = held_by.filter(|holder| *holder != self.holder)
            && workers::hold(tx, other).await?
        {
            return Ok(false);
        }
        // A process that is not registered any more would lose it at once.
        if !workers::hold(tx, self.holder).await? {
            return Ok(false);
        }
        rows::take(tx, self.webhook, self.holder, self.now).await?;
        Ok(true)
    }
}

/// Releases a webhook.
pub struct Release {
    pub webhook: Uuid,
    pub holder: Uuid,
}

impl Write for Release {
    type Output = ();

    fn durability(&self) -> Durability {
        Durability::Unsynced
    }

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        rows::release(tx, self.webhook, self.holder).await
    }
}

/// A delivery that is due.
#[derive(Debug, Clone, landfall_store::FromRow)]
pub struct Due {
    pub number: i64,
    pub message_id: Uuid,
    pub event_type: String,
    pub body: String,
    pub attempts: i64,
    pub first_attempt_at: Option<Time>,
}

/// The next due delivery and the webhook, as stored at this moment. `None`: nothing is due, or the turn is over.
pub async fn next(
    tx: &mut Tx,
    webhook: Uuid,
    holder: Uuid,
    now: Time,
) -> Result<Option<(Webhook, Due)>, Error> {
    let found = Webhook::find(tx, webhook).await?;
    let ready = |webhook: &Webhook| {
        let rests = webhook.rest_until.is_some_and(|until| now < until);
        webhook.enabled && webhook.held_by == Some(holder) && !rests
    };
    let Some(webhook) = found.filter(ready) else { return Ok(None) };
    let due = deliveries::next_due(tx, webhook.id, now).await?;
    Ok(due.map(|due| (webhook, due)))
}

/// Records the outcome of an attempt. Returns whether the turn continues.
pub struct RecordAttempt {
    pub webhook: Uuid,
    pub holder: Uuid,
    pub due: Due,
    pub outcome: Outcome,
    /// Picks the jitter of the delays, from 0 to 1.
    pub chance: f64,
    pub disable_after: Duration,
    pub started_at: Time,
    pub now: Time,
}

impl Write for RecordAttempt {
    type Output = bool;

    fn durability(&self) -> Durability {
        // If a power cut undoes it, the delivery is made again.
        if self.outcome.is_good() { Durability::Unsynced } else { Durability::Synced }
    }

    async fn apply(&self, tx: &mut Tx) -> Result<bool, Error> {
        let Some(webhook) = Webhook::lock(tx, self.webhook).await? else { return Ok(false) };
        if webhook.held_by != Some(self.holder) {
            return Ok(false);
        }
        let (status, next_at) = self.verdict();
        let attempt = Attempt {
            status,
            next_at,
            started_at: self.started_at,
            response_status: self.outcome.status.map(|status| i64::from(status.as_u16())),
            response_excerpt: self.outcome.excerpt.clone(),
            error: self.outcome.error.clone(),
            duration_ms: i64::try_from(self.outcome.duration.as_millis()).unwrap_or(i64::MAX),
            ended_at: next_at.is_none().then_some(self.now),
        };
        if !deliveries::note_attempt(tx, self.due.number, attempt).await? {
            return Ok(false);
        }
        if self.outcome.is_good() {
            if webhook.failures > 0 || webhook.rest_until.is_some() {
                forget_failures(tx, webhook.id).await?;
            }
            return Ok(webhook.enabled);
        }
        self.note_failure(tx, webhook).await
    }
}

impl RecordAttempt {
    /// The new status of the delivery, and when it is retried.
    fn verdict(&self) -> (DeliveryStatus, Option<Time>) {
        if self.outcome.is_good() {
            return (DeliveryStatus::Delivered, None);
        }
        let first_at = self.due.first_attempt_at.unwrap_or(self.started_at);
        let attempts = self.due.attempts + 1;
        let next_at =
            schedule::next_attempt(attempts, first_at, self.now, self.outcome.retry_after, self.chance);
        match next_at.filter(|_| !self.outcome.is_gone()) {
            Some(next_at) => (DeliveryStatus::Pending, Some(next_at)),
            None => (DeliveryStatus::Exhausted, None),
        }
    }

    async fn note_failure(&self, tx: &mut Tx, webhook: Webhook) -> Result<bool, Error> {
        let failing_since = webhook.failing_since.unwrap_or(self.now);
        let rest_until = schedule::backoff_until(webhook.failures + 1, self.now, self.outcome.retry_after);
        rows::note_failure(tx, webhook.id, failing_since, rest_until).await?;
        if !webhook.enabled {
            return Ok(false);
        }
        let reason = if self.outcome.is_gone() {
            "the endpoint answered 410 Gone".to_owned()
        } else if self.now - failing_since >= to_delta(self.disable_after) {
            format!("no delivery has succeeded since {}", failing_since.date_naive())
        } else {
            return Ok(rest_until.is_none());
        };
        disable(tx, webhook.id, &reason, self.now).await?;
        let owner = WebhookOwner {
            id: webhook.id,
            tenant: webhook.tenant_id,
            user: webhook.user_id,
            url: webhook.url,
        };
        notifications::tell_of_disabled_webhook(tx, owner, &reason, self.now).await?;
        Ok(false)
    }
}
