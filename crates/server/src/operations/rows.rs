//! The statements about the table `operations`.

use landfall_core::caller::{Caller, Reach, TenantUser};
use landfall_core::clock::Time;
use landfall_core::refusal::Refusal;
use landfall_core::states::OperationStatus;
use landfall_store::{Error, Tx, args};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Files, Operation, Start};
use crate::records::cursor::Cursor;
use crate::records::reach;

impl Operation {
    pub async fn find_for(tx: &mut Tx, caller: &Caller, id: Uuid) -> Result<Self, Error> {
        let found = tx.row::<Self>("SELECT * FROM operations WHERE id = $1", args![id]).await?;
        let operation = found.ok_or_else(Refusal::no_such_operation)?;
        if operation.is_of(caller) {
            Ok(operation)
        } else {
            Err(Refusal::no_such_operation().not_permitted().into())
        }
    }

    /// An operation that has not ended.
    pub(super) async fn find_under_way(tx: &mut Tx, id: Uuid) -> Result<Option<Self>, Error> {
        tx.row("SELECT * FROM operations WHERE id = $1 AND ended_at IS NULL", args![id]).await
    }

    /// The operations of the caller; of all users of a tenant, about its files; or all. A page of them, newest first, before
    /// `before`.
    pub async fn list(tx: &mut Tx, reach: &Reach, before: Uuid, limit: i64) -> Result<Vec<Self>, Error> {
        let mut arguments = args![before, limit];
        let mut condition = reach::condition(reach, &mut arguments);
        if let Reach::Tenant(_) = reach {
            condition.push_str(" AND of_tenant = tenant_id");
        }
        let sql = format!("SELECT * FROM operations WHERE id < $1 AND {condition} ORDER BY id DESC LIMIT $2");
        tx.rows(sql, arguments).await
    }

    /// Whether the caller may see and stop it. What an operator does with the files of other tenants is not for the
    /// administrators of the operator's own.
    fn is_of(&self, caller: &Caller) -> bool {
        caller.is(&self.tenant_id, &self.user_id)
            || caller.is_operator()
            || self
                .filter
                .of_tenant
                .as_ref()
                .is_some_and(|tenant| *tenant == self.tenant_id && caller.administers(tenant))
    }

    /// An operation, locked until the transaction ends. `patient`: waits for a process that has locked it, instead of
    /// passing it over.
    pub(super) async fn lock(tx: &mut Tx, id: Uuid, patient: bool) -> Result<Option<Self>, Error> {
        let lock = if patient { tx.for_update() } else { tx.skip_locked() };
        tx.row(format!("SELECT * FROM operations WHERE id = $1 {lock}"), args![id]).await
    }
}

/// Writes the row of a new operation, which begins at `from`.
pub(super) async fn insert(
    tx: &mut Tx,
    operation: &Start,
    status: OperationStatus,
    from: Cursor,
    trace: Option<String>,
) -> Result<(), Error> {
    let filter = &operation.filter;
    let (wanted, file_ids) = match &operation.files {
        Files::DeadLetters => (None, None),
        Files::Matching(filter) => (Some(json!(filter)), None),
        Files::Named(ids) => (None, Some(json!(ids))),
    };
    tx.execute(
        "INSERT INTO operations (id, tenant_id, user_id, of_tenant, of_user, code, stage, batch_id, fingerprint, status, canaries, errors,
                                 cursor_at, cursor_id, created_at, updated_at, trace_parent, action, wanted, file_ids, total_count)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $11, $12, $13, $14, $14, $15, $16, $17, $18, $19)",
        args![
            operation.id,
            &operation.user.tenant,
            &operation.user.user,
            filter.of_tenant.clone(),
            filter.of_user.clone(),
            filter.code.clone(),
            filter.stage.clone(),
            filter.batch_id,
            filter.fingerprint.clone(),
            status,
            Value::Array(Vec::new()),
            from.at,
            from.id,
            operation.now,
            trace,
            operation.action,
            wanted,
            file_ids,
            operation.total,
        ],
    )
    .await
    .map(drop)
}

/// Removes the oldest operations of a user that have ended, of those beyond the last `most`.
pub(super) async fn keep_last(tx: &mut Tx, user: &TenantUser, most: i64) -> Result<(), Error> {
    // One comes at a time. More are removed where a former version left more.
    const AT_ONCE: i64 = 100;
    tx.execute(
        "DELETE FROM operations WHERE ended_at IS NOT NULL AND id IN (
             SELECT id FROM operations WHERE tenant_id = $1 AND user_id = $2 ORDER BY id DESC LIMIT $4 OFFSET $3)",
        args![&user.tenant, &user.user, most, AT_ONCE],
    )
    .await
    .map(drop)
}

/// Stops an operation that has not ended.
pub(super) async fn stop(tx: &mut Tx, operation: Uuid, reason: String, now: Time) -> Result<bool, Error> {
    let stopped = tx
        .execute(
            "UPDATE operations SET status = 'stopped', reason = $2, updated_at = $3, ended_at = $3
         WHERE id = $1 AND ended_at IS NULL",
            args![operation, reason, now],
        )
        .await?;
    Ok(stopped > 0)
}

/// The operations that have not ended, in the order of their ids, behind `after`.
pub(super) async fn under_way(tx: &mut Tx, after: Uuid, limit: i64) -> Result<Vec<Uuid>, Error> {
    let sql = "SELECT id FROM operations WHERE ended_at IS NULL AND id > $1 ORDER BY id LIMIT $2";
    let ids: Vec<(Uuid,)> = tx.rows(sql, args![after, limit]).await?;
    Ok(ids.into_iter().map(|(id,)| id).collect())
}

/// The canaries passed: the others follow.
pub(super) async fn start_running(tx: &mut Tx, operation: Uuid, now: Time) -> Result<(), Error> {
    tx.execute(
        "UPDATE operations SET status = 'running', updated_at = $2 WHERE id = $1",
        args![operation, now],
    )
    .await
    .map(drop)
}

/// What a step did.
pub(super) struct Progress {
    pub done: usize,
    pub skipped: usize,
    pub failed: usize,
    pub errors: Value,
    /// The first of those that were skipped, with their reasons.
    pub left_alone: Value,
    pub canaries: Value,
    pub cursor: Cursor,
}

/// Adds what a step did to the counts, and moves the cursor.
pub(super) async fn advance(
    tx: &mut Tx,
    operation: Uuid,
    progress: Progress,
    now: Time,
) -> Result<(), Error> {
    tx.execute(
        "UPDATE operations SET retried_count = retried_count + $2, skipped_count = skipped_count + $3,
             error_count = error_count + $4, errors = $5, canaries = $6, cursor_at = $7, cursor_id = $8,
             updated_at = $9, skipped = $10
         WHERE id = $1",
        args![
            operation,
            progress.done,
            progress.skipped,
            progress.failed,
            progress.errors,
            progress.canaries,
            progress.cursor.at,
            progress.cursor.id,
            now,
            progress.left_alone,
        ],
    )
    .await
    .map(drop)
}

/// An operation is over.
pub(super) async fn end(
    tx: &mut Tx,
    operation: Uuid,
    status: OperationStatus,
    reason: Option<String>,
    now: Time,
) -> Result<(), Error> {
    tx.execute(
        "UPDATE operations SET status = $2, reason = $3, updated_at = $4, ended_at = $4 WHERE id = $1",
        args![operation, status, reason, now],
    )
    .await
    .map(drop)
}

/// Removes up to `limit` operations that ended before a time. Returns how many.
pub async fn remove_ended(tx: &mut Tx, before: Time, limit: i64) -> Result<u64, Error> {
    // What a batch picked and then finds changed stays, so the condition is there twice.
    tx.execute(
        "DELETE FROM operations WHERE (id) IN (SELECT id FROM operations WHERE ended_at < $1 LIMIT $2) AND ended_at < $1",
        args![before, limit],
    )
    .await
}
