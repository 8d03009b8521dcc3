//! What the move of a file changes beside its row: its owner's totals, written right before the commit, and this process's
//! metrics, counted after it.
//!
//! Every move of a file is an event and every event comes by here, so this is the one place that knows what is counted.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use landfall_core::clock::Time;
use landfall_core::event::EventKind;
use landfall_core::failure::Class;
use landfall_core::lifecycle::{Stage, Status};
use landfall_core::warning::WarningCode;
use landfall_store::{CommitHook, Error, Tx};
use serde_json::Value;

use super::events::Event;
use super::file::Owner;
use super::lines;
use super::totals::Totals;
use crate::telemetry::metrics;

/// Counts what an event says, at the end of the transaction that writes it.
pub fn learn(tx: &mut Tx, event: &Event) {
    match event.kind {
        EventKind::FileStatusChanged => {
            let Some(to) = event.to else { return };
            tx.hook::<Totals>().moved(&event.user, &event.tenant, event.from, to, event.next_stage);
            tx.hook::<Counts>().moved(event, to);
        }
        EventKind::FileProcessingStalled => tx.hook::<Counts>().0.extend(event.stage.map(Count::Stalled)),
        EventKind::FileCleanedUp => {
            let bytes =
                event.data.as_ref().and_then(|data| data.get("sizeReclaimed")).and_then(Value::as_u64);
            let tenant = event.tenant.clone();
            tx.hook::<Counts>().0.push(Count::CleanedUp { tenant, bytes: bytes.unwrap_or(0) });
        }
        EventKind::QueueRateLimitExceeded | EventKind::CircuitChanged => lines::told(tx, event),
        _ => {}
    }
}

impl CommitHook for Totals {
    fn before_commit<'t>(&'t mut self, tx: &'t mut Tx) -> BoxFuture<'t, Result<(), Error>> {
        std::mem::take(self).write(tx).boxed()
    }
}

/// What is counted once the commit stands.
#[derive(Debug, Default)]
pub struct Counts(Vec<Count>);

#[derive(Debug)]
enum Count {
    Completed { seconds: Option<f64>, is_retried: bool },
    RetriedByHand,
    Warned(WarningCode),
    DeadLetter(Stage, Class),
    Retried(Stage, Class),
    Stalled(Stage),
    Waited { stage: Stage, seconds: f64 },
    CleanedUp { tenant: String, bytes: u64 },
}

impl Counts {
    fn moved(&mut self, event: &Event, to: Status) {
        let failure = event.stage.zip(event.failure.as_ref());
        if to == Status::Ready {
            self.0.extend(warnings(event).map(Count::Warned));
        }
        let count = match (to, failure) {
            (Status::Failed, Some((stage, failure))) => Count::DeadLetter(stage, failure.code.class()),
            (Status::Queued, Some((stage, failure))) => Count::Retried(stage, failure.code.class()),
            _ => return,
        };
        self.0.push(count);
    }

    /// A file became ready.
    pub fn completed(&mut self, owner: &Owner, now: Time) {
        let seconds = owner.confirmed_at.map(|at| (now - at).to_std().unwrap_or_default().as_secs_f64());
        self.0.push(Count::Completed { seconds, is_retried: owner.retried_at.is_some() });
    }

    /// A user retried a file that had failed or was cancelled.
    pub fn retried_by_hand(&mut self) {
        self.0.push(Count::RetriedByHand);
    }

    /// A worker took a file that had waited for so long.
    pub fn waited(&mut self, stage: Stage, seconds: f64) {
        self.0.push(Count::Waited { stage, seconds });
    }
}

/// The codes of what is missing of a file that became ready.
fn warnings(event: &Event) -> impl Iterator<Item = WarningCode> {
    let warnings = event.data.as_ref().and_then(|data| data["warnings"].as_array());
    let code = |warning: &Value| WarningCode::parse(warning["code"].as_str()?);
    warnings.into_iter().flatten().filter_map(code)
}

impl CommitHook for Counts {
    fn after_commit(self: Box<Self>) {
        for count in self.0 {
            match count {
                Count::Completed { seconds, is_retried } => metrics::file_completed(seconds, is_retried),
                Count::RetriedByHand => metrics::file_retried(),
                Count::Warned(code) => metrics::warned(code),
                Count::DeadLetter(stage, class) => metrics::dead_letter(stage, class),
                Count::Retried(stage, class) => metrics::retried(stage, class),
                Count::Stalled(stage) => metrics::stalled(stage),
                Count::Waited { stage, seconds } => metrics::waited(stage, seconds),
                Count::CleanedUp { tenant, bytes } => metrics::cleaned_up(&tenant, bytes),
            }
        }
    }
}
