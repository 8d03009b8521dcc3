//! Claims files, carries them through the stages, and settles how each attempt ended.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::claim::{ClaimDue, Claims};
use super::liveness::{Identity, Liveness};
use super::settle::{Settlement, Verdict};
use super::settler::Settler;
use super::wake::Wake;
use crate::clock::{Clock, to_delta};
use crate::config::{QueueConfig, StageConfig};
use crate::db::Db;
use crate::failure::{Code, Failure};
use crate::file::File;
use crate::lifecycle::Stage;
use crate::stages::{Job, Output, Work};

/// How long a worker waits before it tries again to write what the database would not take.
const SETTLE_AGAIN: Duration = Duration::from_millis(500);
/// How long the last settlements of a process that shuts down may take.
const LAST_WORDS: Duration = Duration::from_secs(5);

#[derive(Clone)]
pub struct Worker {
    inner: Arc<Inner>,
}

struct Inner {
    db: Db,
    clock: Clock,
    config: QueueConfig,
    work: Arc<dyn Work>,
    wake: Wake,
    liveness: Arc<Liveness>,
    settler: Settler,
    slots: Vec<(StageConfig, Arc<Semaphore>)>,
    tasks: TaskTracker,
    /// The files in hand, each with what stops the work on it when it is cancelled or deleted.
    in_hand: Mutex<HashMap<Uuid, CancellationToken>>,
    /// Cancelled when files in hand are to be given back.
    give_back: CancellationToken,
    /// Endings that came too late, after somebody else had taken the file.
    fenced_off: AtomicU64,
    /// Counts the looks at the queue that found nothing while nothing was in hand.
    idle_looks: watch::Sender<u64>,
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
        let slots = config
            .stages
            .iter()
            .map(|stage| (*stage, Arc::new(Semaphore::new(stage.concurrency))))
            .collect();
        let inner = Inner {
            settler: Settler::start(db.clone(), clock.clone(), liveness.name().to_owned()),
            slots,
            tasks: TaskTracker::new(),
            in_hand: Mutex::default(),
            give_back: CancellationToken::new(),
            fenced_off: AtomicU64::new(0),
            idle_looks: watch::Sender::new(0),
            db,
            clock,
            config,
            work,
            wake,
            liveness,
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Works until `stop`, then finishes what ends within the grace period and gives the rest back.
    pub async fn run(&self, stop: CancellationToken) {
        while !stop.is_cancelled() {
            // Asked before the look: whatever was settled by now is there to be seen.
            let nothing_in_hand = self.inner.in_hand().is_empty();
            match self.inner.claim().await {
                Ok(0) if nothing_in_hand => self.inner.idle_looks.send_modify(|looks| *looks += 1),
                Ok(0) => {}
                Ok(_) => continue,
                Err(error) => tracing::warn!(%error, "could not claim"),
            }
            tokio::select! {
                () = self.inner.wake.signal() => {}
                () = self.inner.clock.sleep(self.inner.config.poll_interval) => {}
                () = stop.cancelled() => {}
            }
        }
        self.inner.shut_down().await;
    }

    /// Stops the work on a file that was cancelled or deleted. Its row decided already; this only saves the effort.
    pub fn stop_file(&self, file: Uuid) {
        if let Some(stop) = self.inner.in_hand().get(&file) {
            stop.cancel();
        }
    }

    /// Endings that the fence refused.
    pub fn fenced_off(&self) -> u64 {
        self.inner.fenced_off.load(Ordering::Relaxed)
    }

    /// Resolves when nothing is in hand and a look at the queue, begun after this call, found nothing due.
    pub async fn run_until_idle(&self) {
        let mut looks = self.inner.idle_looks.subscribe();
        // One look may be under way that began before the call, hence two.
        for _ in 0..2 {
            looks.borrow_and_update();
            loop {
                self.inner.wake.look_again();
                if looks.changed().await.is_ok() {
                    break;
                }
            }
        }
    }
}

impl Inner {
    /// Claims as many files as there are free slots and starts on them. Answers how many those were.
    async fn claim(self: &Arc<Self>) -> Result<usize, crate::error::Error> {
        // Counted, not taken: a file that is carried on while the claim is under way takes its slot first.
        let wants: Vec<(Stage, usize)> = self
            .slots
            .iter()
            .map(|(stage, slots)| (stage.stage, slots.available_permits()))
            .filter(|(_, free)| *free > 0)
            .collect();
        let identity = self.liveness.identity();
        if wants.is_empty() || identity.lost.is_cancelled() {
            return Ok(0);
        }
        let claims = self
            .db
            .write(ClaimDue {
                worker: identity.id,
                worker_name: self.liveness.name().to_owned(),
                wants,
                token: self.clock.new_id(),
                now: self.clock.now(),
            })
            .await?;
        let files = match claims {
            Claims::Taken(files) => files,
            Claims::WorkerGone => {
                self.liveness.begin_anew(&identity).await?;
                return Ok(0);
            }
        };
        let claimed = files.len();
        for file in files {
            let permit = self.slots_of(file.next_stage).try_acquire_owned().ok();
            let stop = CancellationToken::new();
            self.in_hand().insert(file.id, stop.clone());
            let carrier = Carrier {
                inner: self.clone(),
                identity: identity.clone(),
                permit,
                stop,
            };
            self.tasks.spawn(carrier.carry(file));
        }
        Ok(claimed)
    }

    fn in_hand(&self) -> MutexGuard<'_, HashMap<Uuid, CancellationToken>> {
        self.in_hand.lock().expect("nothing panics while it holds this")
    }

    async fn shut_down(&self) {
        self.tasks.close();
        tokio::select! {
            () = self.tasks.wait() => return,
            () = self.clock.sleep(self.config.shutdown_grace) => {}
        }
        tracing::info!(
            files = self.tasks.len(),
            "giving back what did not finish in time"
        );
        self.give_back.cancel();
        tokio::select! {
            () = self.tasks.wait() => {}
            () = self.clock.sleep(LAST_WORDS) => {
                tracing::warn!(files = self.tasks.len(), "some files were not given back; the others will rescue them");
            }
        }
    }

    fn stage_config(&self, stage: Stage) -> StageConfig {
        let found = self.slots.iter().find(|(config, _)| config.stage == stage);
        found.expect("only the stages of this worker are claimed").0
    }

    fn slots_of(&self, stage: Stage) -> Arc<Semaphore> {
        let found = self.slots.iter().find(|(config, _)| config.stage == stage);
        found
            .expect("only the stages of this worker are claimed")
            .1
            .clone()
    }

    /// A slot in a stage, if this worker does it and has one free.
    fn try_slot(&self, stage: Stage) -> Option<OwnedSemaphorePermit> {
        let (_, slots) = self.slots.iter().find(|(config, _)| config.stage == stage)?;
        slots.clone().try_acquire_owned().ok()
    }
}

/// One file in hand, from its claim until it is out of this worker's hands.
struct Carrier {
    inner: Arc<Inner>,
    identity: Identity,
    /// The slot it is in. Without one, another file was carried into the last slot while this one was being claimed;
    /// it is the next to get one.
    permit: Option<OwnedSemaphorePermit>,
    stop: CancellationToken,
}

/// Why a stage did not come to its own end.
#[derive(Clone, Copy)]
enum Interrupted {
    /// The file is not ours any more, or not wanted: say nothing.
    Abandon,
    /// Give it back.
    Release,
}

impl Carrier {
    async fn carry(mut self, mut file: File) {
        if self.permit.is_none() {
            let slots = self.inner.slots_of(file.next_stage);
            self.permit = self
                .inner
                .give_back
                .run_until_cancelled(slots.acquire_owned())
                .await
                .and_then(Result::ok);
        }
        let mut carried: Option<Arc<Output>> = None;
        loop {
            let stage = file.next_stage;
            let mut next_slot = None;
            let verdict = match self.attempt(&file, stage, carried.take()).await {
                Ok(Ok(output)) => {
                    next_slot = stage.next().and_then(|next| self.inner.try_slot(next));
                    Verdict::Advance {
                        output: Arc::new(output),
                        carry: next_slot.is_some(),
                    }
                }
                Ok(Err(failure)) => self.judge(&file, stage, failure),
                Err(Interrupted::Release) => Verdict::Release,
                Err(Interrupted::Abandon) => break,
            };
            let Some(written) = self.settle(&file, stage, verdict).await else {
                break;
            };
            match (written, next_slot, stage.next()) {
                (Verdict::Advance { output, carry: true }, Some(slot), Some(next)) => {
                    // The slot of the finished stage is free from here on.
                    self.permit = Some(slot);
                    self.inner.wake.look_again();
                    carried = Some(output);
                    file.next_stage = next;
                    file.attempt = 1;
                }
                (written, ..) => {
                    // There was no room for the next stage here, or the file is given back: others may take it.
                    if let Verdict::Advance { .. } | Verdict::Release = written {
                        self.inner.wake.new_work();
                    }
                    break;
                }
            }
        }
        drop(self.permit);
        self.inner.in_hand().remove(&file.id);
        self.inner.wake.look_again();
    }

    /// Runs one stage, within its time.
    async fn attempt(
        &self,
        file: &File,
        stage: Stage,
        carried: Option<Arc<Output>>,
    ) -> Result<Result<Output, Failure>, Interrupted> {
        let limit = self.inner.stage_config(stage).timeout;
        let job = Job::new(file.clone(), stage, carried);
        // Work that runs on a thread of its own notices by this that nobody waits for it any more.
        let _cancel_when_dropped = job.cancelled.clone().drop_guard();
        let work = AssertUnwindSafe(self.inner.work.run(&job)).catch_unwind();
        tokio::select! {
            done = work => Ok(done.unwrap_or_else(|_| {
                Err(Failure::new(Code::Unknown, format!("The {stage} stage met an unexpected error")))
            })),
            () = self.out_of_time(limit, job.progress()) => Ok(Err(Failure::new(
                Code::StageTimeout,
                format!("The {stage} stage took longer than its limit of {} s", limit.as_secs_f64()),
            ))),
            () = self.stop.cancelled() => Err(Interrupted::Abandon),
            () = self.identity.lost.cancelled() => Err(Interrupted::Abandon),
            () = self.inner.give_back.cancelled() => Err(Interrupted::Release),
        }
    }

    /// Resolves when the work has made no progress for as long as it may.
    fn out_of_time(
        &self,
        limit: Duration,
        mut progress: watch::Receiver<()>,
    ) -> impl Future<Output = ()> + Send {
        let clock = self.inner.clock.clone();
        let mut time_is_up = Box::pin(clock.sleep(limit));
        async move {
            loop {
                tokio::select! {
                    () = &mut time_is_up => return,
                    Ok(()) = progress.changed() => time_is_up = Box::pin(clock.sleep(limit)),
                }
            }
        }
    }

    fn judge(&self, file: &File, stage: Stage, failure: Failure) -> Verdict {
        let attempt = u32::try_from(file.attempt).unwrap_or(u32::MAX);
        match self
            .inner
            .config
            .retry
            .delay(stage, attempt, &failure, rand::random())
        {
            Some(delay) => Verdict::RetryAt {
                failure,
                at: self.inner.clock.now() + to_delta(delay),
            },
            None => Verdict::DeadLetter { failure },
        }
    }

    /// Writes the ending, however long the database takes to come back. Answers the verdict that was written, or
    /// `None` where the file was not ours any more.
    async fn settle(&self, file: &File, stage: Stage, verdict: Verdict) -> Option<Verdict> {
        let claim = file.claim.expect("a claimed file has a claim");
        let mut settlement = Settlement {
            file: file.id,
            claim,
            stage,
            attempt: file.attempt,
            verdict,
        };
        loop {
            match self.inner.settler.settle(settlement.clone()).await {
                Ok(true) => return Some(settlement.verdict),
                Ok(false) => {
                    self.inner.fenced_off.fetch_add(1, Ordering::Relaxed);
                    tracing::info!(file = %file.id, %stage, "an ending came too late and changed nothing");
                    return None;
                }
                Err(error) => {
                    tracing::warn!(file = %file.id, %stage, %error, "an ending could not be written");
                    if let Verdict::Advance { .. } = settlement.verdict {
                        // It may be the output itself that the database cannot take.
                        let failure =
                            Failure::new(Code::DbError, "What the stage produced could not be stored");
                        settlement.verdict = self.judge(file, stage, failure);
                    }
                }
            }
            tokio::select! {
                () = self.inner.clock.sleep(SETTLE_AGAIN) => {}
                () = self.identity.lost.cancelled() => return None,
                () = self.inner.give_back.cancelled() => return None,
            }
        }
    }
}
