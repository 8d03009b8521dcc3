//! Makes deliveries of events. Every webhook has a cursor, the last event that was checked for it, and the
//! deliveries and the cursor are written in one transaction. Any number of processes may do it at once; only the
//! one that moves the cursor from its expected position writes the deliveries.
//!
//! Webhooks that keep up are all at the same event, so they are handled together, and each event is read once for
//! all of them. A webhook with too many waiting deliveries keeps its cursor: the events are its queue.

use std::collections::{HashMap, HashSet};

use serde_json::Value;
use uuid::Uuid;

use super::deliveries::{self, NewDelivery, body_of};
use super::{MAX_WAITING, register};
use crate::delivery::tail::{self, Audience, StoredEvent};
use landfall_core::clock::{Clock, Time};
use landfall_core::states::Scope;
use landfall_store::Error;
use landfall_store::{Db, Durability, Rows, Tx, Write, args};

/// Webhooks that are handled together.
const MAX_WEBHOOKS: i64 = 500;
/// Events that are read together.
const PAGE_SIZE: i64 = 500;
/// The number of deliveries after which a transaction is committed.
const BATCH_SIZE: usize = 1_000;

/// A webhook whose cursor is behind the last event.
#[derive(Debug, Clone, sqlx::FromRow)]
struct Behind {
    id: Uuid,
    user_id: String,
    #[sqlx(try_from = "String")]
    scope: Scope,
    event_types: Option<Value>,
    cursor_id: i64,
}

impl Behind {
    fn wants(&self, event: &StoredEvent) -> bool {
        (self.scope == Scope::All || self.user_id == event.user)
            && register::wants(self.event_types.as_ref(), &event.kind)
    }
}

/// Makes deliveries of all events. Returns how many were made.
pub async fn collect(db: &Db, clock: &Clock) -> Result<usize, Error> {
    if !any_webhook(db).await? {
        return Ok(0);
    }
    let horizon = tail::settled_up_to(db).await?;
    let mut made = 0;
    loop {
        let behind = behind(db, horizon).await?;
        if behind.is_empty() {
            return Ok(made);
        }
        // One page for each position, then the next page for each: a webhook that is far behind does not delay the
        // others.
        for group in behind.chunk_by(|one, next| one.cursor_id == next.cursor_id) {
            made += collect_group(db, clock, group, horizon).await?;
        }
    }
}

/// Whether there is anything to do at all: most servers have no webhooks.
async fn any_webhook(db: &Db) -> Result<bool, Error> {
    let found: Option<(Uuid,)> = db.read().await?.row("SELECT id FROM webhooks LIMIT 1", args![]).await?;
    Ok(found.is_some())
}

async fn behind(db: &Db, horizon: i64) -> Result<Vec<Behind>, Error> {
    db.read()
        .await?
        .rows(
            "SELECT id, user_id, scope, event_types, cursor_id FROM webhooks w
             WHERE enabled AND cursor_id < $1
               AND (SELECT COUNT(*) FROM webhook_deliveries d
                    WHERE d.webhook_id = w.id AND d.next_at IS NOT NULL) < $2
             ORDER BY cursor_id, id LIMIT $3",
            args![horizon, MAX_WAITING, MAX_WEBHOOKS],
        )
        .await
}

/// Handles the next events for webhooks that are all at the same one.
async fn collect_group(db: &Db, clock: &Clock, group: &[Behind], horizon: i64) -> Result<usize, Error> {
    let Some(first) = group.first() else { return Ok(0) };
    let from = first.cursor_id;
    // For the webhooks of one user it is cheaper to read only that user's events.
    let alone = group.iter().all(|webhook| webhook.scope == Scope::Own && webhook.user_id == first.user_id);
    let audience = if alone { Audience::User(first.user_id.clone()) } else { Audience::All };
    let page = tail::page(&mut db.read().await?, from, horizon, &audience, PAGE_SIZE).await?;
    let mut bodies: HashMap<(i64, bool), String> = HashMap::new();
    let mut made = 0;
    let mut change =
        Collect { from, to: page.up_to, webhooks: Vec::new(), deliveries: Vec::new(), now: clock.now() };
    for webhook in group {
        change.webhooks.push(webhook.id);
        for event in page.events.iter().filter(|event| webhook.wants(event)) {
            let for_all = webhook.scope == Scope::All;
            let body = bodies.entry((event.id, for_all)).or_insert_with(|| body_of(event, for_all)).clone();
            let (id, kind) = (clock.new_id(), event.kind.clone());
            change.deliveries.push(NewDelivery {
                id,
                webhook: webhook.id,
                event: Some(event.id),
                kind,
                body,
            });
        }
        if change.deliveries.len() >= BATCH_SIZE {
            made += db.write(change.take()).await?;
        }
    }
    if !change.webhooks.is_empty() {
        made += db.write(change).await?;
    }
    Ok(made)
}

/// Moves cursors and writes the deliveries for those that had not moved. Returns how many.
struct Collect {
    from: i64,
    to: i64,
    webhooks: Vec<Uuid>,
    deliveries: Vec<NewDelivery>,
    now: Time,
}

impl Collect {
    /// Takes what has been gathered so far.
    fn take(&mut self) -> Self {
        Self {
            webhooks: std::mem::take(&mut self.webhooks),
            deliveries: std::mem::take(&mut self.deliveries),
            ..*self
        }
    }
}

impl Write for Collect {
    type Output = usize;

    fn durability(&self) -> Durability {
        // If a power cut undoes it, it is done again.
        Durability::Unsynced
    }

    async fn apply(&self, tx: &mut Tx) -> Result<usize, Error> {
        let mut moved = HashSet::with_capacity(self.webhooks.len());
        for part in self.webhooks.chunks(Rows::MOST) {
            let mut rows = Rows::default();
            for webhook in part {
                rows.push(args![*webhook, self.from, self.to]);
            }
            let (values, arguments) = rows.into_values(tx);
            let sql = format!(
                "UPDATE webhooks SET cursor_id = v.column3 FROM ({values}) AS v
                 WHERE webhooks.id = v.column1 AND webhooks.cursor_id = v.column2 AND webhooks.enabled
                 RETURNING webhooks.id"
            );
            moved.extend(tx.rows::<(Uuid,)>(sql, arguments).await?.into_iter().map(|(id,)| id));
        }
        let written: Vec<&NewDelivery> =
            self.deliveries.iter().filter(|delivery| moved.contains(&delivery.webhook)).collect();
        let made = written.len();
        deliveries::write(tx, written.into_iter(), self.now).await?;
        Ok(made)
    }
}
