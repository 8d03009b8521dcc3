//! The kinds of events.

use crate::names::named_enum;

named_enum! {
    /// What an event tells of.
    pub enum EventKind {
        FileStatusChanged = "file:status-changed",
        FileProcessingStalled = "file:processing-stalled",
        FileCleanedUp = "file:cleaned-up",
        BatchProgress = "batch:progress",
        BatchCompleted = "batch:completed",
        BatchExpired = "batch:expired",
        BatchCancelled = "batch:cancelled",
        NotificationCreated = "notification:created",
        QueueRateLimitExceeded = "queue:rate-limit-exceeded",
        CircuitChanged = "circuit:changed",
        JobCompleted = "job:completed",
        AlertRaised = "alert:raised",
    }
}

impl EventKind {
    /// Whether it tells of the system as a whole. Such an event belongs to no user and is for administrators.
    pub const fn is_of_system(self) -> bool {
        matches!(
            self,
            Self::QueueRateLimitExceeded | Self::CircuitChanged | Self::JobCompleted | Self::AlertRaised
        )
    }

    /// The kinds that belong to a user.
    pub fn of_users() -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(|kind| !kind.is_of_system())
    }

    /// The kinds that belong to the system.
    pub fn of_system() -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(|kind| kind.is_of_system())
    }
}
