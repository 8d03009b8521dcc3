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
use landfall_core::clock::Time;
use landfall_core::lifecycle::{Stage, Status};
use landfall_core::service::Service;
use landfall_core::states::{CircuitState, WaitingFor};
use landfall_store::Error;
use landfall_store::Tx;

/// Positions in the queue are counted up to this limit. A file further back has no position.
const MAX_COUNTED: i64 = 1_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    pub what: WaitingFor,
    pub message: String,
}

impl Waiting {
    fn new(what: WaitingFor, message: impl Into<String>) -> Self {
        Self { what, message: message.into() }
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
    /// Loads what may block files of this user. An empty user matches no user's rate limit.
    pub async fn load(tx: &mut Tx, user: &str, now: Time) -> Result<Self, Error> {
        let workers = workers::names(tx).await?;
        let paused = pause::stages(tx).await?;
        let mut circuits = Vec::new();
        let in_trouble = circuits::not_closed(tx).await?;
        for service in Service::ALL {
            if in_trouble.iter().any(|name| name == service.name()) {
                circuits.push((service, circuits::find(tx, service).await?));
            }
        }
        let buckets = limits::blocked_for(tx, user, now).await?;
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
            return Waiting::new(WaitingFor::Paused, format!("The {stage} stage is paused"));
        }
        if !self.someone_works_at(stage) {
            return Waiting::new(
                WaitingFor::NoWorkers,
                format!("No process is running that does the {stage} stage"),
            );
        }
        if let Some((service, circuit)) = self.circuit_before(stage) {
            return Waiting::new(WaitingFor::Circuit, self.down(service, circuit));
        }
        if let Some(at) = file.run_after.filter(|at| *at - self.now > TimeDelta::zero()) {
            return Waiting::new(WaitingFor::Retry, format!("Will be tried again at {}", at.to_rfc3339()));
        }
        let limit = |bucket: String, subject: &str| {
            let until = self.buckets.get(&bucket)?;
            let message =
                format!("{subject} limited in their rate; the next may begin at {}", until.to_rfc3339());
            Some(Waiting::new(WaitingFor::RateLimit, message))
        };
        limit(bucket_of_stage(stage), &format!("Files at the {stage} stage are"))
            .or_else(|| limit(bucket_of_user(&file.user_id), "Your files are"))
            .unwrap_or_else(|| {
                Waiting::new(WaitingFor::Worker, format!("Waits for a free worker at the {stage} stage"))
            })
    }

    fn down(&self, service: Service, circuit: &Circuit) -> String {
        let title = service.title();
        match (circuit.state, circuit.until) {
            (CircuitState::Open, Some(until)) if until > self.now => {
                format!("Waits for {title}, which is down; it is tried again at {}", until.to_rfc3339())
            }
            _ => format!("Waits for {title}, which was down and is being tried"),
        }
    }

    pub fn someone_works_at(&self, stage: Stage) -> bool {
        self.workers.iter().any(|worker| worker.stages.split(',').any(|name| name == stage.name()))
    }

    /// The service in trouble that this stage needs in at least one process.
    fn circuit_before(&self, stage: Stage) -> Option<(Service, &Circuit)> {
        self.circuits.iter().map(|(service, circuit)| (*service, circuit)).find(|(service, _)| {
            let need = format!("{stage}:{}", service.name());
            self.workers.iter().any(|worker| worker.services.split(',').any(|name| name == need))
        })
    }
}

/// The position of a file among its owner's files at its stage: 1 is the next. The owners themselves take turns.
pub async fn position(tx: &mut Tx, file: &File) -> Result<Option<i64>, Error> {
    if file.status != Status::Queued || !file.is_due {
        return Ok(None);
    }
    let before = queue::count_before(tx, file, MAX_COUNTED).await?;
    Ok((before < MAX_COUNTED).then_some(before + 1))
}
