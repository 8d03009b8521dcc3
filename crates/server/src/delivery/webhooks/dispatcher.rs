//! Makes deliveries of events, and gives turns to webhooks with due deliveries, for as long as the process runs.
//!
//! Each webhook is sent one request at a time, so that the order is kept and no endpoint is overloaded. Webhooks
//! whose last attempt failed have only half of the slots: a dead endpoint may take its full timeout each time, and
//! even if there are many of them, the others continue.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::Webhook;
use super::WebhookConfig;
use super::collect::collect;
use super::rows;
use super::send::{Message, Outcome, Receiver, Sender};
use super::target::TargetCheck;
use super::turn::{Due, RecordAttempt, Release, Take, next};
use crate::auth::secret::{CannotOpen, SecretKey};
use crate::process::liveness::Liveness;
use landfall_core::clock::Clock;
use landfall_store::Db;
use landfall_store::Error;
use landfall_store::wake::{Signal, Wake};

/// How long requests in progress may continue after the process was told to stop.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum number of deliveries in one turn.
const MAX_PER_TURN: usize = 50;
/// The minimum time between two collections of events: many are handled at a time.
const MIN_INTERVAL: Duration = Duration::from_millis(50);
/// How often to look for the first webhook, however seldom workers poll the queue.
const NEW_WEBHOOKS_INTERVAL: Duration = Duration::from_secs(1);

/// What the log of a webhook says in place of a response.
const UNREADABLE_SECRET: &str = "Nothing was sent: the secret of this webhook cannot be decrypted. Rotate the secret of the \
     webhook, or start the server with the SECRET_KEY that it was registered with";

#[derive(Clone)]
pub struct Webhooks {
    inner: Arc<Inner>,
}

struct Inner {
    db: Db,
    clock: Clock,
    liveness: Arc<Liveness>,
    wake: Wake,
    target: TargetCheck,
    /// Opens the secrets of webhooks.
    secret: SecretKey,
    sender: Sender,
    config: WebhookConfig,
    /// How often to poll without a signal.
    interval: Duration,
    /// The webhooks that have a turn in this process, and whether they are failing.
    turns: Mutex<HashMap<Uuid, bool>>,
}

impl Webhooks {
    #[expect(clippy::too_many_arguments, reason = "each is a part of the process, and this is called once")]
    pub fn new(
        db: Db,
        clock: Clock,
        liveness: Arc<Liveness>,
        target: TargetCheck,
        secret: SecretKey,
        config: WebhookConfig,
        interval: Duration,
        receiver: Option<Arc<dyn Receiver>>,
    ) -> Self {
        let wake = db.wake().clone();
        let sender = Sender::new(target.clone(), config.timeout).to(receiver);
        let turns = Mutex::default();
        Self {
            inner: Arc::new(Inner {
                db,
                clock,
                liveness,
                wake,
                target,
                secret,
                sender,
                config,
                interval,
                turns,
            }),
        }
    }

    /// Checks which addresses may be sent to.
    pub fn target(&self) -> &TargetCheck {
        &self.inner.target
    }

    /// Collects and sends until `stop`; then the requests in progress are finished.
    pub async fn run(&self, stop: CancellationToken) {
        let collecting = stop.run_until_cancelled(self.keep_collecting());
        tokio::join!(collecting, self.keep_sending(&stop));
    }

    async fn keep_collecting(&self) {
        let Inner { db, clock, wake, interval, .. } = &*self.inner;
        let mut events = wake.events();
        loop {
            // Events from here on cause another collection.
            events.mark_unchanged();
            let collected = collect(db, clock).await;
            if let Err(error) = &collected {
                tracing::warn!(%error, "could not make deliveries of events");
            }
            Clock::System.sleep(MIN_INTERVAL).await;
            // Most servers have no webhooks. A poll finds those that another process registered.
            let are_there_webhooks = !matches!(collected, Ok(None));
            let pause = if are_there_webhooks { *interval } else { NEW_WEBHOOKS_INTERVAL.min(*interval) };
            tokio::select! {
                _ = events.changed(), if are_there_webhooks => {}
                () = wake.wait(Signal::Webhook) => {}
                () = Clock::System.sleep(pause) => {}
            }
        }
    }

    async fn keep_sending(&self, stop: &CancellationToken) {
        let tasks = TaskTracker::new();
        let cut_off = CancellationToken::new();
        while !stop.is_cancelled() {
            if let Err(error) = self.give_turns(&tasks, stop, &cut_off).await {
                tracing::warn!(%error, "could not load due deliveries");
            }
            // By the system's clock: a test moves the other clock between two polls.
            tokio::select! {
                () = stop.cancelled() => {}
                () = self.inner.wake.wait(Signal::Delivery) => {}
                () = Clock::System.sleep(self.inner.interval) => {}
            }
        }
        tasks.close();
        tokio::select! {
            () = tasks.wait() => {}
            () = Clock::System.sleep(SHUTDOWN_TIMEOUT) => {
                // An unfinished delivery is sent again by the next process.
                cut_off.cancel();
                tasks.wait().await;
            }
        }
    }

    /// Gives a turn to as many webhooks with due deliveries as there are free slots; the one that waited longest
    /// goes first.
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

    /// Webhooks with due deliveries that no process holds, or a dead process, or this one.
    async fn waiting(&self, failing: bool, limit: usize) -> Result<Vec<Uuid>, Error> {
        let mut tx = self.db.read().await?;
        let (holder, now) = (self.liveness.identity().id, self.clock.now());
        rows::waiting(&mut tx, failing, holder, limit, now).await
    }
}

/// A webhook's turn in this process. It ends when this is dropped, whatever happened.
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
                // Removed from the list first, so that the next poll sees a free slot.
                drop(self);
                wake.send(Signal::Delivery);
            }
            // The next poll retries it; a signal here would retry in a busy loop.
            Some(Err(error)) => {
                tracing::warn!(webhook = %self.webhook, %error, "could not send due deliveries");
            }
            None => tracing::warn!(webhook = %self.webhook, "this process was declared dead while sending"),
        }
    }

    /// Sends the due deliveries one by one. Returns how many attempts were made.
    async fn send_all(&self, holder: Uuid, stop: &CancellationToken) -> Result<usize, Error> {
        let Inner { db, clock, .. } = &*self.inner;
        let webhook = self.webhook;
        if !db.write(Take { webhook, holder, now: clock.now() }).await? {
            return Ok(0);
        }
        let mut attempts = 0;
        while attempts < MAX_PER_TURN && !stop.is_cancelled() {
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
        let Inner { db, clock, secret, sender, config, .. } = &*self.inner;
        let started_at = clock.now();
        let outcome = match to.secrets(secret, started_at) {
            Ok(secrets) => {
                let message =
                    Message { id: due.message_id, url: &to.url, secrets: &secrets, body: &due.body };
                sender.send(&message, started_at).await
            }
            Err(CannotOpen) => {
                tracing::warn!(webhook = %to.id, "the secret of a webhook cannot be decrypted");
                Outcome::failed(UNREADABLE_SECRET.to_owned())
            }
        };
        // The address is not logged: it may contain a key.
        tracing::debug!(
            webhook = %to.id,
            message = %due.message_id,
            event = due.event_type,
            attempt = due.attempts + 1,
            status = outcome.status.map(|status| status.as_u16()),
            error = outcome.error,
            "sent to a webhook"
        );
        let attempt = RecordAttempt {
            webhook: to.id,
            holder,
            due,
            outcome,
            chance: landfall_core::random::random(),
            disable_after: config.disable_after,
            started_at,
            now: clock.now(),
        };
        db.write(attempt).await
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.inner.turns().remove(&self.webhook);
    }
}
