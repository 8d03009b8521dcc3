//! Claims files as there is room for them, and shuts down in an orderly way.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use chrono::TimeDelta;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::carrier::Carrier;
use super::claim::{ClaimDue, Claims, Want};
use super::config::QueueConfig;
use super::fairness::Rounds;
use super::isolation::{Isolation, Next};
use super::reconcile;
use super::release::Release;
use super::room::{Place, Room};
use super::settler::Settler;
use super::tenant_share::Held;
use crate::process::liveness::{Identity, Liveness};
use crate::records::files::queue;
use crate::stages::Work;
use landfall_core::clock::{Clock, Time, to_delta};
use landfall_core::lifecycle::Stage;
use landfall_store::Db;
use landfall_store::Error;
use landfall_store::wake::{Signal, Wake};

/// How long a worker waits before it retries a failed write.
pub(super) const WRITE_AGAIN: Duration = Duration::from_millis(500);
/// The queue is not polled more often than this, even if a blocked file may be claimed sooner.
const MIN_INTERVAL: Duration = Duration::from_millis(5);
/// Where all slots are taken, the queue is not checked for files of other tenants more often than this.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// How long the last settlements of a process that shuts down may take.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Clone)]
pub struct Worker {
    inner: Arc<Inner>,
}

/// The result of one poll of the queue.
#[derive(Default)]
struct Polled {
    claimed: usize,
    /// When something that is blocked may be claimed.
    again_in: Option<Duration>,
}

/// A file and the claim that holds it. The same file may be claimed again before its previous entry is removed.
pub(super) type InHand = (Uuid, Uuid);

pub(super) struct Inner {
    pub(super) db: Db,
    pub(super) clock: Clock,
    pub(super) config: QueueConfig,
    pub(super) work: Arc<dyn Work>,
    pub(super) wake: Wake,
    pub(super) liveness: Arc<Liveness>,
    pub(super) settler: Settler,
    rooms: Vec<Arc<Room>>,
    rounds: Mutex<Arc<Rounds>>,
    /// When the queue was last checked for files that wait for a slot.
    checked_at: Mutex<Option<Time>>,
    /// Whether a file is worked on alone.
    pub(super) isolation: Isolation,
    tasks: TaskTracker,
    /// The files in hand, each with what stops the work on it when it is cancelled or deleted.
    in_hand: Mutex<HashMap<InHand, CancellationToken>>,
    /// Cancelled when files in hand must be released.
    pub(super) give_back: CancellationToken,
    /// Endings that came too late, after the file was no longer held by this worker.
    pub(super) fenced_off: AtomicU64,
    /// Counts the polls of the queue that found nothing while nothing was in hand.
    idle_polls: watch::Sender<u64>,
    /// When the loop last polled, while it runs.
    last_poll: watch::Sender<Option<Time>>,
}

/// Why a worker is unhealthy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ailment {
    /// Its loop does not run: not yet, not any more, or it panicked.
    NotRunning,
    /// It runs, but has not polled the queue for so long.
    Hangs(TimeDelta),
}

/// Notes that the loop has ended, however it ends.
struct Loop<'a>(&'a Inner);

impl Drop for Loop<'_> {
    fn drop(&mut self) {
        self.0.last_poll.send_replace(None);
    }
}

impl Worker {
    pub fn new(
        db: Db,
        clock: Clock,
        config: QueueConfig,
        work: Arc<dyn Work>,
        wake: Wake,
        liveness: Arc<Liveness>,
    ) -> Self {
        let inner = Inner {
            settler: Settler::start(db.clone(), clock.clone(), config.breaker, liveness.name().to_owned()),
            rooms: config.stages.iter().copied().map(Room::new).collect(),
            rounds: Mutex::default(),
            checked_at: Mutex::default(),
            isolation: Isolation::default(),
            tasks: TaskTracker::new(),
            in_hand: Mutex::default(),
            give_back: CancellationToken::new(),
            fenced_off: AtomicU64::new(0),
            idle_polls: watch::Sender::new(0),
            last_poll: watch::Sender::new(None),
            db,
            clock,
            config,
            work,
            wake,
            liveness,
        };
        Self { inner: Arc::new(inner) }
    }

    /// Works until `stop`, then finishes what ends within the grace period and releases the rest.
    pub async fn run(&self, stop: CancellationToken) {
        let (inner, watched_until) = (self.inner.clone(), stop.clone());
        tokio::spawn(async move { reconcile::watch(&inner, &watched_until).await });
        let _loop = Loop(&self.inner);
        while !stop.is_cancelled() {
            self.inner.last_poll.send_replace(Some(self.inner.clock.now()));
            // Read before the poll, so that the poll sees every file that was settled by now.
            let nothing_in_hand = self.inner.in_hand().is_empty();
            let mut until_next_poll = self.inner.config.poll_interval;
            match self.inner.claim().await {
                Ok(Polled { claimed: 0, again_in }) => {
                    if nothing_in_hand {
                        self.inner.idle_polls.send_modify(|polls| *polls += 1);
                    }
                    until_next_poll = again_in.map_or(until_next_poll, |again| again.min(until_next_poll));
                }
                Ok(_) => continue,
                Err(error) => tracing::warn!(%error, "could not claim files"),
            }
            tokio::select! {
                () = self.inner.wake.wait(Signal::Work) => {}
                () = self.inner.clock.sleep(until_next_poll) => {}
                () = stop.cancelled() => {}
            }
        }
        self.inner.shut_down().await;
    }

    /// Stops the work on a file that was cancelled or deleted. Its row has already changed; this only saves work.
    pub fn stop_file(&self, file: Uuid) {
        for ((held, _), stop) in self.inner.in_hand().iter() {
            if *held == file {
                stop.cancel();
            }
        }
    }

    /// What is wrong with the loop that claims files, if something is.
    pub fn ailment(&self) -> Option<Ailment> {
        let Some(last_poll) = *self.inner.last_poll.borrow() else { return Some(Ailment::NotRunning) };
        let timeout = self.inner.config.liveness.heartbeat_expiry + self.inner.config.poll_interval;
        let since = self.inner.clock.now() - last_poll;
        (since >= to_delta(timeout)).then_some(Ailment::Hangs(since))
    }

    /// Endings that the fence refused.
    pub fn fenced_off(&self) -> u64 {
        self.inner.fenced_off.load(Ordering::Relaxed)
    }

    /// Resolves when nothing is in hand and a poll of the queue that began after this call found nothing due.
    pub async fn run_until_idle(&self) {
        let mut polls = self.inner.idle_polls.subscribe();
        // A poll that began before the call may be under way, so two are needed.
        for _ in 0..2 {
            polls.borrow_and_update();
            loop {
                self.inner.wake.poll_work();
                if polls.changed().await.is_ok() {
                    break;
                }
            }
        }
    }
}

impl Inner {
    /// Claims as many files as there is room for and starts on them.
    async fn claim(self: &Arc<Self>) -> Result<Polled, Error> {
        // Only counted, not reserved: a file that is carried to its next stage during the claim takes a place first.
        let wants: Vec<Want> = self
            .rooms
            .iter()
            .map(|room| Want {
                stage: room.config.stage,
                room: room.wanted(),
                services: room.config.services,
            })
            .collect();
        let identity = self.liveness.identity();
        let next = self.isolation.next(self.in_hand().is_empty());
        let is_full = next == Next::Many && wants.iter().all(|want| want.room == 0);
        if let Err(error) = self.make_way().await {
            tracing::warn!(%error, "could not check for files that wait for a slot");
        }
        if is_full || identity.lost.is_cancelled() {
            return Ok(Polled::default());
        }
        let alone = next == Next::OneAlone;
        let now = self.clock.now();
        let token = self.clock.new_id();
        let claim = ClaimDue {
            worker: identity.id,
            worker_name: self.liveness.name().to_owned(),
            token,
            held: self.held(&wants, now),
            wants,
            rounds: self.rounds().clone(),
            limits: self.config.limits.clone(),
            breaker: self.config.breaker,
            next,
            makes_way: self.isolation.would_make_way(now),
            now,
        };
        let taken = match self.db.write(claim).await {
            Ok(Claims::Taken(taken)) => taken,
            Err(error) => {
                // The claim may have been committed although its reply was lost.
                self.release_for_sure(&identity, token, None).await;
                return Err(error);
            }
            Ok(Claims::WorkerGone) => {
                self.liveness.rejoin(&identity).await?;
                return Ok(Polled::default());
            }
        };
        for room in &self.rooms {
            room.set_paused(taken.paused.contains(&room.config.stage));
        }
        {
            let mut rounds = self.rounds();
            let rounds = Arc::make_mut(&mut rounds);
            for (stage, lanes) in taken.served {
                rounds.served(stage, lanes);
            }
        }
        if alone {
            self.isolation.claimed(!taken.files.is_empty(), now);
        }
        if !taken.one_waits_alone && next == Next::Nothing && self.isolation.none_waits() {
            // Another process has taken it.
            self.wake.poll_work();
        }
        // Files that were claimed before this was known are finished first.
        if taken.one_waits_alone && self.isolation.one_waits(now) || alone && taken.files.is_empty() {
            self.wake.poll_work();
        }
        let rounds = Arc::new(taken.rounds);
        let polled = Polled {
            claimed: taken.files.len(),
            again_in: taken.poll_again_at.map(|at| (at - now).to_std().unwrap_or_default().max(MIN_INTERVAL)),
        };
        for file in taken.files {
            let room = self.room(file.next_stage).expect("only the stages of this worker are claimed");
            let place = room.enter(&file.tenant_id);
            let stop = CancellationToken::new();
            self.in_hand().insert((file.id, token), stop.clone());
            let (identity, rounds) = (identity.clone(), rounds.clone());
            let carrier = Carrier { inner: self.clone(), identity, place, stop, rounds, alone };
            self.tasks.spawn(carrier.carry(file));
        }
        Ok(polled)
    }

    fn held(&self, wants: &[Want], now: Time) -> Held {
        let at_stage = |(room, want): (&Arc<Room>, &Want)| (want.stage, room.tenants.held(want.room, now));
        self.rooms.iter().zip(wants).map(at_stage).collect()
    }

    /// Stops work of a tenant that has more than half of a stage's slots, if none is free and a file of another waits.
    async fn make_way(&self) -> Result<(), Error> {
        let crowding =
            |room: &Arc<Room>| Some((room.clone(), room.tenants.crowding(room.config.concurrency)?));
        let crowded: Vec<(Arc<Room>, (String, bool))> =
            self.rooms.iter().filter(|room| !room.is_paused()).filter_map(crowding).collect();
        let now = self.clock.now();
        if crowded.is_empty() || !self.may_check(now) {
            return Ok(());
        }
        for (room, (tenant, other_waits_here)) in crowded {
            let stage = room.config.stage;
            if other_waits_here
                || queue::other_tenant_waits(&mut self.db.read().await?, stage, &tenant).await?
            {
                tracing::info!(
                    tenantId = tenant,
                    stage = stage.name(),
                    "work of a tenant makes way for another's"
                );
                room.tenants.make_way(&tenant, now);
            }
        }
        Ok(())
    }

    /// Whether it is time to check for files that wait for a slot. Files of one tenant often take all slots, and each of
    /// them that is uploaded wakes the worker.
    fn may_check(&self, now: Time) -> bool {
        let mut last = self.checked_at.lock().expect("nothing panics while it holds this");
        let may = last.is_none_or(|last| now < last || now - last >= to_delta(CHECK_INTERVAL));
        if may {
            *last = Some(now);
        }
        may
    }

    /// Releases what `claim` holds, and retries until the database is back. Until then there is no point in claiming
    /// more.
    pub(super) async fn release_for_sure(&self, identity: &Identity, claim: Uuid, file: Option<Uuid>) {
        loop {
            let release = Release {
                worker: identity.id,
                worker_name: self.liveness.name().to_owned(),
                claim,
                file,
                now: self.clock.now(),
            };
            match self.db.write(release).await {
                Ok(0) => return,
                Ok(files) => {
                    tracing::info!(files, "released files that a commit with a lost reply had claimed");
                    return;
                }
                Err(error) => tracing::warn!(%error, "could not release files that may be claimed"),
            }
            tokio::select! {
                () = self.clock.sleep(WRITE_AGAIN) => {}
                // Then the other processes rescue everything that this worker holds.
                () = identity.lost.cancelled() => return,
                () = self.give_back.cancelled() => return,
            }
        }
    }

    fn rounds(&self) -> MutexGuard<'_, Arc<Rounds>> {
        self.rounds.lock().expect("nothing panics while it holds this")
    }

    pub(super) fn in_hand(&self) -> MutexGuard<'_, HashMap<InHand, CancellationToken>> {
        self.in_hand.lock().expect("nothing panics while it holds this")
    }

    async fn shut_down(&self) {
        self.tasks.close();
        tokio::select! {
            () = self.tasks.wait() => return,
            () = self.clock.sleep(self.config.shutdown_grace) => {}
        }
        tracing::info!(files = self.tasks.len(), "releasing files that did not finish in time");
        self.give_back.cancel();
        tokio::select! {
            () = self.tasks.wait() => {}
            () = self.clock.sleep(SHUTDOWN_TIMEOUT) => {
                tracing::warn!(files = self.tasks.len(), "files were not released; other processes rescue them");
            }
        }
    }

    /// The room of a stage, if this worker works at it.
    pub(super) fn room(&self, stage: Stage) -> Option<&Arc<Room>> {
        self.rooms.iter().find(|room| room.config.stage == stage)
    }

    /// Frees a file's place at a stage, and polls for more files if too few are left.
    pub(super) fn leave(&self, place: Place) {
        let room = place.room().clone();
        drop(place);
        if room.wanted() > 0 {
            self.wake.poll_work();
        }
    }
}
