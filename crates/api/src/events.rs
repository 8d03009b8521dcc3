//! Events: how a stream of them is opened, and what each of them tells.

pub mod data;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use landfall_core::states::Scope;

/// A short-lived replacement for a token, for clients that cannot send headers.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = EventTicket)]
pub struct Ticket {
    pub ticket: String,
    pub expires_at: DateTime<Utc>,
}

/// Which events a stream has.
#[derive(Debug, Clone, Default, Serialize, Deserialize, utoipa::IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct StreamQuery {
    /// The id of the last event that the client has: the stream continues after it. `Last-Event-ID` does the same.
    #[param(pattern = "^[0-9]{1,18}$")]
    pub after: Option<String>,
    /// Only these types, separated by commas.
    pub types: Option<String>,
    /// Only events of this batch.
    #[param(value_type = Option<uuid::Uuid>)]
    pub batch_id: Option<String>,
    /// `all`: those of all users, for administrators.
    pub scope: Option<Scope>,
    /// Instead of a token.
    pub ticket: Option<String>,
    /// `false`: the stream ends after all events that exist when it is opened.
    pub follow: Option<bool>,
}
