//! Which stages this process works at, on how many files at once, and when a worker counts as dead.

use std::time::Duration;

use landfall_core::lifecycle::Stage;

use super::declared::{Declaration, group};
use super::reader::{Reader, milliseconds};
use super::{rate_limits, retries};
use crate::process::liveness::LivenessConfig;
use crate::queue::config::{OptionalServices, QueueConfig, StageConfig};

group! { "Workers and stages" {
    WORKER_STAGES = "scan,extract,chunk,embed": "The stages that this process works at; `scan` has an effect only if `CLAMD_ADDRESS` is set."
    SCAN_CONCURRENCY = "4": "How many files one process works on at the scan stage at the same time."
    SCAN_TIMEOUT_MS = "300000": "How long the scanner may be silent before it counts as down and the file waits."
    EXTRACT_CONCURRENCY = "8": "How many files one process works on at the extract stage at the same time."
    EXTRACT_TIMEOUT_MS = "300000": "How long extraction of one file may take, without OCR of its images, which may take six times as long."
    CHUNK_CONCURRENCY = "5": "How many files one process works on at the chunk stage at the same time."
    EMBED_CONCURRENCY = "5": "How many files one process works on at the embed stage at the same time."
    EMBED_TIMEOUT_MS = "120000": "How long one group of a file's chunks may take: 32 chunks for a model on this machine, `EMBEDDINGS_BATCH` for a service."
    POLL_INTERVAL_MS = "1000": "How often an idle worker polls the queue, in addition to being woken by signals."
    STALENESS_THRESHOLD_MS = "180000": "How long a file may make no progress before the API reports it as stale."
    HEARTBEAT_EXPIRY_MS = "20000": "How long a process may send no heartbeat before it counts as dead; it sends four in that time."
    SHUTDOWN_GRACE_MS = "25000": "How long claimed files may continue after SIGTERM before the worker releases them."
} }

/// Chunking is a computation on text of limited size. This stops one that does not end.
const CHUNK_TIMEOUT: Duration = Duration::from_mins(1);
const HEARTBEATS_BEFORE_EXPIRY: u32 = 4;
/// With less, a short delay of the database would look like the death of a process.
const MIN_HEARTBEAT_EXPIRY: Duration = Duration::from_secs(1);
const LOCK_CHECK_INTERVAL: Duration = Duration::from_millis(300);

pub(super) fn read(read: &mut Reader, services: OptionalServices) -> QueueConfig {
    let limits = rate_limits::read(read, services.first_stage());
    let heartbeat_expiry = read.with(HEARTBEAT_EXPIRY_MS, milliseconds);
    if heartbeat_expiry < MIN_HEARTBEAT_EXPIRY {
        read.complain(HEARTBEAT_EXPIRY_MS, &format!("at least {}", MIN_HEARTBEAT_EXPIRY.as_millis()));
    }
    QueueConfig {
        stages: read_stages(read, services, |stage| limits.of_stage(stage).is_some()),
        retry: retries::read_policy(read),
        limits,
        breaker: retries::read_breaker(read),
        staleness: read.with(STALENESS_THRESHOLD_MS, milliseconds),
        liveness: LivenessConfig {
            heartbeat_interval: heartbeat_expiry / HEARTBEATS_BEFORE_EXPIRY,
            heartbeat_expiry,
            lock_check_interval: LOCK_CHECK_INTERVAL,
        },
        poll_interval: read.with(POLL_INTERVAL_MS, milliseconds),
        shutdown_grace: read.with(SHUTDOWN_GRACE_MS, milliseconds),
    }
}

fn read_stages(
    read: &mut Reader,
    services: OptionalServices,
    is_limited: impl Fn(Stage) -> bool,
) -> Vec<StageConfig> {
    let wanted = read.with(WORKER_STAGES, stages);
    let mut stage = |stage: Stage, concurrency: Declaration, timeout: Option<Declaration>| StageConfig {
        stage,
        concurrency: read.at_least(concurrency, 1),
        timeout: timeout.map_or(CHUNK_TIMEOUT, |timeout| read.with(timeout, milliseconds)),
        services: services.of_stage(stage),
        is_limited: is_limited(stage),
    };
    // Read all before choosing, so that a bad value is reported whatever this process works at.
    let all = [
        stage(Stage::Scan, SCAN_CONCURRENCY, Some(SCAN_TIMEOUT_MS)),
        stage(Stage::Extract, EXTRACT_CONCURRENCY, Some(EXTRACT_TIMEOUT_MS)),
        stage(Stage::Chunk, CHUNK_CONCURRENCY, None),
        stage(Stage::Embed, EMBED_CONCURRENCY, Some(EMBED_TIMEOUT_MS)),
    ];
    let chosen: Vec<StageConfig> = all
        .into_iter()
        .filter(|config| wanted.contains(&config.stage) && services.allow(config.stage))
        .collect();
    if chosen.is_empty() {
        read.complain(WORKER_STAGES, "more than scan where CLAMD_ADDRESS is not set");
    }
    chosen
}

fn stages(text: &str) -> Result<Vec<Stage>, String> {
    text.split(',')
        .map(|name| name.trim().parse().ok())
        .collect::<Option<_>>()
        .ok_or_else(|| "a list of stages out of scan, extract, chunk, embed".to_owned())
}
