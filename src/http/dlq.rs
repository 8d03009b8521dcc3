//! Dead letters: looked at one by one and by their causes, retried one by one and together, discarded.

use axum::Json;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::files::Retry;
use super::request::{Page, Params, Received, batch_id, everybodys, file_id};
use crate::app::App;
use crate::error::{Error, Refusal};
use crate::failure::Code;
use crate::file::Caller;
use crate::intake::delete;
use crate::intake::idempotency::Idempotent;
use crate::lifecycle::Stage;
use crate::queue::dead_letter::{self, DeadLetter, Filter, Place, is_fingerprint};
use crate::queue::operations::{Operation, OperationView, RetryAll};

/// Files that are dealt with before a request for many is answered. What is left is done after it.
const WHILE_THE_CALLER_WAITS: usize = 1_000;

/// Which dead letters are meant, as the client says it.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Wanted {
    code: Option<String>,
    stage: Option<String>,
    batch_id: Option<String>,
    fingerprint: Option<String>,
    /// `all`: everybody's, for administrators.
    scope: Option<String>,
}

impl Wanted {
    fn filter(self, caller: &Caller) -> Result<Filter, Refusal> {
        let refuse = |message: String| Err(Refusal::new(400, "INVALID_REQUEST", message));
        if let Some(code) = self.code.as_deref().filter(|code| Code::parse(code).is_none()) {
            return refuse(format!("code: {code:?} is not a code that a file fails with"));
        }
        if let Some(Err(error)) = self.stage.as_deref().map(str::parse::<Stage>) {
            return refuse(format!("stage: {error}"));
        }
        if self.fingerprint.as_deref().is_some_and(|text| !is_fingerprint(text)) {
            return refuse("fingerprint: one is 16 hexadecimal digits in lower case".to_owned());
        }
        Ok(Filter {
            of_user: (!everybodys(caller, self.scope.as_deref())?).then(|| caller.user.clone()),
            code: self.code,
            stage: self.stage,
            batch_id: self.batch_id.as_deref().map(batch_id).transpose()?,
            fingerprint: self.fingerprint,
        })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ListParams {
    limit: Option<i64>,
    cursor: Option<String>,
    code: Option<String>,
    stage: Option<String>,
    batch_id: Option<String>,
    fingerprint: Option<String>,
    scope: Option<String>,
}

impl ListParams {
    fn wanted(self) -> Wanted {
        let Self { code, stage, batch_id, fingerprint, scope, .. } = self;
        Wanted { code, stage, batch_id, fingerprint, scope }
    }
}

pub async fn list(
    State(app): State<App>,
    caller: Caller,
    Params(params): Params<ListParams>,
) -> Result<Json<Value>, Error> {
    let page: Page<Place> = Page::new(params.limit, params.cursor.as_deref())?;
    let filter = params.wanted().filter(&caller)?;
    let entries = dead_letter::list(&mut app.db.read().await?, &filter, page.after, page.limit).await?;
    let next = page.next(&entries, |entry: &DeadLetter| entry.place().to_string());
    Ok(Json(json!({ "entries": entries, "nextCursor": next })))
}

/// The causes, the one with most dead letters first.
pub async fn groups(
    State(app): State<App>,
    caller: Caller,
    Params(params): Params<ListParams>,
) -> Result<Json<Value>, Error> {
    if params.cursor.is_some() {
        let message = "Groups have no pages: those with most dead letters are shown, up to the limit";
        return Err(Refusal::new(400, "INVALID_REQUEST", message).into());
    }
    let page: Page<Place> = Page::new(params.limit, None)?;
    let filter = params.wanted().filter(&caller)?;
    let groups = dead_letter::groups(&mut app.db.read().await?, &filter, page.limit).await?;
    Ok(Json(json!({ "groups": groups })))
}

pub async fn retry(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Value>, Error> {
    let retry = Retry { only_failed: true, ..Retry::default() };
    let file = retry.carry_out(&app, caller, file_id(&id)?).await?;
    Ok(Json(json!({ "success": true, "fileId": file.id, "status": file.status })))
}

/// Answers how far it came, which for most is to the end.
pub async fn retry_all(
    State(app): State<App>,
    caller: Caller,
    request: Request,
) -> Result<Json<OperationView>, Error> {
    let received = Received::read(request, app.config.http.max_body_bytes).await?;
    let wanted: Wanted = received.json_or_default()?;
    let filter = wanted.filter(&caller)?;
    let now = app.clock.now();
    let change = RetryAll { id: app.clock.new_id(), user: caller.user.clone(), filter, now };
    let id = app.db.write(Idempotent { key: received.key(&caller)?, now, change }).await?;
    app.operations().advance_up_to(id, WHILE_THE_CALLER_WAITS).await?;
    let operation = Operation::find_for(&mut app.db.read().await?, &caller, id).await?;
    Ok(Json(operation.into()))
}

pub async fn discard(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, Error> {
    delete::discard(&app.db, &app.blobs, &caller, file_id(&id)?, app.clock.now()).await?;
    Ok(StatusCode::NO_CONTENT)
}
