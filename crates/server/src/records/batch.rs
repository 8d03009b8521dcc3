//! A batch: files uploaded together. It keeps count of its files in their own transactions, so that the last of them
//! to arrive completes it, exactly once.

pub mod archives;
pub mod changes;
pub mod deadline;
pub mod removal;

use std::ops::AddAssign;

use chrono::TimeDelta;
use serde_json::{Value, json};
use uuid::Uuid;

use super::events::{self, Event};
use super::files::{counts, queue};
use super::lines;
use super::notifications;
use super::reach;
use landfall_api::batches::{Progress, Summary};
use landfall_core::caller::{Caller, Reach, TenantUser};
use landfall_core::clock::Time;
use landfall_core::event::EventKind;
use landfall_core::lifecycle::Status;
use landfall_core::refusal::Refusal;
use landfall_core::states::BatchStatus;
use landfall_store::wake::Signal;
use landfall_store::{Error, Tx, args};

#[derive(Debug, Clone, landfall_store::FromRow)]
pub struct Batch {
    pub id: Uuid,
    pub tenant_id: String,
    pub user_id: String,
    #[row(try_from = "String")]
    pub status: BatchStatus,
    pub file_count: i64,
    pub registered_files: i64,
    pub ready_files: i64,
    pub failed_files: i64,
    pub cancelled_files: i64,
    /// Those that were given up because their bytes never came are among them.
    pub deleted_files: i64,
    pub never_uploaded_files: i64,
    pub priority: i64,
    pub metadata: Option<Value>,
    pub created_at: Time,
    pub expires_at: Time,
    pub completed_at: Option<Time>,
    /// When its progress is to be told of again, if that is owed.
    pub progress_due: Option<Time>,
    /// The archive that its files are from.
    pub archive_id: Option<Uuid>,
}

const COLUMNS: &str =
    "id, tenant_id, user_id, status, file_count, registered_files, ready_files, failed_files,
    cancelled_files, deleted_files, never_uploaded_files, priority, metadata, created_at, expires_at, completed_at, progress_due,
    archive_id";

/// What a change of counts sets beside them, with `now` and a second before and after it as three more arguments:
/// either the progress is told with it, or it is owed.
fn tell_or_owe(now: usize) -> String {
    let (second_ago, in_a_second) = (now + 1, now + 2);
    format!(
        "updated_at = ${now},
         progress_at = CASE WHEN progress_at IS NULL OR progress_at <= ${second_ago} THEN ${now} ELSE progress_at END,
         progress_due = CASE WHEN progress_at IS NULL OR progress_at <= ${second_ago} THEN NULL
                        ELSE COALESCE(progress_due, ${in_a_second}) END"
    )
}

/// `batch:progress` comes no more often than that.
const BETWEEN_PROGRESS: TimeDelta = TimeDelta::seconds(1);

impl Batch {
    pub async fn find(tx: &mut Tx, id: Uuid) -> Result<Self, Error> {
        tx.row::<Self>(format!("SELECT {COLUMNS} FROM batches WHERE id = $1"), args![id])
            .await?
            .ok_or_else(|| Refusal::no_such_batch().into())
    }

    pub async fn find_for(tx: &mut Tx, caller: &Caller, id: Uuid) -> Result<Self, Error> {
        let batch = Self::find(tx, id).await?;
        if caller.may_access(&batch.tenant_id, &batch.user_id) {
            Ok(batch)
        } else {
            Err(Refusal::no_such_batch().not_permitted().into())
        }
    }

    /// A page of the caller's batches, newest first, before `before`. They come without their metadata, which may be
    /// long.
    pub async fn list_for(
        tx: &mut Tx,
        caller: &Caller,
        before: Uuid,
        limit: i64,
    ) -> Result<Vec<Self>, Error> {
        let columns = COLUMNS.replace(" metadata,", " NULL AS metadata,");
        tx.rows(
            format!(
                "SELECT {columns} FROM batches WHERE tenant_id = $1 AND user_id = $2 AND id < $3
                 ORDER BY id DESC LIMIT $4"
            ),
            args![&caller.tenant, &caller.user, before, limit],
        )
        .await
    }

    pub fn terminal_files(&self) -> i64 {
        self.ready_files + self.failed_files + self.cancelled_files + self.deleted_files
    }

    /// Whether no file that it has waits or runs.
    pub fn has_ended(&self) -> bool {
        self.terminal_files() >= self.registered_files
    }

    /// The status that its counts call for. A batch that has expired or was cancelled stays so.
    ///
    /// It is completed when every promised file came and has ended. It is expired when files did not come and none can
    /// come any more: all are registered, and no registration is open.
    async fn status_by_counts(&self, tx: &mut Tx) -> Result<BatchStatus, Error> {
        let ended = self.terminal_files() >= self.file_count;
        Ok(match self.status {
            BatchStatus::Completed if !ended => BatchStatus::Active,
            BatchStatus::Active if self.never_uploaded_files == 0 && ended => BatchStatus::Completed,
            BatchStatus::Active if self.never_uploaded_files > 0 && !self.can_receive(tx, ended).await? => {
                BatchStatus::Expired
            }
            same => same,
        })
    }

    /// Whether a promised file can still come.
    async fn can_receive(&self, tx: &mut Tx, ended: bool) -> Result<bool, Error> {
        if ended || self.registered_files < self.file_count {
            return Ok(!ended);
        }
        Ok(counts::registered_in_batch(tx, self.id).await? > 0)
    }

    /// Writes the status that its counts call for, if it has another. Returns whether it had.
    pub async fn settle(&self, tx: &mut Tx, now: Time) -> Result<bool, Error> {
        let status = self.status_by_counts(tx).await?;
        if status == self.status {
            return Ok(false);
        }
        match status {
            BatchStatus::Completed => {
                // Progress that was owed is told with it, and does not come after the end.
                tx.execute(
                    "UPDATE batches SET status = 'completed', completed_at = $2, progress_due = NULL WHERE id = $1",
                    args![self.id, now],
                )
                .await?;
                self.record_counts(tx, EventKind::BatchCompleted, now).await?;
            }
            BatchStatus::Expired => {
                tx.execute(
                    "UPDATE batches SET status = 'expired', progress_due = NULL WHERE id = $1",
                    args![self.id],
                )
                .await?;
                self.record_expiry(tx, now).await?;
            }
            // A file of a completed batch was retried.
            BatchStatus::Active | BatchStatus::Cancelled => {
                let sql = "UPDATE batches SET status = 'active', completed_at = NULL WHERE id = $1";
                tx.execute(sql, args![self.id]).await?;
            }
        }
        Ok(true)
    }

    /// After its counts changed: what its progress and its status are now, where that is to be told. Returns whether its
    /// status changed.
    async fn counted(&self, tx: &mut Tx, now: Time) -> Result<bool, Error> {
        if self.progress_due.is_none() {
            self.record_progress(tx, now).await?;
        } else {
            tx.signal(Signal::Progress);
        }
        if let Some(archive) = self.archive_id.filter(|_| self.has_ended()) {
            queue::end_wait(tx, archive, now).await?;
        }
        self.settle(tx, now).await
    }

    pub async fn record_progress(&self, tx: &mut Tx, now: Time) -> Result<(), Error> {
        self.record_counts(tx, EventKind::BatchProgress, now).await
    }

    async fn record_counts(&self, tx: &mut Tx, kind: EventKind, now: Time) -> Result<(), Error> {
        let summary = self.summary();
        let mut data = json!({
            "batchId": self.id,
            "total": summary.total,
            "fileCount": self.file_count,
            "neverUploaded": summary.never_uploaded,
        });
        for (status, count) in progress(tx, self.id).await? {
            data[status.name()] = json!(count);
        }
        // Rows of deleted files are removed after a while; the batch keeps their number.
        data["deleted"] = json!(summary.deleted);
        data["summary"] = json!(summary);
        let event = Event { data: Some(data), ..self.event(kind, now) };
        if kind != EventKind::BatchProgress {
            lines::batch_ended(tx, self, kind, now);
        }
        events::record(tx, vec![event]).await
    }

    /// Says that files of the batch never came, and tells its owner.
    pub async fn record_expiry(&self, tx: &mut Tx, now: Time) -> Result<(), Error> {
        self.record_counts(tx, EventKind::BatchExpired, now).await?;
        notifications::tell_of_expired_batch(tx, self, now).await
    }

    /// Says that the batch was called off.
    pub async fn record_cancellation(&self, tx: &mut Tx, now: Time) -> Result<(), Error> {
        self.record_end(tx, EventKind::BatchCancelled, now).await
    }

    async fn record_end(&self, tx: &mut Tx, kind: EventKind, now: Time) -> Result<(), Error> {
        let event = self.event(kind, now);
        lines::batch_ended(tx, self, kind, now);
        events::record(tx, vec![event]).await
    }

    fn event(&self, kind: EventKind, at: Time) -> Event {
        let data = json!({ "batchId": self.id, "summary": self.summary() });
        Event {
            tenant: self.tenant_id.clone(),
            user: self.user_id.clone(),
            batch: Some(self.id),
            ..Event::of_system(kind, at, data)
        }
    }

    pub fn summary(&self) -> Summary {
        // While it is active, the files that are not registered yet may still come.
        let unregistered = match self.status {
            BatchStatus::Active => 0,
            _ => self.file_count - self.registered_files,
        };
        Summary {
            total: self.file_count,
            ready: self.ready_files,
            failed: self.failed_files,
            cancelled: self.cancelled_files,
            deleted: self.deleted_files - self.never_uploaded_files,
            never_uploaded: self.never_uploaded_files + unregistered,
        }
    }
}

/// How many files of a batch came to rest in each terminal state, or left it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    pub ready: i64,
    pub failed: i64,
    pub cancelled: i64,
    pub deleted: i64,
    /// Those of the deleted whose bytes never came.
    pub never_uploaded: i64,
}

impl Tally {
    /// `gave_up`: the server deletes the file because its upload was not finished in time.
    pub fn of(from: Status, to: Status, gave_up: bool) -> Self {
        let never_uploaded = i64::from(gave_up && from == Status::Registered);
        let mut tally = Self { never_uploaded, ..Self::default() };
        for (status, step) in [(from, -1), (to, 1)] {
            match status {
                Status::Ready => tally.ready += step,
                Status::Failed => tally.failed += step,
                Status::Cancelled => tally.cancelled += step,
                Status::Deleted => tally.deleted += step,
                _ => {}
            }
        }
        tally
    }

    /// Adds to the batch's counts and settles its status by them. The batch's row is held from here to the commit,
    /// so the one who brings the last file sees the counts of all others.
    pub async fn apply(self, tx: &mut Tx, batch: Uuid, now: Time) -> Result<(), Error> {
        if self == Self::default() {
            return Ok(());
        }
        let counted: Option<Batch> = tx
            .row(
                format!(
                    "UPDATE batches SET ready_files = ready_files + $2, failed_files = failed_files + $3,
                         cancelled_files = cancelled_files + $4, deleted_files = deleted_files + $5,
                         never_uploaded_files = never_uploaded_files + $6, {}
                     WHERE id = $1 RETURNING {COLUMNS}",
                    tell_or_owe(7)
                ),
                args![
                    batch,
                    self.ready,
                    self.failed,
                    self.cancelled,
                    self.deleted,
                    self.never_uploaded,
                    now,
                    now - BETWEEN_PROGRESS,
                    now + BETWEEN_PROGRESS
                ],
            )
            .await?;
        match counted {
            Some(batch) => batch.counted(tx, now).await.map(drop),
            None => Err(Error::Internal(format!("batch {batch} of a file does not exist"))),
        }
    }
}

/// Recounts a batch's files and settles its status by that. Returns whether that changed anything.
///
/// A transaction that moves a file holds its batch until the commit. So what is counted once the batch is held is what its
/// counts should say.
pub async fn recount(tx: &mut Tx, id: Uuid, now: Time) -> Result<bool, Error> {
    let lock = tx.for_update();
    let held = format!("SELECT {COLUMNS} FROM batches WHERE id = $1 {lock}");
    let Some(before) = tx.row::<Batch>(held, args![id]).await? else { return Ok(false) };
    let counted = counts::living_in_batch(tx, id).await?;
    let count = |status: Status| {
        counted.iter().find(|(name, _)| name == status.name()).map_or(0, |(_, count)| *count)
    };
    let living: i64 = counted.iter().map(|(_, count)| count).sum();
    let registered = before.registered_files.max(living);
    let after: Option<Batch> = tx
        .row(
            format!(
                "UPDATE batches SET registered_files = $2, ready_files = $3, failed_files = $4, cancelled_files = $5,
                     deleted_files = $6,
                     never_uploaded_files = CASE WHEN never_uploaded_files > $6 THEN $6 ELSE never_uploaded_files END, {}
                 WHERE id = $1 RETURNING {COLUMNS}",
                tell_or_owe(7)
            ),
            args![
                id,
                registered,
                count(Status::Ready),
                count(Status::Failed),
                count(Status::Cancelled),
                registered - living,
                now,
                now - BETWEEN_PROGRESS,
                now + BETWEEN_PROGRESS,
            ],
        )
        .await?;
    let Some(after) = after else { return Ok(false) };
    let settled = after.counted(tx, now).await?;
    let counts = |batch: &Batch| {
        (
            batch.registered_files,
            batch.ready_files,
            batch.failed_files,
            batch.cancelled_files,
            batch.deleted_files,
        )
    };
    Ok(settled || counts(&before) != counts(&after))
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.ready += other.ready;
        self.failed += other.failed;
        self.cancelled += other.cancelled;
        self.deleted += other.deleted;
        self.never_uploaded += other.never_uploaded;
    }
}

/// The number of a batch's files in every state, zeros included.
pub async fn progress(tx: &mut Tx, batch: Uuid) -> Result<Progress, Error> {
    let counted = counts::in_batch(tx, batch).await?;
    Ok(Status::ALL
        .iter()
        .map(|status| {
            let count = counted.iter().find(|(name, _)| name == status.name()).map_or(0, |(_, count)| *count);
            (*status, count)
        })
        .collect())
}

/// When the next progress is to be told, if any is owed.
pub async fn next_progress(tx: &mut Tx) -> Result<Option<Time>, Error> {
    let next: Option<(Option<Time>,)> =
        tx.row("SELECT MIN(progress_due) FROM batches WHERE progress_due IS NOT NULL", args![]).await?;
    Ok(next.and_then(|(next,)| next))
}

/// Takes up to `limit` batches whose progress is to be told by now: it is owed no more. Those that another process is
/// taking are passed over.
pub async fn take_owed_progress(tx: &mut Tx, limit: i64, now: Time) -> Result<Vec<Batch>, Error> {
    let skip = tx.skip_locked();
    tx.rows(
        format!(
            "UPDATE batches SET progress_at = $1, progress_due = NULL
             WHERE progress_due <= $1 AND id IN
                 (SELECT id FROM batches WHERE progress_due <= $1 ORDER BY progress_due LIMIT $2 {skip})
             RETURNING {COLUMNS}"
        ),
        args![now, limit],
    )
    .await
}

/// Tells the progress now that would be told later than `ahead`, which is later than any may be. Returns of how many batches.
pub async fn owe_progress_now(tx: &mut Tx, ahead: Time, now: Time) -> Result<u64, Error> {
    let sql = "UPDATE batches SET progress_at = $2, progress_due = $2 WHERE progress_due > $1";
    tx.signal(Signal::Progress);
    tx.execute(sql, args![ahead, now]).await
}

/// Whose a batch is.
pub async fn owner_of(tx: &mut Tx, batch: Uuid) -> Result<Option<TenantUser>, Error> {
    let sql = "SELECT tenant_id, user_id FROM batches WHERE id = $1";
    let owner: Option<(String, String)> = tx.row(sql, args![batch]).await?;
    Ok(owner.map(|(tenant, user)| TenantUser::new(tenant, user)))
}

/// How many batches are active.
pub async fn count_active(tx: &mut Tx, reach: &Reach) -> Result<i64, Error> {
    let mut arguments = args![];
    let whose = reach::condition(reach, &mut arguments);
    tx.number(format!("SELECT COUNT(*) FROM batches WHERE status = 'active' AND {whose}"), arguments).await
}
