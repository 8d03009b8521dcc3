//! Waits until every uploaded file is ready or has failed, then loads the result of each.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use uuid::Uuid;

use super::batches::MAX_BATCH_FILES;
use super::{FileResult, Problem, Run};
use crate::client::ClientError;
use crate::files;
use crate::format::printable;
use landfall_api::file_queries::FileQuery;
use landfall_api::files::FileView;
use landfall_core::clock::Clock;
use landfall_core::lifecycle::Status;

const MIN_POLL_INTERVAL: Duration = Duration::from_millis(150);
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// After this many polls without a change, the server is asked for the reason.
const POLLS_WITHOUT_CHANGE: u32 = 5;

impl Run<'_> {
    pub(super) async fn follow(&self) -> Result<(), ClientError> {
        let own: Vec<Uuid> = self.batches.all().await.iter().map(super::batches::SentBatch::id).collect();
        let mut results = std::mem::take(&mut self.report().results);
        let followed = self.follow_all(&own, &mut results).await;
        self.report().results = results;
        followed
    }

    async fn follow_all(&self, own: &[Uuid], results: &mut [FileResult]) -> Result<(), ClientError> {
        let sent = results.iter().filter(|result| result.status.is_some()).count();
        self.screen.show_processing(sent as u64);
        self.follow_batches(own).await?;
        let own: HashSet<Uuid> = own.iter().copied().collect();
        let loaded = self.load_results(&own).await?;
        for result in results.iter_mut().filter(|result| result.status.is_some()) {
            let Some(id) = result.file_id else { continue };
            let is_own = result.batch_id.is_some_and(|batch| own.contains(&batch));
            if is_own {
                self.settle(result, loaded.get(&id));
            } else if result.status == Some(Status::Ready) {
                // It was ready before this command began.
            } else {
                // It was there, or was begun by an earlier command: the rest of its batch is not this command's.
                let view = self.follow_file(id).await?;
                self.settle(result, view.as_ref());
            }
        }
        Ok(())
    }

    async fn follow_batches(&self, batches: &[Uuid]) -> Result<(), ClientError> {
        let mut interval = MIN_POLL_INTERVAL;
        let (mut before, mut unchanged) = (None, 0);
        loop {
            let progress = self.poll(batches).await?;
            if progress.unfinished == 0 {
                return Ok(());
            }
            unchanged = if before == Some(progress) { unchanged + 1 } else { 0 };
            before = Some(progress);
            let why =
                if unchanged >= POLLS_WITHOUT_CHANGE { self.why(batches).await? } else { String::new() };
            let Progress { ready, failed, unfinished } = progress;
            let message = format!("{ready} ready, {failed} failed, {unfinished} to go{why}");
            self.screen.set_done((ready + failed).unsigned_abs(), &message);
            Clock::System.sleep(interval).await;
            interval = next(interval);
        }
    }

    /// The progress of all batches together.
    async fn poll(&self, batches: &[Uuid]) -> Result<Progress, ClientError> {
        let mut progress = Progress::default();
        for id in batches {
            let view = self.client.retry(async || self.client.batch(*id).await).await?;
            progress.ready += view.count(|status| status == Status::Ready);
            progress.failed += view.count(|status| matches!(status, Status::Failed | Status::Cancelled));
            progress.unfinished += view.count(|status| !status.is_terminal());
            self.batches.update(view).await;
        }
        Ok(progress)
    }

    /// What one of the waiting files waits for.
    async fn why(&self, batches: &[Uuid]) -> Result<String, ClientError> {
        for batch in batches {
            let query = FileQuery { status: Some(Status::Queued.into()), ..of_batch(*batch) };
            let mut waiting = files::list(self.client, &query, 1).await?.items;
            if let Some(message) = waiting.pop().and_then(|file| file.waiting_message) {
                return Ok(format!(" ({})", printable(&message)));
            }
        }
        Ok(String::new())
    }

    /// Loads the final state of each file in the batches.
    async fn load_results(&self, batches: &HashSet<Uuid>) -> Result<HashMap<Uuid, FileView>, ClientError> {
        let mut loaded: HashMap<Uuid, FileView> = HashMap::new();
        for batch in batches {
            let page = files::list(self.client, &of_batch(*batch), MAX_BATCH_FILES).await?;
            loaded.extend(page.items.into_iter().map(|file| (file.file_id, file)));
        }
        Ok(loaded)
    }

    /// Waits for one file. `None` if it was deleted.
    async fn follow_file(&self, id: Uuid) -> Result<Option<FileView>, ClientError> {
        let mut interval = MIN_POLL_INTERVAL;
        loop {
            let view = match self.client.retry(async || self.client.file(id).await).await {
                Ok(view) => view,
                Err(error) if error.is_status(404) || error.is_status(410) => return Ok(None),
                Err(error) => return Err(error),
            };
            if view.status.is_terminal() {
                return Ok(Some(view));
            }
            Clock::System.sleep(interval).await;
            interval = next(interval);
        }
    }

    /// Records the final state of a file.
    fn settle(&self, result: &mut FileResult, file: Option<&FileView>) {
        let status = file.map_or(Status::Deleted, |file| file.status);
        result.status = Some(status);
        if status == Status::Ready {
            result.warning_count = file.map_or(0, |file| file.warning_count);
            self.screen.report_warnings(result);
            return;
        }
        let error = file.and_then(|file| file.error.as_ref());
        let problem = match error {
            Some(error) => Problem::new(&error.code, &error.message),
            None => Problem::new(&status.name().to_uppercase(), format!("This file is {status}")),
        };
        self.screen.report(&result.path, &problem);
        self.report().count(&result.path, &problem);
        result.error = Some(problem);
    }
}

fn next(interval: Duration) -> Duration {
    interval.mul_f64(1.3).min(MAX_POLL_INTERVAL)
}

fn of_batch(batch: Uuid) -> FileQuery {
    FileQuery { batch_id: Some(batch.to_string()), ..FileQuery::default() }
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Progress {
    ready: i64,
    failed: i64,
    unfinished: i64,
}
