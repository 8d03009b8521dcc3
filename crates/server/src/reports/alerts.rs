//! Tells the operator what needs a person: a recovery job that met errors, a circuit that is open, files that wait with
//! nobody to work on them, more files failing than usual.
//!
//! Every process looks now and then, on its own and in nobody's way. The row of an alert decides which of them raises it,
//! and that it is raised at most once an hour; the event is written with it. Then it is sent, where there is somewhere to
//! send it to (`alerts/webhook.rs`).

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

/// How often a process looks.
const INTERVAL: Duration = Duration::from_secs(15);
/// How soon the same alert may be raised again.
const AT_MOST_EVERY: TimeDelta = TimeDelta::hours(1);

#[derive(Clone)]
pub struct AlertConfig {
    pub webhook: Option<url::Url>,
    /// Files that fail within an hour before somebody is told.
    pub dead_letters: i64,
}

impl std::fmt::Debug for AlertConfig {
    /// Without the address: whoever knows it may write to the channel.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let has_webhook = self.webhook.is_some();
        f.debug_struct("AlertConfig").field("has_webhook", &has_webhook).finish_non_exhaustive()
    }
}

/// Something that needs a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alert {
    /// What it is about: the same name is the same alert.
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
            if let Err(error) = self.look_once(self.clock.now()).await {
                tracing::warn!(%error, "could not look for what needs an alert");
            }
            self.clock.sleep(INTERVAL).await;
        }
    }

    /// Raises what is to be raised, and sends what was not sent yet. Answers what it raised.
    pub async fn look_once(&self, now: Time) -> Result<Vec<Alert>, Error> {
        let found = conditions::look(&mut self.db.read().await?, self.config.dead_letters, now).await?;
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

/// Raises an alert, unless that was done within the hour. Answers whether it did.
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
                args![name, message, self.now, self.now - AT_MOST_EVERY],
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
