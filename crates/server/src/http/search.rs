//! Search.

use axum::Json;
use axum::extract::{Request, State};
use serde_json::Value;

use super::request::Received;
use crate::app::App;
use crate::content::indexed_files;
use crate::content::narrowing::Narrowing;
use crate::content::search::{self, CANDIDATES, Found, Meaning, Question};
use crate::http::error::ApiError;
use crate::records::files::attributes;
use landfall_api::search::{SearchMode, SearchRequest, SearchResponse};
use landfall_core::caller::Caller;
use landfall_core::refusal::{Refusal, RefusalCode};

const MAX_QUERY_LENGTH: usize = 2_000;
const MAX_HITS: usize = 50;
const MAX_FILES: usize = 100;
const MAX_TYPES: usize = 16;
const MAX_NAME_LENGTH: usize = 255;
const MAX_ATTRIBUTES: usize = 16;

/// The passages in the caller's files that match a question, best first.
///
/// Words and meaning are compared, and each passage gets one score from both. A query that no passage has to do with finds
/// nothing. Only files that are ready are searched, and only the caller's own.
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
        return Err(refused(format!("limit must be from 1 to {MAX_HITS}")));
    }
    let (offset, max_offset) = (asked.offset.unwrap_or(0), CANDIDATES - MAX_HITS);
    if offset > max_offset {
        return Err(refused(format!("offset must be from 0 to {max_offset}")));
    }
    let narrowing = narrowing(&asked)?;
    let (mode, mut warning) = (asked.mode.unwrap_or_default(), None);
    let mut meaning = None;
    if mode != SearchMode::Words {
        match app.embedder.embed_question(asked.query.clone()).await {
            Ok((model, vector)) => {
                let (scale, codes) = (app.embedder.scale().await, app.codes.clone());
                meaning = Some(Meaning { model, vector, scale, codes });
            }
            Err(failure) => {
                // A search by words needs no model. Partial results with a warning are better than none.
                tracing::warn!(%failure, "a search used only the words");
                let searched = if mode == SearchMode::Hybrid { "only the words were" } else { "nothing was" };
                warning = Some(format!("The embedding model did not respond: {searched} searched"));
            }
        }
    }
    let question = Question {
        owner: caller.owner(),
        text: asked.query,
        mode,
        meaning,
        limit,
        offset,
        narrowing,
        explain: asked.explain.unwrap_or(false),
    };
    let mut tx = app.db.read().await?;
    let Found { hits, has_more, explanation } = search::search(&mut tx, &question).await?;
    if warning.is_none() && mode != SearchMode::Meaning && indexed_files::any_with_old_terms(&mut tx).await? {
        let text = "The words of some files are still being indexed after an upgrade: they are found by their meaning only";
        warning = Some(text.to_owned());
    }
    Ok(Json(SearchResponse { hits, has_more, warning, explanation }))
}

fn refused(message: String) -> ApiError {
    Refusal::new(RefusalCode::InvalidRequest, message).into()
}

/// Which files are searched.
fn narrowing(asked: &SearchRequest) -> Result<Narrowing, ApiError> {
    let files: Vec<_> = asked.file_id.into_iter().chain(asked.file_ids.iter().flatten().copied()).collect();
    if files.len() > MAX_FILES || asked.file_ids.as_ref().is_some_and(Vec::is_empty) {
        return Err(refused(format!("fileIds has from 1 to {MAX_FILES} ids")));
    }
    if asked.name.as_ref().is_some_and(|name| name.is_empty() || name.len() > MAX_NAME_LENGTH) {
        return Err(refused(format!("name has from 1 to {MAX_NAME_LENGTH} bytes")));
    }
    let types = asked.types.clone().unwrap_or_default();
    let is_type = |kind: &String| !kind.is_empty() && kind.len() <= MAX_NAME_LENGTH && !kind.contains('\0');
    if types.len() > MAX_TYPES
        || !types.iter().all(is_type)
        || asked.types.as_ref().is_some_and(Vec::is_empty)
    {
        return Err(refused(format!("types has from 1 to {MAX_TYPES} content types")));
    }
    let wanted = asked.attributes.as_ref();
    if wanted.is_some_and(|wanted| wanted.len() > MAX_ATTRIBUTES) {
        return Err(refused(format!("attributes has at most {MAX_ATTRIBUTES} names")));
    }
    let text = |(name, value): (&String, &Value)| match attributes::text(value) {
        Some(text) if !text.contains('\0') && !name.contains('\0') => Ok((name.clone(), text)),
        _ => Err(refused(format!("attributes: {name:?} must be a string, a number or a boolean"))),
    };
    Ok(Narrowing {
        files,
        batch: asked.batch_id,
        name: asked.name.clone(),
        types,
        created_after: asked.created_after,
        created_before: asked.created_before,
        attributes: wanted.into_iter().flatten().map(text).collect::<Result<_, _>>()?,
    })
}
