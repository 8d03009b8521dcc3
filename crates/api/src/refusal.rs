//! The body of every response that is not a success.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A refusal as clients see it.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = Refusal)]
pub struct RefusalView {
    #[schema(inline)]
    pub error: RefusalBody,
}

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RefusalBody {
    pub code: String,
    /// For a person.
    pub message: String,
    /// Whether the same request may succeed later.
    pub retryable: bool,
    #[schema(value_type = Object)]
    pub details: Value,
}
