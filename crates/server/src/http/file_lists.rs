//! Lists of files: filtered, sorted, and counted.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;

use super::file_view::Surroundings;
use super::request::{Paging, Params};
use crate::app::App;
use crate::http::error::ApiError;
use crate::intake::announce::parse_md5;
use crate::records::files::listing::{Listing, Position, Sorting, Wanted};
use crate::records::totals::{self, Distribution};
use landfall_api::Page;
use landfall_api::file_queries::{FileCounts, FileCountsQuery, FileFilter, FileQuery};
use landfall_api::files::FileList;
use landfall_core::caller::{Caller, Reach, TenantUser};
use landfall_core::lifecycle::Status;
use landfall_core::refusal::{Refusal, RefusalCode};
use landfall_store::Tx;

/// How many MD5s one request may look for.
const MAX_MD5S: usize = 100;
/// How many rows are compared with the filters to count files.
pub const MAX_COUNTED: i64 = 100_000;
/// What a filter may be as long as. No name of a file, a user or a tenant is longer.
const MAX_TEXT: usize = 1_000;

/// The caller's files, newest first or in another order.
///
/// Use `cursor` for the next page: pages stay consistent while files come and go. `offset` is for clients that count pages.
#[utoipa::path(
    get, path = "/files", operation_id = "listFiles", tag = "files", params(FileQuery),
    responses((status = 200, body = FileList), (status = "4XX", description = "BATCH_NOT_FOUND INVALID_MD5"))
)]
pub async fn list(
    State(app): State<App>,
    caller: Caller,
    Params(query): Params<FileQuery>,
) -> Result<Json<FileList>, ApiError> {
    let paging: Paging<Position> = Paging::with_offset(query.limit, query.cursor.as_deref(), query.offset)?;
    let sorting = Sorting { by: query.sort.unwrap_or_default(), order: query.order.unwrap_or_default() };
    if paging.after.as_ref().is_some_and(|after| !after.is_sorted_by(sorting.by)) {
        let message = "This cursor belongs to a list with another order";
        return Err(Refusal::new(RefusalCode::InvalidCursor, message).into());
    }
    let mut tx = app.db.read().await?;
    let wanted = wanted(&mut tx, &caller, &query.filter(), query.md5.as_deref()).await?;
    let listing = Listing::open(&mut tx, &wanted, sorting, paging.after.as_ref()).await?;
    let files = listing.first(&mut tx, paging.fetched(), paging.offset).await?;
    let mut page = paging.page(files, |file| sorting.position(file).to_string());
    if page.next_cursor.is_none() {
        page.next_cursor = listing.last_compared(&mut tx).await?.map(|last| last.to_string());
    }
    let surroundings = Surroundings::load(&mut tx, &caller.owner(), &app, &page.items).await?;
    let items = surroundings.views(&mut tx, page.items).await?;
    Ok(Json(Page { items, next_cursor: page.next_cursor }))
}

/// How many files match, in each state.
///
/// Up to 100,000 files are compared with the filters; with more, `isCapped` is true.
#[utoipa::path(
    get, path = "/files/counts", operation_id = "countFiles", tag = "files", params(FileCountsQuery),
    responses((status = 200, body = FileCounts), (status = "4XX", description = "BATCH_NOT_FOUND INVALID_MD5"))
)]
pub async fn counts(
    State(app): State<App>,
    caller: Caller,
    Params(query): Params<FileCountsQuery>,
) -> Result<Json<FileCounts>, ApiError> {
    let mut tx = app.db.snapshot().await?;
    let wanted = wanted(&mut tx, &caller, &query.filter(), query.md5.as_deref()).await?;
    Ok(Json(count(&mut tx, &wanted).await?))
}

/// Counts files, in a snapshot. The kept totals are used where they suffice.
pub async fn count(tx: &mut Tx, wanted: &Wanted) -> Result<FileCounts, ApiError> {
    let (by_status, is_capped) = if wanted.is_counted() {
        let distribution = Distribution::load(tx, &wanted.reach).await?;
        let is_wanted = |status: &Status| {
            *status != Status::Deleted && (wanted.states.is_empty() || wanted.states.contains(status))
        };
        let counts = Status::ALL.into_iter().filter(is_wanted);
        let counts = counts.map(|status| (status, distribution.count(status)));
        (counts.filter(|(_, count)| *count > 0).collect::<BTreeMap<_, _>>(), false)
    } else {
        Listing::open(tx, wanted, Sorting::default(), None).await?.count(tx, MAX_COUNTED).await?
    };
    Ok(FileCounts { total: by_status.values().sum(), by_status, is_capped })
}

/// What a caller asks for, if their role allows it.
pub async fn wanted(
    tx: &mut Tx,
    caller: &Caller,
    filter: &FileFilter,
    md5: Option<&str>,
) -> Result<Wanted, ApiError> {
    for (name, text) in [("q", &filter.q), ("owner", &filter.owner), ("tenantId", &filter.tenant_id)] {
        if text.as_ref().is_some_and(|text| text.len() > MAX_TEXT || (name != "q" && text.contains('\0'))) {
            return Err(refuse(format!("{name}: at most {MAX_TEXT} bytes, without NUL")).into());
        }
    }
    let (reach, user) = whose(tx, caller, filter).await?;
    let md5s = md5.map(md5s).transpose()?;
    Ok(Wanted { user, md5s, ..Wanted::new(filter, reach)? })
}

fn refuse(message: impl Into<String>) -> Refusal {
    Refusal::new(RefusalCode::InvalidRequest, message)
}

/// Whose files a filter is about, and the name of a user that exists in several tenants.
async fn whose(
    tx: &mut Tx,
    caller: &Caller,
    filter: &FileFilter,
) -> Result<(Reach, Option<String>), ApiError> {
    let reach = match (caller.reach(filter.scope.unwrap_or_default())?, &filter.tenant_id) {
        (reach, None) => reach,
        (Reach::All, Some(tenant)) => Reach::Tenant(tenant.clone()),
        (_, Some(_)) => return Err(refuse("tenantId: send scope=all with it, as an operator").into()),
    };
    match (reach, &filter.owner) {
        (reach, None) => Ok((reach, None)),
        (Reach::Tenant(tenant), Some(owner)) => Ok((Reach::User(TenantUser::new(tenant, owner)), None)),
        (Reach::All, Some(owner)) => Ok(match totals::tenants_of(tx, owner, 2).await?.as_slice() {
            [] => (Reach::User(TenantUser::new("", owner)), None),
            [tenant] => (Reach::User(TenantUser::new(tenant, owner)), None),
            _ => (Reach::All, Some(owner.clone())),
        }),
        (Reach::User(_), Some(_)) => {
            Err(refuse("owner: send scope=tenant or scope=all with it, as an administrator").into())
        }
    }
}

/// The MD5s of a list, in hexadecimal digits.
fn md5s(list: &str) -> Result<Vec<String>, Refusal> {
    let md5s = list.split(',').map(parse_md5).collect::<Result<Vec<_>, Refusal>>()?;
    if md5s.len() > MAX_MD5S {
        let message = format!("At most {MAX_MD5S} MD5s can be looked for at once, not {}", md5s.len());
        return Err(Refusal::new(RefusalCode::InvalidMd5, message));
    }
    Ok(md5s)
}
