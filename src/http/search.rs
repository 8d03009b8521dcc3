//! Search.

use axum::Json;
use axum::extract::{Request, State};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::request::Received;
use crate::app::App;
use crate::error::{Error, Refusal};
use crate::file::Caller;
use crate::index::search::{self, Question};

const LONGEST_QUERY: usize = 2_000;
const MOST_HITS: usize = 50;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Asked {
    query: String,
    limit: Option<usize>,
    batch_id: Option<Uuid>,
    file_id: Option<Uuid>,
}

pub async fn search(State(app): State<App>, caller: Caller, request: Request) -> Result<Json<Value>, Error> {
    let asked: Asked = Received::read(request, app.config.http.max_body_bytes).await?.json()?;
    if asked.query.trim().is_empty() || asked.query.len() > LONGEST_QUERY {
        return Err(
            Refusal::new(400, "INVALID_QUERY", format!("A query has 1 to {LONGEST_QUERY} bytes")).into()
        );
    }
    let limit = asked.limit.unwrap_or(10);
    if !(1..=MOST_HITS).contains(&limit) {
        return Err(
            Refusal::new(400, "INVALID_REQUEST", format!("limit must be from 1 to {MOST_HITS}")).into()
        );
    }
    let (embedder, text) = (app.embedder.clone(), asked.query.clone());
    let vector = tokio::task::spawn_blocking(move || embedder.embed(&[text], &CancellationToken::new()))
        .await
        .map_err(|error| Error::Internal(error.to_string()))?
        .map_err(|failure| Error::Internal(failure.to_string()))?
        .swap_remove(0);
    let question = Question {
        user: caller.user,
        text: asked.query,
        vector,
        model: app.embedder.model().to_owned(),
        limit,
        batch: asked.batch_id,
        file: asked.file_id,
    };
    let hits = search::search(&mut app.db.read().await?, &question).await?;
    Ok(Json(json!({ "hits": hits })))
}
