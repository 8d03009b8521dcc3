//! The lines of the log that tell what became of files, batches, circuits and operations.
//!
//! Each is written once, after the commit of the transaction that did it. A transaction that is undone or repeated writes no
//! line. The lines are written outside of the spans of the work, so each names all that it is about itself.

use landfall_core::caller::TenantUser;
use landfall_core::clock::Time;
use landfall_core::event::EventKind;
use landfall_core::lifecycle::Status;
use landfall_store::{CommitHook, Tx};
use serde_json::{Value, json};

use super::batch::Batch;
use super::events::Event;
use super::file::Owner;

type Line = Box<dyn FnOnce() + Send>;

/// The lines of a transaction, in their order.
#[derive(Default)]
pub struct Lines(Vec<Line>);

impl Lines {
    pub fn add(&mut self, line: impl FnOnce() + Send + 'static) {
        self.0.push(Box::new(line));
    }
}

impl CommitHook for Lines {
    fn after_commit(self: Box<Self>) {
        for line in self.0 {
            line();
        }
    }
}

/// A file moved. `retry_at` is when a queued file may be claimed.
pub fn moved(tx: &mut Tx, owner: &Owner, event: &Event, retry_at: Option<Time>) {
    let Some(to) = event.to else { return };
    match (event.from, to) {
        (Some(from), Status::Queued) if from.is_running() && event.failure.is_some() => {
            retried(tx, owner, event, retry_at);
        }
        (Some(from), Status::Failed) => failed(tx, owner, event, from),
        (Some(Status::Failed | Status::Cancelled), Status::Queued) => revived(tx, event),
        (_, Status::Ready) => ready(tx, owner, event),
        _ => {}
    }
}

/// How long the worker had the file at this stage.
fn held_ms(owner: &Owner, event: &Event) -> Option<i64> {
    owner.claimed_at.map(|at| (event.at - at).num_milliseconds().max(0))
}

fn retried(tx: &mut Tx, owner: &Owner, event: &Event, retry_at: Option<Time>) {
    let (event, duration, name) = (event.clone(), held_ms(owner, event), owner.file_name.clone());
    tx.hook::<Lines>().add(move || {
        let failure = event.failure.as_ref();
        tracing::warn!(
            fileId = event.file.map(display),
            fileName = name,
            batchId = event.batch.map(display),
            userId = event.user,
            tenantId = event.tenant,
            stage = event.stage.map(display),
            attempt = event.attempt,
            errorCode = failure.map(|failure| failure.code.name()),
            errorClass = failure.map(|failure| failure.code.class().name()),
            error = failure.map(|failure| failure.message.as_str()),
            retryAt = retry_at.map(|at| display(at.to_rfc3339())),
            durationMs = duration,
            worker = event.worker,
            "a stage failed and will be retried"
        );
    });
}

fn failed(tx: &mut Tx, owner: &Owner, event: &Event, from: Status) {
    let (event, duration, name) = (event.clone(), held_ms(owner, event), owner.file_name.clone());
    tx.hook::<Lines>().add(move || {
        let failure = event.failure.as_ref();
        tracing::error!(
            fileId = event.file.map(display),
            fileName = name,
            batchId = event.batch.map(display),
            userId = event.user,
            tenantId = event.tenant,
            stage = event.stage.map(display),
            attempt = event.attempt,
            errorCode = failure.map(|failure| failure.code.name()),
            errorClass = failure.map(|failure| failure.code.class().name()),
            error = failure.map(|failure| failure.message.as_str()),
            lastStatus = from.name(),
            durationMs = duration,
            worker = event.worker,
            "a file failed"
        );
    });
}

fn revived(tx: &mut Tx, event: &Event) {
    let event = event.clone();
    tx.hook::<Lines>().add(move || {
        tracing::info!(
            fileId = event.file.map(display),
            batchId = event.batch.map(display),
            userId = event.user,
            tenantId = event.tenant,
            stage = event.next_stage.map(display),
            "a file is retried by hand"
        );
    });
}

fn ready(tx: &mut Tx, owner: &Owner, event: &Event) {
    let event = event.clone();
    let took = owner.confirmed_at.map(|at| (event.at - at).num_milliseconds().max(0));
    tx.hook::<Lines>().add(move || {
        tracing::debug!(
            fileId = event.file.map(display),
            batchId = event.batch.map(display),
            userId = event.user,
            tenantId = event.tenant,
            durationMs = took,
            worker = event.worker,
            "a file is ready"
        );
    });
}

/// An event that is not about one file.
pub fn told(tx: &mut Tx, event: &Event) {
    let data = event.data.clone().unwrap_or_default();
    let text = move |name: &str| data.get(name).and_then(Value::as_str).map(str::to_owned);
    match event.kind {
        EventKind::QueueRateLimitExceeded => tx.hook::<Lines>().add(move || {
            tracing::warn!(queue = text("queue"), "a rate limit makes the files of a stage wait");
        }),
        EventKind::CircuitChanged => tx.hook::<Lines>().add(move || {
            tracing::warn!(
                service = text("service"),
                from = text("from"),
                state = text("to"),
                until = text("until"),
                "a circuit changed"
            );
        }),
        _ => {}
    }
}

/// A user's own rate limit is reached.
pub fn user_limited(tx: &mut Tx, user: TenantUser, until: Time) {
    tx.hook::<Lines>().add(move || {
        tracing::warn!(
            userId = user.user, tenantId = user.tenant, until = %until.to_rfc3339(),
            "a rate limit makes a user's files wait"
        );
    });
}

/// A batch came to an end.
pub fn batch_ended(tx: &mut Tx, batch: &Batch, kind: EventKind, now: Time) {
    let (batch, age) = (batch.clone(), (now - batch.created_at).num_milliseconds());
    let summary = json!(batch.summary());
    tx.hook::<Lines>().add(move || match kind {
        EventKind::BatchExpired => tracing::warn!(
            batchId = %batch.id,
            userId = batch.user_id,
            tenantId = batch.tenant_id,
            totalFiles = batch.file_count,
            deletedFiles = batch.deleted_files,
            summary.json = %summary,
            durationMs = age,
            "a batch waited too long for its files and is expired"
        ),
        EventKind::BatchCancelled => tracing::info!(
            batchId = %batch.id,
            userId = batch.user_id,
            tenantId = batch.tenant_id,
            summary.json = %summary,
            durationMs = age,
            "a batch was cancelled"
        ),
        _ => tracing::info!(
            batchId = %batch.id,
            userId = batch.user_id,
            tenantId = batch.tenant_id,
            summary.json = %summary,
            durationMs = age,
            "a batch is completed"
        ),
    });
}
