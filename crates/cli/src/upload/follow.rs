//! Waits until every uploaded file is ready or has failed, then loads the result of each.

use std::collections::HashMap;
use std::time::Duration;

use uuid::Uuid;

use super::{MAX_BATCH_FILES, Problem, SentBatch, Upload};
use crate::client::ClientError;
use crate::files;
use crate::format::printable;
use landfall_api::files::{FileQuery, FileView};
use landfall_core::clock::Clock;
use landfall_core::lifecycle::Status;

const MIN_POLL_INTERVAL: Duration = Duration::from_millis(150);
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// After this many polls without a change, the server is asked for the reason.
const POLLS_WITHOUT_CHANGE: u32 = 5;

impl Upload<'_> {
    pub(super) async fn follow(&mut self) -> Result<(), ClientError> {
        let sent = self.results.iter().filter(|result| result.status.is_some()).count();
        self.screen.show_processing(sent as u64);
        let mut interval = MIN_POLL_INTERVAL;
        let (mut before, mut unchanged) = (None, 0);
        loop {
            let progress = self.poll().await?;
            if progress.unfinished == 0 {
                break;
            }
            unchanged = if before == Some(progress) { unchanged + 1 } else { 0 };
            before = Some(progress);
            let why = if unchanged >= POLLS_WITHOUT_CHANGE { self.why().await? } else { String::new() };
            let Progress { ready, failed, unfinished } = progress;
            let message = format!("{ready} ready, {failed} failed, {unfinished} to go{why}");
            self.screen.set_done((ready + failed).unsigned_abs(), &message);
            Clock::System.sleep(interval).await;
            interval = interval.mul_f64(1.3).min(MAX_POLL_INTERVAL);
        }
        self.screen.finish();
        self.load_results().await
    }

    /// The progress of all batches together.
    async fn poll(&mut self) -> Result<Progress, ClientError> {
        let mut progress = Progress::default();
        for batch in &mut self.batches {
            let id = batch.id();
            let view = self.client.retry(async || self.client.batch(id).await).await?;
            progress.ready += view.count(|status| status == Status::Ready);
            progress.failed += view.count(|status| matches!(status, Status::Failed | Status::Cancelled));
            progress.unfinished += view.count(|status| !status.is_terminal());
            *batch = SentBatch::Sent(view);
        }
        Ok(progress)
    }

    /// What one of the waiting files waits for.
    async fn why(&self) -> Result<String, ClientError> {
        for batch in &self.batches {
            let query = FileQuery { status: Some(Status::Queued), ..of_batch(batch) };
            let mut waiting = files::list(self.client, &query, 1).await?.items;
            if let Some(message) = waiting.pop().and_then(|file| file.waiting_message) {
                return Ok(format!(" ({})", printable(&message)));
            }
        }
        Ok(String::new())
    }

    /// Loads the final state of each file.
    async fn load_results(&mut self) -> Result<(), ClientError> {
        let mut loaded: HashMap<Uuid, FileView> = HashMap::new();
        for batch in &self.batches {
            let page = files::list(self.client, &of_batch(batch), MAX_BATCH_FILES).await?;
            loaded.extend(page.items.into_iter().map(|file| (file.file_id, file)));
        }
        for result in self.results.iter_mut().filter(|result| result.status.is_some()) {
            let file = result.file_id.and_then(|id| loaded.get(&id));
            let status = file.map_or(Status::Deleted, |file| file.status);
            result.status = Some(status);
            if status == Status::Ready {
                result.warning_count = file.map_or(0, |file| file.warning_count);
                self.screen.report_warnings(result);
                continue;
            }
            let error = file.and_then(|file| file.error.as_ref());
            let problem = match error {
                Some(error) => Problem::new(&error.code, &error.message),
                None => Problem::new(&status.name().to_uppercase(), format!("This file is {status}")),
            };
            self.screen.report(&result.path, &problem);
            result.error = Some(problem);
        }
        Ok(())
    }
}

fn of_batch(batch: &SentBatch) -> FileQuery {
    FileQuery { batch_id: Some(batch.id().to_string()), ..FileQuery::default() }
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Progress {
    ready: i64,
    failed: i64,
    unfinished: i64,
}
