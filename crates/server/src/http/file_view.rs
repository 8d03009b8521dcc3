//! Builds the view of a file from its row and from what it waits for.

use std::time::Duration;

use crate::http::error::ApiError;
use chrono::TimeDelta;
use landfall_api::files::{ErrorView, FileView, InflightView, Staleness, WarningView};
use landfall_core::clock::{Time, spoken, to_delta};
use landfall_core::failure::{Class, Code};
use landfall_core::lifecycle::Status;
use landfall_core::priority::Priority;
use landfall_core::reason;
use landfall_store::Tx;
use uuid::Uuid;

use crate::content::artifacts;
use crate::queue::config::QueueConfig;
use crate::queue::waiting::{self, Obstacles, Waiting};
use crate::records::file::File;

/// What a view needs beside the row.
pub struct Surroundings {
    now: Time,
    max_attempts: u32,
    staleness: Duration,
    obstacles: Obstacles,
}

impl Surroundings {
    pub async fn load(tx: &mut Tx, user: &str, config: &QueueConfig, now: Time) -> Result<Self, ApiError> {
        let obstacles = Obstacles::load(tx, user, now).await?;
        Ok(Self { now, max_attempts: config.retry.max_attempts, staleness: config.staleness, obstacles })
    }

    pub async fn view(&self, tx: &mut Tx, file: File) -> Result<FileView, ApiError> {
        let result_type = artifacts::result_types(tx, &[file.id]).await?.remove(&file.id);
        self.view_with(tx, file, result_type).await
    }

    /// The views of a list. The sentences of the warnings are with the file itself.
    pub async fn views(&self, tx: &mut Tx, files: Vec<File>) -> Result<Vec<FileView>, ApiError> {
        let ids: Vec<Uuid> = files.iter().map(|file| file.id).collect();
        let mut result_types = artifacts::result_types(tx, &ids).await?;
        let mut views = Vec::with_capacity(files.len());
        for file in files {
            let result_type = result_types.remove(&file.id);
            let view = self.view_with(tx, file, result_type).await?;
            views.push(FileView { warnings: None, ..view });
        }
        Ok(views)
    }

    async fn view_with(
        &self,
        tx: &mut Tx,
        file: File,
        result_type: Option<String>,
    ) -> Result<FileView, ApiError> {
        let position = waiting::position(tx, &file).await?;
        let waiting = self.obstacles.before(&file);
        let staleness = self.staleness(&file, waiting.as_ref());
        let workers = &self.obstacles.workers;
        let retry_at = waiting.as_ref().and_then(|waiting| waiting.until);
        let (waiting_for, waiting_message) = waiting.map(|waiting| (waiting.what, waiting.message)).unzip();
        Ok(FileView {
            next_stage: (!file.status.is_terminal() || file.status == Status::Failed)
                .then_some(file.next_stage),
            priority: Priority::from_rank(file.priority),
            max_attempts: self.max_attempts,
            retry_after: file.run_after.filter(|at| *at > self.now),
            retry_at,
            retry_in_ms: retry_at.map(|at| (at - self.now).num_milliseconds().max(0)),
            error: file.error_code.as_ref().map(|code| ErrorView {
                code: code.clone(),
                class: Code::parse(code).map_or(Class::Unknown, Code::class),
                message: reason::sentences(
                    code,
                    file.error_message.as_deref().unwrap_or_default(),
                    file.status,
                ),
                stage: file.error_stage.as_deref().and_then(|stage| stage.parse().ok()),
                at: file.error_at,
            }),
            inflight: file.status.stage().map(|stage| InflightView {
                stage,
                started_at: file.claimed_at,
                attempt: file.attempt,
                worker: workers.iter().find(|w| Some(w.id) == file.claimed_by).map(|w| w.name.clone()),
            }),
            queue_position: position,
            staleness,
            waiting_for,
            waiting_message,
            file_id: file.id,
            tenant_id: file.tenant_id,
            user_id: file.user_id,
            result_type,
            file_name: file.file_name,
            size: file.size_bytes,
            content_type: file.content_type,
            batch_id: file.batch_id,
            status: file.status,
            attempt: file.attempt,
            retry_count: file.retry_count,
            chunk_count: file.chunk_count,
            warning_count: file.warning_count,
            warnings: Some(warnings(file.warnings)),
            created_at: file.created_at,
            updated_at: file.updated_at,
            confirmed_at: file.confirmed_at,
            ready_at: file.ready_at,
            failed_at: file.failed_at,
        })
    }

    /// Whether a queued or running file made no progress for a while. If it waits, the sentence says for what.
    fn staleness(&self, file: &File, waiting: Option<&Waiting>) -> Staleness {
        let in_progress = file.status == Status::Queued || file.status.is_running();
        let still = if in_progress { self.now - file.updated_at } else { TimeDelta::zero() };
        let stale = in_progress && still >= to_delta(self.staleness);
        let message = stale.then(|| {
            let still = spoken(still);
            match (waiting, file.status.stage()) {
                (Some(waiting), _) => format!("No progress for {still}. {}", waiting.message),
                (None, Some(stage)) => {
                    format!("No progress for {still}. A worker runs its {stage} stage")
                }
                (None, None) => format!("No progress for {still}"),
            }
        });
        Staleness { stale, since_ms: still.num_milliseconds().max(0), message }
    }
}

/// The stored warnings, as far as this version can read them.
fn warnings(stored: Option<serde_json::Value>) -> Vec<WarningView> {
    let Some(serde_json::Value::Array(warnings)) = stored else { return Vec::new() };
    warnings.into_iter().filter_map(|warning| serde_json::from_value(warning).ok()).collect()
}
