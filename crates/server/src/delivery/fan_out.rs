//! Events on their way to whoever listens.
//!
//! A process reads new events once, however many listen to it, and puts each into the buffers of those whom it concerns.
//! A buffer has a bound: whoever does not empty theirs in time is cut off, keeps nobody waiting, and comes back with the
//! last id that they saw. While nobody listens, nothing is read.
//!
//! A new listener reads the past from the database, page by page, up to where this process is, and joins there. Both
//! happen under one lock with the handing out of a page, so there is no gap and no event twice.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use serde_json::json;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;
use uuid::Uuid;

use super::EventsConfig;
use super::tail::{self, Audience, StoredEvent};
use landfall_core::clock::{Clock, Time};
use landfall_core::event::EventKind;
use landfall_core::refusal::{Refusal, RefusalCode};
use landfall_store::Error;
use landfall_store::wake::Wake;
use landfall_store::{Db, args};

/// Events that are read in one go.
const PAGE: i64 = 256;
/// Events that a listener is given in one go.
const AT_ONCE: usize = 64;
/// How often to look without a signal, while somebody listens: for those that got lost, and for other processes on the
/// same SQLite file, which cannot signal.
const POLL: Duration = Duration::from_millis(250);
/// Under load, time for events to gather, so that many are read with one look.
const GATHER: Duration = Duration::from_millis(5);
const AFTER_AN_ERROR: Duration = Duration::from_secs(1);
/// How long streams may take to say goodbye when the process is told to stop.
const LAST_WORDS: Duration = Duration::from_secs(3);

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
    /// How many there are, for the one who reads for them.
    count: watch::Sender<usize>,
    /// How far this process has read, while anybody listens.
    horizon: watch::Sender<Option<i64>>,
    closing: CancellationToken,
    /// The tasks that write to clients.
    streams: TaskTracker,
}

#[derive(Default)]
struct Listeners {
    /// Open streams of each user, and of all. Those that still read the past are among them.
    of_user: HashMap<String, usize>,
    in_all: usize,
    /// Those that get events as they come.
    live: HashMap<Audience, Vec<Live>>,
    next: u64,
}

struct Live {
    number: u64,
    /// What it has already.
    after: i64,
    filter: Filter,
    buffer: mpsc::Sender<Arc<Delivery>>,
}

/// What of a listener's events they want. Empty: everything.
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

/// What a look for new events came to.
enum Found {
    Events,
    Nothing,
}

/// An event as it is sent, written out once for all who get it.
#[derive(Debug)]
pub struct Delivery {
    pub id: i64,
    /// As server-sent event: `id`, `event` and `data`.
    frame: Bytes,
    /// Where in it the JSON is.
    json: std::ops::Range<usize>,
}

impl Delivery {
    pub fn of(event: &StoredEvent) -> Self {
        let json = serde_json::to_string(event).expect("an event is plain JSON");
        Self::written(event.id, &event.kind, &json)
    }

    /// A message about the stream itself. Its id is where the stream goes on.
    pub fn about_stream(id: i64, kind: &str, at: Time, data: &serde_json::Value) -> Self {
        let json = json!({ "id": id, "type": kind, "at": at, "data": data }).to_string();
        Self::written(id, kind, &json)
    }

    fn written(id: i64, kind: &str, json: &str) -> Self {
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

    /// A stream for `user`, unless there are too many. It begins after the event `after`, or now.
    pub fn listen(
        &self,
        user: &str,
        audience: Audience,
        filter: Filter,
        after: Option<i64>,
    ) -> Result<Subscription, Refusal> {
        let seat = self.take_seat(user)?;
        Ok(Subscription {
            fan_out: self.clone(),
            audience,
            filter,
            after,
            position: None,
            live: None,
            _seat: seat,
        })
    }

    /// Resolves when all streams are to end.
    pub fn closing(&self) -> CancellationToken {
        self.inner.closing.clone()
    }

    /// To be held by what writes to a client: the process waits a moment for it at its end.
    pub fn underway(&self) -> TaskTrackerToken {
        self.inner.streams.token()
    }

    /// Up to which event all has been handed out; nobody knows while nobody listens.
    pub fn told_up_to(&self) -> Option<i64> {
        *self.inner.horizon.borrow()
    }

    pub fn open_streams(&self) -> usize {
        *self.inner.count.borrow()
    }

    fn take_seat(&self, user: &str) -> Result<Seat, Refusal> {
        let config = &self.inner.config;
        let mut listeners = self.listeners();
        if listeners.in_all >= config.streams {
            let message = "This server has as many open event streams as it may have";
            return Err(Refusal::new(RefusalCode::EventStreamsExhausted, message).retryable());
        }
        let own = listeners.of_user.get(user).copied().unwrap_or(0);
        if own >= config.streams_per_user {
            let message =
                format!("You have {own} open event streams already, which is as many as you may have");
            return Err(Refusal::new(RefusalCode::TooManyEventStreams, message).retryable());
        }
        listeners.of_user.insert(user.to_owned(), own + 1);
        listeners.in_all += 1;
        self.inner.count.send_replace(listeners.in_all);
        drop(listeners);
        Ok(Seat { fan_out: self.clone(), user: user.to_owned() })
    }

    fn listeners(&self) -> MutexGuard<'_, Listeners> {
        self.inner.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands new events out until `stop`, then ends all streams.
    pub async fn run(&self, stop: CancellationToken) {
        stop.run_until_cancelled(self.hand_out()).await;
        self.inner.closing.cancel();
        self.inner.streams.close();
        tokio::select! {
            () = self.inner.streams.wait() => {}
            () = Clock::System.sleep(LAST_WORDS) => tracing::warn!("some event streams were cut off"),
        }
    }

    async fn hand_out(&self) {
        let mut listeners = self.inner.count.subscribe();
        loop {
            listeners.wait_for(|count| *count > 0).await.expect("the sender is ours");
            tokio::select! {
                never = self.follow() => match never {},
                _ = listeners.wait_for(|count| *count == 0) => {}
            }
            // Whoever comes next begins at what is then the present; unless they have come in between.
            let listeners = self.listeners();
            if listeners.in_all == 0 {
                self.inner.horizon.send_replace(None);
            }
        }
    }

    /// Reads on, for as long as it is not dropped.
    async fn follow(&self) -> Infallible {
        let mut signal = self.inner.wake.events();
        loop {
            // Before the look, so that no signal is lost.
            signal.mark_unchanged();
            match self.look().await {
                Ok(Found::Events) => Clock::System.sleep(GATHER).await,
                Ok(Found::Nothing) => {
                    tokio::select! {
                        _ = signal.changed() => {}
                        () = Clock::System.sleep(POLL) => {}
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "events could not be read; trying again");
                    Clock::System.sleep(AFTER_AN_ERROR).await;
                }
            }
        }
    }

    /// Hands out all that is new. The first look finds where that begins.
    async fn look(&self) -> Result<Found, Error> {
        let db = &self.inner.db;
        let known = *self.inner.horizon.borrow();
        let Some(mut position) = known else {
            let present = tail::settled_up_to(db).await?;
            self.hand_out_page(&tail::Page { events: Vec::new(), up_to: present });
            return Ok(Found::Nothing);
        };
        if tail::last_taken(&mut db.read().await?).await? <= position {
            return Ok(Found::Nothing);
        }
        let horizon = tail::settled_up_to(db).await?;
        while position < horizon {
            let page =
                tail::page(&mut db.read().await?, position, horizon, &Audience::Everybody, PAGE).await?;
            position = page.up_to;
            self.hand_out_page(&page);
        }
        Ok(Found::Events)
    }

    fn hand_out_page(&self, page: &tail::Page) {
        let mut listeners = self.listeners();
        for event in &page.events {
            listeners.hand_out(event);
        }
        self.inner.horizon.send_replace(Some(page.up_to));
    }

    /// Lets a listener that has seen all up to `position` have the rest as it comes; or answers how far to read first.
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
        listeners.live.entry(subscription.audience.clone()).or_default().push(live);
        Ok(Joined { number, events })
    }
}

impl Listeners {
    fn hand_out(&mut self, event: &StoredEvent) {
        // Written out when the first is found who wants it.
        let mut written = None;
        for audience in [Audience::User(event.user.clone()), Audience::Everybody] {
            let Some(live) = self.live.get_mut(&audience) else { continue };
            live.retain(|one| {
                if event.id <= one.after || !one.filter.wants(event) {
                    return true;
                }
                let delivery = written.get_or_insert_with(|| Arc::new(Delivery::of(event)));
                // One whose buffer is full is let go; it learns that when it has emptied it.
                one.buffer.try_send(delivery.clone()).is_ok()
            });
        }
    }

    fn leave(&mut self, audience: &Audience, number: u64) {
        if let Some(live) = self.live.get_mut(audience) {
            live.retain(|one| one.number != number);
            if live.is_empty() {
                self.live.remove(audience);
            }
        }
    }
}

/// Counts as an open stream until it is dropped.
struct Seat {
    fan_out: FanOut,
    user: String,
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut listeners = self.fan_out.listeners();
        listeners.in_all -= 1;
        match listeners.of_user.get_mut(&self.user) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(listeners.of_user.remove(&self.user)),
        }
        self.fan_out.inner.count.send_replace(listeners.in_all);
    }
}

struct Joined {
    number: u64,
    events: mpsc::Receiver<Arc<Delivery>>,
}

/// One listener's events, in order.
pub struct Subscription {
    fan_out: FanOut,
    audience: Audience,
    filter: Filter,
    /// What the client says that it saw last.
    after: Option<i64>,
    /// What it has seen, once that is known to be so.
    position: Option<i64>,
    live: Option<Joined>,
    _seat: Seat,
}

/// What comes next on a stream.
pub enum Next {
    Messages(Vec<Arc<Delivery>>),
    /// All that there was has been read; from here on it is news.
    CaughtUp,
    /// It did not keep up and gets no more.
    TooSlow,
}

impl Subscription {
    /// What comes next. Nothing is lost when this is dropped before it answers.
    pub async fn next(&mut self) -> Result<Next, Error> {
        let Some(position) = self.position else { return self.open().await };
        if let Some(live) = &mut self.live {
            let mut messages = Vec::new();
            return Ok(match live.events.recv_many(&mut messages, AT_ONCE).await {
                0 => Next::TooSlow,
                _ => Next::Messages(messages),
            });
        }
        match self.fan_out.join(self, position) {
            Ok(joined) => {
                self.live = Some(joined);
                Ok(Next::CaughtUp)
            }
            Err(Some(horizon)) => self.read_on(position, horizon).await,
            Err(None) => {
                let mut horizon = self.fan_out.inner.horizon.subscribe();
                // It will be known as soon as the database answers; then there is nothing to tell yet.
                drop(horizon.wait_for(Option::is_some).await);
                Ok(Next::Messages(Vec::new()))
            }
        }
    }

    /// Finds where to begin, and says so.
    async fn open(&mut self) -> Result<Next, Error> {
        let inner = &self.fan_out.inner;
        let known = *inner.horizon.borrow();
        let Some(after) = self.after else {
            let now = tail::settled_up_to(&inner.db).await?;
            return Ok(self.begin(now, "stream:open", json!({})));
        };
        if known.is_none_or(|known| after > known) {
            let horizon = tail::settled_up_to(&inner.db).await?;
            if after > horizon {
                // From another database than this, or from one that lost its last events.
                return Ok(self.gap(after, horizon));
            }
        }
        let removed = removed_up_to(&inner.db).await?;
        if after < removed {
            return Ok(self.gap(after, removed));
        }
        Ok(self.begin(after, "stream:open", json!({})))
    }

    /// Reads a page of the past.
    async fn read_on(&mut self, position: i64, horizon: i64) -> Result<Next, Error> {
        let inner = &self.fan_out.inner;
        let mut tx = inner.db.read().await?;
        let page = tail::page(&mut tx, position, horizon, &self.audience, PAGE).await?;
        drop(tx);
        // After the page: what was removed until now may be missing from it.
        let removed = removed_up_to(&inner.db).await?;
        if position < removed {
            return Ok(self.gap(position, removed));
        }
        self.position = Some(page.up_to);
        let wanted = page.events.iter().filter(|event| self.filter.wants(event));
        Ok(Next::Messages(wanted.map(|event| Arc::new(Delivery::of(event))).collect()))
    }

    /// Events between these were removed, so the client cannot have seen all.
    fn gap(&mut self, after: i64, resumes_after: i64) -> Next {
        self.begin(resumes_after, "stream:gap", json!({ "after": after, "resumesAfter": resumes_after }))
    }

    fn begin(&mut self, position: i64, kind: &str, data: serde_json::Value) -> Next {
        self.position = Some(position);
        let at = self.fan_out.inner.clock.now();
        Next::Messages(vec![Arc::new(Delivery::about_stream(position, kind, at, &data))])
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(live) = &self.live {
            self.fan_out.listeners().leave(&self.audience, live.number);
        }
    }
}

/// The highest id of an event that was removed because its time was over.
async fn removed_up_to(db: &Db) -> Result<i64, Error> {
    db.read().await?.number("SELECT COALESCE(MAX(up_to), 0) FROM removed_events", args![]).await
}
