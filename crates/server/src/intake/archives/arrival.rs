//! The files of an archive are taken in, each as an upload is.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::FuturesUnordered;
use futures_util::{StreamExt, stream};
use tokio::sync::mpsc;
use uuid::Uuid;

use super::{Archives, names};
use crate::intake::adopt::adopt;
use crate::intake::upload::{Upload, WHOLE_WITHIN};
use crate::records::file::File;
use crate::records::files::archives as members;
use crate::stages::Job;
use landfall_core::actor::Actor;
use landfall_core::clock::Time;
use landfall_core::failure::{Code, Failure};
use landfall_core::lifecycle::Status;
use landfall_core::refusal::RefusalCode;
use landfall_documents::Member;
use landfall_store::{Error, Tx, Write};

/// Files that are stored at the same time, and the KB that they may have together.
const AT_ONCE: usize = 8;
const KB_AT_ONCE: usize = 64 * 1024;
/// The bytes are in memory, so neither a stall nor a rate matters.
const NO_STALL: Duration = Duration::from_hours(24);

impl Archives {
    /// Takes in the files of an archive that have not arrived yet.
    pub(super) async fn take_in(&self, job: &Job, batch: Uuid) -> Result<(), Failure> {
        let failed = |error: Error| self.failed(&error);
        let mut awaited = HashMap::new();
        let mut tx = self.db.read().await.map_err(failed)?;
        let found = members::members(&mut tx, batch).await.map_err(failed)?;
        drop(tx);
        for member in found {
            if member.status == Status::Registered.name() {
                awaited.insert(member.id, member.size_bytes);
            } else if member.status == Status::Uploaded.name() {
                // Its bytes were here when the worker died.
                self.confirm(member.id).await?;
            }
        }
        if awaited.is_empty() {
            return Ok(());
        }
        let (sender, receiver) = mpsc::channel(1);
        let unpacking = self.work.unpack(job, sender);
        let storing = self.store(job, &awaited, receiver);
        let ((), stored) = tokio::try_join!(unpacking, storing)?;
        if stored.len() == awaited.len() {
            return Ok(());
        }
        let message = "Some files of this archive were not found when it was unpacked once more";
        Err(Failure::new(Code::ParseError, message))
    }

    /// Stores the files that are awaited. Returns their ids.
    async fn store(
        &self,
        job: &Job,
        awaited: &HashMap<Uuid, i64>,
        mut unpacked: mpsc::Receiver<Member>,
    ) -> Result<HashSet<Uuid>, Failure> {
        let (mut storing, mut kb_in_hand) = (FuturesUnordered::new(), 0);
        let (mut stored, mut next, mut is_over) = (HashSet::new(), None, false);
        loop {
            if let Some((id, bytes, kb)) = next.take_if(|(_, _, kb)| {
                storing.len() < AT_ONCE && (storing.is_empty() || kb_in_hand + *kb <= KB_AT_ONCE)
            }) {
                kb_in_hand += kb;
                storing.push(async move { self.take_in_one(id, bytes).await.map(|()| kb) });
            }
            tokio::select! {
                biased;
                Some(done) = storing.next() => {
                    kb_in_hand -= done?;
                    job.made_progress();
                }
                member = unpacked.recv(), if next.is_none() && !is_over => match member {
                    Some(member) => next = Self::wanted(job, awaited, &mut stored, member)?,
                    None => is_over = true,
                },
                else => return Ok(stored),
            }
        }
    }

    /// A file that was unpacked, with its id and its KB, if it is awaited.
    fn wanted(
        job: &Job,
        awaited: &HashMap<Uuid, i64>,
        stored: &mut HashSet<Uuid>,
        member: Member,
    ) -> Result<Option<(Uuid, Vec<u8>, usize)>, Failure> {
        job.made_progress();
        let id = names::id(job.file.id, &member.path);
        let Some(size) = awaited.get(&id) else { return Ok(None) };
        if i64::try_from(member.bytes.len()) != Ok(*size) || !stored.insert(id) {
            return Err(Failure::new(Code::ParseError, "A file of this archive changed while it was read"));
        }
        let kb = member.bytes.len() / 1_024 + 1;
        Ok(Some((id, member.bytes, kb)))
    }

    /// Stores the bytes of one file and confirms it.
    async fn take_in_one(&self, id: Uuid, bytes: Vec<u8>) -> Result<(), Failure> {
        let upload = Upload {
            db: self.db.clone(),
            blobs: self.blobs.clone(),
            clock: self.clock.clone(),
            owner: self.liveness.identity().id,
            tasks: self.tasks.clone(),
            arrivals: self.arrivals.clone(),
            disk: self.disk.clone(),
            confirm_window: self.config.batch_timeout,
            stall: NO_STALL,
            min_rate: 1,
            whole_within: WHOLE_WITHIN,
            file: id,
            size: i64::try_from(bytes.len()).unwrap_or(i64::MAX),
            md5: None,
        };
        let body = stream::iter([Ok::<_, std::convert::Infallible>(Bytes::from(bytes))]);
        match upload.receive(body).await {
            Ok(_) => self.confirm(id).await,
            // If it still awaits its bytes, the archive waits, and the next attempt takes it in.
            Err(Error::Refused(refusal)) if is_for_others(refusal.code) => Ok(()),
            Err(error) => Err(self.failed(&error)),
        }
    }

    async fn confirm(&self, member: Uuid) -> Result<(), Failure> {
        let actor = Actor::worker(self.liveness.name());
        let confirm = ConfirmMember { member, actor, now: self.clock.now() };
        self.db.write(confirm).await.map_err(|error| self.failed(&error))
    }
}

/// Whether the file is gone, or an earlier attempt has taken it in or still does, or this process was thought dead.
fn is_for_others(code: RefusalCode) -> bool {
    matches!(
        code,
        RefusalCode::FileDeleted
            | RefusalCode::FileNotFound
            | RefusalCode::InvalidState
            | RefusalCode::UploadInProgress
            | RefusalCode::UploadInterrupted
            | RefusalCode::UploadBroken
    )
}

/// Confirms a file of an archive whose bytes are here.
struct ConfirmMember {
    member: Uuid,
    actor: Actor,
    now: Time,
}

impl Write for ConfirmMember {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        match File::lock(tx, self.member).await? {
            Some(mut file) if file.status == Status::Uploaded => {
                let why = (self.actor.clone(), "It was unpacked from its archive");
                adopt(tx, &mut file, None, 0, why, self.now).await
            }
            _ => Ok(()),
        }
    }
}
