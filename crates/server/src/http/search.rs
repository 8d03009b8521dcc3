//! Search.

use axum::Json;
use axum::extract::{Request, State};

use super::request::Received;
use crate::app::App;
use crate::content::search::{self, Meaning, Question};
use crate::http::error::ApiError;
use landfall_api::search::{SearchRequest, SearchResponse};
use landfall_core::caller::Caller;
use landfall_core::refusal::{Refusal, RefusalCode};

const MAX_QUERY_LENGTH: usize = 2_000;
const MAX_HITS: usize = 50;

/// The passages in the caller's files that match a question, best first.
#[utoipa::path(
    post, path = "/api/v2/search", operation_id = "search", tag = "search", request_body = SearchRequest,
    responses((status = 200, body = SearchResponse), (status = "4XX", description = "INVALID_QUERY"))
)]
pub async fn search(
    State(app): State<App>,
    caller: Caller,
    request: Request,
) -> Result<Json<SearchResponse>, ApiError> {
    let asked: SearchRequest = Received::read(request, app.config.http.max_body_bytes).await?.json()?;
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
            (None, Some("The embedding model did not respond: only the words were searched".to_owned()))
        }
    };
    let question = Question {
        owner: caller.owner(),
        text: asked.query,
        meaning,
        limit,
        batch: asked.batch_id,
        file: asked.file_id,
    };
    let hits = search::search(&mut app.db.read().await?, &question).await?;
    Ok(Json(SearchResponse { hits, warning }))
}
