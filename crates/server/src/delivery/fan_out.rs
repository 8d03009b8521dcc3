//! Sends events to the open streams of this process.
//!
//! A process reads new events once for all its listeners, and puts each into the buffers of the listeners that it
//! concerns. A buffer is bounded: a client that does not read in time is disconnected, delays no other client, and
//! resumes with the last id that it saw. Without listeners, nothing is read.
//!
//! A new listener reads the past from the database, page by page, up to the position of this process, and joins
//! there. The distribution of a page takes the same lock, so there is no gap and no event is sent twice.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use landfall_sync::{Mutex, MutexGuard, mpsc, watch};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;
use uuid::Uuid;

use super::EventsConfig;
use super::tail::{self, StoredEvent};
use crate::records::epochs;
use crate::records::events::removal::removed_up_to;
use landfall_core::caller::{Reach, TenantUser};
use landfall_core::clock::{Clock, Time};
use landfall_core::event::EventKind;
use landfall_core::mutants::{self, Mutant};
use landfall_core::refusal::{Refusal, RefusalCode};
use landfall_store::Db;
use landfall_store::Error;
use landfall_store::wake::Wake;

/// Events that are read at once.
const PAGE_SIZE: i64 = 256;
/// Events that a listener receives at once.
const BATCH_SIZE: usize = 64;
/// How often to poll without a signal while there are listeners: for lost signals, and for other processes on the
/// same SQLite file, which cannot signal.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Under load, a delay in which events gather, so that one query reads many.
const GATHER_DELAY: Duration = Duration::from_millis(5);
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// How long streams may take to end when the process is told to stop.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(3);

#[derive(Clone)]
pub struct FanOut {
    inner: Arc<Inner>,
}

struct Inner {
    db: Db,
    wake: Wake,
    clock: Clock,
    config: EventsConfig,
    listeners: Mutex<Listeners>,
    /// How many there are, for the task that reads for them.
    count: watch::Sender<usize>,
    /// How far this process has read; `None` without listeners.
    horizon: watch::Sender<Option<i64>>,
    closing: CancellationToken,
    /// The tasks that write to clients.
    streams: TaskTracker,
}

#[derive(Default)]
struct Listeners {
    /// Open streams of each user, and of all. Streams that still read the past are included.
    of_user: HashMap<TenantUser, usize>,
    total: usize,
    /// The listeners that receive events as they happen.
    live: HashMap<Reach, Vec<Live>>,
    next: u64,
}

struct Live {
    number: u64,
    /// The last event that it has.
    after: i64,
    filter: Filter,
    buffer: mpsc::Sender<Arc<Delivery>>,
}

/// Which of its events a listener wants. Empty: all of them.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    pub types: Vec<EventKind>,
    pub batch: Option<Uuid>,
}

impl Filter {
    fn wants(&self, event: &StoredEvent) -> bool {
        (self.types.is_empty() || self.types.iter().any(|kind| kind.name() == event.kind))
            && (self.batch.is_none() || self.batch == event.batch)
    }
}

/// The result of a poll for new events.
enum Polled {
    Events,
    Nothing,
}

/// An event as it is sent, serialized once for all its listeners.
#[derive(Debug)]
pub struct Delivery {
    pub id: i64,
    /// As a server-sent event: `id`, `event` and `data`.
    frame: Bytes,
    /// The position of the JSON in it.
    json: std::ops::Range<usize>,
}

impl Delivery {
    pub fn of(event: &StoredEvent) -> Self {
        let json = serde_json::to_string(event).expect("an event is plain JSON");
        Self::serialized(event.id, &event.kind, &json)
    }

    /// A message about the stream itself. Its id is the position from which the stream continues.
    pub fn about_stream(
        id: i64,
        kind: &str,
        at: Time,
        epoch: Option<Uuid>,
        data: &serde_json::Value,
    ) -> Self {
        let json = json!({ "id": id, "type": kind, "at": at, "epoch": epoch, "data": data }).to_string();
        Self::serialized(id, kind, &json)
    }

    fn serialized(id: i64, kind: &str, json: &str) -> Self {
        let head = format!("id: {id}\nevent: {kind}\ndata: ");
        let range = head.len()..head.len() + json.len();
        Self { id, frame: Bytes::from(format!("{head}{json}\n\n")), json: range }
    }

    pub fn frame(&self) -> Bytes {
        self.frame.clone()
    }

    pub fn json(&self) -> Bytes {
        self.frame.slice(self.json.clone())
    }
}

impl FanOut {
    pub fn new(db: Db, wake: Wake, clock: Clock, config: EventsConfig) -> Self {
        Self {
            inner: Arc::new(Inner {
                db,
                wake,
                clock,
                config,
                listeners: Mutex::default(),
                count: watch::Sender::new(0),
                horizon: watch::Sender::new(None),
                closing: CancellationToken::new(),
                streams: TaskTracker::new(),
            }),
        }
    }

    /// Opens a stream for `user`, unless there are too many. It starts after the event `after`, or now.
    pub fn listen(
        &self,
        user: TenantUser,
        reach: Reach,
        filter: Filter,
        after: Option<i64>,
    ) -> Result<Subscription, Refusal> {
        let slot = self.take_slot(user)?;
        Ok(Subscription {
            fan_out: self.clone(),
            reach,
            filter,
            after,
            position: None,
            epoch: None,
            was_reset: false,
            live: None,
            _slot: slot,
        })
    }

    /// Cancelled when all streams must end.
    pub fn closing(&self) -> CancellationToken {
        self.inner.closing.clone()
    }

    /// Held by the tasks that write to clients: on shutdown the process waits a moment for them.
    pub fn underway(&self) -> TaskTrackerToken {
        self.inner.streams.token()
    }

    /// Up to which event all events have been sent to the listeners; unknown without listeners.
    pub fn delivered_up_to(&self) -> Option<i64> {
        *self.inner.horizon.borrow()
    }

    pub fn open_streams(&self) -> usize {
        *self.inner.count.borrow()
    }

    fn take_slot(&self, user: TenantUser) -> Result<StreamSlot, Refusal> {
        let config = &self.inner.config;
        let mut listeners = self.listeners();
        if listeners.total >= config.streams {
            let message = "This server has the maximum number of open event streams";
            return Err(Refusal::new(RefusalCode::EventStreamsExhausted, message).retryable());
        }
        let own = listeners.of_user.get(&user).copied().unwrap_or(0);
        if own >= config.streams_per_user {
            let message = format!("You have {own} open event streams, which is the maximum");
            return Err(Refusal::new(RefusalCode::TooManyEventStreams, message).retryable());
        }
        listeners.of_user.insert(user.clone(), own + 1);
        listeners.total += 1;
        self.inner.count.send_replace(listeners.total);
        drop(listeners);
        Ok(StreamSlot { fan_out: self.clone(), user })
    }

    fn listeners(&self) -> MutexGuard<'_, Listeners> {
        self.inner.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Distributes new events until `stop`, then ends all streams.
    pub async fn run(&self, stop: CancellationToken) {
        stop.run_until_cancelled(self.distribute()).await;
        self.inner.closing.cancel();
        self.inner.streams.close();
        tokio::select! {
            () = self.inner.streams.wait() => {}
            () = Clock::System.sleep(SHUTDOWN_TIMEOUT) => tracing::warn!("some event streams were interrupted"),
        }
    }

    async fn distribute(&self) {
        let mut listeners = self.inner.count.subscribe();
        loop {
            listeners.wait_for(|count| *count > 0).await.expect("the sender is ours");
            tokio::select! {
                never = self.follow() => match never {},
                _ = listeners.wait_for(|count| *count == 0) => {}
            }
            // The next listener starts at the current end of the events, unless one has joined in the meantime.
            let listeners = self.listeners();
            if listeners.total == 0 {
                self.inner.horizon.send_replace(None);
            }
        }
    }

    /// Reads new events until it is dropped.
    async fn follow(&self) -> Infallible {
        let mut signal = self.inner.wake.events();
        loop {
            // Before the poll, so that no signal is lost.
            signal.mark_unchanged();
            match self.poll().await {
                Ok(Polled::Events) => Clock::System.sleep(GATHER_DELAY).await,
                Ok(Polled::Nothing) => {
                    tokio::select! {
                        _ = signal.changed() => {}
                        () = Clock::System.sleep(POLL_INTERVAL) => {}
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "events could not be read; retrying");
                    Clock::System.sleep(RETRY_DELAY).await;
                }
            }
        }
    }

    /// Distributes all new events. The first poll finds where they begin.
    async fn poll(&self) -> Result<Polled, Error> {
        let db = &self.inner.db;
        let known = *self.inner.horizon.borrow();
        let Some(mut position) = known else {
            let present = tail::settled_up_to(db).await?;
            self.distribute_page(&tail::Page { events: Vec::new(), up_to: present });
            return Ok(Polled::Nothing);
        };
        if db.read().await?.last_id("events").await? <= position {
            return Ok(Polled::Nothing);
        }
        let horizon = tail::settled_up_to(db).await?;
        while position < horizon {
            let page = tail::page(&mut db.read().await?, position, horizon, &Reach::All, PAGE_SIZE).await?;
            position = page.up_to;
            self.distribute_page(&page);
        }
        Ok(Polled::Events)
    }

    fn distribute_page(&self, page: &tail::Page) {
        let mut listeners = self.listeners();
        for event in &page.events {
            listeners.distribute(event);
        }
        self.inner.horizon.send_replace(Some(page.up_to));
    }

    /// Adds a listener that has everything up to `position`; or returns up to where it must read first.
    fn join(&self, subscription: &Subscription, position: i64) -> Result<Joined, Option<i64>> {
        let mut listeners = self.listeners();
        let horizon = *self.inner.horizon.borrow();
        if horizon.is_none_or(|horizon| horizon > position) {
            return Err(horizon);
        }
        let number = listeners.next;
        listeners.next += 1;
        let (buffer, events) = mpsc::channel(self.inner.config.buffer);
        let live = Live { number, after: position, filter: subscription.filter.clone(), buffer };
        listeners.live.entry(subscription.reach.clone()).or_default().push(live);
        Ok(Joined { number, events })
    }
}

impl Listeners {
    fn distribute(&mut self, event: &StoredEvent) {
        // Serialized for the first listener that wants it.
        let mut serialized = None;
        let owner = TenantUser::new(event.tenant.clone(), event.user.clone());
        for reach in [Reach::User(owner), Reach::Tenant(event.tenant.clone()), Reach::All] {
            let Some(live) = self.live.get_mut(&reach) else { continue };
            live.retain(|one| {
                if event.id <= one.after || !one.filter.wants(event) {
                    return true;
                }
                let delivery = serialized.get_or_insert_with(|| Arc::new(Delivery::of(event)));
                // A listener whose buffer is full is removed; it learns that when it has emptied the buffer.
                one.buffer.try_send(delivery.clone()).is_ok()
            });
        }
    }

    fn leave(&mut self, reach: &Reach, number: u64) {
        if let Some(live) = self.live.get_mut(reach) {
            live.retain(|one| one.number != number);
            if live.is_empty() {
                self.live.remove(reach);
            }
        }
    }
}

/// Counts as an open stream until it is dropped.
struct StreamSlot {
    fan_out: FanOut,
    user: TenantUser,
}

impl Drop for StreamSlot {
    fn drop(&mut self) {
        let mut listeners = self.fan_out.listeners();
        listeners.total -= 1;
        match listeners.of_user.get_mut(&self.user) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(listeners.of_user.remove(&self.user)),
        }
        self.fan_out.inner.count.send_replace(listeners.total);
    }
}

struct Joined {
    number: u64,
    events: mpsc::Receiver<Arc<Delivery>>,
}

/// The events of one listener, in order.
pub struct Subscription {
    fan_out: FanOut,
    reach: Reach,
    filter: Filter,
    /// The last event that the client says it has.
    after: Option<i64>,
    /// The last event that it has, once that is confirmed.
    position: Option<i64>,
    /// The epoch of the events that are written now.
    epoch: Option<Uuid>,
    /// Whether it was told of a new epoch and has to be told where that is, once it is there.
    was_reset: bool,
    live: Option<Joined>,
    _slot: StreamSlot,
}

/// The next item of a stream.
pub enum Next {
    Messages(Vec<Arc<Delivery>>),
    /// The past has been read completely; from here on events are new.
    CaughtUp,
    /// The client did not keep up and receives no more.
    TooSlow,
}

impl Subscription {
    /// The next item. Nothing is lost if the future is dropped before it resolves.
    pub async fn next(&mut self) -> Result<Next, Error> {
        let Some(position) = self.position else { return self.open().await };
        if let Some(live) = &mut self.live {
            let mut messages = Vec::new();
            return Ok(match live.events.recv_many(&mut messages, BATCH_SIZE).await {
                0 => Next::TooSlow,
                _ => Next::Messages(messages),
            });
        }
        match self.fan_out.join(self, position) {
            // Otherwise a client for which there are no events would resume from the old epoch again.
            Ok(joined) if std::mem::take(&mut self.was_reset) => {
                self.live = Some(joined);
                Ok(self.begin(position, "stream:open", json!({})))
            }
            Ok(joined) => {
                self.live = Some(joined);
                Ok(Next::CaughtUp)
            }
            Err(Some(horizon)) => self.read_on(position, horizon).await,
            Err(None) => {
                let mut horizon = self.fan_out.inner.horizon.subscribe();
                // It will be known as soon as the database responds; until then there is nothing to send.
                drop(horizon.wait_for(Option::is_some).await);
                Ok(Next::Messages(Vec::new()))
            }
        }
    }

    /// Finds where to begin, and reports it.
    async fn open(&mut self) -> Result<Next, Error> {
        let inner = &self.fan_out.inner;
        let known = *inner.horizon.borrow();
        let epoch = epochs::current(&mut inner.db.read().await?).await?;
        self.epoch = epoch.as_ref().map(|epoch| epoch.epoch);
        let Some(after) = self.after else {
            let now = tail::settled_up_to(&inner.db).await?;
            return Ok(self.begin(now, "stream:open", json!({})));
        };
        if let Some(position) = epoch.and_then(|epoch| epoch.resume_from(after)) {
            return Ok(self.reset(after, position));
        }
        if known.is_none_or(|known| after > known) {
            let horizon = tail::settled_up_to(&inner.db).await?;
            if after > horizon {
                // The id is from another database, or this one lost its last events.
                return Ok(self.gap(after, horizon));
            }
        }
        let removed = removed_up_to(&mut inner.db.read().await?).await?;
        if after < removed {
            return Ok(self.gap(after, removed));
        }
        Ok(self.begin(after, "stream:open", json!({})))
    }

    /// Reads a page of the past.
    async fn read_on(&mut self, position: i64, horizon: i64) -> Result<Next, Error> {
        let inner = &self.fan_out.inner;
        let mut tx = inner.db.read().await?;
        let position = if mutants::on(Mutant::SkippedEvent) { position + 1 } else { position };
        let page = tail::page(&mut tx, position, horizon, &self.reach, PAGE_SIZE).await?;
        drop(tx);
        // Read after the page: what was removed until now may be missing from it.
        let removed = removed_up_to(&mut inner.db.read().await?).await?;
        if position < removed {
            return Ok(self.gap(position, removed));
        }
        self.position = Some(page.up_to);
        let wanted = page.events.iter().filter(|event| self.filter.wants(event));
        Ok(Next::Messages(wanted.map(|event| Arc::new(Delivery::of(event))).collect()))
    }

    /// Events between these two were removed, so the client has missed some.
    fn gap(&mut self, after: i64, resumes_after: i64) -> Next {
        self.begin(resumes_after, "stream:gap", json!({ "after": after, "resumesAfter": resumes_after }))
    }

    /// The database was restored since the client saw its last event.
    fn reset(&mut self, after: i64, resumes_after: i64) -> Next {
        self.was_reset = true;
        let data = json!({ "reason": "restored", "after": after, "resumesAfter": resumes_after });
        self.begin(resumes_after, "stream:reset", data)
    }

    fn begin(&mut self, position: i64, kind: &str, data: serde_json::Value) -> Next {
        self.position = Some(position);
        let at = self.fan_out.inner.clock.now();
        Next::Messages(vec![Arc::new(Delivery::about_stream(position, kind, at, self.epoch, &data))])
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(live) = &self.live {
            self.fan_out.listeners().leave(&self.reach, live.number);
        }
    }
}
