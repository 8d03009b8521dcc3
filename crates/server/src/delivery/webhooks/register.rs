//! What the owner does with a webhook: registers, changes and removes it, and rotates its secret.

use std::time::Duration;

use serde_json::{Value, json};
use uuid::Uuid;

use super::rows::{self, NewRow, disable, forget_failures};
use super::sealing::Sealed;
use super::signature::Secret;
use super::target::TargetCheck;
use super::{Webhook, deliveries};
use crate::auth::agreement;
use crate::auth::secret::SecretKey;
use landfall_api::webhooks::{NewWebhook, RegisteredWebhook, RotatedSecret, WebhookChanges};
use landfall_core::caller::Caller;
use landfall_core::clock::{Time, to_delta};
use landfall_core::event::EventKind;
use landfall_core::refusal::{Refusal, RefusalCode};
use landfall_core::states::Scope;
use landfall_store::Error;
use landfall_store::wake::Signal;
use landfall_store::{Tx, Write};

/// How long the previous secret also signs after a rotation.
const OLD_SECRET_LIFETIME: Duration = Duration::from_hours(24);
const MAX_DESCRIPTION_LENGTH: usize = 500;
/// Deliveries that are removed in one transaction.
const BATCH_SIZE: i64 = 500;

/// Checks everything except where the address leads.
pub fn check(webhook: &NewWebhook) -> Result<url::Url, Refusal> {
    check_types(webhook.event_types.as_deref(), webhook.scope == Scope::All)?;
    check_description(webhook.description.as_deref())?;
    TargetCheck::parse(&webhook.url)
}

fn check_types(types: Option<&[String]>, for_all: bool) -> Result<(), Refusal> {
    let Some(types) = types else { return Ok(()) };
    let refuse = |message: String| {
        let known: Vec<&str> = EventKind::ALL.iter().map(|kind| kind.name()).collect();
        Err(Refusal::new(RefusalCode::InvalidEventType, message).details(json!({ "known": known })))
    };
    if types.is_empty() {
        return refuse("eventTypes must name at least one; leave it out for all of them".to_owned());
    }
    for (at, name) in types.iter().enumerate() {
        let name = name.as_str();
        if types[..at].iter().any(|earlier| earlier == name) {
            return refuse("eventTypes names a type twice".to_owned());
        }
        match name.parse::<EventKind>() {
            Ok(kind) if kind.is_of_system() && !for_all => {
                return refuse(format!(
                    "{name} is an event of the whole system; it needs a webhook with scope all"
                ));
            }
            Ok(_) => {}
            // The name is not repeated: it may be very long.
            Err(_) => return refuse("eventTypes names a type that does not exist".to_owned()),
        }
    }
    Ok(())
}

fn check_description(description: Option<&str>) -> Result<(), Refusal> {
    match description {
        Some(text) if text.chars().count() > MAX_DESCRIPTION_LENGTH || text.contains('\0') => {
            let message = format!("A description has up to {MAX_DESCRIPTION_LENGTH} characters and no NUL");
            Err(Refusal::new(RefusalCode::InvalidRequest, message))
        }
        _ => Ok(()),
    }
}

/// Registers a webhook. It receives the events after `cursor`. The secret in the answer is sealed, because the answer may be
/// kept in the database: [`super::sealing::reveal`] opens it.
pub struct RegisterWebhook {
    pub caller: Caller,
    pub id: Uuid,
    pub webhook: NewWebhook,
    pub secret: Secret,
    pub key: SecretKey,
    pub cursor: i64,
    pub most: i64,
    pub now: Time,
}

impl Write for RegisterWebhook {
    type Output = RegisteredWebhook;

    async fn apply(&self, tx: &mut Tx) -> Result<RegisteredWebhook, Error> {
        // Of two requests at once the second must see the first, or both would take the last free place.
        let owner = self.caller.owner();
        tx.enter_section(&format!("webhooks of {owner}")).await?;
        let there = rows::count_of(tx, &owner).await?;
        if there >= self.most {
            let message =
                format!("You have {there} webhooks and the maximum is {}: remove one first", self.most);
            return Err(Refusal::new(RefusalCode::TooManyWebhooks, message).into());
        }
        agreement::must_be_current(tx, &self.key).await?;
        let sealed = Sealed::new(&self.key, self.id, &self.secret);
        let NewWebhook { url, event_types, description, scope } = &self.webhook;
        let row = NewRow {
            id: self.id,
            tenant: &self.caller.tenant,
            user: &self.caller.user,
            scope: *scope,
            url,
            description: description.clone(),
            event_types: event_types.as_ref().map(|types| json!(types)),
            secret: &sealed,
            cursor: self.cursor,
            now: self.now,
        };
        rows::insert(tx, row).await?;
        tx.signal(Signal::Webhook);
        Ok(RegisteredWebhook {
            id: self.id,
            secret: sealed.to_answer(),
            url: url.clone(),
            event_types: event_types.clone(),
            description: description.clone(),
            scope: *scope,
            enabled: true,
            created_at: self.now,
        })
    }
}

pub struct Change {
    pub caller: Caller,
    pub webhook: Uuid,
    pub changes: WebhookChanges,
    /// Where a webhook that is enabled again continues: earlier events are not sent.
    pub cursor: i64,
    pub now: Time,
}

impl Write for Change {
    type Output = Webhook;

    async fn apply(&self, tx: &mut Tx) -> Result<Webhook, Error> {
        let webhook = Webhook::lock_for(tx, &self.caller, self.webhook).await?;
        let WebhookChanges { url, event_types, description, enabled } = &self.changes;
        if let Some(types) = event_types {
            check_types(types.as_deref(), webhook.scope == Scope::All)?;
        }
        check_description(description.as_ref().and_then(Option::as_deref))?;
        let event_types = match event_types {
            Some(types) => types.as_ref().map(|types| json!(types)),
            None => webhook.event_types.clone(),
        };
        let url_after = url.clone().unwrap_or_else(|| webhook.url.clone());
        let description = description.clone().unwrap_or_else(|| webhook.description.clone());
        rows::change(tx, webhook.id, url_after, event_types, description, self.now).await?;
        match enabled {
            Some(true) if !webhook.enabled => {
                rows::enable(tx, webhook.id, webhook.cursor_id.max(self.cursor)).await?;
                forget_failures(tx, webhook.id).await?;
            }
            Some(false) if webhook.enabled => {
                disable(tx, webhook.id, &format!("Disabled by {}", self.caller.user), self.now).await?;
            }
            _ => {}
        }
        if url.as_ref().is_some_and(|url| *url != webhook.url) {
            // The failures belong to the previous address.
            forget_failures(tx, webhook.id).await?;
        }
        tx.signal(Signal::Delivery);
        Webhook::find_for(tx, &self.caller, webhook.id).await
    }
}

/// Rotates the secret of a webhook. The previous one also signs for a day, so that receivers can switch. The secret in the
/// answer is sealed, as that of a registration.
pub struct RotateSecret {
    pub caller: Caller,
    pub webhook: Uuid,
    pub fresh: Secret,
    pub key: SecretKey,
    pub now: Time,
}

impl Write for RotateSecret {
    type Output = RotatedSecret;

    async fn apply(&self, tx: &mut Tx) -> Result<RotatedSecret, Error> {
        let webhook = Webhook::lock_for(tx, &self.caller, self.webhook).await?;
        let until = self.now + to_delta(OLD_SECRET_LIFETIME);
        agreement::must_be_current(tx, &self.key).await?;
        let sealed = Sealed::new(&self.key, webhook.id, &self.fresh);
        rows::rotate_secret(tx, webhook.id, &sealed, until, self.now).await?;
        Ok(RotatedSecret { id: webhook.id, secret: sealed.to_answer(), old_secret_valid_until: until })
    }
}

/// Removes a webhook. From then on nothing is sent to it.
pub struct Remove {
    pub caller: Caller,
    pub webhook: Uuid,
}

impl Write for Remove {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        let webhook = Webhook::lock_for(tx, &self.caller, self.webhook).await?;
        rows::remove(tx, webhook.id).await
    }
}

/// Removes a batch of the log of a removed webhook. Returns how many; fewer than [`RemoveLog::BATCH_SIZE`] when
/// there are no more. If the process dies here, `recovery/retention.rs` removes the rest.
pub struct RemoveLog {
    pub webhook: Uuid,
}

impl RemoveLog {
    pub const BATCH_SIZE: u64 = BATCH_SIZE.unsigned_abs();
}

impl Write for RemoveLog {
    type Output = u64;

    async fn apply(&self, tx: &mut Tx) -> Result<u64, Error> {
        deliveries::remove_of(tx, self.webhook, BATCH_SIZE).await
    }
}

/// Whether a webhook wants events of that type.
pub fn wants(event_types: Option<&Value>, kind: &str) -> bool {
    let named = event_types.and_then(Value::as_array);
    named.is_none_or(|types| types.iter().any(|name| name == kind))
}
