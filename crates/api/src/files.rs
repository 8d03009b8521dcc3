//! Files: their state, their history, and what was extracted from them.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::page::{Listed, Page};
use landfall_core::actor::ActorKind;
use landfall_core::failure::Class;
use landfall_core::lifecycle::{Stage, Status};
use landfall_core::priority::Priority;
use landfall_core::schemas::{StoredCode, StoredWarningCode};
use landfall_core::states::{StuckReason, WaitingFor};
use landfall_core::text::{Area, PageArea};

/// A file as clients see it.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileView {
    pub file_id: Uuid,
    #[serde(default)]
    #[schema(required = true)]
    pub tenant_id: String,
    #[serde(default)]
    #[schema(required = true)]
    pub user_id: String,
    pub file_name: String,
    pub size: i64,
    pub content_type: Option<String>,
    /// The MD5 of its bytes in hexadecimal digits; before they arrived, the one that was declared.
    #[serde(default)]
    pub md5: Option<String>,
    /// The SHA-256 of its bytes in hexadecimal digits, once the server has read them; before that, the one that was declared.
    #[serde(default)]
    pub sha256: Option<String>,
    pub batch_id: Option<Uuid>,
    /// The batch with the files in it, if it is an archive that was unpacked: each of them is a file of its own.
    #[serde(default)]
    pub archive_batch_id: Option<Uuid>,
    /// What the client noted about the file.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub attributes: Option<serde_json::Value>,
    pub status: Status,
    pub next_stage: Option<Stage>,
    pub priority: Priority,
    pub attempt: i64,
    pub max_attempts: u32,
    pub retry_after: Option<DateTime<Utc>>,
    /// When the file may go on, where that is known: its next attempt, a service that is tried again, a rate limit.
    pub retry_at: Option<DateTime<Utc>>,
    /// The same as the number of milliseconds from now, for a countdown.
    pub retry_in_ms: Option<i64>,
    pub retry_count: i64,
    /// Attempts made at each stage, over all retries.
    #[schema(value_type = BTreeMap<String, i64>)]
    pub attempts: BTreeMap<Stage, i64>,
    /// When a user last retried it after it had failed or was cancelled, and who.
    pub retried_at: Option<DateTime<Utc>>,
    pub retried_by: Option<String>,
    pub error: Option<ErrorView>,
    pub chunk_count: Option<i64>,
    /// How many warnings there are: how much is missing of a file that could be read otherwise.
    #[serde(default)]
    #[schema(required = true)]
    pub warning_count: i64,
    /// What is missing. Null in a list of files, which has only the number.
    #[serde(default)]
    pub warnings: Option<Vec<WarningView>>,
    /// The content type of what the operator's extraction service made of it, where there is that.
    #[serde(default)]
    pub result_type: Option<String>,
    /// Why it is not moving: one word for programs, and one sentence for people.
    pub waiting_for: Option<WaitingFor>,
    pub waiting_message: Option<String>,
    /// Its position among its owner's files at its stage; null when it is not counted that far.
    pub queue_position: Option<i64>,
    pub staleness: Staleness,
    pub inflight: Option<InflightView>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    pub confirmed_at: Option<DateTime<Utc>>,
    pub ready_at: Option<DateTime<Utc>>,
    pub failed_at: Option<DateTime<Utc>>,
    /// When a failed file will be deleted, unless it is retried; when an upload that never came will be.
    pub deletion_at: Option<DateTime<Utc>>,
    /// The page with its trace, where traces are collected and the operator has set `TRACE_URL`.
    #[serde(default)]
    pub trace_url: Option<String>,
}

/// What is changed about a file.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileChanges {
    /// Up to 16 names of up to 64 characters, each with a string of up to 512 characters, a number or a boolean.
    #[schema(value_type = Object)]
    pub attributes: serde_json::Map<String, serde_json::Value>,
}

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = FileError)]
pub struct ErrorView {
    /// As it was stored: a newer version may have written a code that this one does not know.
    #[schema(value_type = StoredCode)]
    pub code: String,
    pub class: Class,
    /// Sentences for the owner: what happened, what to do, and whether it is tried again by itself.
    pub message: String,
    pub stage: Option<Stage>,
    pub at: Option<DateTime<Utc>>,
}

/// What is missing of a file that could be read otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = Warning)]
pub struct WarningView {
    /// As it was stored: a newer version may have written a code that this one does not know.
    #[schema(value_type = StoredWarningCode)]
    pub code: String,
    /// What happened, what is missing, and what to do.
    pub message: String,
    /// The first page that it is about, from 1.
    #[serde(default)]
    pub page: Option<i64>,
}

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = FileInProgress)]
pub struct InflightView {
    pub stage: Stage,
    pub started_at: Option<DateTime<Utc>>,
    pub attempt: i64,
    pub worker: Option<String>,
}

/// Whether a file that should be moving makes no progress.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Staleness {
    pub stale: bool,
    /// Why it is stuck, if it is: as in the list of stuck files.
    pub stuck: Option<StuckReason>,
    pub since_ms: i64,
    pub message: Option<String>,
}

impl Listed for FileView {
    const FIELD: &'static str = "files";
    const SCHEMA: &'static str = "FileList";
}

pub type FileList = Page<FileView>;

/// How to retry a file.
#[derive(Debug, Clone, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RetryRequest {
    /// The stage to begin at; without it, the one that the file ended at.
    pub from_stage: Option<Stage>,
}

/// One step in the history of a file.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct HistoryEntry {
    pub id: i64,
    pub at: DateTime<Utc>,
    pub from: Option<Status>,
    pub to: Option<Status>,
    pub stage: Option<Stage>,
    pub attempt: Option<i64>,
    pub worker: Option<String>,
    #[schema(value_type = Option<StoredCode>)]
    pub error_code: Option<String>,
    pub error_message: Option<String>,
    /// Who or what caused it; null only for steps that an earlier version recorded.
    pub actor: Option<ActorView>,
    /// Why.
    pub reason: String,
}

/// Who or what caused a step.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = Actor)]
pub struct ActorView {
    pub kind: ActorKind,
    /// The user, the worker's host and process, or the name of the job.
    pub name: String,
}

impl Listed for HistoryEntry {
    const FIELD: &'static str = "history";
    const SCHEMA: &'static str = "FileHistory";
}

pub type History = Page<HistoryEntry>;

/// The form of a text.
#[derive(Debug, Default, Clone, Serialize, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub struct TextQuery {
    /// `markdown` (the default), or `plain`: without the marks of headings, tables and links. A file that is plain text stays
    /// as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub format: Option<TextFormat>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum TextFormat {
    #[default]
    Markdown,
    Plain,
}

/// A piece of a file that is found as one.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Chunk)]
pub struct ChunkView {
    pub ordinal: i64,
    pub text: String,
    pub page: Option<i64>,
    pub heading: Option<String>,
    /// The headings that it is under, from the top of the document down to its own.
    #[serde(default)]
    #[schema(required = true)]
    pub headings: Vec<String>,
    /// Where it is on its pages, if that is known.
    #[serde(default)]
    #[schema(required = true)]
    pub places: Vec<PlaceView>,
    /// Where it is in the file's text, in characters. A header row that is repeated from the beginning of its table is not
    /// counted.
    pub char_start: i64,
    pub char_end: i64,
    pub tokens: i64,
}

/// A part of a page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = Place)]
pub struct PlaceView {
    /// From 1.
    pub page: i64,
    #[serde(rename = "box")]
    pub area: BoxView,
}

/// A rectangle on a page as it is shown, in parts of its width and height, from its upper left corner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = Box)]
pub struct BoxView {
    #[schema(minimum = 0, maximum = 1)]
    pub left: f64,
    #[schema(minimum = 0, maximum = 1)]
    pub top: f64,
    #[schema(minimum = 0, maximum = 1)]
    pub right: f64,
    #[schema(minimum = 0, maximum = 1)]
    pub bottom: f64,
}

impl From<PageArea> for PlaceView {
    fn from(PageArea { page, area }: PageArea) -> Self {
        let part = |length: u16| f64::from(length) / f64::from(Area::SIDE);
        let area = BoxView {
            left: part(area.left),
            top: part(area.top),
            right: part(area.right),
            bottom: part(area.bottom),
        };
        Self { page, area }
    }
}

impl Listed for ChunkView {
    const FIELD: &'static str = "chunks";
    const SCHEMA: &'static str = "ChunkList";
}

pub type ChunkList = Page<ChunkView>;
