//! Asks the server which files it has already, by the checksums of their bytes.

use std::collections::{HashMap, HashSet};

use uuid::Uuid;

use super::candidates::Hashed;
use crate::client::{Client, ClientError};
use landfall_api::file_queries::FileQuery;
use landfall_api::files::FileView;
use landfall_api::page::MAX_LIMIT;
use landfall_api::uploads::ConfirmRequest;
use landfall_core::lifecycle::Status;

/// How many checksums the server looks for at once.
pub const MAX_AT_ONCE: usize = 100;
/// How many pages of files with these bytes are looked at. A user who has more copies than that, and none of them in use,
/// sends another one.
const MAX_PAGES: usize = 50;

/// A file that the server has.
#[derive(Debug, Clone)]
pub struct Known {
    pub file_id: Uuid,
    pub batch_id: Option<Uuid>,
    pub status: Status,
}

/// For each of the files the one with the same bytes that the server has, ready or on its way. Those of the batches in `own`
/// do not count: this command sent them itself.
pub async fn known(
    client: &Client,
    files: &[Hashed],
    own: &HashSet<Uuid>,
) -> Result<Vec<Option<Known>>, ClientError> {
    let mut found: HashMap<String, Known> = HashMap::new();
    for group in files.chunks(MAX_AT_ONCE) {
        look_up(client, group, own, &mut found).await?;
    }
    Ok(files.iter().map(|file| found.get(&file.checksums.md5).cloned()).collect())
}

async fn look_up(
    client: &Client,
    files: &[Hashed],
    own: &HashSet<Uuid>,
    found: &mut HashMap<String, Known>,
) -> Result<(), ClientError> {
    let mut wanted: HashMap<&str, &Hashed> =
        files.iter().map(|file| (file.checksums.md5.as_str(), file)).collect();
    let mut cursor = None;
    for _ in 0..MAX_PAGES {
        let md5s: Vec<&str> = wanted.keys().copied().collect();
        if md5s.is_empty() {
            break;
        }
        let query = FileQuery {
            md5: Some(md5s.join(",")),
            limit: Some(MAX_LIMIT),
            cursor: cursor.take(),
            ..FileQuery::default()
        };
        let page = client.retry(async || client.files(&query).await).await?;
        for view in page.items {
            let Some(file) = view.md5.as_deref().and_then(|md5| wanted.get(md5).copied()) else { continue };
            if view.batch_id.is_some_and(|batch| own.contains(&batch)) || !has_bytes_of(&view, file) {
                continue;
            }
            if let Some(known) = usable(client, &view).await? {
                wanted.remove(file.checksums.md5.as_str());
                found.insert(file.checksums.md5.clone(), known);
            }
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    Ok(())
}

/// Two documents can be made to have the same MD5. A server that has read the bytes knows their SHA-256 too.
fn has_bytes_of(view: &FileView, file: &Hashed) -> bool {
    view.size.unsigned_abs() == file.candidate.size
        && view.sha256.as_ref().is_none_or(|sha256| *sha256 == file.checksums.sha256)
}

/// A file counts if it is ready or will be. One whose bytes arrived, and whose client was interrupted before it could confirm
/// them, is confirmed now.
async fn usable(client: &Client, view: &FileView) -> Result<Option<Known>, ClientError> {
    let status = match view.status {
        Status::Registered | Status::Failed | Status::Cancelled | Status::Deleted => return Ok(None),
        Status::Uploaded => {
            let (size, md5) = (Some(view.size), view.md5.clone());
            let request = ConfirmRequest { size, md5 };
            match client.retry(async || client.confirm(view.file_id, &request).await).await {
                Ok(confirmed) => confirmed.status,
                Err(error) if error.is_fatal() => return Err(error),
                Err(_) => return Ok(None),
            }
        }
        status => status,
    };
    let (file_id, batch_id) = (view.file_id, view.batch_id);
    Ok(Some(Known { file_id, batch_id, status }))
}
