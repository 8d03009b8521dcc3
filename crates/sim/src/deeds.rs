//! What some clients do: they send a file in several requests (tus), or delete it with an operation on many files.

use bytes::Bytes;
use futures_util::stream;
use uuid::Uuid;

use landfall_core::caller::{Caller, Reach};
use landfall_core::refusal::Refusal;
use landfall_core::states::OperationAction;
use landfall_server::app::App;
use landfall_server::intake::idempotency::{Idempotent, Key};
use landfall_server::intake::resumable::create::Beginning;
use landfall_server::intake::resumable::receive::Piece;
use landfall_server::operations::{Files, Operation, Start};
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
