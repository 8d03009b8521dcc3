//! What a file waits for, and its position in the queue.

use std::collections::HashMap;

use chrono::TimeDelta;

use super::breaker::Circuit;
use super::circuits;
use super::limits::{self, bucket_of_stage, bucket_of_user};
use super::pause;
use crate::process::workers::{self, WorkerName};
use crate::records::file::File;
use crate::records::files::queue;
use landfall_core::caller::TenantUser;
use landfall_core::clock::Time;
use landfall_core::lifecycle::{Stage, Status};
use landfall_core::service::Service;
use landfall_core::states::{CircuitState, WaitingFor};
use landfall_store::Error;
use landfall_store::Tx;
use uuid::Uuid;

/// Positions in the queue are counted up to this limit. A file further back has no position.
const MAX_COUNTED: i64 = 1_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    pub what: WaitingFor,
    /// Sentences for the owner, without the time, which the client shows as a countdown.
    pub message: String,
    /// When it may go on, where that is known.
    pub until: Option<Time>,
}

impl Waiting {
    fn new(what: WaitingFor, message: impl Into<String>) -> Self {
        Self { what, message: message.into(), until: None }
    }

    fn until(self, until: Option<Time>) -> Self {
        Self { until, ..self }
    }
}

/// Everything that can block files, as it is now.
pub struct Obstacles {
    now: Time,
    pub workers: Vec<WorkerName>,
    paused: Vec<Stage>,
    circuits: Vec<(Service, Circuit)>,
    buckets: HashMap<String, Time>,
}

impl Obstacles {
    /// Of files that nothing can block.
    pub fn none(now: Time) -> Self {
        Self { now, workers: Vec::new(), paused: Vec::new(), circuits: Vec::new(), buckets: HashMap::new() }
    }

    /// Loads what may block files: of this user, or all but the rate limits of users.
    pub async fn load(tx: &mut Tx, user: Option<&TenantUser>, now: Time) -> Result<Self, Error> {
        let workers = workers::names(tx).await?;
        let paused = pause::stages(tx).await?;
        let mut circuits = Vec::new();
        for (service, _) in circuits::not_closed(tx).await? {
            circuits.push((service, circuits::find(tx, service).await?));
        }
        let buckets = match user {
            Some(user) => limits::blocked_for(tx, user, now).await?,
            None => limits::blocked_stages(tx, now).await?,
        };
        Ok(Self { now, workers, paused, circuits, buckets: buckets.into_iter().collect() })
    }

    /// What this file waits for; `None` if it has ended or is being worked on.
    pub fn before(&self, file: &File) -> Option<Waiting> {
        match file.status {
            Status::Registered => Some(Waiting::new(WaitingFor::Upload, "The bytes have not arrived yet")),
            Status::Uploaded => {
                Some(Waiting::new(WaitingFor::Upload, "The bytes are here; the upload is not confirmed yet"))
            }
            Status::Queued => Some(self.in_queue(file)),
            _ => None,
        }
    }

    fn in_queue(&self, file: &File) -> Waiting {
        let stage = file.next_stage;
        if self.paused.contains(&stage) {
            let message =
                format!("The {stage} stage is paused. It continues when an administrator resumes the stage");
            return Waiting::new(WaitingFor::Paused, message);
        }
        if !self.someone_works_at(stage) {
            return Waiting::new(
                WaitingFor::NoWorkers,
                format!(
                    "No process is running that does the {stage} stage. It continues when the operator starts one"
                ),
            );
        }
        if let Some((service, circuit)) = self.circuit_before(stage) {
            let until =
                circuit.until.filter(|until| circuit.state == CircuitState::Open && *until > self.now);
            return Waiting::new(WaitingFor::Circuit, down(service, circuit, until)).until(until);
        }
        if file.is_alone {
            return Waiting::new(
                WaitingFor::Isolation,
                "Workers died while they worked on this file. It continues by itself when a worker has nothing else to do",
            );
        }
        if file.archive_batch.is_some() && stage == Stage::Extract && file.error_code.is_none() {
            return Waiting::new(
                WaitingFor::Members,
                "Its files are being read, each as a file of its own. It is ready when they have ended",
            );
        }
        if let Some(at) = file.run_after.filter(|at| *at - self.now > TimeDelta::zero()) {
            let message = "Its last attempt failed. Landfall tries it again by itself";
            return Waiting::new(WaitingFor::Retry, message).until(Some(at));
        }
        let limit = |bucket: String, subject: &str| {
            let until = self.buckets.get(&bucket)?;
            let message = format!("{subject} limited in their rate. It begins by itself when its turn comes");
            Some(Waiting::new(WaitingFor::RateLimit, message).until(Some(*until)))
        };
        limit(bucket_of_stage(stage), &format!("Files at the {stage} stage are"))
            .or_else(|| limit(bucket_of_user(&file.tenant_user()), "Your files are"))
            .unwrap_or_else(|| {
                Waiting::new(WaitingFor::Worker, format!("Waits for a free worker at the {stage} stage"))
            })
    }

    pub fn someone_works_at(&self, stage: Stage) -> bool {
        self.workers_at(stage) > 0
    }

    /// How many processes work at a stage.
    pub fn workers_at(&self, stage: Stage) -> usize {
        let works = |worker: &&WorkerName| worker.stages.split(',').any(|name| name == stage.name());
        self.workers.iter().filter(works).count()
    }

    /// Until when the rate limit of a stage blocks its files.
    pub fn limited_until(&self, stage: Stage) -> Option<Time> {
        self.buckets.get(&bucket_of_stage(stage)).copied()
    }

    /// The stages that wait for a service in trouble.
    pub fn blocked_stages(&self) -> Vec<(Stage, Service)> {
        let blocked = |stage: Stage| self.circuits_before(stage).map(move |(service, _)| (stage, service));
        Stage::ALL.into_iter().flat_map(blocked).collect()
    }

    /// The service in trouble that this stage needs in at least one process.
    fn circuit_before(&self, stage: Stage) -> Option<(Service, &Circuit)> {
        self.circuits_before(stage).next()
    }

    /// The services in trouble that this stage needs in at least one process.
    pub fn circuits_before(&self, stage: Stage) -> impl Iterator<Item = (Service, &Circuit)> {
        let of_this_stage = move |service: Service| {
            let need = format!("{stage}:{}", service.name());
            self.workers.iter().any(|worker| worker.services.split(',').any(|name| name == need))
        };
        let circuits = self.circuits.iter().map(|(service, circuit)| (*service, circuit));
        circuits.filter(move |(service, _)| of_this_stage(*service))
    }
}

fn down(service: Service, circuit: &Circuit, until: Option<Time>) -> String {
    let title = service.title();
    let error = circuit.last_error.as_ref().map(|error| format!(". Its last error: {error}"));
    let error = error.unwrap_or_default();
    if until.is_some() {
        format!("Waits for {title}, which is down. It continues by itself when the service is back{error}")
    } else {
        format!("Waits for {title}, which was down and is being tried. It continues by itself{error}")
    }
}

/// The positions of these files, each among its owner's files at its stage: 1 is the next. The owners themselves take turns.
pub async fn positions(tx: &mut Tx, files: &[File]) -> Result<HashMap<Uuid, i64>, Error> {
    let mut queues: HashMap<(TenantUser, Stage), Vec<&File>> = HashMap::new();
    for file in files.iter().filter(|file| file.status == Status::Queued && file.is_due) {
        queues.entry((file.tenant_user(), file.next_stage)).or_default().push(file);
    }
    let mut positions = HashMap::new();
    for ((user, stage), files) in queues {
        if let [file] = files[..] {
            positions.insert(file.id, queue::count_before(tx, file, MAX_COUNTED).await?);
        } else {
            // To count for each of them would read a long queue as often as the page has files.
            let turns = queue::first_turns(tx, &user, stage, MAX_COUNTED).await?;
            let before = |file: &File| turns.partition_point(|turn| *turn < (file.priority, file.run_after));
            let counted = |file: &&File| (file.id, i64::try_from(before(file)).unwrap_or(MAX_COUNTED));
            positions.extend(files.iter().map(counted));
        }
    }
    positions.retain(|_, before| *before < MAX_COUNTED);
    Ok(positions.into_iter().map(|(file, before)| (file, before + 1)).collect())
}
