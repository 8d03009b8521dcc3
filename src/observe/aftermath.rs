//! What a change leaves to the end of its transaction, and what this process counts once it is committed.
//!
//! Every move of a file is an event, and every event comes by here, so there is one place that knows what changes a total and
//! what is counted. A transaction that is undone or repeated counts nothing, and one that stands counts once.

use serde_json::Value;

use super::metrics;
use super::totals::Totals;
use crate::events::{Event, FILE_CLEANED_UP, FILE_PROCESSING_STALLED, FILE_STATUS_CHANGED};
use crate::failure::Class;
use crate::lifecycle::{Stage, Status};

#[derive(Debug, Default)]
pub struct Aftermath {
    pub totals: Totals,
    pub counts: Counts,
}

impl Aftermath {
    pub fn learn(&mut self, event: &Event) {
        match event.kind {
            FILE_STATUS_CHANGED => {
                let Some(to) = event.to else { return };
                self.totals.moved(&event.user, &event.tenant, event.from, to, event.next_stage);
                self.counts.moved(event, to);
            }
            FILE_PROCESSING_STALLED => self.counts.0.extend(event.stage.map(Count::Stalled)),
            FILE_CLEANED_UP => {
                let bytes =
                    event.data.as_ref().and_then(|data| data.get("sizeReclaimed")).and_then(Value::as_u64);
                let tenant = event.tenant.clone();
                self.counts.0.push(Count::CleanedUp { tenant, bytes: bytes.unwrap_or(0) });
            }
            _ => {}
        }
    }
}

/// What is to be counted.
#[derive(Debug, Default)]
pub struct Counts(Vec<Count>);

#[derive(Debug)]
enum Count {
    Completed,
    DeadLetter(Stage, Class),
    Retried(Stage, Class),
    Stalled(Stage),
    Waited { stage: Stage, seconds: f64 },
    CleanedUp { tenant: String, bytes: u64 },
}

impl Counts {
    fn moved(&mut self, event: &Event, to: Status) {
        let failure = event.stage.zip(event.failure.as_ref());
        let count = match (to, failure) {
            (Status::Ready, _) => Count::Completed,
            (Status::Failed, Some((stage, failure))) => Count::DeadLetter(stage, failure.code.class()),
            (Status::Queued, Some((stage, failure))) => Count::Retried(stage, failure.code.class()),
            _ => return,
        };
        self.0.push(count);
    }

    /// A worker took a file that waited for so long.
    pub fn waited(&mut self, stage: Stage, seconds: f64) {
        self.0.push(Count::Waited { stage, seconds });
    }

    pub fn publish(self) {
        for count in self.0 {
            match count {
                Count::Completed => metrics::file_completed(),
                Count::DeadLetter(stage, class) => metrics::dead_letter(stage, class),
                Count::Retried(stage, class) => metrics::retried(stage, class),
                Count::Stalled(stage) => metrics::stalled(stage),
                Count::Waited { stage, seconds } => metrics::waited(stage, seconds),
                Count::CleanedUp { tenant, bytes } => metrics::cleaned_up(&tenant, bytes),
            }
        }
    }
}
