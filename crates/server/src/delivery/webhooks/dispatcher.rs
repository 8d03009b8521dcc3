//! Makes deliveries of events, and turns of webhooks that have some due, for as long as the process runs.
//!
//! Each webhook is sent one request at a time, so that its order is kept and no endpoint is overrun. Those to which the
//! last attempt failed have only half of the slots: a dead endpoint may take all of its time-out, and however many of them
//! there are, the others go on.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::Webhook;
use super::WebhookConfig;
use super::collect::collect;
use super::send::{Message, Sender};
use super::target::Checked;
use super::turn::{Due, Note, Release, Take, next};
use crate::process::liveness::Liveness;
use landfall_core::clock::Clock;
use landfall_store::Error;
use landfall_store::wake::{Signal, Wake};
use landfall_store::{Db, args};

/// How long requests under way may go on after the process was told to stop.
const LAST_ANSWERS: Duration = Duration::from_secs(10);
/// Deliveries after which it is another webhook's turn.
const TURN: usize = 50;
/// At least so long between two looks at the events, however many there are: they are dealt with many at a time.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

#[derive(Clone)]
pub struct Webhooks {
    inner: Arc<Inner>,
}

struct Inner {
    db: Db,
    clock: Clock,
    liveness: Arc<Liveness>,
    wake: Wake,
    target: Checked,
    sender: Sender,
    config: WebhookConfig,
    /// How often to look where no signal came.
    interval: Duration,
    /// The webhooks that have a turn here, and whether they are failing.
    turns: Mutex<HashMap<Uuid, bool>>,
}

impl Webhooks {
    pub fn new(
        db: Db,
        clock: Clock,
        liveness: Arc<Liveness>,
        wake: Wake,
        target: Checked,
        config: WebhookConfig,
        interval: Duration,
    ) -> Self {
        let sender = Sender::new(target.clone(), config.timeout);
        let turns = Mutex::default();
        Self { inner: Arc::new(Inner { db, clock, liveness, wake, target, sender, config, interval, turns }) }
    }

    /// Which addresses may be sent to.
    pub fn target(&self) -> &Checked {
        &self.inner.target
    }

    /// Collects and sends until `stop`; what is on its way then comes to its end.
    pub async fn run(&self, stop: CancellationToken) {
        let collecting = stop.run_until_cancelled(self.keep_collecting());
        tokio::join!(collecting, self.keep_sending(&stop));
    }

    async fn keep_collecting(&self) {
        let Inner { db, clock, wake, interval, .. } = &*self.inner;
        let mut events = wake.events();
        loop {
            // What happens from here on is a reason to look again.
            events.mark_unchanged();
            match collect(db, clock).await {
                Ok(_) => {}
                Err(error) => tracing::warn!(%error, "could not make deliveries of the events"),
            }
            Clock::System.sleep(BETWEEN_LOOKS).await;
            tokio::select! {
                _ = events.changed() => {}
                () = Clock::System.sleep(*interval) => {}
            }
        }
    }

    async fn keep_sending(&self, stop: &CancellationToken) {
        let tasks = TaskTracker::new();
        let cut_off = CancellationToken::new();
        while !stop.is_cancelled() {
            if let Err(error) = self.give_turns(&tasks, stop, &cut_off).await {
                tracing::warn!(%error, "could not look for deliveries that are due");
            }
            // By the system's clock: whoever holds the other one still moves it between two looks.
            tokio::select! {
                () = stop.cancelled() => {}
                () = self.inner.wake.wait(Signal::Delivery) => {}
                () = Clock::System.sleep(self.inner.interval) => {}
            }
        }
        tasks.close();
        tokio::select! {
            () = tasks.wait() => {}
            () = Clock::System.sleep(LAST_ANSWERS) => {
                // What was not answered is sent again by whoever comes next.
                cut_off.cancel();
                tasks.wait().await;
            }
        }
    }

    /// Gives a turn to as many webhooks with something due as there are slots for; who waited longest goes first.
    async fn give_turns(
        &self,
        tasks: &TaskTracker,
        stop: &CancellationToken,
        cut_off: &CancellationToken,
    ) -> Result<(), Error> {
        for failing in [false, true] {
            let (busy, busy_failing) = {
                let turns = self.inner.turns();
                (turns.len(), turns.values().filter(|failing| **failing).count())
            };
            let slots = self.inner.config.concurrency;
            let free = slots.saturating_sub(busy);
            let room = if failing { free.min((slots / 2).saturating_sub(busy_failing)) } else { free };
            if room == 0 {
                continue;
            }
            let waiting = self.inner.waiting(failing, room + busy).await?;
            let mut given = 0;
            for webhook in waiting {
                if given == room {
                    break;
                }
                let Some(turn) = Turn::begin(&self.inner, webhook, failing) else { continue };
                given += 1;
                let (stop, cut_off) = (stop.clone(), cut_off.clone());
                tasks.spawn(async move { cut_off.run_until_cancelled(Box::pin(turn.run(&stop))).await });
            }
        }
        Ok(())
    }
}

impl Inner {
    fn turns(&self) -> std::sync::MutexGuard<'_, HashMap<Uuid, bool>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Webhooks that have something due and are in nobody's hands, or in those of a process that is gone, or in ours.
    async fn waiting(&self, failing: bool, most: usize) -> Result<Vec<Uuid>, Error> {
        let condition = if failing { "w.failing_since IS NOT NULL" } else { "w.failing_since IS NULL" };
        let found: Vec<(Uuid,)> = self
            .db
            .read()
            .await?
            .rows(
                format!(
                    "SELECT w.id FROM webhooks w
                     WHERE w.enabled AND {condition} AND (w.rest_until IS NULL OR w.rest_until <= $1)
                       AND (w.held_by IS NULL OR w.held_by = $2
                            OR NOT EXISTS (SELECT 1 FROM workers k WHERE k.id = w.held_by))
                       AND EXISTS (SELECT 1 FROM webhook_deliveries d WHERE d.webhook_id = w.id AND d.next_at <= $1)
                     ORDER BY w.turn_at, w.id LIMIT $3"
                ),
                args![self.clock.now(), self.liveness.identity().id, most],
            )
            .await?;
        Ok(found.into_iter().map(|(id,)| id).collect())
    }
}

/// A webhook's turn in this process. It is over when this is dropped, whatever happened.
struct Turn {
    inner: Arc<Inner>,
    webhook: Uuid,
}

impl Turn {
    /// `None`: it has one already.
    fn begin(inner: &Arc<Inner>, webhook: Uuid, failing: bool) -> Option<Self> {
        let mut turns = inner.turns();
        if turns.contains_key(&webhook) {
            return None;
        }
        turns.insert(webhook, failing);
        Some(Self { inner: inner.clone(), webhook })
    }

    async fn run(self, stop: &CancellationToken) {
        let identity = self.inner.liveness.identity();
        let sending = self.send_all(identity.id, stop);
        match identity.lost.run_until_cancelled(sending).await {
            Some(Ok(0)) => {}
            Some(Ok(_)) => {
                let wake = self.inner.wake.clone();
                // First out of the list, so that the look that follows sees a free slot.
                drop(self);
                wake.send(Signal::Delivery);
            }
            // Whoever looks next tries again: not at once, or it would try for ever.
            Some(Err(error)) => tracing::warn!(webhook = %self.webhook, %error, "could not send what is due"),
            None => tracing::warn!(webhook = %self.webhook, "taken for dead while sending"),
        }
    }

    /// Sends what is due, one after the other. Answers how many attempts were made.
    async fn send_all(&self, holder: Uuid, stop: &CancellationToken) -> Result<usize, Error> {
        let Inner { db, clock, .. } = &*self.inner;
        let webhook = self.webhook;
        if !db.write(Take { webhook, holder, now: clock.now() }).await? {
            return Ok(0);
        }
        let mut attempts = 0;
        while attempts < TURN && !stop.is_cancelled() {
            let Some((to, due)) = next(&mut db.read().await?, webhook, holder, clock.now()).await? else {
                break;
            };
            attempts += 1;
            if !self.send(to, due, holder).await? {
                break;
            }
        }
        db.write(Release { webhook, holder }).await?;
        Ok(attempts)
    }

    async fn send(&self, to: Webhook, due: Due, holder: Uuid) -> Result<bool, Error> {
        let Inner { db, clock, sender, config, .. } = &*self.inner;
        let started_at = clock.now();
        let secrets = to.secrets(started_at);
        let message = Message { id: due.message_id, url: &to.url, secrets: &secrets, body: &due.body };
        let answer = sender.send(&message, started_at).await;
        // The address is not logged: it may have a key in it.
        tracing::debug!(
            webhook = %to.id,
            message = %due.message_id,
            event = due.event_type,
            attempt = due.attempts + 1,
            status = answer.status.map(|status| status.as_u16()),
            error = answer.error,
            "sent to a webhook"
        );
        let note = Note {
            webhook: to.id,
            holder,
            due,
            answer,
            chance: rand::random(),
            disable_after: config.disable_after,
            started_at,
            now: clock.now(),
        };
        db.write(note).await
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.inner.turns().remove(&self.webhook);
    }
}
