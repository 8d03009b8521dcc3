//! Creates a row for each announced file, reserves its quota and issues its upload URL: for all files or for none.

use std::ops::Deref;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

use super::IntakeConfig;
use super::announce::Announced;
use super::registrations;
use crate::blobs::signed_url::UrlSigner;
use crate::records::batch::changes::{self, Places};
use crate::records::batch::deadline;
use crate::records::events::{self, Event};
use crate::records::file::File;
use crate::records::files::uploads::{self, NewFile, Registration};
use crate::records::quota;
use crate::records::resumable;
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
use landfall_store::{Joint, Tx, Write};

pub struct Register {
    pub caller: Caller,
    pub batch: Option<Uuid>,
    pub priority: Option<Priority>,
    /// Each file with the id that it gets.
    pub files: Vec<(Uuid, Announced)>,
    pub now: Time,
    pub config: IntakeConfig,
    /// What the client gets for them.
    pub tickets: Tickets,
    /// Files of up to so many bytes are sent straight to the object store. `None`: none are.
    pub direct: Option<i64>,
    /// The position of the request in its trace.
    pub trace: Option<String>,
}

/// The tickets for the bytes of new files. They do not depend on what the database says, so they are made while the files are
/// written, or never where no client gets them.
#[derive(Clone)]
pub struct Tickets(Arc<LazyLock<Vec<UploadTicket>, MakeTickets>>);

type MakeTickets = Box<dyn FnOnce() -> Vec<UploadTicket> + Send>;

impl Tickets {
    /// For files whose client gets none.
    pub fn none() -> Self {
        Self::made_by(Vec::new)
    }

    pub fn for_files(
        files: &[(Uuid, Announced)],
        signer: &UrlSigner,
        config: &IntakeConfig,
        now: Time,
    ) -> Self {
        let sizes: Vec<(Uuid, i64)> = files.iter().map(|(id, file)| (*id, file.size)).collect();
        let (signer, ttl) = (signer.clone(), config.url_ttl);
        Self::made_by(move || {
            sizes.into_iter().map(|(id, size)| issue_ticket(&signer, id, size, now, ttl)).collect()
        })
    }

    fn made_by(make: impl FnOnce() -> Vec<UploadTicket> + Send + 'static) -> Self {
        Self(Arc::new(LazyLock::new(Box::new(make))))
    }

    /// Whether these are the same tickets, and not those that an earlier request got.
    pub fn are(&self, others: &Self) -> bool {
        Arc::ptr_eq(&self.0, &others.0)
    }
}

impl Deref for Tickets {
    type Target = [UploadTicket];

    fn deref(&self) -> &[UploadTicket] {
        &self.0
    }
}

impl Serialize for Tickets {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.as_slice().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Tickets {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let tickets = Vec::deserialize(deserializer)?;
        Ok(Self::made_by(move || tickets))
    }
}

/// Returns a ticket for the bytes of one file. Its URL has no host: the HTTP layer adds it.
fn issue_ticket(signer: &UrlSigner, file_id: Uuid, size: i64, now: Time, ttl: Duration) -> UploadTicket {
    let expires_at = now + to_delta(ttl);
    UploadTicket {
        file_id,
        upload_url: signer.sign_upload(file_id, size, expires_at),
        method: "PUT".to_owned(),
        headers: serde_json::Map::from_iter([("Content-Length".to_owned(), size.to_string().into())]),
        expires_at,
        expires_in_ms: i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX),
    }
}

/// Those of one tenant together: they would wait for one another at its quota.
impl Joint for Register {
    type Output = Tickets;

    fn key(&self) -> &str {
        &self.caller.tenant
    }

    /// As how many rows its files count, with what the client stores with them.
    fn rows(&self) -> usize {
        let noted = self.files.iter().flat_map(|(_, file)| [&file.mapping, &file.attributes]);
        self.files.len() + noted.map(|json| registrations::rows_of(json.as_ref())).sum::<usize>()
    }

    async fn apply_all(these: &[&Self], tx: &mut Tx) -> Result<Vec<Self::Output>, Error> {
        let [first, ..] = these else { return Ok(Vec::new()) };
        // Lock the batches before the tenant, as everywhere else: a different order could deadlock. And in the order of
        // their ids, so that two processes never wait for one another.
        let mut by_batch: Vec<usize> = (0..these.len()).collect();
        by_batch.sort_by_key(|place| these[*place].batch);
        let mut priorities = vec![Priority::default().rank(); these.len()];
        for place in by_batch {
            if let Some(batch) = these[place].batch {
                priorities[place] = these[place].take_places(tx, batch).await?;
            }
        }
        let (tenant, config) = (&first.caller.tenant, &first.config);
        let rows = these.iter().map(|one| one.rows()).sum();
        let now = these.iter().map(|one| one.now).max().unwrap_or(first.now);
        registrations::take(tx, tenant, rows, config.registrations, now).await?;
        let bytes = these.iter().flat_map(|one| &one.files).map(|(_, file)| file.size).sum();
        let count = these.iter().map(|one| one.count()).sum();
        quota::reserve(tx, tenant, bytes, count, &config.quota).await?;

        let common: Vec<Registration<'_>> =
            these.iter().zip(priorities).map(|(one, of_batch)| one.common(of_batch)).collect();
        let mut files = Vec::new();
        for (one, common) in these.iter().zip(&common) {
            files.extend(one.files.iter().map(|(id, file)| (common, one.new_file(*id, file))));
        }
        uploads::register(tx, files).await?;
        let events = these.iter().flat_map(|one| one.files.iter().map(|(id, _)| one.event(*id))).collect();
        events::record(tx, events).await?;
        Ok(these.iter().map(|one| one.tickets.clone()).collect())
    }
}

impl Register {
    fn count(&self) -> i64 {
        i64::try_from(self.files.len()).unwrap_or(i64::MAX)
    }

    /// What its files have in common. `of_batch` is the priority of their batch.
    fn common(&self, of_batch: i64) -> Registration<'_> {
        Registration {
            tenant: &self.caller.tenant,
            user: &self.caller.user,
            batch: self.batch,
            first_stage: self.config.first_stage,
            priority: self.priority.map_or(of_batch, Priority::rank),
            upload_until: self.now + to_delta(self.config.confirm_window),
            trace: self.trace.clone(),
            now: self.now,
        }
    }

    fn new_file<'a>(&self, id: Uuid, file: &'a Announced) -> NewFile<'a> {
        NewFile {
            id,
            name: &file.name,
            content_type: file.content_type.clone(),
            size: file.size,
            md5: file.md5.clone(),
            sha256: file.sha256.clone(),
            mapping: file.mapping.clone(),
            attributes: file.attributes.clone(),
            is_direct: self.direct.is_some_and(|limit| file.size <= limit),
        }
    }

    /// Takes free places of the batch for its files, and returns the batch's priority.
    async fn take_places(&self, tx: &mut Tx, batch: Uuid) -> Result<i64, Error> {
        let (owner, count) = (&self.caller.owner(), self.count());
        if let Some(priority) = changes::take_places(tx, batch, owner, count, self.now).await? {
            deadline::extend(tx, Some(batch), self.config.confirm_window, self.now).await?;
            return Ok(priority);
        }
        let found = changes::places(tx, batch, owner).await?;
        Err(match found {
            None => Refusal::no_such_batch(),
            Some(Places { status, .. }) if status != BatchStatus::Active.name() => Refusal::new(
                RefusalCode::BatchNotActive,
                format!("This batch is {status} and takes no more files"),
            ),
            Some(Places { promised, registered, .. }) => Refusal::new(
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
            actor: Some(Actor::caller(&self.caller, &self.caller.tenant, &self.caller.user)),
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
    pub url_ttl: Duration,
    pub signer: UrlSigner,
}

impl Write for Reissue {
    type Output = (UploadTicket, File);

    async fn apply(&self, tx: &mut Tx) -> Result<Self::Output, Error> {
        let file = File::lock_for(tx, &self.caller, self.file).await?;
        match file.status {
            Status::Registered | Status::Uploaded => {}
            Status::Deleted => return Err(events::gone(tx, file.id).await?.into()),
            other => {
                return Err(Refusal::new(
                    RefusalCode::InvalidState,
                    format!("This file is {other}: its bytes are here and confirmed"),
                )
                .details(serde_json::json!({ "status": other }))
                .into());
            }
        }
        if resumable::find(tx, file.id).await?.is_some() {
            // Two ways in at once would need the room of two.
            let message = "The bytes of this file come as a resumable upload; go on with it";
            return Err(Refusal::new(RefusalCode::InvalidState, message).into());
        }
        uploads::set_deadline(tx, file.id, self.now + to_delta(self.window), self.now).await?;
        deadline::extend(tx, file.batch_id, self.window, self.now).await?;
        Ok((issue_ticket(&self.signer, file.id, file.size_bytes, self.now, self.url_ttl), file))
    }
}
