//! Old faults that can be brought back, one at a time, to prove that the simulator finds them.
//!
//! Without the feature `mutants`, which only the simulator asks for, [`on`] is always false and costs nothing.

use crate::names::named_enum;

named_enum! {
    /// A fault that the server once had, or could easily have.
    pub enum Mutant {
        /// A worker that lost a file writes its ending all the same.
        UnfencedSettle = "unfenced-settle",
        /// To delete a file twice refunds it twice.
        DoubleRefund = "double-refund",
        /// The blob is removed before the row says so.
        DeleteBeforeRow = "delete-before-row",
        /// All files that a dead worker held are taken for what killed it.
        SuspicionWithoutIsolation = "suspicion-without-isolation",
        /// A service that fails one document again and again is always excused.
        UnboundedExcuse = "unbounded-excuse",
        /// A file pays for the outage of a service.
        ChargedOutage = "charged-outage",
        /// A repeated request is done again.
        KeyIgnored = "key-ignored",
        /// A stream that resumes leaves out the next event.
        SkippedEvent = "skipped-event",
        /// An upload that the storage did not answer to is forgotten.
        ForgottenUpload = "forgotten-upload",
        /// No worker is told of a file that is due.
        LostWake = "lost-wake",
        /// What a dead process held stays with it.
        DeadWorkerKept = "dead-worker-kept",
        /// A deleted file stays in the index.
        GhostInIndex = "ghost-in-index",
        /// A file that the server itself deletes is not refunded.
        ForgottenRefund = "forgotten-refund",
        /// A webhook gets all new events but the first.
        SkippedDelivery = "skipped-delivery",
        /// A file that is retried stays counted as failed in its batch.
        StaleBatch = "stale-batch",
    }
}

#[cfg(feature = "mutants")]
thread_local! {
    static CURRENT: std::cell::Cell<Option<Mutant>> = const { std::cell::Cell::new(None) };
}

/// Whether this fault is brought back on this thread.
#[cfg(feature = "mutants")]
pub fn on(mutant: Mutant) -> bool {
    CURRENT.get() == Some(mutant)
}

/// Whether this fault is brought back. It never is.
#[cfg(not(feature = "mutants"))]
pub const fn on(_mutant: Mutant) -> bool {
    false
}

/// Brings a fault back on this thread.
#[cfg(feature = "mutants")]
pub fn bring_back(mutant: Mutant) {
    CURRENT.set(Some(mutant));
}
