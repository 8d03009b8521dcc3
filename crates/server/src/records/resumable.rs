//! Uploads that come in several requests and go on where they were.
//!
//! One request at a time has the turn to write. A newer request takes the turn away, and what the older one would still write
//! down does not count any more: every change of an upload's progress is made by the turn that it belongs to.

use landfall_core::caller::TenantUser;
use landfall_core::clock::Time;
use landfall_store::{Error, Rows, Tx, args};
use serde_json::Value;
use uuid::Uuid;

/// What becomes of the bytes of an upload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// They are a file.
    Whole,
    /// They are to be joined with other parts.
    Part,
    /// They are taken from parts, and are a file.
    Joined,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Part => "part",
            Self::Joined => "joined",
        }
    }
}

impl TryFrom<String> for Kind {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let kinds = [Self::Whole, Self::Part, Self::Joined];
        kinds.into_iter().find(|kind| kind.name() == text).ok_or(text)
    }
}

#[derive(Debug, Clone, landfall_store::FromRow)]
pub struct Resumable {
    pub id: Uuid,
    pub tenant_id: String,
    pub user_id: String,
    #[row(try_from = "String")]
    pub kind: Kind,
    pub blob_key: String,
    pub length: i64,
    pub offset_bytes: i64,
    pub hashes: String,
    pub stored: Option<Value>,
    pub metadata: Option<String>,
    /// Which parts it was joined from, as the client sent it.
    pub concat: Option<String>,
    pub turn: Option<Uuid>,
    pub worker_id: Option<Uuid>,
    /// The newer request that waits for the end of the one that has the turn.
    pub wanted: Option<Uuid>,
    pub boot: String,
    pub is_unverified: bool,
    pub expires_at: Option<Time>,
    pub joined_into: Option<Uuid>,
    pub joined_at: Option<i64>,
    pub is_over: bool,
    pub created_at: Time,
    pub updated_at: Time,
}

impl Resumable {
    pub fn owner(&self) -> TenantUser {
        TenantUser::new(self.tenant_id.clone(), self.user_id.clone())
    }

    /// The file that it becomes. A part becomes none by itself.
    pub fn file(&self) -> Option<Uuid> {
        (self.kind != Kind::Part).then_some(self.id)
    }
}

/// An upload of which no byte has come.
#[derive(Debug, Clone)]
pub struct New {
    pub id: Uuid,
    pub owner: TenantUser,
    pub kind: Kind,
    pub blob_key: String,
    pub length: i64,
    pub metadata: Option<String>,
    pub concat: Option<String>,
    pub boot: String,
    pub expires_at: Option<Time>,
}

pub async fn insert(tx: &mut Tx, new: &New, now: Time) -> Result<(), Error> {
    tx.execute(
        "INSERT INTO resumable_uploads (id, tenant_id, user_id, kind, blob_key, length, offset_bytes, hashes, metadata, concat,
                                        boot, is_unverified, expires_at, is_over, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, 0, '', $7, $8, $9, FALSE, $10, FALSE, $11, $11)",
        args![
            new.id,
            &new.owner.tenant,
            &new.owner.user,
            new.kind.name(),
            &new.blob_key,
            new.length,
            new.metadata.clone(),
            new.concat.clone(),
            &new.boot,
            new.expires_at,
            now
        ],
    )
    .await
    .map(drop)
}

pub async fn find(tx: &mut Tx, id: Uuid) -> Result<Option<Resumable>, Error> {
    tx.row("SELECT * FROM resumable_uploads WHERE id = $1", args![id]).await
}

/// The same, held against other writers until the transaction ends.
pub async fn lock(tx: &mut Tx, id: Uuid) -> Result<Option<Resumable>, Error> {
    let sql = format!("SELECT * FROM resumable_uploads WHERE id = $1 {}", tx.for_update());
    tx.row(sql, args![id]).await
}

/// Gives the turn to a request. The transaction holds the upload. `is_unverified`: the bytes of the request count only when
/// all of them have come.
pub async fn take_turn(
    tx: &mut Tx,
    id: Uuid,
    (turn, worker): (Uuid, Uuid),
    is_unverified: bool,
) -> Result<(), Error> {
    tx.execute(
        "UPDATE resumable_uploads SET turn = $2, worker_id = $3, wanted = NULL, is_unverified = is_unverified OR $4
         WHERE id = $1",
        args![id, turn, worker, is_unverified],
    )
    .await
    .map(drop)
}

/// Asks the request that has the turn to end.
pub async fn want_turn(tx: &mut Tx, id: Uuid, turn: Uuid) -> Result<(), Error> {
    tx.execute("UPDATE resumable_uploads SET wanted = $2 WHERE id = $1", args![id, turn]).await.map(drop)
}

/// Whether a request has the turn and may keep it.
pub async fn keeps_turn(tx: &mut Tx, id: Uuid, turn: Uuid) -> Result<bool, Error> {
    let sql = "SELECT COUNT(*) FROM resumable_uploads WHERE id = $1 AND turn = $2 AND wanted IS NULL";
    Ok(tx.number(sql, args![id, turn]).await? > 0)
}

/// Whether a request still has the turn.
pub async fn has_turn(tx: &mut Tx, id: Uuid, turn: Uuid) -> Result<bool, Error> {
    let sql = "SELECT COUNT(*) FROM resumable_uploads WHERE id = $1 AND turn = $2";
    Ok(tx.number(sql, args![id, turn]).await? > 0)
}

/// Notes what is true of the bytes that the request is going to write. Returns whether it still has the turn.
pub async fn note_writer(
    tx: &mut Tx,
    id: Uuid,
    turn: Uuid,
    boot: &str,
    is_unverified: bool,
) -> Result<bool, Error> {
    let sql = "UPDATE resumable_uploads SET boot = $3, is_unverified = $4 WHERE id = $1 AND turn = $2";
    Ok(tx.execute(sql, args![id, turn, boot, is_unverified]).await? > 0)
}

/// How far an upload is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reached {
    pub offset: i64,
    pub hashes: String,
    pub stored: Option<Value>,
}

/// Notes how far it is. `until`: how long a part lives on. Returns whether the request still has the turn.
pub async fn reach(
    tx: &mut Tx,
    id: Uuid,
    turn: Uuid,
    reached: &Reached,
    until: Time,
    now: Time,
) -> Result<bool, Error> {
    let noted = tx
        .execute(
            "UPDATE resumable_uploads SET offset_bytes = $3, hashes = $4, stored = $5, updated_at = $7,
                    expires_at = CASE WHEN kind = 'part' THEN $6 ELSE expires_at END
             WHERE id = $1 AND turn = $2",
            args![id, turn, reached.offset, &reached.hashes, reached.stored.clone(), until, now],
        )
        .await?;
    Ok(noted > 0)
}

/// The request is over. `is_settled`: all that it wrote is either noted or taken away again.
pub async fn leave(tx: &mut Tx, id: Uuid, turn: Uuid, is_settled: bool) -> Result<(), Error> {
    tx.execute(
        "UPDATE resumable_uploads SET turn = NULL, worker_id = NULL, is_unverified = is_unverified AND NOT $3
         WHERE id = $1 AND turn = $2",
        args![id, turn, is_settled],
    )
    .await
    .map(drop)
}

/// Only its bytes are left to be removed. Returns whether that is new.
pub async fn give_up(tx: &mut Tx, id: Uuid, now: Time) -> Result<bool, Error> {
    let sql = "UPDATE resumable_uploads SET is_over = TRUE, updated_at = $2 WHERE id = $1 AND NOT is_over";
    Ok(tx.execute(sql, args![id, now]).await? > 0)
}

/// Its bytes are gone, or are a blob that its file knows.
pub async fn remove(tx: &mut Tx, id: Uuid) -> Result<(), Error> {
    tx.execute("DELETE FROM resumable_uploads WHERE id = $1", args![id]).await.map(drop)
}

/// Puts a part at its place in a joined upload. The transaction holds it.
pub async fn join(tx: &mut Tx, part: Uuid, into: Uuid, at: i64, now: Time) -> Result<(), Error> {
    let sql = "UPDATE resumable_uploads SET joined_into = $2, joined_at = $3, updated_at = $4 WHERE id = $1";
    tx.execute(sql, args![part, into, at, now]).await.map(drop)
}

/// The parts of a joined upload that are still there, in their order.
pub async fn parts_of(tx: &mut Tx, joined: Uuid) -> Result<Vec<Resumable>, Error> {
    let sql = "SELECT * FROM resumable_uploads WHERE joined_into = $1 ORDER BY joined_at, id";
    tx.rows(sql, args![joined]).await
}

/// What a sweep needs to know of an upload.
#[derive(Debug, landfall_store::FromRow)]
pub struct Seen {
    #[row(flatten)]
    pub upload: Resumable,
    /// The state of its file, or of the file that it was joined into. `None` if there is no such file.
    pub file_status: Option<String>,
    /// Whether the process of the request that has the turn is known.
    pub is_held: bool,
}

/// A page of all uploads, by id, behind `after`.
pub async fn page(tx: &mut Tx, after: Uuid, limit: usize) -> Result<Vec<Seen>, Error> {
    tx.rows(
        "SELECT r.*, f.status AS file_status,
                EXISTS (SELECT 1 FROM workers w WHERE w.id = r.worker_id) AS is_held
         FROM resumable_uploads r LEFT JOIN files f ON f.id = COALESCE(r.joined_into, r.id)
         WHERE r.id > $1 ORDER BY r.id LIMIT $2",
        args![after, limit],
    )
    .await
}

/// Whether the turn of an upload belongs to a process that is known.
pub async fn is_held(tx: &mut Tx, id: Uuid) -> Result<bool, Error> {
    let sql = "SELECT COUNT(*) FROM resumable_uploads r JOIN workers w ON w.id = r.worker_id WHERE r.id = $1";
    Ok(tx.number(sql, args![id]).await? > 0)
}

/// Which of these uploads there are: at most [`Rows::MAX`], with the keys of their bytes.
pub async fn keys(tx: &mut Tx, ids: impl Iterator<Item = Uuid>) -> Result<Vec<String>, Error> {
    let mut rows = Rows::default();
    let mut any = false;
    for id in ids {
        rows.push(args![id]);
        any = true;
    }
    if !any {
        return Ok(Vec::new());
    }
    let (values, arguments) = rows.into_values(tx);
    let sql = format!("SELECT blob_key FROM resumable_uploads WHERE id IN (SELECT * FROM ({values}) AS v)");
    let keys: Vec<(String,)> = tx.rows(sql, arguments).await?;
    Ok(keys.into_iter().map(|(key,)| key).collect())
}

/// Whether an upload that is not a blob yet has this key.
pub async fn has_key(tx: &mut Tx, id: Uuid, key: &str) -> Result<bool, Error> {
    let sql = "SELECT COUNT(*) FROM resumable_uploads WHERE id = $1 AND blob_key = $2";
    Ok(tx.number(sql, args![id, key]).await? > 0)
}

/// The bytes and the number of a tenant's parts, which are reserved for it beside its files.
pub async fn reserved_by_parts(tx: &mut Tx, tenant: &str) -> Result<(i64, i64), Error> {
    let sums: Option<(i64, i64)> = tx
        .row(
            "SELECT CAST(COALESCE(SUM(length), 0) AS BIGINT), COUNT(*) FROM resumable_uploads
             WHERE tenant_id = $1 AND kind = 'part' AND joined_into IS NULL AND NOT is_over",
            args![tenant],
        )
        .await?;
    Ok(sums.unwrap_or_default())
}
