//! Re-embedding the files of another model, for operators.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// How far the re-embedding is, or how the last one ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReindexView {
    pub is_running: bool,
    /// The model that files get vectors of.
    pub model: String,
    /// Files of another model when it was started.
    pub total: i64,
    /// Those that are done with: re-embedded, deleted or processed again in the meantime.
    pub done: i64,
    /// Those that stay as they were, because they could not be re-embedded.
    pub failed: i64,
    /// Files of another model now.
    pub remaining: i64,
    /// Null if it was never started.
    pub started_at: Option<DateTime<Utc>>,
    pub started_by: Option<String>,
    pub ended_at: Option<DateTime<Utc>>,
    /// How it ended, or what it waits for.
    pub message: Option<String>,
}
