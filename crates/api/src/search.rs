//! Search.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// What to search for.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = Question)]
pub struct SearchRequest {
    #[schema(min_length = 1, max_length = 2000)]
    pub query: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 50, default = 10)]
    pub limit: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_id: Option<Uuid>,
}

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = Answer)]
pub struct SearchResponse {
    pub hits: Vec<Hit>,
    /// Why there may be more than was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub warning: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Hit {
    pub file_id: Uuid,
    pub file_name: String,
    pub batch_id: Option<Uuid>,
    pub ordinal: i64,
    pub page: Option<i64>,
    pub heading: Option<String>,
    pub char_start: i64,
    pub char_end: i64,
    pub snippet: String,
    pub score: f64,
    /// Which of the two rankings found it.
    #[schema(value_type = Vec<String>)]
    pub matched: Vec<MatchedBy>,
}

/// The rankings that are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MatchedBy {
    Words,
    Meaning,
}
