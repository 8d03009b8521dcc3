//! The statements that change the rows: one for each kind of change.

use landfall_core::failure::Failure;
use landfall_core::lifecycle::{Stage, Status};
use landfall_store::{Arg, args};
use serde_json::json;

use super::{Change, Death, Ending};
use crate::records::file::StoredBytes;
use crate::records::fingerprint::fingerprint;

/// What kind of change it is: those of one kind share a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Upload,
    Confirm,
    Claim,
    /// The stage is done, the worker goes on with the next, and the row has nothing else to forget.
    Carry,
    /// The same for the last stage: the file is ready.
    Finish,
    /// Every other ending.
    End,
    Revive,
    GiveUp,
    Cancel,
    Delete,
}

/// The columns that every move has, before those of its kind.
pub(super) const COMMON: [&str; 4] = ["id", "from_status", "to_status", "now"];

/// The values of an ending of any kind, and what is set from them.
const END_COLUMNS: &[&str] = &[
    "fence",
    "stage",
    "is_carried",
    "at",
    "attempts",
    "advanced",
    "code",
    "message",
    "chunks",
    "missing",
    "missing_count",
    "fingerprint",
    "waited",
    "since",
    "by_service",
    "died_in_hand",
    "died_at_work",
    "died_alone",
    "isolated",
    "recoveries",
];
const END_CHANGES: &str = "next_stage = v.stage,
                 claim = CASE WHEN v.is_carried = 1 THEN claim END,
                 claimed_by = CASE WHEN v.is_carried = 1 THEN claimed_by END,
                 claimed_at = CASE WHEN v.is_carried = 1 THEN v.now END,
                 run_after = v.at,
                 is_due = (v.to_status = 'queued' AND v.at <= v.now
                           AND (v.advanced = 1 OR NOT (is_alone OR v.isolated = 1))),
                 attempt = v.attempts,
                 begun = FALSE,
                 -- A stage that was finished proves that the file does not kill its workers.
                 lost_workers = CASE WHEN v.advanced = 1 THEN 0 ELSE lost_workers + v.died_in_hand END,
                 deaths = CASE WHEN v.advanced = 1 THEN 0 ELSE deaths + v.died_at_work END,
                 deaths_alone = CASE WHEN v.advanced = 1 OR deaths_alone < 0 THEN 0 ELSE deaths_alone + v.died_alone END,
                 is_alone = (v.advanced = 0 AND (is_alone OR v.isolated = 1)),
                 waits = CASE WHEN v.advanced = 1 THEN 0 ELSE waits + v.waited END,
                 waiting_since = CASE WHEN v.advanced = 1 THEN NULL
                                      WHEN v.waited = 1 THEN COALESCE(waiting_since, v.since) ELSE waiting_since END,
                 waited_for = CASE WHEN v.advanced = 1 THEN NULL ELSE COALESCE(v.by_service, waited_for) END,
                 generation = generation + v.waited + v.recoveries,
                 retry_count = retry_count + v.recoveries,
                 -- Progress clears the last error; a release does not.
                 error_code = CASE WHEN v.advanced = 1 THEN NULL ELSE COALESCE(v.code, error_code) END,
                 error_message = CASE WHEN v.advanced = 1 THEN NULL ELSE COALESCE(v.message, error_message) END,
                 error_stage = CASE WHEN v.advanced = 1 THEN NULL WHEN v.code IS NULL THEN error_stage ELSE v.stage END,
                 error_at = CASE WHEN v.advanced = 1 THEN NULL WHEN v.code IS NULL THEN error_at ELSE v.now END,
                 error_fingerprint = v.fingerprint,
                 chunk_count = COALESCE(v.chunks, chunk_count),
                 warnings = CASE WHEN v.missing_count IS NULL THEN warnings ELSE v.missing END,
                 warning_count = COALESCE(v.missing_count, warning_count),
                 ready_at = CASE WHEN v.to_status = 'ready' THEN v.now ELSE ready_at END,
                 failed_at = CASE WHEN v.to_status = 'failed' THEN v.now ELSE failed_at END";

impl Kind {
    /// Whether the row changes only for the holder of its claim.
    pub(super) const fn is_fenced(self) -> bool {
        matches!(self, Self::Carry | Self::Finish | Self::End)
    }

    /// The values that a move of this kind brings, and what is set from them.
    pub(super) const fn statement(self) -> (&'static [&'static str], &'static str) {
        match self {
            Self::Upload => (
                &["blob", "md5", "sha256", "etag", "version", "until"],
                "blob_key = v.blob, md5 = v.md5, blob_sha256 = v.sha256, blob_etag = v.etag, blob_version = v.version,
                 blob_checked_at = v.now, blob_damaged_at = NULL, upload_until = v.until",
            ),
            Self::Confirm => (
                &["trace", "recoveries", "blob", "md5", "sha256", "etag", "version"],
                "blob_key = COALESCE(v.blob, blob_key), md5 = COALESCE(v.md5, files.md5),
                 blob_sha256 = COALESCE(v.sha256, blob_sha256), blob_etag = COALESCE(v.etag, blob_etag),
                 blob_version = COALESCE(v.version, blob_version),
                 run_after = v.now, is_due = TRUE, confirmed_at = v.now, upload_until = NULL,
                 trace_parent = COALESCE(v.trace, trace_parent), retry_count = retry_count + v.recoveries",
            ),
            Self::Claim => (
                &["token", "worker"],
                "is_due = FALSE, due_at = run_after, run_after = NULL, claim = v.token, claimed_by = v.worker,
                 claimed_at = v.now, attempt = attempt + 1, begun = FALSE",
            ),
            // Nearly all endings. They name few columns, because SQLite writes each index anew that has a named column,
            // changed or not.
            Self::Carry => (
                &["fence", "stage", "attempts", "chunks"],
                "next_stage = v.stage, claimed_at = v.now, attempt = v.attempts, chunk_count = COALESCE(v.chunks, chunk_count)",
            ),
            Self::Finish => (
                &["fence", "stage", "attempts", "chunks"],
                "next_stage = v.stage, claim = NULL, claimed_by = NULL, claimed_at = NULL, attempt = v.attempts,
                 chunk_count = COALESCE(v.chunks, chunk_count), ready_at = v.now",
            ),
            Self::End => (END_COLUMNS, END_CHANGES),
            Self::Revive => (
                &["stage", "retrier", "operation", "trace"],
                "next_stage = v.stage, run_after = v.now, is_due = TRUE, attempt = 0, lost_workers = 0, retry_count = 0,
                 deaths = 0, deaths_alone = 0, is_alone = FALSE, waits = 0, waiting_since = NULL, waited_for = NULL,
                 generation = generation + 1,
                 failed_at = NULL, error_code = NULL, error_message = NULL, error_stage = NULL, error_at = NULL,
                 error_fingerprint = NULL,
                 warnings = CASE WHEN v.stage IN ('scan', 'extract') THEN NULL ELSE warnings END,
                 warning_count = CASE WHEN v.stage IN ('scan', 'extract') THEN 0 ELSE warning_count END,
                 retried_at = v.now, retried_by = v.retrier, retried_in = v.operation,
                 trace_first = CASE WHEN v.trace IS NULL THEN trace_first ELSE COALESCE(trace_first, trace_parent) END,
                 trace_parent = COALESCE(v.trace, trace_parent)",
            ),
            Self::GiveUp => (
                &["code", "message", "fingerprint"],
                "run_after = NULL, is_due = FALSE, failed_at = v.now, error_code = v.code, error_message = v.message,
                 error_stage = next_stage, error_at = v.now, error_fingerprint = v.fingerprint",
            ),
            Self::Cancel => (
                &["code", "message"],
                "claim = NULL, claimed_by = NULL, claimed_at = NULL, run_after = NULL, is_due = FALSE,
                 error_code = v.code, error_message = v.message, error_stage = next_stage, error_at = v.now",
            ),
            // Warnings have names in them that the file contained.
            Self::Delete => (
                &["blob"],
                "blob_key = COALESCE(blob_key, v.blob), deleted_at = v.now, upload_until = NULL, failed_at = NULL, warnings = NULL, warning_count = 0",
            ),
        }
    }
}

impl Change {
    /// Its kind, for a file that is in the state `to` afterwards.
    pub(super) fn kind(&self, to: Status) -> Kind {
        match self {
            Self::Upload { .. } => Kind::Upload,
            Self::Confirm { .. } => Kind::Confirm,
            Self::Claim { .. } => Kind::Claim,
            Self::End(ending) => ending.kind(to),
            Self::Revive { .. } => Kind::Revive,
            Self::GiveUp { .. } => Kind::GiveUp,
            Self::Cancel { .. } => Kind::Cancel,
            Self::Delete { .. } => Kind::Delete,
        }
    }

    /// The values of the columns of `kind`, which is its own.
    pub(super) fn values(&self, kind: Kind, to: Status) -> Vec<Arg> {
        match self {
            Self::Upload { bytes, until } => {
                let mut values = columns_of(Some(bytes));
                values.extend(args![*until]);
                values
            }
            Self::Confirm { trace, recoveries, arrived } => {
                let mut values = args![trace.clone(), *recoveries];
                values.extend(columns_of(arrived.as_ref()));
                values
            }
            Self::Claim { token, worker } => args![*token, *worker],
            Self::End(ending) if kind == Kind::Carry || kind == Kind::Finish => {
                args![ending.claim, ending.next_stage, ending.attempts_after, ending.chunk_count]
            }
            Self::End(ending) => {
                let failure = ending.failure.as_ref();
                args![
                    ending.claim,
                    ending.next_stage,
                    i64::from(to.is_running()),
                    ending.run_after,
                    ending.attempts_after,
                    i64::from(ending.advanced),
                    failure.map(|failure| failure.code),
                    failure.map(|failure| failure.message.clone()),
                    ending.chunk_count,
                    ending
                        .warnings
                        .as_ref()
                        .filter(|warnings| !warnings.is_empty())
                        .map(|warnings| json!(warnings)),
                    ending.warnings.as_ref().map(Vec::len),
                    failure
                        .filter(|_| to == Status::Failed)
                        .map(|failure| fingerprint(ending.next_stage, failure)),
                    i64::from(ending.waits_since.is_some()),
                    ending.waits_since,
                    ending.waited.as_ref().map(|waited| json!(waited)),
                    ending.death.in_hand,
                    ending.death.at_work,
                    ending.death.alone,
                    i64::from(ending.death.isolates),
                    ending.recoveries,
                ]
            }
            Self::Revive { stage, by, operation, trace, .. } => args![*stage, by, *operation, trace.clone()],
            Self::GiveUp { stage, failure } => {
                args![failure.code, &failure.message, fingerprint(*stage, failure)]
            }
            Self::Cancel { failure } => args![failure.code, &failure.message],
            Self::Delete { unconfirmed, .. } => args![unconfirmed.clone()],
        }
    }

    /// The stage that a file in the queue fails at. Its states do not name it.
    pub(super) const fn stage(&self) -> Option<Stage> {
        match self {
            Self::GiveUp { stage, .. } => Some(*stage),
            _ => None,
        }
    }

    pub(super) fn failure(&self) -> Option<&Failure> {
        match self {
            Self::End(ending) => ending.failure.as_ref(),
            Self::GiveUp { failure, .. } | Self::Cancel { failure } => Some(failure),
            _ => None,
        }
    }
}

fn columns_of(bytes: Option<&StoredBytes>) -> Vec<Arg> {
    args![
        bytes.map(|bytes| bytes.key.clone()),
        bytes.and_then(|bytes| bytes.md5.clone()),
        bytes.and_then(|bytes| bytes.sha256.clone()),
        bytes.and_then(|bytes| bytes.etag.clone()),
        bytes.and_then(|bytes| bytes.version.clone()),
    ]
}

impl Ending {
    fn kind(&self, to: Status) -> Kind {
        let Self { owner, advanced, warnings, failure, waits_since, death, recoveries, .. } = self;
        let tells_nothing_else = *advanced
            && owner.is_unmarked
            && warnings.as_ref().is_none_or(Vec::is_empty)
            && failure.is_none()
            && waits_since.is_none()
            && *death == Death::default()
            && *recoveries == 0;
        match to {
            Status::Ready if tells_nothing_else => Kind::Finish,
            _ if tells_nothing_else && to.is_running() => Kind::Carry,
            _ => Kind::End,
        }
    }
}
