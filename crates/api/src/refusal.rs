//! The body of every response that is not a success.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use landfall_core::refusal::RefusalCode;

/// A refusal as clients see it.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = Refusal)]
pub struct RefusalView {
    pub error: RefusalBody,
}

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = RefusalError)]
pub struct RefusalBody {
    #[schema(value_type = RefusalCode)]
    pub code: String,
    /// For a person.
    pub message: String,
    /// Whether the same request may succeed later.
    pub retryable: bool,
    #[schema(value_type = Object)]
    pub details: Value,
}
