//! Creates a row for each announced file, reserves its quota and issues its upload URL: for all files or for none.

use std::time::Duration;

use uuid::Uuid;

use super::IntakeConfig;
use super::announce::Announced;
use crate::blobs::signed_url::UrlSigner;
use crate::records::events::{self, Event};
use crate::records::quota;
use crate::telemetry::traces;
use landfall_api::uploads::UploadTicket;
use landfall_core::actor::Actor;
use landfall_core::caller::Caller;
use landfall_core::clock::{Time, to_delta};
use landfall_core::event::EventKind;
use landfall_core::lifecycle::Status;
use landfall_core::priority::Priority;
use landfall_core::refusal::{Refusal, RefusalCode};
use landfall_core::states::BatchStatus;
use landfall_store::Error;
use landfall_store::{Rows, Tx, Write, args};

pub struct Register {
    pub caller: Caller,
    pub batch: Option<Uuid>,
    pub priority: Option<Priority>,
    /// Each file with the id that it gets.
    pub files: Vec<(Uuid, Announced)>,
    pub now: Time,
    pub config: IntakeConfig,
    pub signer: UrlSigner,
}

/// Returns a ticket for the bytes of one file. Its URL has no host: the HTTP layer adds it.
fn issue_ticket(signer: &UrlSigner, file_id: Uuid, size: i64, now: Time, window: Duration) -> UploadTicket {
    let expires_at = now + to_delta(window);
    UploadTicket {
        file_id,
        upload_url: signer.sign_upload(file_id, size, expires_at),
        method: "PUT".to_owned(),
        headers: serde_json::Map::from_iter([("Content-Length".to_owned(), size.to_string().into())]),
        expires_at,
    }
}

impl Write for Register {
    type Output = Vec<UploadTicket>;

    async fn apply(&self, tx: &mut Tx) -> Result<Self::Output, Error> {
        let bytes = self.files.iter().map(|(_, file)| file.size).sum();
        let count = i64::try_from(self.files.len()).unwrap_or(i64::MAX);
        // Lock the batch before the tenant, as everywhere else: a different order could deadlock.
        let priority = match self.batch {
            Some(batch) => self.take_places(tx, batch, count).await?,
            None => Priority::default().rank(),
        };
        quota::reserve(tx, &self.caller.tenant, bytes, count, &self.config.quota).await?;
        let priority = self.priority.map_or(priority, Priority::rank);

        let upload_until = self.now + to_delta(self.config.confirm_window);
        let trace = traces::current();
        let mut rows = Rows::default();
        let mut registered = Vec::with_capacity(self.files.len());
        for (id, file) in &self.files {
            rows.push(args![
                *id,
                &self.caller.tenant,
                &self.caller.user,
                self.batch,
                &file.name,
                file.content_type.clone(),
                file.size,
                file.md5.clone(),
                file.mapping.clone(),
                Status::Registered,
                self.config.first_stage,
                priority,
                upload_until,
                self.now,
                self.now,
                trace.clone(),
            ]);
            registered.push(self.event(*id));
        }
        tx.insert(
            "files (id, tenant_id, user_id, batch_id, file_name, content_type, size_bytes, declared_md5, mapping,
                    status, next_stage, priority, upload_until, created_at, updated_at, trace_parent)",
            rows,
            "",
        )
        .await?;
        events::record(tx, registered).await?;

        let window = self.config.confirm_window;
        Ok(self
            .files
            .iter()
            .map(|(id, file)| issue_ticket(&self.signer, *id, file.size, self.now, window))
            .collect())
    }
}

impl Register {
    /// Takes `count` of the batch's free places, and returns the batch's priority.
    async fn take_places(&self, tx: &mut Tx, batch: Uuid, count: i64) -> Result<i64, Error> {
        let taken: Option<(i64,)> = tx
            .row(
                "UPDATE batches SET registered_files = registered_files + $3, updated_at = $4
                 WHERE id = $1 AND user_id = $2 AND status = 'active' AND registered_files + $3 <= file_count
                 RETURNING priority",
                args![batch, &self.caller.user, count, self.now],
            )
            .await?;
        if let Some((priority,)) = taken {
            return Ok(priority);
        }
        let found: Option<(String, i64, i64)> = tx
            .row(
                "SELECT status, file_count, registered_files FROM batches WHERE id = $1 AND user_id = $2",
                args![batch, &self.caller.user],
            )
            .await?;
        Err(match found {
            None => Refusal::no_such_batch(),
            Some((status, ..)) if status != BatchStatus::Active.name() => Refusal::new(
                RefusalCode::BatchNotActive,
                format!("This batch is {status} and takes no more files"),
            ),
            Some((_, promised, registered)) => Refusal::new(
                RefusalCode::BatchFull,
                format!(
                    "This batch was opened for {promised} files and has {registered}; {count} more do not fit"
                ),
            ),
        }
        .into())
    }

    fn event(&self, id: Uuid) -> Event {
        Event {
            at: self.now,
            kind: EventKind::FileStatusChanged,
            tenant: self.caller.tenant.clone(),
            user: self.caller.user.clone(),
            file: Some(id),
            batch: self.batch,
            from: None,
            to: Some(Status::Registered),
            stage: None,
            next_stage: None,
            attempt: None,
            worker: None,
            actor: Some(Actor::user(&self.caller.user, &self.caller.user)),
            failure: None,
            data: None,
        }
    }
}

/// Issues a new URL for a file whose bytes are not confirmed yet, and extends its deadline.
pub struct Reissue {
    pub caller: Caller,
    pub file: Uuid,
    pub now: Time,
    pub window: Duration,
    pub signer: UrlSigner,
}

impl Write for Reissue {
    type Output = UploadTicket;

    async fn apply(&self, tx: &mut Tx) -> Result<Self::Output, Error> {
        let file = crate::records::file::File::lock_for(tx, &self.caller, self.file).await?;
        match file.status {
            Status::Registered | Status::Uploaded => {}
            Status::Deleted => return Err(Refusal::gone().into()),
            other => {
                return Err(Refusal::new(
                    RefusalCode::InvalidState,
                    format!("This file is {other}: its bytes are here and confirmed"),
                )
                .details(serde_json::json!({ "status": other }))
                .into());
            }
        }
        tx.execute(
            "UPDATE files SET upload_until = $2, updated_at = $3 WHERE id = $1",
            args![file.id, self.now + to_delta(self.window), self.now],
        )
        .await?;
        Ok(issue_ticket(&self.signer, file.id, file.size_bytes, self.now, self.window))
    }
}
