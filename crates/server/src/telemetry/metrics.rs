//! Every metric of `/metrics`: its name, what it means, and the one function that counts it.
//!
//! Counters and histograms belong to this process, are counted as it works, and are summed over the processes by
//! the scraper. Gauges that are facts of the database are read on request (`scrape.rs`), so every process returns
//! the same.
//!
//! Labels have few values. A path is the route that matched and never the requested path. The first [`MAX_TENANTS`]
//! tenants of a process have a label of their own, and all others share the label `other`.

use std::collections::HashSet;
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use ::metrics::{counter, describe_counter, describe_gauge, describe_histogram, histogram};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

use super::durations;
use landfall_core::failure::Class;
use landfall_core::lifecycle::Stage;
use landfall_core::refusal::RefusalCode;
use landfall_core::warning::WarningCode;
use landfall_store::Error;

/// Tenants that have a label of their own.
pub const MAX_TENANTS: usize = 100;
/// How often measured values are moved into their buckets, so that they take no memory if nothing scrapes them.
const UPKEEP: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    Counter,
    Gauge,
    /// With the upper bounds of its buckets.
    Histogram(&'static [f64]),
}

#[derive(Debug, Clone, Copy)]
pub struct Metric {
    pub name: &'static str,
    pub kind: Kind,
    pub help: &'static str,
}

const REQUESTS: &[f64] =
    &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];
const STAGES: &[f64] = &[0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];
const WAITS: &[f64] =
    &[0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3_600.0, 14_400.0, 86_400.0];

macro_rules! metrics {
    ($($constant:ident $name:literal $kind:expr, $help:literal;)*) => {
        $(pub const $constant: &str = $name;)*

        /// All of them.
        pub const ALL: &[Metric] = &[$(Metric { name: $name, kind: $kind, help: $help }),*];
    };
}

metrics! {
    // Facts of the database and the storage, read on request.
    PIPELINE_STATUS "file_pipeline_status" Kind::Gauge, "Files in each state";
    QUEUE_DEPTH "landfall_queue_depth" Kind::Gauge, "Files that wait for a stage: for a worker, a service, or their next attempt";
    OLDEST_WAIT "landfall_queue_oldest_wait_seconds" Kind::Gauge, "How long the oldest file that a worker could claim has waited";
    STUCK_FILES "landfall_stuck_files" Kind::Gauge, "Files that are stuck";
    WORKERS "landfall_workers" Kind::Gauge, "Processes that run a stage";
    PAUSED "landfall_stage_paused" Kind::Gauge, "Whether an administrator paused a stage";
    CIRCUIT_STATE "landfall_circuit_state" Kind::Gauge, "Whether the circuit of a service is in a state";
    DETECTION_DURATION "stuck_file_detection_duration_seconds" Kind::Gauge, "How long the last detection of stuck files took";
    CLEANUP_DURATION "cleanup_execution_duration_seconds" Kind::Gauge, "How long the last clean-up took";
    JOB_ENDED "landfall_job_last_end_timestamp_seconds" Kind::Gauge, "When the last run of a job ended";
    JOB_ERRORS "landfall_job_last_errors" Kind::Gauge, "Errors of the last run of a job";
    JOB_OVERDUE "landfall_job_overdue_seconds" Kind::Gauge, "For how long a due job has not been started";
    UNCLEANED "landfall_cleanup_failures" Kind::Gauge, "Items that could not be cleaned up and are tried again";
    DAMAGED_FILES "landfall_damaged_files" Kind::Gauge, "Files whose stored bytes are missing, cannot be read, or are not those that were uploaded";
    FREE_DISK "landfall_free_disk_bytes" Kind::Gauge, "Free space on the fullest disk of the blobs and of a SQLite database";
    DATABASE_UP "landfall_database_up" Kind::Gauge, "Whether the database accepts writes";
    STORAGE_UP "landfall_storage_up" Kind::Gauge, "Whether the storage responds";
    BUILD_INFO "landfall_build_info" Kind::Gauge, "The running version, and its database";
    RESIDENT_MEMORY "process_resident_memory_bytes" Kind::Gauge, "Memory that this process uses";

    // What this process did.
    COMPLETED "landfall_files_completed_total" Kind::Counter, "Files that became ready";
    CONFIRM_TO_READY "landfall_confirm_to_ready_seconds" Kind::Histogram(durations::BOUNDS), "How long files took from their confirmation until they were ready";
    RETRIED_FILES "landfall_files_retried_total" Kind::Counter, "Failed or cancelled files that a user retried";
    RETRIED_FILES_COMPLETED "landfall_retried_files_completed_total" Kind::Counter, "Files that became ready after a user had retried them";
    FILE_WARNINGS "landfall_file_warnings_total" Kind::Counter, "Warnings about what is missing of files that became ready";
    DEAD_LETTERS "landfall_dead_letters_total" Kind::Counter, "Files that failed permanently";
    RETRIES "landfall_retries_total" Kind::Counter, "Attempts that failed and will be retried";
    STALLS "landfall_stalls_total" Kind::Counter, "Files whose worker was lost";
    ATTEMPTS "landfall_stage_duration_seconds" Kind::Histogram(STAGES), "How long a stage took for a file";
    QUEUE_WAIT "landfall_queue_wait_seconds" Kind::Histogram(WAITS), "How long files waited from their confirmation, or from a manual retry, until a worker claimed them";
    STUCK_RECOVERY "stuck_file_recovery_total" Kind::Counter, "Stuck files that were recovered or given up";
    ORPHAN_BLOBS "orphan_blobs_deleted_total" Kind::Counter, "Blobs removed because they belonged to no file";
    ABANDONED_UPLOADS "abandoned_uploads_deleted_total" Kind::Counter, "Uploads deleted because they were never finished";
    ORPHANED_FILES "resource_orphaned_files_cleaned_total" Kind::Counter, "Files deleted by the clean-up";
    QUOTA_REFUNDED "resource_quota_refunded_bytes_total" Kind::Counter, "Bytes of quota released for such files";
    CLEANUP_FAILURES "resource_cleanup_failures_total" Kind::Counter, "Failures of the clean-up";
    BLOBS_CHECKED "landfall_blobs_checked_total" Kind::Counter, "Blobs that were compared with their checksums";
    DAMAGED_BLOBS "landfall_damaged_blobs_found_total" Kind::Counter, "Blobs that were found to be damaged, by what is wrong";
    EVENT_LAG "landfall_event_lag_seconds" Kind::Gauge, "How long the oldest event that this process has not sent to its listeners has waited";
    CLOCK_SKEW "landfall_clock_skew_seconds" Kind::Gauge, "By how much the clock of this machine is ahead of the database's; only with PostgreSQL";
    AUDIT_DROPPED "landfall_audit_entries_dropped_total" Kind::Counter, "Refused requests that are not in the audit log, because their address had too many";
    AUTH_FAILURES "landfall_auth_failures_total" Kind::Counter, "Requests whose token or ticket was missing, wrong or expired";
    CONNECTIONS_REFUSED "landfall_connections_refused_total" Kind::Counter, "Connections or requests that were refused because the server, or their address, had too many";
    CONNECTIONS_STALLED "landfall_connections_stalled_total" Kind::Counter, "Connections that were closed because the client did not read";
    HTTP_DURATION "landfall_http_request_duration_seconds" Kind::Histogram(REQUESTS), "How long requests took";
    DASHBOARD_DURATION "dashboard_request_duration_seconds" Kind::Histogram(REQUESTS), "How long the dashboard's requests took";
}

const CLASSES: [Class; 7] = [
    Class::Timeout,
    Class::NetworkError,
    Class::DbError,
    Class::LlmError,
    Class::StorageError,
    Class::DocumentError,
    Class::Unknown,
];
const RE_ENQUEUED: &str = "reEnqueued";
const PERMANENTLY_FAILED: &str = "permanentlyFailed";

pub fn find(name: &str) -> Option<&'static Metric> {
    ALL.iter().find(|metric| metric.name == name)
}

/// The recorder of this process, shared by all that runs in it.
pub fn recorder() -> &'static PrometheusHandle {
    static HANDLE: OnceLock<PrometheusHandle> = OnceLock::new();
    HANDLE.get_or_init(|| {
        let mut builder = PrometheusBuilder::new();
        for metric in ALL {
            if let Kind::Histogram(buckets) = metric.kind {
                builder = builder
                    .set_buckets_for_metric(Matcher::Full(metric.name.to_owned()), buckets)
                    .expect("a histogram has buckets");
            }
        }
        let recorder = builder.build_recorder();
        let handle = recorder.handle();
        // A program that has its own recorder keeps it.
        if ::metrics::set_global_recorder(recorder).is_err() {
            tracing::warn!("this process already has another metrics recorder");
        }
        describe();
        start_at_zero();
        handle
    })
}

fn describe() {
    for Metric { name, kind, help } in ALL.iter().copied() {
        match kind {
            Kind::Counter => describe_counter!(name, help),
            Kind::Gauge => describe_gauge!(name, help),
            Kind::Histogram(_) => describe_histogram!(name, help),
        }
    }
}

/// An increase from zero is only visible if the zero was scraped first.
fn start_at_zero() {
    for stage in Stage::ALL {
        for class in CLASSES {
            counter!(DEAD_LETTERS, "stage" => stage.name(), "class" => class.name()).absolute(0);
            counter!(RETRIES, "stage" => stage.name(), "class" => class.name()).absolute(0);
        }
        counter!(STALLS, "stage" => stage.name()).absolute(0);
    }
    for code in RefusalCode::ALL.iter().filter(|code| code.status() == 401) {
        counter!(AUTH_FAILURES, "code" => code.code()).absolute(0);
    }
    for reason in ["address", "full"] {
        counter!(CONNECTIONS_REFUSED, "reason" => reason).absolute(0);
    }
    counter!(CONNECTIONS_STALLED).absolute(0);
    counter!(AUDIT_DROPPED).absolute(0);
    for action in [RE_ENQUEUED, PERMANENTLY_FAILED] {
        counter!(STUCK_RECOVERY, "action" => action).absolute(0);
    }
    for kind in ["storage", "database", "internal"] {
        counter!(CLEANUP_FAILURES, "error_type" => kind).absolute(0);
    }
    for code in WarningCode::ALL {
        counter!(FILE_WARNINGS, "code" => code.name()).absolute(0);
    }
    for finding in ["missing", "unreadable", "changed"] {
        counter!(DAMAGED_BLOBS, "finding" => finding).absolute(0);
    }
    for name in
        [COMPLETED, RETRIED_FILES, RETRIED_FILES_COMPLETED, ORPHAN_BLOBS, ABANDONED_UPLOADS, BLOBS_CHECKED]
    {
        counter!(name).absolute(0);
    }
}

/// Moves measured values into their buckets.
pub async fn upkeep() {
    loop {
        landfall_core::clock::Clock::System.sleep(UPKEEP).await;
        recorder().run_upkeep();
    }
}

/// `seconds`: from confirm to ready. `is_retried`: a user had retried it.
pub fn file_completed(seconds: Option<f64>, is_retried: bool) {
    counter!(COMPLETED).increment(1);
    if let Some(seconds) = seconds {
        histogram!(CONFIRM_TO_READY).record(seconds);
    }
    if is_retried {
        counter!(RETRIED_FILES_COMPLETED).increment(1);
    }
}

pub fn file_retried() {
    counter!(RETRIED_FILES).increment(1);
}

pub fn warned(code: WarningCode) {
    counter!(FILE_WARNINGS, "code" => code.name()).increment(1);
}

pub fn dead_letter(stage: Stage, class: Class) {
    counter!(DEAD_LETTERS, "stage" => stage.name(), "class" => class.name()).increment(1);
}

pub fn retried(stage: Stage, class: Class) {
    counter!(RETRIES, "stage" => stage.name(), "class" => class.name()).increment(1);
}

pub fn stalled(stage: Stage) {
    counter!(STALLS, "stage" => stage.name()).increment(1);
}

pub fn waited(stage: Stage, seconds: f64) {
    histogram!(QUEUE_WAIT, "stage" => stage.name()).record(seconds);
}

/// `outcome`: `done`, `failed`, or `interrupted`.
pub fn attempt(stage: Stage, outcome: &'static str, took: Duration) {
    histogram!(ATTEMPTS, "stage" => stage.name(), "outcome" => outcome).record(took.as_secs_f64());
}

pub fn stuck_files_recovered(re_enqueued: u64, permanently_failed: u64) {
    counter!(STUCK_RECOVERY, "action" => RE_ENQUEUED).increment(re_enqueued);
    counter!(STUCK_RECOVERY, "action" => PERMANENTLY_FAILED).increment(permanently_failed);
}

/// Blobs that were compared with their checksums.
pub fn blob_scrubbed(count: u64) {
    counter!(BLOBS_CHECKED).increment(count);
}

pub fn damaged_blob_found(finding: &'static str) {
    counter!(DAMAGED_BLOBS, "finding" => finding).increment(1);
}

pub fn orphan_blob_deleted() {
    counter!(ORPHAN_BLOBS).increment(1);
}

pub fn abandoned_upload_deleted() {
    counter!(ABANDONED_UPLOADS).increment(1);
}

pub fn cleaned_up(tenant: &str, bytes: u64) {
    let tenant = tenant_label(tenant);
    counter!(ORPHANED_FILES, "tenant_id" => tenant.clone()).increment(1);
    counter!(QUOTA_REFUNDED, "tenant_id" => tenant).increment(bytes);
}

pub fn cleanup_failed(error: &Error) {
    let kind = match error {
        Error::Storage { .. }
        | Error::StorageFull { .. }
        | Error::BlobMissing { .. }
        | Error::BlobExists { .. }
        | Error::BlobChanged { .. }
        | Error::StorageMismatch(_) => "storage",
        Error::Database(_)
        | Error::Sqlite(_)
        | Error::Unreadable { .. }
        | Error::DatabaseFileGone { .. }
        | Error::DatabaseTls(_)
        | Error::GroupNotCommitted(_)
        | Error::Migration(_)
        | Error::Closed => "database",
        Error::Refused(_) | Error::Internal(_) => "internal",
    };
    counter!(CLEANUP_FAILURES, "error_type" => kind).increment(1);
}

pub fn audit_entry_dropped() {
    counter!(AUDIT_DROPPED).increment(1);
}

pub fn authentication_failed(code: RefusalCode) {
    counter!(AUTH_FAILURES, "code" => code.code()).increment(1);
}

/// `reason`: `address` or `full`.
pub fn connection_refused(reason: &'static str) {
    counter!(CONNECTIONS_REFUSED, "reason" => reason).increment(1);
}

pub fn connection_stalled() {
    counter!(CONNECTIONS_STALLED).increment(1);
}

/// `path`: the route that matched, if one did.
pub fn request_served(method: &str, path: Option<&str>, status: u16, took: Duration) {
    let method = match method {
        "GET" => "GET",
        "POST" => "POST",
        "PUT" => "PUT",
        "DELETE" => "DELETE",
        "HEAD" => "HEAD",
        _ => "other",
    };
    let status = match status / 100 {
        1 => "1xx",
        2 => "2xx",
        3 => "3xx",
        4 => "4xx",
        _ => "5xx",
    };
    let seconds = took.as_secs_f64();
    let pattern = path.unwrap_or("unmatched").to_owned();
    histogram!(HTTP_DURATION, "method" => method, "path" => pattern, "status" => status).record(seconds);
    if let Some(endpoint) = path.and_then(dashboard_endpoint) {
        histogram!(DASHBOARD_DURATION, "endpoint" => endpoint.to_owned()).record(seconds);
    }
}

/// The dashboard's own requests, by the end of their paths.
fn dashboard_endpoint(path: &str) -> Option<&str> {
    let endpoint = path.strip_prefix("/api/v2/uploads")?;
    ["/dashboard", "/stuck", "/orphans"].iter().any(|part| endpoint.starts_with(part)).then_some(endpoint)
}

fn tenant_label(tenant: &str) -> String {
    static KNOWN: Mutex<Option<HashSet<String>>> = Mutex::new(None);
    let mut known = KNOWN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    label_among(known.get_or_insert_default(), tenant)
}

fn label_among(known: &mut HashSet<String>, tenant: &str) -> String {
    if known.contains(tenant) || known.len() < MAX_TENANTS {
        known.insert(tenant.to_owned());
        tenant.to_owned()
    } else {
        "other".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_tenant_labels_is_limited() {
        let mut known = HashSet::new();
        let labels: HashSet<String> =
            (0..10_000).map(|n| label_among(&mut known, &format!("tenant-{n}"))).collect();
        assert_eq!(labels.len(), MAX_TENANTS + 1);
        assert_eq!(label_among(&mut known, "tenant-7"), "tenant-7", "a tenant with a label keeps it");
        assert_eq!(label_among(&mut known, "tenant-7000"), "other");
    }

    #[test]
    fn the_dashboards_requests_are_distinguished_from_the_others() {
        assert_eq!(dashboard_endpoint("/api/v2/uploads/dashboard"), Some("/dashboard"));
        assert_eq!(dashboard_endpoint("/api/v2/uploads/stuck/{id}/retry"), Some("/stuck/{id}/retry"));
        assert_eq!(dashboard_endpoint("/api/v2/uploads/files"), None);
        assert_eq!(dashboard_endpoint("/api/v2/search"), None);
    }
}
