//! Makes deliveries of events. Every webhook has a cursor, the last event that was checked for it, and the
//! deliveries and the cursor are written in one transaction. Any number of processes may do it at once; only the
//! one that moves the cursor from its expected position writes the deliveries.
//!
//! Webhooks that keep up are all at the same event, so they are handled together, and each event is read once for
//! all of them. A webhook with too many waiting deliveries keeps its cursor: the events are its queue.

use std::collections::{HashMap, HashSet};

use uuid::Uuid;

use super::deliveries::{self, NewDelivery, body_of};
use super::register;
use super::rows::{self, Behind};
use crate::delivery::tail::{self, StoredEvent};
use landfall_core::caller::{Reach, TenantUser};
use landfall_core::clock::{Clock, Time};
use landfall_core::mutants::{self, Mutant};
use landfall_core::states::Scope;
use landfall_store::Error;
use landfall_store::{Db, Durability, Tx, Write};

/// Webhooks that are handled together.
const MAX_WEBHOOKS: i64 = 500;
/// Events that are read together.
const PAGE_SIZE: i64 = 500;
/// The number of deliveries after which a transaction is committed.
const BATCH_SIZE: usize = 1_000;

impl Behind {
    /// Whose events it receives.
    fn reach(&self) -> Reach {
        match self.scope {
            Scope::Own => Reach::User(TenantUser::new(self.tenant_id.clone(), self.user_id.clone())),
            Scope::Tenant => Reach::Tenant(self.tenant_id.clone()),
            Scope::All => Reach::All,
        }
    }

    fn wants(&self, event: &StoredEvent) -> bool {
        self.reach().includes(&event.tenant, &event.user)
            && register::wants(self.event_types.as_ref(), &event.kind)
    }
}

/// Makes deliveries of all events. Returns how many were made, or `None` if there is no webhook at all.
pub async fn collect(db: &Db, clock: &Clock) -> Result<Option<usize>, Error> {
    if !rows::any(&mut db.read().await?).await? {
        return Ok(None);
    }
    let horizon = tail::settled_up_to(db).await?;
    let mut made = 0;
    loop {
        let behind = rows::behind(&mut db.read().await?, horizon, MAX_WEBHOOKS).await?;
        if behind.is_empty() {
            return Ok(Some(made));
        }
        // One page for each position, then the next page for each: a webhook that is far behind does not delay the
        // others.
        for group in behind.chunk_by(|one, next| one.cursor_id == next.cursor_id) {
            made += collect_group(db, clock, group, horizon).await?;
        }
    }
}

/// Handles the next events for webhooks that are all at the same one.
async fn collect_group(db: &Db, clock: &Clock, group: &[Behind], horizon: i64) -> Result<usize, Error> {
    let Some(first) = group.first() else { return Ok(0) };
    let from = first.cursor_id;
    // If all want the events of the same owners, it is cheaper to read only those.
    let one = group.iter().all(|webhook| webhook.reach() == first.reach());
    let reach = if one { first.reach() } else { Reach::All };
    let page = tail::page(&mut db.read().await?, from, horizon, &reach, PAGE_SIZE).await?;
    let mut bodies: HashMap<(i64, bool), String> = HashMap::new();
    let mut made = 0;
    let mut change =
        Collect { from, to: page.up_to, webhooks: Vec::new(), deliveries: Vec::new(), now: clock.now() };
    for webhook in group {
        change.webhooks.push(webhook.id);
        let left_out = usize::from(mutants::on(Mutant::SkippedDelivery));
        for event in page.events.iter().skip(left_out).filter(|event| webhook.wants(event)) {
            let with_owner = webhook.scope != Scope::Own;
            let body =
                bodies.entry((event.id, with_owner)).or_insert_with(|| body_of(event, with_owner)).clone();
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
        let moved: HashSet<Uuid> =
            rows::move_cursors(tx, &self.webhooks, self.from, self.to).await?.into_iter().collect();
        let written: Vec<&NewDelivery> =
            self.deliveries.iter().filter(|delivery| moved.contains(&delivery.webhook)).collect();
        let made = written.len();
        deliveries::write(tx, written.into_iter(), self.now).await?;
        Ok(made)
    }
}
