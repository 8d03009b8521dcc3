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

const LONGEST_QUERY: usize = 2_000;
const MOST_HITS: usize = 50;

/// The places in the caller's files that answer a question, best first.
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
    if asked.query.trim().is_empty() || asked.query.len() > LONGEST_QUERY {
        return Err(Refusal::new(
            RefusalCode::InvalidQuery,
            format!("A query has 1 to {LONGEST_QUERY} bytes"),
        )
        .into());
    }
    let limit = asked.limit.unwrap_or(10);
    if !(1..=MOST_HITS).contains(&limit) {
        return Err(Refusal::new(
            RefusalCode::InvalidRequest,
            format!("limit must be from 1 to {MOST_HITS}"),
        )
        .into());
    }
    let (meaning, warning) = match app.embedder.embed_question(asked.query.clone()).await {
        Ok((model, vector)) => (Some(Meaning { model, vector }), None),
        Err(failure) => {
            // Words are found without a model. Half an answer that says so is better than none.
            tracing::warn!(%failure, "a search went by words alone");
            (None, Some("The embedding model did not answer: only the words were looked for".to_owned()))
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
    Ok(Json(SearchResponse { hits, warning }))
}
