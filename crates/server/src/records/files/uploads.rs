//! Files whose bytes are not confirmed: they are registered, their uploads arrive, and their deadlines pass.

use landfall_core::caller::Reach;
use landfall_core::clock::Time;
use landfall_core::lifecycle::{Stage, Status};
use landfall_store::{Error, Rows, Tx, args};
use serde_json::Value;
use uuid::Uuid;

use crate::records::file::{File, StoredBytes};
use crate::records::reach;

use super::{attributes, listed};

/// What the files of one request have in common.
#[derive(Debug)]
pub struct Registration<'a> {
    pub tenant: &'a str,
    pub user: &'a str,
    pub batch: Option<Uuid>,
    pub first_stage: Stage,
    pub priority: i64,
    pub upload_until: Time,
    pub trace: Option<String>,
    pub now: Time,
}

/// A file as it is registered.
#[derive(Debug)]
pub struct NewFile<'a> {
    pub id: Uuid,
    pub name: &'a str,
    pub content_type: Option<String>,
    pub size: i64,
    pub md5: Option<String>,
    pub sha256: Option<String>,
    pub mapping: Option<Value>,
    pub attributes: Option<Value>,
    /// Whether its bytes go straight to the object store.
    pub is_direct: bool,
}

/// Writes the rows of new files, each with what the files of its request have in common.
pub async fn register<'a>(tx: &mut Tx, files: Vec<(&'a Registration<'a>, NewFile<'a>)>) -> Result<(), Error> {
    let mut rows = Rows::default();
    let mut listed = listed::New::default();
    let mut noted = Vec::new();
    for (common, file) in files {
        listed.push(common, &file);
        let owner = (common.tenant, common.user);
        noted.extend(file.attributes.clone().map(|attributes| (owner, file.id, attributes)));
        rows.push(args![
            file.id,
            common.tenant,
            common.user,
            common.batch,
            file.name,
            file.content_type,
            file.size,
            file.md5,
            file.mapping,
            Status::Registered,
            common.first_stage,
            common.priority,
            common.upload_until,
            common.now,
            common.now,
            common.trace.clone(),
            file.sha256,
            file.attributes,
            file.is_direct,
        ]);
    }
    tx.insert(
        "files (id, tenant_id, user_id, batch_id, file_name, content_type, size_bytes, declared_md5, mapping,
                status, next_stage, priority, upload_until, created_at, updated_at, trace_parent,
                declared_sha256, attributes, is_direct)",
        rows,
        "",
    )
    .await?;
    listed.add(tx).await?;
    attributes::add(tx, noted.iter().map(|(owner, file, attributes)| (*owner, *file, attributes))).await
}

/// Moves the deadline of a file that the transaction holds.
pub async fn set_deadline(tx: &mut Tx, file: Uuid, until: Time, now: Time) -> Result<(), Error> {
    tx.execute("UPDATE files SET upload_until = $2, updated_at = $3 WHERE id = $1", args![file, until, now])
        .await
        .map(drop)
}

/// The client of a file that the transaction holds sends the bytes straight to the object store.
pub async fn go_direct(tx: &mut Tx, file: Uuid) -> Result<(), Error> {
    tx.execute("UPDATE files SET is_direct = TRUE WHERE id = $1", args![file]).await.map(drop)
}

/// Moves the deadline of a file, if its bytes are still awaited.
pub async fn extend_deadline(tx: &mut Tx, file: Uuid, until: Time, now: Time) -> Result<(), Error> {
    tx.execute(
        "UPDATE files SET upload_until = $2, updated_at = $3
         WHERE id = $1 AND status IN ('registered', 'uploaded')",
        args![file, until, now],
    )
    .await
    .map(drop)
}

/// Another upload takes the place of the one that a file has. Its state stays `uploaded`.
pub async fn replace(
    tx: &mut Tx,
    file: Uuid,
    bytes: &StoredBytes,
    until: Time,
    now: Time,
) -> Result<(), Error> {
    tx.execute(
        "UPDATE files SET blob_key = $2, md5 = $3, blob_sha256 = $4, blob_etag = $7, blob_version = $8,
                blob_checked_at = $6, blob_damaged_at = NULL, upload_until = $5, updated_at = $6 WHERE id = $1",
        args![
            file,
            &bytes.key,
            bytes.md5.clone(),
            bytes.sha256.clone(),
            until,
            now,
            bytes.etag.clone(),
            bytes.version.clone(),
        ],
    )
    .await
    .map(drop)
}

/// A page of the files whose deadline is over, by deadline and id, behind `after`.
pub async fn expired(tx: &mut Tx, after: (Time, Uuid), limit: usize, now: Time) -> Result<Vec<File>, Error> {
    tx.rows(
        "SELECT * FROM files WHERE upload_until IS NOT NULL AND upload_until <= $1
           AND (upload_until, id) > ($2, $3) AND status IN ('registered', 'uploaded')
         ORDER BY upload_until, id LIMIT $4",
        args![now, after.0, after.1, limit],
    )
    .await
}

/// The earliest deadline.
pub async fn next_deadline(tx: &mut Tx) -> Result<Option<Time>, Error> {
    let next: Option<(Time,)> = tx
        .row(
            "SELECT upload_until FROM files WHERE upload_until IS NOT NULL ORDER BY upload_until LIMIT 1",
            args![],
        )
        .await?;
    Ok(next.map(|(until,)| until))
}

/// A page of the abandoned files, by deadline and id, behind `after`: their bytes never arrived, their deadline is over,
/// and they were registered before a time. Resumable uploads are not among them: some of their bytes may have arrived.
pub async fn abandoned(
    tx: &mut Tx,
    registered_before: Time,
    after: (Time, Uuid),
    limit: i64,
    now: Time,
) -> Result<Vec<(Time, Uuid)>, Error> {
    tx.rows(
        "SELECT upload_until, id FROM files
         WHERE upload_until <= $2 AND status = 'registered' AND created_at <= $1
           AND (upload_until, id) > ($3, $4)
           AND NOT EXISTS (SELECT 1 FROM resumable_uploads r WHERE r.id = files.id)
         ORDER BY upload_until, id LIMIT $5",
        args![registered_before, now, after.0, after.1, limit],
    )
    .await
}

/// How many files are abandoned, and when the oldest was registered, of these owners.
pub async fn count_abandoned(
    tx: &mut Tx,
    reach: &Reach,
    registered_before: Time,
    now: Time,
) -> Result<(i64, Option<Time>), Error> {
    let mut arguments = args![registered_before, now];
    let whose = reach::condition(reach, &mut arguments);
    let sql = format!(
        "SELECT COUNT(*), MIN(created_at) FROM files
         WHERE status = 'registered' AND created_at <= $1 AND upload_until <= $2 AND {whose}"
    );
    Ok(tx.row(sql, arguments).await?.unwrap_or_default())
}
