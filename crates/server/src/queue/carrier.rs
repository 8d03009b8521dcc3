//! One file in hand: carried through the stages.
//!
//! The worker hands the ending of a stage to the settler and begins the next one. A file is finished, fails or goes back to
//! the queue only when its last ending is written, and with it all before.

use std::collections::VecDeque;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::breaker::Call;
use super::gates::CallRounds;
use super::isolation::NoteBegun;
use super::others;
use super::room::Place;
use super::settle::{EndWait, Settlement, Verdict};
use super::settler::Receipt;
use super::worker::{Inner, WRITE_AGAIN};
use crate::process::liveness::Identity;
use crate::records::file::File;
use crate::stages::{Job, Output};
use crate::telemetry::{metrics, spans, traces};
use landfall_core::clock::{Stopwatch, to_delta};
use landfall_core::failure::{Code, Contact, Failure, Retry};
use landfall_core::lifecycle::Stage;
use landfall_core::service::{Report, Service};

/// One file in hand, from its claim until this worker no longer holds it.
pub(super) struct Carrier {
    pub(super) inner: Arc<Inner>,
    pub(super) identity: Identity,
    /// Its place among the files in hand at the stage it is at.
    pub(super) place: Place,
    pub(super) stop: CancellationToken,
    /// The rounds of the circuits in which its calls begin.
    pub(super) rounds: Arc<CallRounds>,
    /// Whether this worker works on nothing else.
    pub(super) alone: bool,
}

/// How long a file in hand waits for a slot before it is released.
const SLOT_TIMEOUT: Duration = Duration::from_secs(1);

/// Endings that were handed in and that are not written yet.
struct Unwritten {
    settlement: Settlement,
    /// While the settler has them.
    receipt: Option<Receipt>,
    /// Whether they may have been written although the settler got an error.
    is_uncertain: bool,
}

impl Unwritten {
    /// Adds the ending of the next stage, unless the others are being written.
    fn add(&mut self, next: &Settlement) -> bool {
        let added = self.receipt.as_ref().is_some_and(|receipt| receipt.add(next));
        if added {
            self.settlement = self.settlement.clone().then(next.clone());
        }
        added
    }
}

/// Why a stage was stopped before it ended.
#[derive(Clone, Copy)]
enum Interrupted {
    /// This worker no longer holds the file: write nothing.
    Abandon,
    /// Release the file.
    Release,
    /// An earlier ending cannot be written as it is: settle that first.
    Settle,
}

impl Carrier {
    pub(super) async fn carry(mut self, file: File) {
        let mut file = Arc::new(file);
        traces::waited(&file.traced());
        let mut carried: Option<Arc<Output>> = None;
        let mut unwritten: Option<Unwritten> = None;
        loop {
            let stage = file.next_stage;
            let span = spans::attempt(&file.traced(), stage, self.inner.liveness.name());
            let work = self.work(&file, stage, carried.take(), &mut unwritten).instrument(span.clone());
            let Some((written, next_place)) = work.await else {
                spans::ended(&span, "lost", None);
                break;
            };
            let (outcome, code) = written.label();
            spans::ended(&span, outcome, code);
            drop(span);
            match (written, next_place, stage.next()) {
                (Verdict::Advance { output, carry: true }, Some(place), Some(next)) => {
                    self.inner.leave(std::mem::replace(&mut self.place, place));
                    carried = Some(output);
                    let file = Arc::make_mut(&mut file);
                    file.next_stage = next;
                    file.attempt = 1;
                    file.claimed_at = Some(self.inner.clock.now());
                    // The finished stage cleared the file of every suspicion, error and wait.
                    file.lost_workers = 0;
                    (file.error_at, file.error_code) = (None, None);
                    (file.waiting_since, file.waited_for, file.waits) = (None, None, 0);
                    if std::mem::take(&mut self.alone) {
                        self.inner.isolation.over(self.inner.clock.now());
                        self.inner.wake.poll_work();
                    }
                }
                _ => break,
            }
        }
        // Nothing of a file is under way that is not in hand any more.
        if let Some(mut receipt) = unwritten.and_then(|one| one.receipt) {
            drop(receipt.written().await);
        }
        let nothing_left = {
            let mut in_hand = self.inner.in_hand();
            in_hand.remove(&(file.id, file.claim.expect("a claimed file has a claim")));
            in_hand.is_empty()
        };
        if self.alone {
            self.inner.isolation.over(self.inner.clock.now());
        }
        self.inner.leave(self.place);
        if nothing_left {
            self.inner.wake.poll_work();
        }
    }

    /// One stage: the attempt and its ending. Returns the verdict and the file's place at the next stage; `None` if this
    /// worker no longer holds the file. The verdict is written, unless the worker goes on with the file at the next stage.
    async fn work(
        &self,
        file: &Arc<File>,
        stage: Stage,
        carried: Option<Arc<Output>>,
        unwritten: &mut Option<Unwritten>,
    ) -> Option<(Verdict, Option<Place>)> {
        let mut next_place = None;
        let ended = loop {
            match self.attempt(file, stage, carried.clone(), unwritten).await {
                Err(Interrupted::Settle) => match self.settle(file, unwritten.take(), None).await? {
                    Verdict::Advance { .. } => {}
                    verdict => return Some((verdict, None)),
                },
                Err(Interrupted::Abandon) => return None,
                Err(Interrupted::Release) => break None,
                Ok(ended) => break Some(ended),
            }
        };
        let (verdict, calls) = match ended {
            Some(Ok(Output::Waits { until, reason })) => {
                (Verdict::Wait { at: until, reason }, self.calls(file, None, false).await)
            }
            Some(Ok(output)) => {
                next_place = stage.next().and_then(|next| self.inner.room(next)?.try_enter(&file.tenant_id));
                let verdict = Verdict::Advance { output: Arc::new(output), carry: next_place.is_some() };
                (verdict, self.calls(file, None, false).await)
            }
            Some(Err(failure)) => {
                let verdict = self.judge(file, stage, file.attempt, failure.clone());
                let is_last = matches!(verdict, Verdict::DeadLetter { .. });
                (verdict, self.calls(file, Some(&failure), is_last).await)
            }
            None => (Verdict::Release, Vec::new()),
        };
        let settlement = Settlement {
            file: file.id,
            owner: file.owner(),
            claim: file.claim.expect("a claimed file has a claim"),
            finished_before: Vec::new(),
            stage,
            attempt: file.attempt,
            at: self.inner.clock.now(),
            verdict,
            calls,
        };
        let settled = if settlement.may_be_written_later() && !self.alone {
            self.hand_in(file, unwritten, settlement).instrument(spans::settle()).await?
        } else {
            self.settle(file, unwritten.take(), Some(settlement)).instrument(spans::settle()).await?
        };
        if matches!(settled, Verdict::Wait { .. }) {
            let end_wait = EndWait { file: file.id, now: self.inner.clock.now() };
            if let Err(error) = self.inner.db.write(end_wait).await {
                tracing::debug!(%error, "whether a wait is over could not be checked");
            }
        }
        Some((settled, next_place))
    }

    /// What the attempt says about the services that its stage needs. `is_last`: the file fails, unless the service is the
    /// cause.
    async fn calls(&self, file: &File, failure: Option<&Failure>, is_last: bool) -> Vec<Call> {
        let mut calls = Vec::new();
        let contact = failure.map_or(Contact::Reached, |failure| failure.contact);
        for service in self.place.room().config.services.iter().copied() {
            let report = failure.map_or(Some(Report::Up), |failure| failure.report(service));
            let Some(report) = report else { continue };
            let decides = is_last || contact == Contact::Unavailable || self.rounds.is_probe(service);
            let says_well = match report {
                Report::Down if decides => self.inner.work.says_well(service).await,
                _ => None,
            };
            // A failure that says of itself that the file only has to wait is none of the document.
            let had_document =
                contact == Contact::Reached && failure.is_some_and(|failure| failure.retry != Retry::Wait);
            let others_wait = match report {
                Report::Down if had_document && self.rounds.is_probe(service) => {
                    self.others_wait(file, service).await
                }
                _ => None,
            };
            calls.push(Call {
                service,
                report,
                file: file.id,
                round: self.rounds.of(service),
                last_failed_at: file
                    .error_at
                    .filter(|_| file.code().and_then(Code::service) == Some(service)),
                contact,
                had_document,
                others_wait,
                says_well,
                error: failure.map(|failure| failure.message.clone()),
            });
        }
        calls
    }

    /// Whether a file waits for this service that did not probe it lately; `None` if that cannot be read.
    async fn others_wait(&self, file: &File, service: Service) -> Option<bool> {
        let Inner { db, config, clock, .. } = &*self.inner;
        let wait = others::wait_for(db, service, file.id, config.breaker, clock.now()).await;
        wait.inspect_err(|error| tracing::debug!(%error, "whether other files wait could not be read")).ok()
    }

    /// Runs one stage as soon as there is a slot, within its timeout.
    async fn attempt(
        &self,
        file: &Arc<File>,
        stage: Stage,
        carried: Option<Arc<Output>>,
        unwritten: &mut Option<Unwritten>,
    ) -> Result<Result<Output, Failure>, Interrupted> {
        let room = self.place.room();
        let limit = room.config.timeout;
        let interrupted = async {
            tokio::select! {
                // The fence decides: the file is released if this worker still holds it; otherwise nothing changes.
                () = self.stop.cancelled() => Interrupted::Release,
                () = self.identity.lost.cancelled() => Interrupted::Abandon,
                () = self.inner.give_back.cancelled() => Interrupted::Release,
                interrupted = self.cannot_go_on(unwritten) => interrupted,
            }
        };
        tokio::pin!(interrupted);
        let waiting = room.tenants.wait(&file.tenant_id);
        let slot = tokio::select! {
            biased;
            slot = room.slot() => slot,
            interrupted = &mut interrupted => return Err(interrupted),
            // The stage has become slow. Another process may have a free slot.
            () = async { self.inner.clock.sleep(SLOT_TIMEOUT).await } => return Err(Interrupted::Release),
        };
        drop(waiting);
        let running = room.tenants.run(&file.tenant_id, self.stop.clone());
        tokio::select! {
            begins = self.note_beginning(file) => begins?,
            interrupted = &mut interrupted => return Err(interrupted),
        }
        let job = Job::new(file.clone(), stage, carried);
        // Tells work on its own thread that this task no longer waits for it.
        let _cancel_when_dropped = job.cancelled.clone().drop_guard();
        let began = Stopwatch::start();
        let work = AssertUnwindSafe(self.inner.work.run(&job)).catch_unwind();
        let ended = tokio::select! {
            biased;
            done = work => Ok(done.unwrap_or_else(|_| {
                Err(Failure::new(Code::Unknown, format!("The {stage} stage met an unexpected error")))
            })),
            () = async { self.out_of_time(limit, job.progress()).await } => {
                Ok(Err(ran_out_of_time(stage, room.config.services, limit)))
            }
            interrupted = interrupted => Err(interrupted),
        };
        let took = began.elapsed();
        room.took(took);
        let outcome = match &ended {
            Ok(Ok(_)) => "done",
            Ok(Err(_)) => "failed",
            Err(_) => "interrupted",
        };
        metrics::attempt(stage, outcome, took);
        drop((running, slot));
        ended
    }

    /// Notes that the work on a file begins that a worker has died with, before it begins.
    async fn note_beginning(&self, file: &File) -> Result<(), Interrupted> {
        if file.lost_workers == 0 {
            return Ok(());
        }
        let claim = file.claim.expect("a claimed file has a claim");
        match self.inner.db.write(NoteBegun { file: file.id, claim }).await {
            Ok(true) => Ok(()),
            // The fence decides whether it is released.
            Ok(false) => Err(Interrupted::Release),
            Err(error) => {
                tracing::warn!(%error, "the beginning of work on a file could not be noted");
                Err(Interrupted::Release)
            }
        }
    }

    /// Resolves when the work has made no progress for `limit`.
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

    fn judge(&self, file: &File, stage: Stage, attempt: i64, failure: Failure) -> Verdict {
        let attempt = u32::try_from(attempt).unwrap_or(u32::MAX);
        let waits = u32::try_from(file.waits).unwrap_or(u32::MAX);
        match self.inner.config.retry.delay(stage, attempt, waits, &failure, landfall_core::random::random())
        {
            Some(delay) => Verdict::RetryAt { failure, at: self.inner.clock.now() + to_delta(delay) },
            None => Verdict::DeadLetter { failure },
        }
    }

    /// Resolves if the worker cannot go on after what it handed in. What could not be written because the database was away
    /// is handed in again.
    async fn cannot_go_on(&self, unwritten: &mut Option<Unwritten>) -> Interrupted {
        while let Some(one) = unwritten {
            let Some(receipt) = &mut one.receipt else {
                self.inner.clock.sleep(WRITE_AGAIN).await;
                one.receipt = Some(self.inner.settler.hand_in(one.settlement.clone()).await);
                continue;
            };
            let written = receipt.written().await;
            one.receipt = None;
            match written {
                Ok(Some(_)) => *unwritten = None,
                Ok(None) if one.is_uncertain => return Interrupted::Settle,
                Ok(None) => {
                    *unwritten = None;
                    self.note_refusal();
                    return Interrupted::Abandon;
                }
                Err(error) => {
                    tracing::warn!(%error, "an ending could not be written");
                    one.is_uncertain = true;
                    if error.is_about_the_data() {
                        return Interrupted::Settle;
                    }
                }
            }
        }
        std::future::pending().await
    }

    fn note_refusal(&self) {
        self.inner.fenced_off.fetch_add(1, Ordering::Relaxed);
        tracing::info!("an ending came too late and changed nothing");
    }

    /// Gives the settler an ending that may be written later. Returns its verdict, or that of an earlier stage if the worker
    /// cannot go on after that; `None` if this worker no longer holds the file.
    async fn hand_in(
        &self,
        file: &File,
        unwritten: &mut Option<Unwritten>,
        settlement: Settlement,
    ) -> Option<Verdict> {
        if let Some(mut earlier) = unwritten.take() {
            if earlier.add(&settlement) {
                *unwritten = Some(earlier);
                return Some(settlement.verdict);
            }
            let written = self.settle(file, Some(earlier), None).await?;
            if !matches!(written, Verdict::Advance { .. }) {
                return Some(written);
            }
        }
        let verdict = settlement.verdict.clone();
        let receipt = self.inner.settler.hand_in(settlement.clone()).await;
        *unwritten = Some(Unwritten { settlement, receipt: Some(receipt), is_uncertain: false });
        Some(verdict)
    }

    /// Writes the endings of a file, and retries until the database is back. Returns the last verdict that was written, or
    /// `None` if this worker no longer held the file.
    async fn settle(
        &self,
        file: &File,
        unwritten: Option<Unwritten>,
        last: Option<Settlement>,
    ) -> Option<Verdict> {
        let mut left: VecDeque<Settlement> = last.into_iter().collect();
        let (mut receipt, mut uncertain) = (None, false);
        if let Some(mut earlier) = unwritten {
            if left.front().is_some_and(|last| earlier.add(last)) {
                left.clear();
            }
            (receipt, uncertain) = (earlier.receipt, earlier.is_uncertain);
            left.push_front(earlier.settlement);
        }
        let mut written = None;
        while let Some(mut settlement) = left.pop_front() {
            let result = match receipt.take() {
                Some(mut receipt) => receipt.written().await,
                None => self.inner.settler.settle(settlement.clone()).await,
            };
            match result {
                Ok(Some(_)) => {
                    uncertain = false;
                    let goes_on = matches!(settlement.verdict, Verdict::Advance { .. });
                    written = Some(settlement.verdict);
                    if !goes_on {
                        break;
                    }
                    continue;
                }
                Ok(None) if uncertain => {
                    // Either another worker has the file, or the earlier write succeeded despite its error.
                    self.inner.release_for_sure(&self.identity, settlement.claim, Some(file.id)).await;
                    return None;
                }
                Ok(None) => {
                    self.note_refusal();
                    return None;
                }
                Err(error) => {
                    tracing::warn!(%error, "an ending could not be written");
                    uncertain = true;
                    // The database cannot store an output itself. After any other error the write is retried with the
                    // same outputs.
                    if error.is_about_the_data() {
                        if !settlement.finished_before.is_empty() {
                            // Only the stage whose output it is fails.
                            settlement.apart().into_iter().rev().for_each(|one| left.push_front(one));
                            continue;
                        }
                        if let Verdict::Advance { .. } = settlement.verdict {
                            let message = "What the stage produced could not be stored";
                            let failure = Failure::new(Code::DbError, message);
                            settlement.verdict =
                                self.judge(file, settlement.stage, settlement.attempt, failure);
                        }
                    }
                    left.push_front(settlement);
                }
            }
            tokio::select! {
                () = self.inner.clock.sleep(WRITE_AGAIN) => {}
                () = self.identity.lost.cancelled() => return None,
                () = self.inner.give_back.cancelled() => return None,
            }
        }
        written
    }
}

fn ran_out_of_time(stage: Stage, services: &[Service], limit: Duration) -> Failure {
    let limit = limit.as_secs_f64();
    match stage {
        // The stage only waits for the gateway, so that is what took too long, and its circuit must learn of it.
        Stage::Extract if services.contains(&Service::Gateway) => Failure::new(
            Code::GatewayTimeout,
            format!("The extraction service took longer than the stage's limit of {limit} s"),
        ),
        // This stage only waits for the scanner. A scanner that hangs is treated as unavailable, because the file is
        // not the cause.
        Stage::Scan => Failure::new(
            Code::ScannerUnavailable,
            format!("The virus scanner did not answer within its limit of {limit} s"),
        ),
        Stage::Embed if services.contains(&Service::Embeddings) => Failure::new(
            Code::EmbedError,
            format!("The embedding service took longer than the stage's limit of {limit} s"),
        ),
        Stage::Extract | Stage::Chunk | Stage::Embed => Failure::new(
            Code::StageTimeout,
            format!("The {stage} stage took longer than its limit of {limit} s"),
        ),
    }
}
