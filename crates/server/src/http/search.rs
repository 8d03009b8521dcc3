//! Search.

use axum::Json;
use axum::extract::{Request, State};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::request::Received;
use crate::app::App;
use crate::content::search::{self, Hit, Meaning, Question};
use crate::http::error::ApiError;
use landfall_core::caller::Caller;
use landfall_core::refusal::{Refusal, RefusalCode};

const MAX_QUERY_LENGTH: usize = 2_000;
const MAX_HITS: usize = 50;

/// A search.
#[derive(Deserialize, utoipa::ToSchema)]
#[schema(as = Question)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Asked {
    #[schema(min_length = 1, max_length = 2000)]
    query: String,
    #[schema(minimum = 1, maximum = 50, default = 10)]
    limit: Option<usize>,
    batch_id: Option<Uuid>,
    file_id: Option<Uuid>,
}

#[derive(Serialize, utoipa::ToSchema)]
pub struct Answer {
    hits: Vec<Hit>,
    /// Why the search may have missed some results.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    warning: Option<&'static str>,
}

/// The passages in the caller's files that match a question, best first.
#[utoipa::path(
    post, path = "/api/v2/search", operation_id = "search", tag = "search", request_body = Asked,
    responses((status = 200, body = Answer), (status = "4XX", description = "INVALID_QUERY"))
)]
pub async fn search(
    State(app): State<App>,
    caller: Caller,
    request: Request,
) -> Result<Json<Answer>, ApiError> {
    let asked: Asked = Received::read(request, app.config.http.max_body_bytes).await?.json()?;
    if asked.query.trim().is_empty() || asked.query.len() > MAX_QUERY_LENGTH {
        return Err(Refusal::new(
            RefusalCode::InvalidQuery,
            format!("A query has 1 to {MAX_QUERY_LENGTH} bytes"),
        )
        .into());
    }
    let limit = asked.limit.unwrap_or(10);
    if !(1..=MAX_HITS).contains(&limit) {
        return Err(
            Refusal::new(RefusalCode::InvalidRequest, format!("limit must be from 1 to {MAX_HITS}")).into()
        );
    }
    let (meaning, warning) = match app.embedder.embed_question(asked.query.clone()).await {
        Ok((model, vector)) => (Some(Meaning { model, vector }), None),
        Err(failure) => {
            // A search by words needs no model. Partial results with a warning are better than none.
            tracing::warn!(%failure, "a search used only the words");
            (None, Some("The embedding model did not respond: only the words were searched"))
        }
    };
    let question = Question {
        user: caller.user,
        text: asked.query,
        meaning,
        limit,
        batch: asked.batch_id,
        file: asked.file_id,
    };
    let hits = search::search(&mut app.db.read().await?, &question).await?;
    Ok(Json(Answer { hits, warning }))
}
