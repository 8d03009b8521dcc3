//! The states of everything except files, and other values with fixed names. Files have [`crate::lifecycle`].

use crate::lifecycle::{Status, Transition};
use crate::names::named_enum;

named_enum! {
    /// The state of a batch.
    pub enum BatchStatus {
        Active = "active",
        Completed = "completed",
        Expired = "expired",
        Cancelled = "cancelled",
    }
}

named_enum! {
    /// The state of an operation on many files.
    pub enum OperationStatus {
        /// A few files go first; the others follow unless these fail in the same way.
        Canary = "canary",
        Running = "running",
        Completed = "completed",
        Stopped = "stopped",
    }
}

impl OperationStatus {
    /// Whether no further step is taken.
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Stopped)
    }
}

named_enum! {
    /// What an operation does with its files.
    #[derive(Default)]
    pub enum OperationAction {
        #[default]
        Retry = "retry",
        Cancel = "cancel",
        Delete = "delete",
    }
}

impl OperationAction {
    /// What it does with one file.
    pub const fn transition(self) -> Transition {
        match self {
            Self::Retry => Transition::Revive,
            Self::Cancel => Transition::Cancel,
            Self::Delete => Transition::Delete,
        }
    }

    /// The states of the files that it can be done with. A file that waits or runs is cancelled before it is deleted.
    pub fn states(self) -> Vec<Status> {
        let mut states = self.transition().from().to_vec();
        if self == Self::Delete {
            states.extend(Transition::Cancel.from());
        }
        states
    }
}

named_enum! {
    /// What a list of files is sorted by.
    #[derive(Default)]
    pub enum FileSort {
        #[default]
        CreatedAt = "createdAt",
        /// Upper and lower case are the same.
        FileName = "fileName",
        Size = "size",
    }
}

named_enum! {
    #[derive(Default)]
    pub enum SortOrder {
        Asc = "asc",
        #[default]
        Desc = "desc",
    }
}

named_enum! {
    /// The state of one delivery to a webhook.
    pub enum DeliveryStatus {
        Pending = "pending",
        Delivered = "delivered",
        Exhausted = "exhausted",
    }
}

named_enum! {
    /// What a request or a webhook is about: the caller's own files and events; those of the caller's tenant, for its
    /// administrators; or those of all tenants, for operators.
    #[derive(Default)]
    pub enum Scope {
        #[default]
        Own = "own",
        Tenant = "tenant",
        All = "all",
    }
}

named_enum! {
    /// How an action in the audit log ended.
    pub enum AuditOutcome {
        /// It has not ended, or the process ended during it.
        Started = "started",
        Done = "done",
        /// It was allowed, and failed.
        Failed = "failed",
        /// It was not allowed.
        Refused = "refused",
    }
}

named_enum! {
    /// The state of the circuit breaker of a service.
    pub enum CircuitState {
        Closed = "closed",
        Open = "open",
        HalfOpen = "half-open",
    }
}

named_enum! {
    /// What a notification is about.
    pub enum NotificationKind {
        FileFailure = "file-failure-notification",
        FileDeletionWarning = "file-deletion-warning",
        UploadExpired = "upload-expired-notification",
        WebhookDisabled = "webhook-disabled-notification",
        BatchExpired = "batch-expired-notification",
    }
}

named_enum! {
    /// What a file waits for.
    pub enum WaitingFor {
        Upload = "upload",
        Paused = "paused",
        NoWorkers = "no_workers",
        Circuit = "circuit",
        Retry = "retry",
        RateLimit = "rate_limit",
        Isolation = "isolation",
        Worker = "worker",
        /// The files of an archive have not all ended.
        Members = "members",
    }
}

named_enum! {
    /// Why files do not move.
    pub enum BlockerKind {
        /// A service that their stage needs is down.
        Circuit = "circuit",
        /// An operator paused their stage.
        Paused = "paused",
        NoWorkers = "no_workers",
        RateLimit = "rate_limit",
        Stuck = "stuck",
        /// Workers died while they worked on them, so each is worked on alone.
        Isolation = "isolation",
        /// They wait for their next attempt.
        Retry = "retry",
        /// All workers of their stage are busy.
        Worker = "worker",
        /// Their bytes are not here, or not confirmed.
        Upload = "upload",
    }
}

named_enum! {
    /// What makes files move again.
    pub enum Remedy {
        ResumeStage = "resume_stage",
        ReleaseStuck = "release_stuck",
        ProbeCircuit = "probe_circuit",
        StartWorker = "start_worker",
        Wait = "wait",
        UploadAgain = "upload_again",
    }
}

named_enum! {
    /// How a run of a maintenance job ended.
    #[derive(Default)]
    pub enum RunOutcome {
        /// It came to its end. Its errors are about single items.
        #[default]
        Completed = "completed",
        Failed = "failed",
        Running = "running",
        /// Its process died or was stopped.
        Interrupted = "interrupted",
    }
}

named_enum! {
    /// Why a file is stuck.
    pub enum StuckReason {
        ClaimBroken = "claim_broken",
        Unconfirmed = "unconfirmed",
        NotDue = "not_due",
    }
}

impl StuckReason {
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::ClaimBroken => "The process that worked on it is gone",
            Self::Unconfirmed => "It was uploaded and not confirmed in time",
            Self::NotDue => "Its next attempt is further ahead than it should be",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_the_same_in_the_database_and_on_the_wire() {
        for status in BatchStatus::ALL {
            assert_eq!(serde_json::to_value(status).unwrap(), status.name());
            assert_eq!(status.name().parse(), Ok(*status));
        }
        let unknown = "done".parse::<BatchStatus>().unwrap_err();
        assert_eq!(unknown.to_string(), "\"done\" is not one of active, completed, expired, cancelled");
    }
}
