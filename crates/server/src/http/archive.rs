//! Many files as one ZIP archive, which is sent while it is made.
//!
//! Its size is not known before its end, so the response has no length. If it breaks off, the archive has no directory, and
//! no program takes it for a whole one.

mod entries;
mod names;

use std::collections::HashMap;
use std::io;
use std::sync::{LazyLock, Mutex, PoisonError};

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use tokio::sync::mpsc;
use uuid::Uuid;

use super::file_lists;
use super::request::Params;
use crate::app::App;
use crate::http::error::ApiError;
use crate::records::files::listing::{Listing, Sorting, Wanted};
use entries::Entries;
use landfall_api::file_queries::{ArchiveQuery, MAX_ARCHIVED, MAX_FILE_IDS};
use landfall_core::caller::{Caller, TenantUser};
use landfall_core::refusal::{Refusal, RefusalCode};
use landfall_store::Tx;

/// How often the rows that one request may compare with its filters are compared before the archive begins.
const MAX_WALKS: usize = 20;
/// Pieces of the archive that are made before the client takes them. A piece has about 64 KB.
const PIECES_AHEAD: usize = 4;
/// Archives that a user can have made at the same time.
const MAX_PER_USER: usize = 2;

/// The originals of many files as a ZIP archive: up to 10,000 that match the filters, or up to 1,000 by their ids.
///
/// The names in it are unique, and safe on every system. A file that cannot be read is named in `MISSING.txt` in the archive,
/// with the reason.
#[utoipa::path(
    get, path = "/api/v2/uploads/files/archive", operation_id = "archiveFiles", tag = "files", params(ArchiveQuery),
    responses(
        (status = 200, body = Vec<u8>, content_type = "application/zip",
            headers(("Content-Disposition" = String, description = "An attachment with the name of the archive"))),
        (status = "4XX", description = "BATCH_NOT_FOUND INVALID_MD5 INVALID_FILE_COUNT TOO_MANY_ARCHIVES")
    )
)]
pub async fn archive(
    State(app): State<App>,
    caller: Caller,
    Params(query): Params<ArchiveQuery>,
) -> Result<Response, ApiError> {
    let ids = chosen(&app, &caller, &query).await?;
    let admitted = Admitted::new(caller.owner())?;
    let name = format!("files-{}.zip", app.clock.now().format("%Y-%m-%d"));
    let (sender, pieces) = mpsc::channel::<io::Result<Bytes>>(PIECES_AHEAD);
    tokio::spawn(async move {
        let entries = Entries::new(app, caller, sender.clone());
        if let Err(error) = Box::pin(entries.write_all(&ids)).await {
            tracing::info!(%error, "an archive broke off");
            // The connection breaks off as well, so that the client does not take it for a whole one.
            let _ = sender.send(Err(error)).await;
        }
        drop(admitted);
    });
    let body = stream::unfold(pieces, async |mut pieces| Some((pieces.recv().await?, pieces)));
    let disposition = HeaderValue::from_str(&format!("attachment; filename=\"{name}\""))
        .unwrap_or(HeaderValue::from_static("attachment"));
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/zip")),
        (header::CONTENT_DISPOSITION, disposition),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    Ok((headers, Body::from_stream(body)).into_response())
}

/// The ids of the files that the archive is to have.
async fn chosen(app: &App, caller: &Caller, query: &ArchiveQuery) -> Result<Vec<Uuid>, ApiError> {
    if let Some(ids) = &query.file_ids {
        if !query.is_unfiltered() {
            let message = "Send filters or fileIds, and not both";
            return Err(Refusal::new(RefusalCode::InvalidRequest, message).into());
        }
        return Ok(listed(ids)?);
    }
    let mut tx = app.db.read().await?;
    let wanted = file_lists::wanted(&mut tx, caller, &query.filter(), query.md5.as_deref()).await?;
    matching(&mut tx, &wanted).await
}

fn listed(ids: &str) -> Result<Vec<Uuid>, Refusal> {
    let mut found = Vec::new();
    for id in ids.split(',') {
        let id = Uuid::parse_str(id.trim()).map_err(|_| {
            Refusal::new(RefusalCode::InvalidRequest, "fileIds: ids of files, separated by commas")
        })?;
        if !found.contains(&id) {
            found.push(id);
        }
        if found.len() > MAX_FILE_IDS {
            return Err(wrong_number(format!("fileIds: at most {MAX_FILE_IDS} ids")));
        }
    }
    Ok(found)
}

fn wrong_number(message: impl Into<String>) -> Refusal {
    Refusal::new(RefusalCode::InvalidFileCount, message)
}

async fn matching(tx: &mut Tx, wanted: &Wanted) -> Result<Vec<Uuid>, ApiError> {
    let (mut ids, mut after) = (Vec::new(), None);
    for _ in 0..MAX_WALKS {
        let listing = Listing::open(tx, wanted, Sorting::default(), after.as_ref()).await?;
        let room = i64::try_from(MAX_ARCHIVED + 1 - ids.len()).unwrap_or(0);
        let (found, next) = listing.next_ids(tx, room).await?;
        ids.extend(found);
        if ids.len() > MAX_ARCHIVED {
            let message = format!(
                "More than {MAX_ARCHIVED} files match, and an archive has no more: narrow the filters"
            );
            return Err(wrong_number(message).into());
        }
        after = next;
        if after.is_none() {
            break;
        }
    }
    if after.is_some() {
        let message = "Too many files are to be compared with these filters: add a time, a state or a batch";
        return Err(wrong_number(message).into());
    }
    if ids.is_empty() {
        return Err(wrong_number("No file matches, so there is nothing to put into an archive").into());
    }
    Ok(ids)
}

/// One of the archives that a user has made at this moment, until it is dropped.
struct Admitted(TenantUser);

static UNDER_WAY: LazyLock<Mutex<HashMap<TenantUser, usize>>> = LazyLock::new(Mutex::default);

impl Admitted {
    fn new(user: TenantUser) -> Result<Self, Refusal> {
        let mut under_way = UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner);
        let count = under_way.entry(user.clone()).or_default();
        if *count >= MAX_PER_USER {
            let message =
                format!("{MAX_PER_USER} archives of yours are being sent already: wait for their end");
            return Err(Refusal::new(RefusalCode::TooManyArchives, message).retryable());
        }
        *count += 1;
        Ok(Self(user))
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let mut under_way = UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = under_way.get_mut(&self.0) {
            *count -= 1;
            if *count == 0 {
                under_way.remove(&self.0);
            }
        }
    }
}
