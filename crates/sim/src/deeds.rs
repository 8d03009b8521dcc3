//! What some clients do: they send a file in several requests (tus) or straight to the object store, cancel it alone or with its
//! batch, retry it, or delete it with an operation on many files.

use bytes::Bytes;
use futures_util::stream;
use uuid::Uuid;

use landfall_core::caller::{Caller, Reach};
use landfall_core::refusal::Refusal;
use landfall_core::states::OperationAction;
use landfall_server::app::App;
use landfall_server::blobs::Blobs;
use landfall_server::intake::cancel::Cancel;
use landfall_server::intake::cancel_batch::CancelBatch;
use landfall_server::intake::idempotency::{Idempotent, Key};
use landfall_server::intake::resumable::create::Beginning;
use landfall_server::intake::resumable::receive::Piece;
use landfall_server::operations::{Files, Operation, Start};
use landfall_server::queue::revive::{self, Revive};
use landfall_server::records::files::dead_letters::Filter;

use crate::clients::{Client, Known, NoResult};
use crate::plan::FilePlan;

impl Client {
    /// Registers a file and sends it in several requests, each to any of the processes. The last byte confirms it.
    pub async fn send_resumable(&self, place: usize, file: &FilePlan, caller: &Caller) -> Option<Uuid> {
        let id = self.begin_upload(place, file, caller).await?;
        self.accounts.note(place, |account| (account.sent, account.confirmed) = (Known::Asked, Known::Asked));
        let sent = self.send_all(file, id, caller).await;
        self.accounts.note(place, |account| {
            (account.sent, account.confirmed) = (Known::of(sent.is_ok()), Known::of(sent.is_ok()));
        });
        sent.ok().map(|()| id)
    }

    async fn begin_upload(&self, place: usize, file: &FilePlan, caller: &Caller) -> Option<Uuid> {
        let (batch, announced) = self.announce(place, file, caller).await?;
        let (of, name) = (caller.clone(), file.name.clone());
        let begin = move |app: App| {
            let (caller, announced, name) = (of.clone(), announced.clone(), name.clone());
            async move {
                let key = Some(Key::new(caller.owner(), &name, "", b"")?);
                let (metadata, concat, parts) = (None, None, Vec::new());
                let beginning = Beginning { caller, batch, announced, metadata, concat, parts, key };
                app.resumables.create(beginning).await
            }
        };
        let begun = self.insist(&format!("begin to send {}", file.name), begin).await;
        self.accounts.note(place, |account| {
            account.registered = Known::of(begun.is_ok());
            account.id = begun.as_ref().ok().copied();
        });
        begun.ok()
    }

    /// Asks how far the upload is, sends the next bytes, and so on to the end.
    async fn send_all(&self, file: &FilePlan, id: Uuid, caller: &Caller) -> Result<(), Refusal> {
        let bytes = Bytes::from(file.bytes());
        loop {
            let of = caller.clone();
            let status = move |app: App| {
                let of = of.clone();
                async move { app.resumables.status(&of, id).await.map(|progress| progress.offset) }
            };
            let offset = self.insist(&format!("ask how far {} is", file.name), status).await?;
            let from = usize::try_from(offset.unwrap_or(0)).unwrap_or(usize::MAX);
            if from >= bytes.len() {
                return Ok(());
            }
            let most = usize::try_from(1 + self.shared.number(24)).unwrap_or(1);
            let part = bytes.slice(from..bytes.len().min(from + most));
            let of = caller.clone();
            let send = move |app: App| async move {
                let piece = Piece { offset: from as u64, length: Some(part.len() as u64), checksum: None };
                let body = stream::iter(vec![Ok::<_, &'static str>(part)]);
                app.resumables.receive(&of, id, piece, body).await.map(drop)
            };
            // What was kept of it, the next question tells. A refusal is an earlier request that came to its end after all.
            if let Err(NoResult::Unknown) = self.ask(&format!("send a piece of {}", file.name), send).await {
                self.pause(200 + self.shared.number(1_000)).await;
            }
        }
    }

    /// Puts the bytes where the server told the client to. Some clients send too few at first.
    pub(crate) fn send_direct(&self, file: &FilePlan, id: Uuid) {
        let bytes = file.bytes();
        let sent = if self.shared.number(4) == 0 { bytes[1..].to_vec() } else { bytes };
        self.shared
            .tell(|| format!("client: put {} bytes of {} into the object store", sent.len(), file.name));
        self.put(id, sent);
    }

    pub(crate) fn put(&self, id: Uuid, bytes: Vec<u8>) {
        self.bucket.receive(&Blobs::direct_key(id), bytes, &self.shared);
    }

    pub(crate) async fn cancel(&self, place: usize, file: &FilePlan, id: Uuid, caller: &Caller) {
        self.accounts.note(place, |account| account.cancelled = Known::Asked);
        let of = caller.clone();
        let cancel = move |app: App| {
            let caller = of.clone();
            async move { app.db.write(Cancel { caller, file: id, now: app.clock.now() }).await.map(drop) }
        };
        let done = self.ask_for(file, &format!("cancel {}", file.name), cancel).await;
        // A refusal may also mean that an attempt without an answer was the one that did it.
        if done.is_some_and(|done| done.is_ok()) {
            self.accounts.note(place, |account| account.cancelled = Known::Done);
        }
    }

    /// Cancels the batch of a file with all files in it.
    pub(crate) async fn cancel_batch(&self, place: usize, file: &FilePlan, id: Uuid, caller: &Caller) {
        if !file.in_batch {
            return self.cancel(place, file, id, caller).await;
        }
        let Some(batch) = self.open_batch(file.tenant, caller).await else { return };
        for (other, planned) in self.shared.plan.files.iter().enumerate() {
            if planned.in_batch && planned.tenant == file.tenant {
                self.accounts.note(other, |account| account.batch_cancelled = true);
            }
        }
        let of = caller.clone();
        let cancel = move |app: App| {
            let caller = of.clone();
            async move { app.db.write(CancelBatch { caller, batch, now: app.clock.now() }).await.map(drop) }
        };
        drop(self.ask_for(file, &format!("cancel the batch of {}", file.name), cancel).await);
    }

    pub(crate) async fn retry(&self, file: &FilePlan, id: Uuid, caller: &Caller) {
        let of = caller.clone();
        let retry = move |app: App| {
            let caller = of.clone();
            async move {
                let request = Revive {
                    caller,
                    file: id,
                    from_stage: None,
                    first_stage: app.config.intake.first_stage,
                    only_failed: false,
                    now: app.clock.now(),
                };
                revive::revive(&app.db, &app.blobs, request).await.map(drop)
            }
        };
        drop(self.ask_for(file, &format!("retry {}", file.name), retry).await);
    }

    /// Deletes a file by an operation, and waits until that has ended.
    pub async fn delete_among_many(&self, place: usize, file: &FilePlan, id: Uuid, caller: &Caller) {
        self.accounts.note(place, |account| account.deleted = Known::Asked);
        let (of, name) = (caller.clone(), file.name.clone());
        let start = move |app: App| {
            let (of, name) = (of.clone(), name.clone());
            async move {
                let key = Some(Key::new(of.owner(), &format!("operation {name}"), "", b"")?);
                let (operation, now) = (app.clock.new_id(), app.clock.now());
                let change = Start {
                    id: operation,
                    user: of.owner(),
                    action: OperationAction::Delete,
                    filter: Filter::of(Reach::User(of.owner())),
                    files: Files::Named(vec![id]),
                    total: Some(1),
                    now,
                };
                app.db.write(Idempotent { key, now, change }).await
            }
        };
        let Ok(operation) = self.insist(&format!("delete {} among many", file.name), start).await else {
            return;
        };
        loop {
            let of = caller.clone();
            let look = move |app: App| {
                let of = of.clone();
                async move {
                    let operation = Operation::find_for(&mut app.db.read().await?, &of, operation).await?;
                    Ok((operation.ended_at.is_some(), operation.retried_count))
                }
            };
            let Ok((is_over, done)) = self.insist("look at an operation", look).await else { return };
            if is_over {
                // One that it passed over had ended in a way that it cannot be deleted from.
                let deleted = if done == 1 { Known::Done } else { Known::Asked };
                return self.accounts.note(place, |account| account.deleted = deleted);
            }
            self.pause(1_000).await;
        }
    }
}
