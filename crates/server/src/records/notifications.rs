//! What a user is told of without having asked: a file failed, a failed file is going to be deleted, an upload expired,
//! files of a batch never came, a webhook was disabled.
//!
//! A notification is written in the transaction of the event. So no user is told of what did not happen, and
//! nothing happens that its owner was not told of.

use std::sync::Arc;

use serde_json::{Value, json};
use uuid::Uuid;

use super::batch::Batch;
use super::events::{self, Event};
use super::file::{File, Owner};
use landfall_api::notifications::NotificationView;
use landfall_core::caller::TenantUser;
use landfall_core::clock::{Time, new_id_at};
use landfall_core::event::EventKind;
use landfall_core::failure::Failure;
use landfall_core::lifecycle::{Stage, Status};
use landfall_core::reason;
use landfall_core::refusal::Refusal;
use landfall_core::states::NotificationKind;
use landfall_store::Error;
use landfall_store::{Arg, Rows, Tx, Write, args};

/// Unread ones are counted up to here, so that a list costs the same whatever its owner ignored.
const MAX_COUNTED: i64 = 1_000;
/// Notifications that are marked as read in one transaction.
const BATCH_SIZE: i64 = 1_000;

/// The row of a notification, without its owner.
#[derive(Debug, Clone, landfall_store::FromRow)]
pub struct Notification {
    pub id: Uuid,
    #[row(try_from = "String")]
    pub kind: NotificationKind,
    pub file_id: Option<Uuid>,
    pub file_name: Option<String>,
    pub message: String,
    pub data: Value,
    pub created_at: Time,
    pub read_at: Option<Time>,
    pub resolved_at: Option<Time>,
}

impl From<Notification> for NotificationView {
    fn from(row: Notification) -> Self {
        Self {
            notification_id: row.id,
            kind: row.kind,
            file_id: row.file_id,
            file_name: row.file_name,
            message: row.message,
            data: row.data,
            created_at: row.created_at,
            read_at: row.read_at,
            resolved_at: row.resolved_at,
        }
    }
}

const COLUMNS: &str = "id, kind, file_id, file_name, message, data, created_at, read_at, resolved_at";

impl Notification {
    /// A page of a user's notifications, newest first, before `before`.
    pub async fn list(
        tx: &mut Tx,
        owner: &TenantUser,
        only_unread: bool,
        before: Uuid,
        limit: i64,
    ) -> Result<Vec<Self>, Error> {
        let unread = if only_unread { "AND read_at IS NULL" } else { "" };
        tx.rows(
            format!(
                "SELECT {COLUMNS} FROM notifications WHERE tenant_id = $1 AND user_id = $2 AND id < $3 {unread}
                 ORDER BY id DESC LIMIT $4"
            ),
            args![&owner.tenant, &owner.user, before, limit],
        )
        .await
    }

    pub async fn count_unread(tx: &mut Tx, owner: &TenantUser) -> Result<i64, Error> {
        tx.number(
            "SELECT COUNT(*) FROM (SELECT 1 FROM notifications
                 WHERE tenant_id = $1 AND user_id = $2 AND read_at IS NULL LIMIT $3) AS counted",
            args![&owner.tenant, &owner.user, MAX_COUNTED],
        )
        .await
    }
}

/// The owner has read one. Reading it again changes nothing; a notification of another user does not exist.
pub struct MarkRead {
    pub owner: TenantUser,
    pub notification: Uuid,
    pub now: Time,
}

impl Write for MarkRead {
    type Output = Notification;

    async fn apply(&self, tx: &mut Tx) -> Result<Notification, Error> {
        tx.row(
            format!(
                "UPDATE notifications SET read_at = COALESCE(read_at, $4)
                 WHERE id = $1 AND tenant_id = $2 AND user_id = $3 RETURNING {COLUMNS}"
            ),
            args![self.notification, &self.owner.tenant, &self.owner.user, self.now],
        )
        .await?
        .ok_or_else(|| Refusal::no_such_notification().into())
    }
}

/// The owner has read a part of all that there were at `now`. Returns how many of them were unread; fewer than
/// [`MarkBatchRead::MAX`] when there are no more.
pub struct MarkBatchRead {
    pub owner: TenantUser,
    pub now: Time,
}

impl MarkBatchRead {
    pub const MAX: u64 = BATCH_SIZE.unsigned_abs();
}

impl Write for MarkBatchRead {
    type Output = u64;

    async fn apply(&self, tx: &mut Tx) -> Result<u64, Error> {
        tx.execute(
            "UPDATE notifications SET read_at = $3
             WHERE read_at IS NULL AND id IN (SELECT id FROM notifications
                 WHERE tenant_id = $1 AND user_id = $2 AND read_at IS NULL AND created_at <= $3 ORDER BY id LIMIT $4)",
            args![&self.owner.tenant, &self.owner.user, self.now, BATCH_SIZE],
        )
        .await
    }
}

/// A file that failed in this transaction.
pub struct FailedFile {
    pub id: Uuid,
    pub owner: Arc<Owner>,
    pub failure: Failure,
    pub stage: Stage,
}

/// Notifies the owners of files that they failed.
pub async fn tell_of_failures(tx: &mut Tx, files: Vec<FailedFile>, now: Time) -> Result<(), Error> {
    let notices = files.into_iter().map(|FailedFile { id, owner, failure, stage }| {
        let reason = reason::sentences(failure.code.name(), &failure.message, Status::Failed);
        Notice {
            kind: NotificationKind::FileFailure,
            message: format!("{} failed: {reason}", owner.file_name),
            data: json!({ "code": failure.code.name(), "reason": reason, "stage": stage, "failedAt": now }),
            subject: Subject::File { id, owner },
        }
    });
    write(tx, notices.collect(), now).await
}

/// Settles what these files' owners were told of their failures: each is ready or deleted now, and nothing is left to do.
pub async fn resolve(tx: &mut Tx, files: &[Uuid], now: Time) -> Result<(), Error> {
    for files in files.chunks(Rows::MAX) {
        let mut rows = Rows::default();
        for file in files {
            rows.push(args![*file]);
        }
        let (values, mut arguments) = rows.into_values(tx);
        let first = arguments.len() + 1;
        arguments.extend([
            Arg::from(now),
            Arg::from(NotificationKind::FileFailure),
            Arg::from(NotificationKind::FileDeletionWarning),
        ]);
        tx.execute(
            format!(
                "UPDATE notifications SET resolved_at = ${first}, read_at = COALESCE(read_at, ${first})
                 WHERE file_id IS NOT NULL AND resolved_at IS NULL AND kind IN (${}, ${})
                   AND file_id IN (SELECT * FROM ({values}) AS v)",
                first + 1,
                first + 2
            ),
            arguments,
        )
        .await?;
    }
    Ok(())
}

/// Tells the owners of uploads that were not confirmed in time that they are gone.
pub async fn tell_of_expired_uploads(tx: &mut Tx, files: &[File], now: Time) -> Result<(), Error> {
    // The files of a batch are told of with the batch.
    let single = files.iter().filter(|file| file.batch_id.is_none());
    let notices = single.map(|file| {
        let what = if file.md5.is_some() { "was uploaded but not confirmed" } else { "was not uploaded" };
        Notice {
            kind: NotificationKind::UploadExpired,
            message: format!(
                "{} {what} in time and was removed. Upload it again if you need it",
                file.file_name
            ),
            data: json!({ "expiredAt": now, "size": file.size_bytes, "registeredAt": file.created_at }),
            subject: Subject::File { id: file.id, owner: file.owner() },
        }
    });
    write(tx, notices.collect(), now).await
}

/// Tells the owners of these files when they are going to be deleted.
pub async fn warn_of_deletion(tx: &mut Tx, files: Vec<(File, Time)>, now: Time) -> Result<(), Error> {
    let notices = files.into_iter().map(|(file, at)| Notice {
        kind: NotificationKind::FileDeletionWarning,
        message: format!(
            "{} failed and will be deleted on {}. Retry it, or download it, if you still need it",
            file.file_name,
            at.date_naive()
        ),
        data: json!({ "deletionDate": at, "failedAt": file.failed_at }),
        subject: Subject::File { id: file.id, owner: file.owner() },
    });
    write(tx, notices.collect(), now).await
}

/// Tells the owner of a webhook that nothing is sent to it any more.
pub async fn tell_of_disabled_webhook(
    tx: &mut Tx,
    webhook: WebhookOwner,
    reason: &str,
    now: Time,
) -> Result<(), Error> {
    let notice = Notice {
        kind: NotificationKind::WebhookDisabled,
        message: format!(
            "The webhook {} was disabled: {reason}. Enable it again when it is mended",
            webhook.url
        ),
        data: json!({ "webhookId": webhook.id, "url": webhook.url, "reason": reason }),
        subject: Subject::Webhook(webhook),
    };
    write(tx, vec![notice], now).await
}

/// Tells the owner of a batch that files of it never came.
pub async fn tell_of_expired_batch(tx: &mut Tx, batch: &Batch, now: Time) -> Result<(), Error> {
    let summary = batch.summary();
    let message = format!(
        "An upload of {} expired: {} never arrived. Upload what is missing again, in a new batch; the files that \
         arrived are kept",
        counted(summary.total),
        counted(summary.never_uploaded)
    );
    let notice = Notice {
        kind: NotificationKind::BatchExpired,
        message,
        data: json!({ "batchId": batch.id, "summary": summary }),
        subject: Subject::Batch {
            id: batch.id,
            tenant: batch.tenant_id.clone(),
            user: batch.user_id.clone(),
        },
    };
    write(tx, vec![notice], now).await
}

fn counted(files: i64) -> String {
    if files == 1 { "1 file".to_owned() } else { format!("{files} files") }
}

/// The webhook that a notification is about, and its owner.
pub struct WebhookOwner {
    pub id: Uuid,
    pub tenant: String,
    pub user: String,
    pub url: String,
}

struct Notice {
    kind: NotificationKind,
    subject: Subject,
    message: String,
    data: Value,
}

/// What it is about.
enum Subject {
    File { id: Uuid, owner: Arc<Owner> },
    Webhook(WebhookOwner),
    Batch { id: Uuid, tenant: String, user: String },
}

impl Subject {
    fn tenant(&self) -> &String {
        match self {
            Self::File { owner, .. } => &owner.tenant,
            Self::Webhook(webhook) => &webhook.tenant,
            Self::Batch { tenant, .. } => tenant,
        }
    }

    fn user(&self) -> &String {
        match self {
            Self::File { owner, .. } => &owner.user,
            Self::Webhook(webhook) => &webhook.user,
            Self::Batch { user, .. } => user,
        }
    }

    fn file(&self) -> Option<(Uuid, &Owner)> {
        match self {
            Self::File { id, owner } => Some((*id, owner)),
            Self::Webhook(_) | Self::Batch { .. } => None,
        }
    }

    fn batch(&self) -> Option<Uuid> {
        match self {
            Self::File { owner, .. } => owner.batch,
            Self::Webhook(_) => None,
            Self::Batch { id, .. } => Some(*id),
        }
    }
}

async fn write(tx: &mut Tx, notices: Vec<Notice>, now: Time) -> Result<(), Error> {
    let mut rows = Rows::default();
    let mut created = Vec::with_capacity(notices.len());
    for notice in notices {
        let (id, subject) = (new_id_at(now), &notice.subject);
        let (file, name) = subject.file().map(|(id, owner)| (id, owner.file_name.clone())).unzip();
        let mut data = json!({ "notificationId": id, "type": notice.kind, "message": notice.message });
        if let Some(name) = &name {
            data["fileId"] = json!(file);
            data["fileName"] = json!(name);
        }
        created.push(Event {
            tenant: subject.tenant().clone(),
            user: subject.user().clone(),
            file,
            batch: subject.batch(),
            ..Event::of_system(EventKind::NotificationCreated, now, data)
        });
        rows.push(vec![
            Arg::from(id),
            Arg::from(subject.tenant()),
            Arg::from(subject.user()),
            Arg::from(notice.kind),
            Arg::from(file),
            Arg::from(name),
            Arg::from(notice.message),
            Arg::from(notice.data),
            Arg::from(now),
        ]);
    }
    if rows.is_empty() {
        return Ok(());
    }
    let into = "notifications (id, tenant_id, user_id, kind, file_id, file_name, message, data, created_at)";
    tx.insert(into, rows, "").await?;
    events::record(tx, created).await
}

/// Removes up to `limit` notifications from before a time. Returns how many.
pub async fn remove_old(tx: &mut Tx, before: Time, limit: i64) -> Result<u64, Error> {
    // What a batch picked and then finds changed stays, so the condition is there twice.
    tx.execute(
        "DELETE FROM notifications WHERE (id) IN (SELECT id FROM notifications WHERE created_at < $1 LIMIT $2)
         AND created_at < $1",
        args![before, limit],
    )
    .await
}
