//! The batches that the files of one command are registered in. A batch has a limited number of files.

use std::collections::HashSet;

use serde::Serialize;
use tokio::sync::Mutex;
use uuid::Uuid;

use crate::client::{Client, ClientError};
use landfall_api::batches::{BatchView, NewBatch, OpenedBatch};
use landfall_core::priority::Priority;

pub const MAX_BATCH_FILES: usize = 10_000;

pub struct Batches<'a> {
    client: &'a Client,
    priority: Priority,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    all: Vec<Sent>,
    /// How many files are still expected, places that were taken not included.
    expected: usize,
}

struct Sent {
    view: SentBatch,
    /// Places that are not taken, in the last batch.
    free: usize,
    /// Whether a place was taken and not used.
    has_gaps: bool,
}

/// A batch as the server last described it.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum SentBatch {
    Opened(OpenedBatch),
    Sent(BatchView),
}

impl SentBatch {
    pub fn id(&self) -> Uuid {
        match self {
            Self::Opened(batch) => batch.batch_id,
            Self::Sent(batch) => batch.batch_id,
        }
    }
}

impl<'a> Batches<'a> {
    /// `expected` is how many files there seem to be.
    pub fn new(client: &'a Client, priority: Priority, expected: usize) -> Self {
        Self { client, priority, state: Mutex::new(State { all: Vec::new(), expected }) }
    }

    /// Takes up to `wanted` places in one batch, at least one. Opens a batch where there is none with a place.
    pub async fn take(&self, wanted: usize) -> Result<(Uuid, usize), ClientError> {
        let mut state = self.state.lock().await;
        if state.all.last().is_none_or(|batch| batch.free == 0) {
            let places = state.expected.clamp(wanted.clamp(1, MAX_BATCH_FILES), MAX_BATCH_FILES);
            let request = NewBatch {
                file_count: i64::try_from(places).unwrap_or(i64::MAX),
                metadata: None,
                priority: self.priority,
                mapping: None,
            };
            let opened = self.client.open_batch(&request).await?;
            state.all.push(Sent { view: SentBatch::Opened(opened), free: places, has_gaps: false });
        }
        let Some(batch) = state.all.last_mut() else { unreachable!("one was opened if there was none") };
        let taken = wanted.min(batch.free);
        batch.free -= taken;
        let id = batch.view.id();
        state.expected = state.expected.saturating_sub(taken);
        Ok((id, taken))
    }

    /// A file will not be registered: it is skipped, or has a problem.
    pub async fn not_expected(&self) {
        let mut state = self.state.lock().await;
        state.expected = state.expected.saturating_sub(1);
    }

    /// The server did not register a file for which a place was taken.
    pub async fn not_used(&self, batch: Uuid) {
        let mut state = self.state.lock().await;
        if let Some(batch) = state.all.iter_mut().find(|sent| sent.view.id() == batch) {
            batch.has_gaps = true;
        }
    }

    pub async fn ids(&self) -> HashSet<Uuid> {
        self.state.lock().await.all.iter().map(|sent| sent.view.id()).collect()
    }

    /// No more files will come. Without this, a batch would wait for those that could not be registered.
    pub async fn close(&self) -> Result<(), ClientError> {
        let mut state = self.state.lock().await;
        for sent in &mut state.all {
            let id = sent.view.id();
            let view = if sent.free > 0 || sent.has_gaps {
                self.client.retry(async || self.client.close_batch(id).await).await?
            } else {
                self.client.retry(async || self.client.batch(id).await).await?
            };
            sent.view = SentBatch::Sent(view);
        }
        Ok(())
    }

    /// Keeps what the server said about a batch.
    pub async fn update(&self, view: BatchView) {
        let mut state = self.state.lock().await;
        if let Some(sent) = state.all.iter_mut().find(|sent| sent.view.id() == view.batch_id) {
            sent.view = SentBatch::Sent(view);
        }
    }

    pub async fn all(&self) -> Vec<SentBatch> {
        self.state.lock().await.all.iter().map(|sent| sent.view.clone()).collect()
    }
}
