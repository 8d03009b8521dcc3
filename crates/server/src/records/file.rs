//! A file: its row. [`super::moves`] changes its state.

use std::borrow::Borrow;
use std::sync::Arc;

use serde_json::json;
use uuid::Uuid;

use super::events::Event;
use super::waited::{Failed, Waited};
use crate::telemetry::traces::TracedFile;
use landfall_core::caller::{Caller, TenantUser};
use landfall_core::clock::Time;
use landfall_core::event::EventKind;
use landfall_core::failure::Code;
use landfall_core::lifecycle::{Stage, Status};
use landfall_core::refusal::Refusal;
use landfall_store::Error;
use landfall_store::{Json, Rows, Tx, args};

/// The row, which is the whole truth about a file.
#[derive(Debug, Clone, landfall_store::FromRow)]
#[expect(clippy::struct_excessive_bools, reason = "each is a column")]
pub struct File {
    pub id: Uuid,
    pub tenant_id: String,
    pub user_id: String,
    pub batch_id: Option<Uuid>,
    pub file_name: String,
    pub content_type: Option<String>,
    pub size_bytes: i64,
    pub declared_md5: Option<String>,
    pub declared_sha256: Option<String>,
    pub attributes: Option<serde_json::Value>,
    /// The batch with its files, if it is an archive that was unpacked.
    pub archive_batch: Option<Uuid>,
    /// Whether the client sends the bytes straight to the object store.
    pub is_direct: bool,
    pub blob_key: Option<String>,
    pub md5: Option<String>,
    /// NULL for bytes that arrived before it was kept, until they are checked.
    pub blob_sha256: Option<String>,
    /// What an object store called these bytes when they were taken in.
    pub blob_etag: Option<String>,
    pub blob_version: Option<String>,
    /// When the bytes were found to be others than those that arrived.
    pub blob_damaged_at: Option<Time>,
    #[row(try_from = "String")]
    pub status: Status,
    #[row(try_from = "String")]
    pub next_stage: Stage,
    pub priority: i64,
    pub run_after: Option<Time>,
    pub is_due: bool,
    pub due_at: Option<Time>,
    pub claim: Option<Uuid>,
    pub claimed_by: Option<Uuid>,
    pub claimed_at: Option<Time>,
    pub attempt: i64,
    /// How many workers died with the file in hand, since it last finished a stage.
    pub lost_workers: i64,
    /// Whether the holder noted that it works on the file.
    pub begun: bool,
    /// How many workers died while they worked on it.
    pub deaths: i64,
    /// How many of those worked on nothing else, since a worker last died without it. -1: one has died since the holder
    /// began, so the holder's death will not count.
    pub deaths_alone: i64,
    /// Whether it is claimed only by a worker that holds nothing else.
    pub is_alone: bool,
    /// Since when it waits for a service that fails it, and in how many calls.
    pub waiting_since: Option<Time>,
    pub waits: i64,
    /// How much of that was for which service, until the last failure.
    pub waited_for: Option<Json<Waited>>,
    /// Grows with each life of the file and each wait for a service.
    pub generation: i64,
    pub retry_count: i64,
    pub retried_at: Option<Time>,
    pub retried_by: Option<String>,
    pub error_code: Option<String>,
    pub error_message: Option<String>,
    pub error_stage: Option<String>,
    pub error_at: Option<Time>,
    pub deletion_warned_at: Option<Time>,
    pub trace_parent: Option<String>,
    pub trace_first: Option<String>,
    pub chunk_count: Option<i64>,
    pub warnings: Option<serde_json::Value>,
    pub warning_count: i64,
    pub upload_until: Option<Time>,
    pub created_at: Time,
    pub updated_at: Time,
    pub confirmed_at: Option<Time>,
    pub ready_at: Option<Time>,
    pub failed_at: Option<Time>,
    pub deleted_at: Option<Time>,
}

/// The bytes of a file, as the storage that took them in knows them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredBytes {
    pub key: String,
    /// In hexadecimal digits. An object store that received the bytes itself may not say them.
    pub md5: Option<String>,
    pub sha256: Option<String>,
    /// What an object store calls exactly these bytes.
    pub etag: Option<String>,
    pub version: Option<String>,
}

impl File {
    pub async fn find(tx: &mut Tx, id: Uuid) -> Result<Option<Self>, Error> {
        tx.row("SELECT * FROM files WHERE id = $1", args![id]).await
    }

    /// The file if it is the caller's; everything else does not exist for them.
    pub async fn find_for(tx: &mut Tx, caller: &Caller, id: Uuid) -> Result<Self, Error> {
        Self::visible(Self::find(tx, id).await?, caller)
    }

    /// The same, held against other writers until the transaction ends.
    pub async fn lock_for(tx: &mut Tx, caller: &Caller, id: Uuid) -> Result<Self, Error> {
        Self::visible(Self::lock(tx, id).await?, caller)
    }

    /// A file held against other writers until the transaction ends. (SQLite has one writer as it is.)
    pub async fn lock(tx: &mut Tx, id: Uuid) -> Result<Option<Self>, Error> {
        let sql = format!("SELECT * FROM files WHERE id = $1 {}", tx.for_update());
        tx.row(sql, args![id]).await
    }

    /// These files, in the order of their ids, held against other writers until the transaction ends.
    pub async fn lock_all(tx: &mut Tx, ids: &[Uuid]) -> Result<Vec<Self>, Error> {
        if let [id] = ids {
            return Ok(Self::lock(tx, *id).await?.into_iter().collect());
        }
        let mut rows = Rows::default();
        for id in ids {
            rows.push(args![*id]);
        }
        let (values, arguments) = rows.into_values(tx);
        let sql = format!(
            "SELECT * FROM files WHERE id IN (SELECT * FROM ({values}) AS v) ORDER BY id {}",
            tx.for_update()
        );
        tx.rows(sql, arguments).await
    }

    /// Keeps files from being removed until the transaction ends.
    pub async fn hold_all(tx: &mut Tx, ids: &[Uuid]) -> Result<(), Error> {
        if tx.is_only_writer() {
            return Ok(());
        }
        let mut rows = Rows::default();
        for id in ids {
            rows.push(args![*id]);
        }
        let (values, arguments) = rows.into_values(tx);
        let hold = tx.key_share();
        let sql =
            format!("SELECT id FROM files WHERE id IN (SELECT * FROM ({values}) AS v) ORDER BY id {hold}");
        tx.rows::<(Uuid,)>(sql, arguments).await.map(drop)
    }

    /// The files of a batch that are in one of these states, held against other writers until the transaction ends.
    pub async fn lock_in_batch(tx: &mut Tx, batch: Uuid, states: &[Status]) -> Result<Vec<Self>, Error> {
        let idle = if states.iter().all(|state| state.is_idle()) { "idle_" } else { "" };
        let states: Vec<String> = states.iter().map(|state| format!("'{state}'")).collect();
        let sql = format!(
            "SELECT * FROM files WHERE batch_id = $1 AND {idle}status IN ({}) ORDER BY id {}",
            states.join(", "),
            tx.for_update()
        );
        tx.rows(sql, args![batch]).await
    }

    /// What was found, if the caller may see it.
    pub fn visible<F: Borrow<Self>>(found: Option<F>, caller: &Caller) -> Result<F, Error> {
        let found = found.ok_or_else(Refusal::no_such_file)?;
        let file: &Self = found.borrow();
        if caller.may_access(&file.tenant_id, &file.user_id) {
            Ok(found)
        } else {
            Err(Refusal::no_such_file().not_permitted().into())
        }
    }

    pub fn tenant_user(&self) -> TenantUser {
        TenantUser::new(self.tenant_id.clone(), self.user_id.clone())
    }

    /// What does not change while a worker holds it.
    pub fn owner(&self) -> Arc<Owner> {
        Arc::new(Owner {
            tenant: self.tenant_id.clone(),
            user: self.user_id.clone(),
            batch: self.batch_id,
            file_name: self.file_name.clone(),
            confirmed_at: self.confirmed_at,
            last_failed_at: self.error_at,
            last_failed_with: self.code(),
            claimed_at: self.claimed_at,
            retried_at: self.retried_at,
            due_at: self.due_at,
            waiting_since: self.waiting_since,
            waited: self.waited_for.clone().unwrap_or_default().0,
            waits: self.waits,
            is_unmarked: self.is_unmarked(),
        })
    }

    /// Whether a finished stage has nothing to clear in its row: no error, no wait for a service, no death of a worker, no
    /// warning. While a worker holds the file, only that worker changes these.
    fn is_unmarked(&self) -> bool {
        self.error_code.is_none()
            && self.error_at.is_none()
            && self.waiting_since.is_none()
            && self.waits == 0
            && self.lost_workers == 0
            && self.deaths == 0
            && self.deaths_alone == 0
            && !self.is_alone
            && !self.begun
            && self.warning_count == 0
    }

    /// An event about this file. The caller fills in what happened to it.
    pub fn event(&self, at: Time) -> Event {
        Event {
            at,
            kind: EventKind::FileStatusChanged,
            tenant: self.tenant_id.clone(),
            user: self.user_id.clone(),
            file: Some(self.id),
            batch: self.batch_id,
            from: None,
            to: None,
            stage: None,
            next_stage: Some(self.next_stage),
            attempt: Some(self.attempt),
            worker: None,
            actor: None,
            failure: None,
            data: None,
        }
    }

    /// An event that says that the work on it stopped without an ending, for the so-many-th time.
    pub fn stalled(&self, count: i64, worker: Option<&str>, at: Time) -> Event {
        Event {
            kind: EventKind::FileProcessingStalled,
            stage: Some(self.next_stage),
            worker: worker.map(str::to_owned),
            data: Some(json!({ "fileId": self.id, "stage": self.next_stage, "retryCount": count })),
            ..self.event(at)
        }
    }

    /// What a trace needs to know of it.
    pub fn traced(&self) -> TracedFile<'_> {
        TracedFile {
            id: self.id,
            batch: self.batch_id,
            stage: self.next_stage,
            attempt: self.attempt,
            parent: self.trace_parent.as_deref(),
            first: self.trace_first.as_deref(),
            due_at: self.due_at,
            claimed_at: self.claimed_at,
        }
    }

    pub fn code(&self) -> Option<Code> {
        self.error_code.as_deref().and_then(Code::parse)
    }
}

/// Whose a file is, also if it was deleted.
pub async fn owner_of(tx: &mut Tx, file: Uuid) -> Result<Option<TenantUser>, Error> {
    let sql = "SELECT tenant_id, user_id FROM files WHERE id = $1";
    let owner: Option<(String, String)> = tx.row(sql, args![file]).await?;
    Ok(owner.map(|(tenant, user)| TenantUser::new(tenant, user)))
}

/// Whose a file is, and what else does not change while a worker holds it.
#[derive(Debug, Default)]
pub struct Owner {
    pub tenant: String,
    pub user: String,
    pub batch: Option<Uuid>,
    pub file_name: String,
    pub confirmed_at: Option<Time>,
    /// As its claim found them.
    pub last_failed_at: Option<Time>,
    pub last_failed_with: Option<Code>,
    /// When the worker took it, or began its stage.
    pub claimed_at: Option<Time>,
    /// When a user last retried it.
    pub retried_at: Option<Time>,
    pub due_at: Option<Time>,
    pub waiting_since: Option<Time>,
    pub waited: Waited,
    pub waits: i64,
    /// Whether a finished stage has nothing to clear in its row.
    pub is_unmarked: bool,
}

impl Owner {
    /// For how long the file has waited for each service when it fails with `code` now, whose service fails it since
    /// `failing_since`. `None` if it does not wait.
    pub fn waited_until(&self, code: Code, failing_since: Time, now: Time) -> Option<Waited> {
        let waiting_since = self.waiting_since?;
        // An error that this version does not know counts as one of the same service.
        let last = Failed {
            code: self.last_failed_with.unwrap_or(code),
            at: self.last_failed_at.unwrap_or(waiting_since),
        };
        Some(self.waited.clone().until(waiting_since, last, code, failing_since, now))
    }
}
