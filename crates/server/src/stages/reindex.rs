//! Re-embeds the files that were embedded with another model.
//!
//! A file is stale if and only if it is in the index with vectors of another model, revision or dimensions than the
//! current ones. Until it is re-embedded, searches find it by its words; its vectors are left out of every
//! comparison.
//!
//! A file is re-embedded in one transaction, which changes something only if the file is still ready, still stale,
//! and still has the chunks that were embedded. So any number of processes may do this at once, be killed at any
//! moment, and be started again: a finished file is not stale any more, and one that was deleted or processed again
//! in the meantime is skipped.

pub mod background;
pub mod rows;

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use futures_util::StreamExt;
use rand::seq::SliceRandom;
use serde::Serialize;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::cores::{Cores, UserCores};
use super::embed::Embedder;
use crate::content::artifacts;
use crate::content::chunks::{self, StoredChunk};
use crate::content::index::{replace, replace_vectors};
use crate::content::indexed_files;
use crate::records::file::File;
use crate::records::files;
use landfall_core::caller::TenantUser;
use landfall_core::clock::Clock;
use landfall_core::failure::{Code, Failure, Retry};
use landfall_core::lifecycle::{Stage, Status};
use landfall_core::retry::RetryPolicy;
use landfall_core::text::{Chunk, Embedded};
use landfall_models::chunk::ChunkConfig;
use landfall_models::chunk::chunk;
use landfall_models::wording::wording;
use landfall_store::Error;
use landfall_store::{Db, Tx, Write};

/// Files that are loaded at once.
const BATCH_SIZE: i64 = 256;
/// After this many failures in a row the cause is the model, and not the files.
const MAX_FAILURES_IN_A_ROW: usize = 5;

pub struct Reindex {
    db: Db,
    clock: Clock,
    embedder: Embedder,
    chunks: ChunkConfig,
    retry: RetryPolicy,
    /// Files in progress at once.
    at_once: usize,
    cores: UserCores,
}

/// The progress of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Stale files at the start.
    pub stale: i64,
    pub reindexed: usize,
    /// Deleted, processed again, or re-embedded by another process in the meantime.
    pub left_alone: usize,
    /// Files that stay as they were, and why the last one did.
    pub failed: usize,
    pub last_failure: Option<String>,
    /// Stale files at the end.
    pub remaining: i64,
}

/// How many files were embedded with which other model.
pub async fn stale_models(db: &Db, embedder: &Embedder) -> Result<Vec<(String, i64)>, Error> {
    let models = indexed_files::models(&mut db.read().await?).await?;
    Ok(models.into_iter().filter(|(model, _)| !embedder.is_current(model)).collect())
}

async fn count_stale(db: &Db, embedder: &Embedder) -> Result<i64, Error> {
    Ok(stale_models(db, embedder).await?.iter().map(|(_, files)| files).sum())
}

/// Logs a warning if files wait for `landfall reindex`.
pub async fn warn_of_stale_files(db: &Db, embedder: &Embedder) {
    match count_stale(db, embedder).await {
        Ok(0) => {}
        Ok(files) => tracing::warn!(
            files,
            "{files} files were embedded with another model and are found by their words only; \
             run `landfall reindex`"
        ),
        Err(error) => {
            tracing::warn!(%error, "could not count the files that were embedded with another model");
        }
    }
}

impl Reindex {
    pub fn new(
        db: Db,
        clock: Clock,
        embedder: Embedder,
        chunks: ChunkConfig,
        retry: RetryPolicy,
        at_once: usize,
    ) -> Self {
        Self {
            db,
            clock,
            embedder,
            chunks,
            retry,
            at_once,
            cores: Cores::of_this_machine().of_user(TenantUser::new("", "")),
        }
    }

    /// Re-embeds all stale files once, and calls `progress` after each. Ends early when `stop` is cancelled, and
    /// when the model fails for file after file.
    pub async fn run(&self, stop: &CancellationToken, progress: impl Fn(&Report)) -> Result<Report, Error> {
        // Cancelled work ends at the next text, on whichever thread it runs.
        let ending = stop.child_token();
        let _end_when_dropped = ending.clone().drop_guard();
        // The dimensions of a service are known with its first response; without them stale files cannot be found.
        self.embedder
            .embed("", &["landfall".to_owned()], &self.cores, &ending, || ())
            .await
            .map_err(|failure| Error::Internal(failure.message))?;
        let stale = stale_models(&self.db, &self.embedder).await?;
        let tracker = Tracker::new(stale.iter().map(|(_, files)| files).sum(), progress);
        'models: for (model, _) in stale {
            let mut after = Uuid::nil();
            loop {
                let mut files = self.next_batch(&model, after).await?;
                let Some(last) = files.last() else { break };
                after = *last;
                // Two processes with the same batch seldom reach the same file at the same time.
                files.shuffle(&mut landfall_core::random::Source);
                let work = futures_util::stream::iter(files)
                    .map(|file| self.settle(file, &model, &tracker, &ending))
                    .buffer_unordered(self.at_once)
                    .for_each(|()| async {});
                if stop.run_until_cancelled(work).await.is_none() || tracker.model_is_to_blame() {
                    break 'models;
                }
            }
        }
        let remaining = count_stale(&self.db, &self.embedder).await?;
        Ok(Report { remaining, ..tracker.report() })
    }

    /// The next stale files of that model, in the order of their ids.
    async fn next_batch(&self, model: &str, after: Uuid) -> Result<Vec<Uuid>, Error> {
        indexed_files::of_model(&mut self.db.read().await?, model, after, BATCH_SIZE).await
    }

    /// One file, with as many attempts as a worker would make.
    async fn settle(
        &self,
        file: Uuid,
        stale: &str,
        tracker: &Tracker<impl Fn(&Report)>,
        ending: &CancellationToken,
    ) {
        let mut attempt = 1;
        while !tracker.model_is_to_blame() {
            let failure = match self.refresh(file, stale, ending).await {
                Ok(true) => return tracker.note(|report| report.reindexed += 1),
                Ok(false) => return tracker.note(|report| report.left_alone += 1),
                Err(failure) => failure,
            };
            // A run ends when the model fails for file after file, so no file waits for it.
            let retry = if failure.retry == Retry::Wait { Retry::Always } else { failure.retry };
            let failure = Failure { retry, ..failure };
            let chance = landfall_core::random::random();
            let Some(delay) = self.retry.delay(Stage::Embed, attempt, 0, &failure, chance) else {
                tracing::warn!(fileId = %file, %failure, "a file could not be re-embedded; it stays as it was");
                return tracker.note_failure(&failure);
            };
            attempt += 1;
            self.clock.sleep(delay).await;
        }
    }

    /// Returns whether the file was re-embedded; if not, there was no need to.
    async fn refresh(&self, file: Uuid, stale: &str, ending: &CancellationToken) -> Result<bool, Failure> {
        let Some((tenant, chunks)) = self.load(file, stale).await? else { return Ok(false) };
        let new_chunks = self.rechunk(file, &chunks, ending).await?;
        let texts: Vec<String> = match &new_chunks {
            Some(chunks) => chunks.iter().map(|chunk| wording(&chunk.text).into_owned()).collect(),
            None => chunks.iter().map(|chunk| wording(&chunk.text).into_owned()).collect(),
        };
        let embedded = self.embedder.embed(&tenant, &texts, &self.cores, ending, || ()).await?;
        let refresh = Refresh {
            file,
            stale: stale.to_owned(),
            chunks: chunks.into_iter().map(|chunk| chunk.id).collect(),
            new_chunks,
            embedded,
        };
        self.db.write(refresh).await.map_err(db_error)
    }

    /// The tenant and the chunks of a file that is ready and stale.
    async fn load(&self, file: Uuid, stale: &str) -> Result<Option<(String, Vec<StoredChunk>)>, Failure> {
        let mut tx = self.db.snapshot().await.map_err(db_error)?;
        if !indexed_files::is_ready_with(&mut tx, file, stale).await.map_err(db_error)? {
            return Ok(None);
        }
        let Some(row) = File::find(&mut tx, file).await.map_err(db_error)? else { return Ok(None) };
        let chunks = chunks::load(&mut tx, file, -1, i64::MAX).await.map_err(db_error)?;
        Ok(Some((row.tenant_id, chunks)))
    }

    /// New chunks from the stored text, if the existing ones are longer than the model can read.
    async fn rechunk(
        &self,
        file: Uuid,
        chunks: &[StoredChunk],
        ending: &CancellationToken,
    ) -> Result<Option<Vec<Chunk>>, Failure> {
        let (tokens, window) = (self.embedder.tokens().clone(), self.embedder.window());
        let texts: Vec<String> = chunks.iter().map(|chunk| wording(&chunk.text).into_owned()).collect();
        let all_fit =
            self.cores.run(|| (), move || Ok(texts.iter().all(|text| tokens.count(text) <= window))).await?;
        if all_fit {
            return Ok(None);
        }
        let mut tx = self.db.read().await.map_err(db_error)?;
        let Some(extracted) = artifacts::load_text(&mut tx, file).await.map_err(db_error)? else {
            return Ok(None);
        };
        drop(tx);
        let (tokens, config, ending) = (self.embedder.tokens().clone(), self.chunks, ending.clone());
        self.cores
            .run(
                || (),
                move || {
                    chunk(&extracted, config, &tokens, || {
                        if ending.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                    })
                },
            )
            .await
            .map(Some)
    }
}

/// The growing report, and the callback that receives it.
struct Tracker<P> {
    report: Mutex<Report>,
    failures_in_a_row: AtomicUsize,
    progress: P,
}

impl<P: Fn(&Report)> Tracker<P> {
    fn new(stale: i64, progress: P) -> Self {
        let report = Report { stale, ..Report::default() };
        Self { report: Mutex::new(report), failures_in_a_row: AtomicUsize::new(0), progress }
    }

    fn note(&self, change: impl FnOnce(&mut Report)) {
        self.failures_in_a_row.store(0, Ordering::Relaxed);
        self.change(change);
    }

    fn note_failure(&self, failure: &Failure) {
        self.failures_in_a_row.fetch_add(1, Ordering::Relaxed);
        self.change(|report| {
            report.failed += 1;
            report.last_failure = Some(failure.message.clone());
        });
    }

    fn change(&self, change: impl FnOnce(&mut Report)) {
        let mut report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut report);
        (self.progress)(&report);
    }

    fn model_is_to_blame(&self) -> bool {
        self.failures_in_a_row.load(Ordering::Relaxed) >= MAX_FAILURES_IN_A_ROW
    }

    fn report(&self) -> Report {
        self.report.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Replaces the stale vectors, if the file still is what was embedded.
struct Refresh {
    file: Uuid,
    stale: String,
    /// The chunks that were embedded.
    chunks: Vec<i64>,
    new_chunks: Option<Vec<Chunk>>,
    embedded: Embedded,
}

impl Write for Refresh {
    type Output = bool;

    async fn apply(&self, tx: &mut Tx) -> Result<bool, Error> {
        // Locked until the end: a deletion or another worker comes before or after all of this.
        let Some(file) = File::lock(tx, self.file).await? else { return Ok(false) };
        let model = indexed_files::model_of(tx, self.file).await?;
        let chunks = chunks::ids(tx, self.file).await?;
        let still_stale = model.is_some_and(|model| model == self.stale);
        // The id of a chunk is never used again.
        let same_chunks = chunks == self.chunks;
        if file.status != Status::Ready || !still_stale || !same_chunks {
            return Ok(false);
        }
        let Some(new_chunks) = &self.new_chunks else {
            replace_vectors(tx, self.file, &file.tenant_user(), &self.chunks, &self.embedded).await?;
            return Ok(true);
        };
        chunks::keep(tx, self.file, new_chunks).await?;
        replace(tx, self.file, &file.tenant_user(), &self.embedded).await?;
        files::set_chunk_count(tx, self.file, new_chunks.len()).await?;
        Ok(true)
    }
}

fn db_error(error: Error) -> Failure {
    tracing::warn!(%error, "re-embedding a file failed because of the database");
    Failure::new(Code::DbError, "The database could not be read or written")
}
