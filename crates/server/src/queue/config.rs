//! How this process works at the queue.

use std::time::Duration;

use landfall_core::lifecycle::Stage;
use landfall_core::retry::RetryPolicy;
use landfall_core::service::Service;

use super::breaker::BreakerConfig;
use super::limits::RateLimits;

#[derive(Debug, Clone)]
pub struct QueueConfig {
    /// The stages that this process works at, each with how many files at once and how long one may take.
    pub stages: Vec<StageConfig>,
    pub retry: RetryPolicy,
    pub limits: RateLimits,
    pub breaker: BreakerConfig,
    /// How long a file may stand still before it is called stale.
    pub staleness: Duration,
    pub heartbeat_interval: Duration,
    pub heartbeat_expiry: Duration,
    /// How often the locks of other processes are looked at, which is how soon a killed one is noticed.
    pub lock_check_interval: Duration,
    pub poll_interval: Duration,
    pub shutdown_grace: Duration,
}

#[derive(Debug, Clone, Copy)]
pub struct StageConfig {
    pub stage: Stage,
    pub concurrency: usize,
    pub timeout: Duration,
    /// What it needs that may be down.
    pub services: &'static [Service],
    /// Whether it may begin only so many files in some time.
    pub is_limited: bool,
}

impl StageConfig {
    /// Whether a file may come straight from the stage before. Where something may hold it up, it comes by the queue,
    /// which knows of that.
    pub fn takes_carried_files(&self) -> bool {
        !self.calls_out() && !self.is_limited
    }

    /// Whether it works by asking a service of somebody else's.
    pub fn calls_out(&self) -> bool {
        self.services.iter().any(|service| *service != Service::Storage)
    }
}
