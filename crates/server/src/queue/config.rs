//! How this process works on the queue.

use std::time::Duration;

use landfall_core::lifecycle::Stage;
use landfall_core::retry::RetryPolicy;
use landfall_core::service::Service;

use super::breaker::BreakerConfig;
use super::limits::RateLimits;
use crate::process::liveness::{Description, LivenessConfig};

#[derive(Debug, Clone)]
pub struct QueueConfig {
    /// The stages that this process works at, each with how many files at once and how long one may take.
    pub stages: Vec<StageConfig>,
    pub retry: RetryPolicy,
    pub limits: RateLimits,
    pub breaker: BreakerConfig,
    /// How long a file may make no progress before it is called stale.
    pub staleness: Duration,
    pub liveness: LivenessConfig,
    pub poll_interval: Duration,
    pub shutdown_grace: Duration,
}

impl QueueConfig {
    /// The longest that a file waits for its next attempt, with time to spare: jitter adds a fifth to a delay.
    pub fn longest_wait(&self) -> Duration {
        (self.retry.max_delay * 2).max(self.breaker.timeout * 2)
    }
}

#[derive(Debug, Clone, Copy)]
pub struct StageConfig {
    pub stage: Stage,
    pub concurrency: usize,
    pub timeout: Duration,
    /// The services that it needs and that may be down.
    pub services: &'static [Service],
    /// Whether it has a rate limit.
    pub is_limited: bool,
}

/// The services that an installation may have or not have.
#[derive(Debug, Clone, Copy)]
pub struct OptionalServices {
    pub scanner: bool,
    pub gateway: bool,
    /// Whether a service computes the embeddings, and not a model in this process.
    pub embeddings: bool,
}

impl OptionalServices {
    /// The services that a stage needs.
    pub fn of_stage(self, stage: Stage) -> &'static [Service] {
        match stage {
            Stage::Scan => &[Service::Scanner, Service::Storage],
            Stage::Extract if self.gateway => &[Service::Gateway, Service::Storage],
            Stage::Extract => &[Service::Storage],
            Stage::Embed if self.embeddings => &[Service::Embeddings],
            Stage::Chunk | Stage::Embed => &[],
        }
    }

    /// Whether a worker can work at a stage. Without a scanner, a file that waits for a scan keeps waiting.
    pub fn allow(self, stage: Stage) -> bool {
        self.scanner || stage != Stage::Scan
    }

    /// The stage of a file that was just uploaded.
    pub fn first_stage(self) -> Stage {
        if self.scanner { Stage::Scan } else { Stage::Extract }
    }
}

/// How a process that works at these stages is described to the other processes.
pub fn describe(name: String, stages: &[StageConfig]) -> Description {
    let names: Vec<&str> = stages.iter().map(|stage| stage.stage.name()).collect();
    let services = stages
        .iter()
        .flat_map(|stage| stage.services.iter().map(|service| format!("{}:{}", stage.stage, service.name())));
    Description { name, stages: names.join(","), services: services.collect::<Vec<String>>().join(",") }
}

impl StageConfig {
    /// Whether a file may come directly from the previous stage. If something may block this stage, the file goes
    /// through the queue, where a claim checks for that.
    pub fn takes_carried_files(&self) -> bool {
        !self.calls_out() && !self.is_limited
    }

    /// Whether it calls an external service.
    pub fn calls_out(&self) -> bool {
        self.services.iter().any(|service| *service != Service::Storage)
    }
}
