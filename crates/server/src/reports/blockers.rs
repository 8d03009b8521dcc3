//! Why files do not move: what holds up how many of them, since when, and what would help.
//!
//! A file in the queue is counted under the first cause that applies to it, in the order in which a claim would meet them
//! (`queue/waiting.rs` tells the same of one file). The numbers come from the totals; what is counted row by row is not at
//! rest, and is counted up to a limit.

use std::collections::BTreeMap;

use super::dashboard::MAX_USERS;
use crate::queue::breaker::Circuit;
use crate::queue::circuits;
use crate::queue::limits::{self, RateLimits};
use crate::queue::pause::{self, Paused};
use crate::queue::waiting::Obstacles;
use crate::records::files::blocked::{self, NotDue, NotDueCount};
use crate::records::files::{held, queue};
use crate::records::totals::{self, Distribution};
use crate::recovery::stuck_files::detection::Detection;
use landfall_api::blockers::{Blocker, BlockerReport, StageLoad, TenantLoad};
use landfall_core::caller::Reach;
use landfall_core::clock::Time;
use landfall_core::lifecycle::{Stage, Status};
use landfall_core::service::Service;
use landfall_core::states::{BlockerKind, CircuitState, Remedy};
use landfall_store::Error;
use landfall_store::Tx;

/// Files that are counted row by row are counted up to this number.
const MAX_COUNTED: i64 = 100_000;
/// Tenants that are listed.
const TENANTS: usize = 20;

/// What the report is about, and for whom.
pub struct Wanted<'a> {
    pub reach: Reach,
    pub is_operator: bool,
    pub detection: &'a Detection,
    pub limits: &'a RateLimits,
    pub first_stage: Stage,
    pub now: Time,
}

/// Must run in a snapshot.
pub async fn load(tx: &mut Tx, wanted: &Wanted<'_>) -> Result<BlockerReport, Error> {
    let (reach, now) = (&wanted.reach, wanted.now);
    let furthest = wanted.detection.furthest(now);
    let report = Report {
        obstacles: Obstacles::load(tx, None, now).await?,
        paused: pause::all(tx).await?,
        distribution: Distribution::load(tx, reach).await?,
        not_due: blocked::not_due(tx, reach, furthest, MAX_COUNTED, now).await?,
        oldest: queue::oldest_by_stage(tx, reach, MAX_USERS).await?,
        is_operator: wanted.is_operator,
    };
    let mut blockers = Vec::new();
    for stage in Stage::ALL.into_iter().filter(|stage| report.distribution.waiting(*stage) > 0) {
        if !report.add_blocked_stage(stage, &mut blockers) {
            let limited = user_limits(tx, wanted, stage).await?;
            report.add_waiting(stage, limited, &mut blockers);
        }
    }
    add_stuck(tx, wanted, &mut blockers).await?;
    add_uploads(tx, wanted, &report.distribution, &mut blockers).await?;
    blockers.sort_by_key(|blocker| (blocker.kind, blocker.stage));
    let shown = |stage: &Stage| *stage >= wanted.first_stage || report.distribution.waiting(*stage) > 0;
    Ok(BlockerReport {
        blockers,
        stages: Stage::ALL.into_iter().filter(shown).map(|stage| report.stage(stage)).collect(),
        tenants: if *reach == Reach::All { tenants(tx).await? } else { Vec::new() },
    })
}

struct Report {
    obstacles: Obstacles,
    paused: Vec<Paused>,
    distribution: Distribution,
    not_due: Vec<NotDueCount>,
    oldest: BTreeMap<Stage, Time>,
    is_operator: bool,
}

/// Files of users whose rate is limited, and when the first of them may go on.
struct Limited {
    files: i64,
    until: Option<Time>,
}

impl Report {
    fn count(&self, stage: Stage, why: NotDue) -> Option<&NotDueCount> {
        self.not_due.iter().find(|count| (count.stage, count.why) == (stage, why))
    }

    fn files(&self, stage: Stage, why: NotDue) -> i64 {
        self.count(stage, why).map_or(0, |count| count.files)
    }

    fn stage(&self, stage: Stage) -> StageLoad {
        let retrying = self.files(stage, NotDue::Retry);
        StageLoad {
            stage,
            waiting: (self.distribution.waiting(stage) - retrying).max(0),
            retrying,
            running: self.distribution.running(stage),
            oldest_at: self.oldest.get(&stage).copied(),
            workers: i64::try_from(self.obstacles.workers_at(stage)).unwrap_or(i64::MAX),
        }
    }

    /// What holds up all files of a stage. Returns whether something does.
    fn add_blocked_stage(&self, stage: Stage, blockers: &mut Vec<Blocker>) -> bool {
        let not_due = self.not_due.iter().filter(|count| count.stage == stage).map(|count| count.oldest_at);
        let all = Blocker {
            files: self.distribution.waiting(stage),
            oldest_at: not_due.chain(self.oldest.get(&stage).copied()).min(),
            is_allowed: self.is_operator,
            ..blocker(BlockerKind::Paused, Some(stage))
        };
        if let Some(paused) = self.paused.iter().find(|paused| paused.stage == stage.name()) {
            blockers.push(Blocker {
                since: Some(paused.at),
                by: self.is_operator.then(|| paused.by.clone()),
                message: format!(
                    "The {stage} stage is paused; its files continue when an operator resumes it."
                ),
                remedy: Some(Remedy::ResumeStage),
                ..all
            });
            return true;
        }
        if !self.obstacles.someone_works_at(stage) {
            blockers.push(Blocker {
                kind: BlockerKind::NoWorkers,
                message: format!(
                    "No process runs the {stage} stage; its files continue when the operator starts one."
                ),
                remedy: Some(Remedy::StartWorker),
                ..all
            });
            return true;
        }
        let before = blockers.len();
        let down = self.obstacles.circuits_before(stage);
        blockers.extend(down.map(|(service, circuit)| self.circuit(service, circuit, all.clone())));
        blockers.len() > before
    }

    fn circuit(&self, service: Service, circuit: &Circuit, all: Blocker) -> Blocker {
        let title = service.title();
        let until = circuit.until.filter(|_| circuit.state == CircuitState::Open);
        let said = circuit.last_error.clone();
        let (message, remedy) = if until.is_some() {
            let message = format!(
                "Files wait for {title}, which is down; they continue by themselves when it is back, and an operator can \
                 have it tried at once."
            );
            (message, Remedy::ProbeCircuit)
        } else {
            let message = format!(
                "Files wait for {title}, which was down and is being tried; they continue by themselves when it works."
            );
            (message, Remedy::Wait)
        };
        Blocker {
            kind: BlockerKind::Circuit,
            service: Some(service),
            since: circuit.failing_since.or(circuit.changed_at),
            until,
            last_error: said.map(|said| circuits::last_error(service, said, self.is_operator)),
            message,
            remedy: Some(remedy),
            is_allowed: self.is_operator || remedy == Remedy::Wait,
            ..all
        }
    }

    /// What the files of a stage wait for at which nothing is wrong.
    fn add_waiting(&self, stage: Stage, limited: Limited, blockers: &mut Vec<Blocker>) {
        let wait = |kind, files, message: String| Blocker {
            files,
            message,
            remedy: Some(Remedy::Wait),
            ..blocker(kind, Some(stage))
        };
        if let Some(alone) = self.count(stage, NotDue::Alone) {
            let message = "Workers died while they worked on these files; each is tried alone, by itself, when a worker has \
                           nothing else to do.";
            let oldest_at = Some(alone.oldest_at);
            blockers
                .push(Blocker { oldest_at, ..wait(BlockerKind::Isolation, alone.files, message.to_owned()) });
        }
        if let Some(retry) = self.count(stage, NotDue::Retry) {
            let message =
                "The last attempt at these files failed; Landfall tries them again by itself.".to_owned();
            blockers.push(Blocker {
                oldest_at: Some(retry.oldest_at),
                until: Some(retry.next_at),
                ..wait(BlockerKind::Retry, retry.files, message)
            });
        }
        let set_apart = self.files(stage, NotDue::Alone) + self.files(stage, NotDue::Retry);
        let due = self.distribution.waiting(stage) - set_apart;
        let oldest_at = self.oldest.get(&stage).copied();
        if let Some(until) = self.obstacles.limited_until(stage) {
            let message = format!(
                "Files at the {stage} stage are limited in their rate; they begin by themselves when their turn comes."
            );
            let limit = wait(BlockerKind::RateLimit, due, message);
            blockers.extend((due > 0).then_some(Blocker { oldest_at, until: Some(until), ..limit }));
            return;
        }
        let of_limited = limited.files.min(due);
        if of_limited > 0 {
            let message = "The files of a user are limited in their rate; they begin by themselves when their turn comes.";
            let limit = wait(BlockerKind::RateLimit, of_limited, message.to_owned());
            blockers.push(Blocker { oldest_at, until: limited.until, ..limit });
        }
        if due > of_limited {
            let message = format!(
                "All workers of the {stage} stage are busy; its files begin by themselves, and sooner with more workers."
            );
            blockers.push(Blocker { oldest_at, ..wait(BlockerKind::Worker, due - of_limited, message) });
        }
    }
}

fn blocker(kind: BlockerKind, stage: Option<Stage>) -> Blocker {
    Blocker {
        kind,
        stage,
        service: None,
        files: 0,
        oldest_at: None,
        since: None,
        until: None,
        last_error: None,
        by: None,
        message: String::new(),
        remedy: None,
        is_allowed: true,
    }
}

/// The files at a stage of users whose next file may not begin yet.
async fn user_limits(tx: &mut Tx, wanted: &Wanted<'_>, stage: Stage) -> Result<Limited, Error> {
    let mut limited = Limited { files: 0, until: None };
    if wanted.limits.of_users_at(stage).is_none() {
        return Ok(limited);
    }
    let users = totals::users_at(tx, &wanted.reach, stage, MAX_USERS).await?;
    let names: Vec<_> = users.iter().map(|(user, _)| user.clone()).collect();
    let blocked = limits::blocked_users(tx, &names, wanted.now).await?;
    for (user, files) in users {
        if let Some(until) = blocked.get(&user) {
            limited.files += files;
            limited.until = limited.until.into_iter().chain([*until]).min();
        }
    }
    Ok(limited)
}

async fn add_stuck(tx: &mut Tx, wanted: &Wanted<'_>, blockers: &mut Vec<Blocker>) -> Result<(), Error> {
    let (files, oldest_at) = wanted.detection.count_and_oldest(tx, &wanted.reach, wanted.now).await?;
    let stuck = Blocker {
        files,
        oldest_at,
        message: "These files are stuck; release them now, or the next recovery does it by itself."
            .to_owned(),
        remedy: Some(Remedy::ReleaseStuck),
        ..blocker(BlockerKind::Stuck, None)
    };
    blockers.extend((files > 0).then_some(stuck));
    Ok(())
}

async fn add_uploads(
    tx: &mut Tx,
    wanted: &Wanted<'_>,
    distribution: &Distribution,
    blockers: &mut Vec<Blocker>,
) -> Result<(), Error> {
    let files = distribution.count(Status::Registered) + distribution.count(Status::Uploaded);
    if files > 0 {
        let message = "The bytes of these files are not here or not confirmed; upload them again if the upload was broken off, \
                       and what never arrives is given up.";
        blockers.push(Blocker {
            files,
            oldest_at: blocked::oldest_upload(tx, &wanted.reach, MAX_COUNTED).await?,
            message: message.to_owned(),
            remedy: Some(Remedy::UploadAgain),
            // Nobody else has the bytes.
            is_allowed: matches!(wanted.reach, Reach::User(_)),
            ..blocker(BlockerKind::Upload, None)
        });
    }
    Ok(())
}

/// The tenants with the most files in the queue.
async fn tenants(tx: &mut Tx) -> Result<Vec<TenantLoad>, Error> {
    let running: BTreeMap<String, i64> = held::count_by_tenant(tx).await?.into_iter().collect();
    let mut tenants = Vec::new();
    for (tenant_id, files) in totals::busiest_tenants(tx, TENANTS).await? {
        let running = running.get(&tenant_id).copied().unwrap_or(0);
        let oldest = queue::oldest_by_stage(tx, &Reach::Tenant(tenant_id.clone()), MAX_USERS).await?;
        let oldest_at = oldest.into_values().min();
        tenants.push(TenantLoad { tenant_id, waiting: (files - running).max(0), running, oldest_at });
    }
    Ok(tenants)
}
