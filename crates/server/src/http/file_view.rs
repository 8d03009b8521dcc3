//! Builds the view of a file from its row and from what it waits for.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use crate::app::App;
use crate::config::TRACE_ID;
use crate::http::error::ApiError;
use chrono::TimeDelta;
use landfall_api::files::{ErrorView, FileView, InflightView, Staleness, WarningView};
use landfall_core::caller::TenantUser;
use landfall_core::clock::{Time, spoken, to_delta};
use landfall_core::failure::{Class, Code};
use landfall_core::lifecycle::{Stage, Status};
use landfall_core::priority::Priority;
use landfall_core::reason;
use landfall_core::states::{StuckReason, WaitingFor};
use landfall_store::Tx;
use uuid::Uuid;

use crate::content::artifacts;
use crate::queue::waiting::{self, Obstacles, Waiting};
use crate::records::events;
use crate::records::file::File;
use crate::recovery::orphan_cleanup::old_failures::deletion_at;
use crate::recovery::stuck_files::detection::Detection;
use crate::telemetry::traces;

/// What a view needs beside the row.
pub struct Surroundings {
    now: Time,
    max_attempts: u32,
    staleness: Duration,
    /// How long a failed file is kept.
    retention: Duration,
    detection: Detection,
    obstacles: Obstacles,
    /// Where people look at a trace.
    trace_url: Option<String>,
}

/// What other tables, and the rows of other files, say about the files of a page.
struct Beside {
    result_types: HashMap<Uuid, String>,
    attempts: HashMap<Uuid, BTreeMap<Stage, i64>>,
    positions: HashMap<Uuid, i64>,
}

impl Beside {
    async fn load(tx: &mut Tx, files: &[File]) -> Result<Self, ApiError> {
        let ids: Vec<Uuid> = files.iter().map(|file| file.id).collect();
        Ok(Self {
            result_types: artifacts::result_types(tx, &ids).await?,
            attempts: events::attempts(tx, &ids).await?,
            positions: waiting::positions(tx, files).await?,
        })
    }
}

impl Surroundings {
    pub async fn load(tx: &mut Tx, user: &TenantUser, app: &App, files: &[File]) -> Result<Self, ApiError> {
        let (now, config) = (app.clock.now(), &app.config.queue);
        let obstacles = if files.iter().any(is_in_progress) {
            Obstacles::load(tx, Some(user), now).await?
        } else {
            Obstacles::none(now)
        };
        Ok(Self {
            now,
            max_attempts: config.retry.max_attempts,
            staleness: config.staleness,
            retention: app.config.cleaning.failed_files,
            detection: app.stuck_files.detection.clone(),
            obstacles,
            trace_url: app.config.trace_url.clone(),
        })
    }

    pub async fn view(&self, tx: &mut Tx, file: File) -> Result<FileView, ApiError> {
        let mut beside = Beside::load(tx, std::slice::from_ref(&file)).await?;
        Ok(self.view_with(file, &mut beside))
    }

    /// The views of a list. The sentences of the warnings are with the file itself.
    pub async fn views(&self, tx: &mut Tx, files: Vec<File>) -> Result<Vec<FileView>, ApiError> {
        let mut beside = Beside::load(tx, &files).await?;
        let view = |file| FileView { warnings: None, ..self.view_with(file, &mut beside) };
        Ok(files.into_iter().map(view).collect())
    }

    fn view_with(&self, file: File, beside: &mut Beside) -> FileView {
        let position = beside.positions.remove(&file.id);
        let waiting = self.obstacles.before(&file);
        let staleness = self.staleness(&file, waiting.as_ref());
        let workers = &self.obstacles.workers;
        // The next turn of a rate limit is that of the first file in line.
        let is_next = position.is_none_or(|position| position == 1);
        let has_turn = |waiting: &&Waiting| waiting.what != WaitingFor::RateLimit || is_next;
        let retry_at = waiting.as_ref().filter(has_turn).and_then(|waiting| waiting.until);
        let (waiting_for, waiting_message) = waiting.map(|waiting| (waiting.what, waiting.message)).unzip();
        FileView {
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
            deletion_at: deletion_at(&file, self.retention, self.now),
            trace_url: self.trace_url(file.trace_parent.as_deref()),
            attempts: beside.attempts.remove(&file.id).unwrap_or_default(),
            retried_at: file.retried_at,
            retried_by: file.retried_by,
            queue_position: position,
            staleness,
            waiting_for,
            waiting_message,
            file_id: file.id,
            tenant_id: file.tenant_id,
            user_id: file.user_id,
            result_type: beside.result_types.remove(&file.id),
            file_name: file.file_name,
            size: file.size_bytes,
            content_type: file.content_type,
            md5: file.md5.or(file.declared_md5),
            sha256: file.blob_sha256.or(file.declared_sha256),
            batch_id: file.batch_id,
            archive_batch_id: file.archive_batch,
            attributes: file.attributes,
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
        }
    }

    fn trace_url(&self, parent: Option<&str>) -> Option<String> {
        Some(self.trace_url.as_ref()?.replace(TRACE_ID, &traces::id_of_kept(parent?)?))
    }

    /// Whether a queued or running file made no progress for a while. If it waits, the sentence says for what.
    fn staleness(&self, file: &File, waiting: Option<&Waiting>) -> Staleness {
        let in_progress = is_in_progress(file);
        let is_held = self.obstacles.workers.iter().any(|worker| Some(worker.id) == file.claimed_by);
        let stuck = self.detection.reason(file, is_held, self.now);
        let still =
            if in_progress || stuck.is_some() { self.now - file.updated_at } else { TimeDelta::zero() };
        let stale = stuck.is_some() || (in_progress && still >= to_delta(self.staleness));
        let message = stale.then(|| {
            let why = match (stuck, waiting, file.status.stage()) {
                (Some(reason), ..) => reason.sentence().to_owned(),
                // Its process is gone, and it goes back to the queue when it counts as stuck.
                (None, _, Some(_)) if !is_held => StuckReason::ClaimBroken.sentence().to_owned(),
                (None, Some(waiting), _) => waiting.message.clone(),
                (None, None, Some(stage)) => format!("A worker runs its {stage} stage"),
                (None, None, None) => "It waits".to_owned(),
            };
            format!("No progress for {}. {why}", spoken(still))
        });
        Staleness { stale, stuck, since_ms: still.num_milliseconds().max(0), message }
    }
}

/// Whether it waits for a worker or is worked on. What blocks files, and who works, says nothing about the others.
fn is_in_progress(file: &File) -> bool {
    file.status == Status::Queued || file.status.is_running()
}

/// The stored warnings, as far as this version can read them.
fn warnings(stored: Option<serde_json::Value>) -> Vec<WarningView> {
    let Some(serde_json::Value::Array(warnings)) = stored else { return Vec::new() };
    warnings.into_iter().filter_map(|warning| serde_json::from_value(warning).ok()).collect()
}
