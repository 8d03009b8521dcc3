//! Alerts the operator when a person is needed: a recovery job had errors, a circuit is open, files wait for a
//! stage that no process runs, or more files fail than usual.
//!
//! Every process checks now and then, independently of the others. The row of an alert decides which of them raises
//! it, and that it is raised at most once an hour; the event is written in the same transaction. Then it is sent,
//! if a webhook is configured (`alerts/webhook.rs`).

mod conditions;
mod webhook;

use std::time::Duration;

use chrono::TimeDelta;
use serde_json::json;

use crate::records::events::{self, Event};
use landfall_core::clock::{Clock, Time};
use landfall_core::event::EventKind;
use landfall_store::Error;
use landfall_store::{Db, Tx, Write, args};

/// How often a process checks.
const INTERVAL: Duration = Duration::from_secs(15);
/// How soon the same alert may be raised again.
const MIN_INTERVAL: TimeDelta = TimeDelta::hours(1);

#[derive(Clone)]
pub struct AlertConfig {
    pub webhook: Option<url::Url>,
    /// How many files must fail within an hour for an alert.
    pub dead_letters: i64,
}

impl std::fmt::Debug for AlertConfig {
    /// Without the address, which lets anyone write to the channel.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let has_webhook = self.webhook.is_some();
        f.debug_struct("AlertConfig").field("has_webhook", &has_webhook).finish_non_exhaustive()
    }
}

/// A condition that needs a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alert {
    /// The subject: alerts with the same name are the same alert.
    pub name: String,
    pub message: String,
}

#[derive(Clone)]
pub struct Alerts {
    db: Db,
    clock: Clock,
    config: AlertConfig,
    http: reqwest::Client,
}

impl Alerts {
    pub fn new(db: Db, clock: Clock, config: AlertConfig) -> Self {
        Self { db, clock, config, http: crate::outbound::client_without_redirects() }
    }

    pub async fn run(self) {
        loop {
            if let Err(error) = self.check_once(self.clock.now()).await {
                tracing::warn!(%error, "could not check the conditions of alerts");
            }
            self.clock.sleep(INTERVAL).await;
        }
    }

    /// Raises new alerts, and sends those that are not sent yet. Returns the raised ones.
    pub async fn check_once(&self, now: Time) -> Result<Vec<Alert>, Error> {
        let found = conditions::check(&mut self.db.read().await?, self.config.dead_letters, now).await?;
        let mut raised = Vec::new();
        for alert in found {
            if self.db.write(Raise { alert: alert.clone(), now }).await? {
                tracing::warn!(alert = alert.name, "{}", alert.message);
                raised.push(alert);
            }
        }
        if let Some(address) = &self.config.webhook {
            webhook::send_all(&self.db, &self.http, address, now).await?;
        }
        Ok(raised)
    }
}

/// Raises an alert, unless that was done within the hour. Returns whether it did.
struct Raise {
    alert: Alert,
    now: Time,
}

impl Write for Raise {
    type Output = bool;

    async fn apply(&self, tx: &mut Tx) -> Result<bool, Error> {
        let Alert { name, message } = &self.alert;
        let raised = tx
            .execute(
                "INSERT INTO alerts (name, message, raised_at) VALUES ($1, $2, $3)
                 ON CONFLICT (name) DO UPDATE SET message = excluded.message, raised_at = excluded.raised_at,
                     attempts = 0, delivered_at = NULL
                 WHERE alerts.raised_at <= $4",
                args![name, message, self.now, self.now - MIN_INTERVAL],
            )
            .await?;
        if raised == 0 {
            return Ok(false);
        }
        let data = json!({ "alert": name, "message": message });
        events::record(tx, vec![Event::of_system(EventKind::AlertRaised, self.now, data)]).await?;
        Ok(true)
    }
}
