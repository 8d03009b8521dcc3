//! Waits until every file that was sent is ready or has failed, then asks what became of each.

use std::collections::HashMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{MOST_PER_BATCH, Problem, Upload};
use crate::client::ClientError;
use crate::files::{self, Told};
use crate::words::printable;
use landfall_core::clock::Clock;
use landfall_core::lifecycle::Status;

const SHORTEST_WAIT: Duration = Duration::from_millis(150);
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// After so many looks at which nothing had changed, the server is asked why.
const PATIENCE: u32 = 5;

#[derive(Deserialize)]
struct Counts {
    progress: Map<String, Value>,
}

impl Counts {
    fn of(&self, wanted: impl Fn(Status) -> bool) -> u64 {
        Status::ALL
            .into_iter()
            .filter(|status| wanted(*status))
            .filter_map(|status| self.progress.get(status.name())?.as_u64())
            .sum()
    }
}

impl Upload<'_> {
    pub(super) async fn follow(&mut self) -> Result<(), ClientError> {
        let sent = self.parcels.iter().filter(|parcel| parcel.status.is_some()).count();
        self.screen.following(sent as u64);
        let mut wait = SHORTEST_WAIT;
        let (mut before, mut unchanged) = (None, 0);
        loop {
            let looked = self.look().await?;
            if looked.unfinished == 0 {
                break;
            }
            unchanged = if before == Some(looked) { unchanged + 1 } else { 0 };
            before = Some(looked);
            let why = if unchanged >= PATIENCE { self.why().await? } else { String::new() };
            let Looked { ready, failed, unfinished } = looked;
            self.screen
                .at(ready + failed, &format!("{ready} ready, {failed} failed, {unfinished} to go{why}"));
            Clock::System.sleep(wait).await;
            wait = wait.mul_f64(1.3).min(LONGEST_WAIT);
        }
        self.screen.finish();
        self.settle().await
    }

    /// How far all batches are, together.
    async fn look(&mut self) -> Result<Looked, ClientError> {
        let mut looked = Looked::default();
        for batch in &mut self.batches {
            let path = format!("/batches/{}", batch.id);
            batch.answer = self.client.persist(async || self.client.get(&path, &[]).await).await?;
            let counts =
                Counts::deserialize(&batch.answer).map_err(|error| self.client.strange(error.to_string()))?;
            looked.ready += counts.of(|status| status == Status::Ready);
            looked.failed += counts.of(|status| matches!(status, Status::Failed | Status::Cancelled));
            looked.unfinished += counts.of(|status| !status.is_terminal());
        }
        Ok(looked)
    }

    /// Why one of those that wait does.
    async fn why(&self) -> Result<String, ClientError> {
        for batch in &self.batches {
            let filter = [("batchId", batch.id.to_string()), ("status", "queued".to_owned())];
            let listing = files::list(self.client, &filter, 1).await?;
            let waiting = files::told(self.client, &listing.files)?.pop();
            if let Some(message) = waiting.and_then(|file| file.waiting_message) {
                return Ok(format!(" ({})", printable(&message)));
            }
        }
        Ok(String::new())
    }

    /// Writes down what became of each file.
    async fn settle(&mut self) -> Result<(), ClientError> {
        let mut told: HashMap<Uuid, Told> = HashMap::new();
        for batch in &self.batches {
            let filter = [("batchId", batch.id.to_string())];
            let listing = files::list(self.client, &filter, MOST_PER_BATCH).await?;
            let files = files::told(self.client, &listing.files)?;
            told.extend(files.into_iter().map(|file| (file.file_id, file)));
        }
        for parcel in self.parcels.iter_mut().filter(|parcel| parcel.status.is_some()) {
            let file = parcel.file_id.and_then(|id| told.get(&id));
            let status = file.map_or("deleted", |file| &file.status);
            parcel.status = Some(status.to_owned());
            if status == "ready" {
                continue;
            }
            let error = file.and_then(|file| file.error.as_ref());
            let problem = match error {
                Some(error) => Problem::new(&error.code, &error.message),
                None => Problem::new(&status.to_uppercase(), format!("This file is {status}")),
            };
            self.screen.complain(&parcel.path, &problem);
            parcel.error = Some(problem);
        }
        Ok(())
    }
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Looked {
    ready: u64,
    failed: u64,
    unfinished: u64,
}
