//! Search.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::files::PlaceView;

/// What to search for, and in which of the caller's files. What is left out matches all files.
#[derive(Debug, Clone, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SearchRequest {
    #[schema(min_length = 1, max_length = 2000)]
    pub query: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 50, default = 10)]
    pub limit: Option<usize>,
    /// How many of the best hits to skip.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 150, default = 0)]
    pub offset: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<SearchMode>,
    /// `true`: say why each hit was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explain: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_id: Option<Uuid>,
    /// Several files, instead of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_items = 100)]
    pub file_ids: Option<Vec<Uuid>>,
    /// A part of the file's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 255)]
    pub name: Option<String>,
    /// Content types. One that ends with `/`, as `image/` does, stands for all that begin with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_items = 16)]
    pub types: Option<Vec<String>>,
    /// Registered at this time or later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_after: Option<DateTime<Utc>>,
    /// Registered before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_before: Option<DateTime<Utc>>,
    /// Attributes that a file must have, with these values: strings, numbers or booleans, compared as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub attributes: Option<Map<String, Value>>,
}

/// What is compared with the query: the words, the meaning, or both. Without a mode, it is both.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum SearchMode {
    Words,
    Meaning,
    #[default]
    Hybrid,
}

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchResponse {
    pub hits: Vec<Hit>,
    /// Whether there are more hits behind these.
    #[serde(default)]
    #[schema(required = true)]
    pub has_more: bool,
    /// Why there may be more than was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub warning: Option<String>,
    /// How the query was understood, with `explain`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub explanation: Option<Explanation>,
}

/// A passage: a chunk of a file, or several that follow each other.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = SearchHit)]
pub struct Hit {
    pub file_id: Uuid,
    pub file_name: String,
    pub batch_id: Option<Uuid>,
    /// The chunk that fits best.
    pub ordinal: i64,
    /// The first and the last chunk of the passage.
    #[serde(default)]
    #[schema(required = true)]
    pub first_ordinal: i64,
    #[serde(default)]
    #[schema(required = true)]
    pub last_ordinal: i64,
    pub page: Option<i64>,
    pub heading: Option<String>,
    /// The headings that the best chunk is under, from the top of the document down to its own.
    #[serde(default)]
    #[schema(required = true)]
    pub headings: Vec<String>,
    /// Where the best chunk is on its pages, if that is known.
    #[serde(default)]
    #[schema(required = true)]
    pub places: Vec<PlaceView>,
    /// Where the passage is in the file's text.
    pub char_start: i64,
    pub char_end: i64,
    pub snippet: String,
    /// How well it fits, from 0 to 1: about the share of such hits that answer their query.
    #[schema(minimum = 0, maximum = 1)]
    pub score: f64,
    /// Whether it has words of the query, and whether its meaning is close.
    pub matched: Vec<MatchedBy>,
    /// Why it was found, with `explain`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub explanation: Option<HitExplanation>,
}

/// What was compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum MatchedBy {
    Words,
    Meaning,
}

/// How a query was understood.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = SearchExplanation)]
pub struct Explanation {
    pub mode: SearchMode,
    /// Passages with a lower score are left out.
    pub floor: f64,
    /// The words that were searched, the rarest first.
    pub terms: Vec<ExplainedTerm>,
    /// The model whose vectors were compared.
    pub model: Option<String>,
    /// The usual similarity of texts that have nothing to do with each other, with this model.
    pub unrelated: Option<f64>,
    /// The usual similarity of a question and its answer, with this model.
    pub related: Option<f64>,
}

/// A word of a query.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = SearchTerm)]
pub struct ExplainedTerm {
    pub term: String,
    /// In how many of the caller's chunks it is; for common words an estimate.
    pub chunks: f64,
    /// How much it counts.
    pub weight: f64,
}

/// Why a passage was found.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = SearchHitExplanation)]
pub struct HitExplanation {
    /// How well the words fit (BM25), relative to the weights of all words of the query.
    pub words: f64,
    /// The share of the query's words that it has, by their weights.
    pub coverage: f64,
    /// The words of the query that it has.
    pub terms: Vec<String>,
    /// The cosine of the two vectors. Null: there are none of the same model.
    pub similarity: Option<f64>,
    /// The similarity on the scale of the model: 0 for what is unrelated, 1 for an answer.
    pub meaning: Option<f64>,
}
