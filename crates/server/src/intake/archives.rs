//! An archive becomes a batch of files: each file in it is a file of its own, and the archive is ready when they have ended.
//!
//! 1. The extract stage recognises an archive and lists its files. One transaction, fenced by the claim of the archive,
//!    registers all of them in a batch of their own, with the quota that they need, or none (`open.rs`).
//! 2. The archive is unpacked again, and each file is taken in and confirmed as an upload is (`arrival.rs`). Its id follows
//!    from the archive and its path. So after a crash the next attempt goes on with those that have not arrived.
//! 3. The archive waits in the queue until its files have ended: the transaction in which the last of them ends makes it
//!    due. It then becomes ready with the list of its files as its text, or fails if none of them is ready (`outcome.rs`).
//!
//! The files of a deleted archive are deleted after it (`deletion.rs`), those of a cancelled one are cancelled with it, and those
//! of a retried one are retried if they had failed.

pub mod arrival;
pub mod deletion;
mod names;
mod open;
mod outcome;

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::IntakeConfig;
use super::arrivals::Arrivals;
use crate::blobs::Blobs;
use crate::process::disk_space::DiskSpace;
use crate::process::liveness::Liveness;
use crate::queue::revive::{RetriedBy, is_infected, revive_all};
use crate::records::batch::{Batch, archives};
use crate::records::file::File;
use crate::records::files::archives as members;
use crate::stages::{Job, Output, Work, database_failed, excused, storage_failed};
use landfall_core::clock::{Clock, Time, to_delta};
use landfall_core::failure::{Code, Failure};
use landfall_core::lifecycle::Stage;
use landfall_core::refusal::RefusalCode;
use landfall_core::service::Service;
use landfall_documents::Member;
use landfall_store::{Db, Error, Tx, Write};

/// An archive looks again whether its files have ended after half of the time that they have taken so far, within these
/// bounds. It is woken when they have, so this is for a process that died before it could wake it.
const SHORTEST_WAIT: Duration = Duration::from_secs(10);
const LONGEST_WAIT: Duration = Duration::from_mins(10);

/// The stages, with archives that are unpacked into files.
pub struct Archives {
    /// Runs the stages of all other files, and unpacks archives.
    pub work: Arc<dyn Work>,
    pub db: Db,
    pub blobs: Blobs,
    pub clock: Clock,
    pub liveness: Arc<Liveness>,
    pub arrivals: Arrivals,
    pub tasks: TaskTracker,
    pub disk: DiskSpace,
    pub config: IntakeConfig,
}

impl Work for Archives {
    fn run<'a>(&'a self, job: &'a Job) -> BoxFuture<'a, Result<Output, Failure>> {
        async move {
            match job.file.archive_batch {
                Some(batch) if job.stage == Stage::Extract => self.go_on(job, batch).await,
                _ => match self.work.run(job).await? {
                    Output::Archive(contents) => match self.open(job, &contents).await? {
                        open::Opened::Batch(batch) => self.go_on(job, batch).await,
                        open::Opened::Later(waits) => Ok(waits),
                    },
                    output => Ok(output),
                },
            }
        }
        .boxed()
    }

    fn unpack<'a>(
        &'a self,
        job: &'a Job,
        members: mpsc::Sender<Member>,
    ) -> BoxFuture<'a, Result<(), Failure>> {
        self.work.unpack(job, members)
    }

    fn says_well(&self, service: Service) -> BoxFuture<'_, Option<bool>> {
        self.work.says_well(service)
    }
}

impl Archives {
    /// Goes on with an archive whose files are registered.
    async fn go_on(&self, job: &Job, batch: Uuid) -> Result<Output, Failure> {
        let failed = |error: Error| self.failed(&error);
        if let Some(retried_at) = job.file.retried_at {
            let now = self.clock.now();
            let retry = RetryMembers { archive: job.file.clone(), batch, retried_at, now };
            self.db.write(retry).await.map_err(failed)?;
        }
        self.take_in(job, batch).await?;
        let (batch, members) = {
            let mut tx = self.db.read().await.map_err(failed)?;
            let batch = archives::find(&mut tx, batch).await.map_err(failed)?;
            let gone = || Failure::new(Code::Unknown, "The batch of this archive is gone").permanent();
            let batch = batch.ok_or_else(gone)?;
            let members = members::members(&mut tx, batch.id).await.map_err(failed)?;
            (batch, members)
        };
        if batch.has_ended() {
            outcome::of(&job.file, &batch, &members).map(Output::Extracted)
        } else {
            Ok(self.wait(&batch))
        }
    }

    /// The archive waits for its files.
    fn wait(&self, batch: &Batch) -> Output {
        let now = self.clock.now();
        let half = (now - batch.created_at) / 2;
        let pause = half.clamp(to_delta(SHORTEST_WAIT), to_delta(LONGEST_WAIT));
        let open = batch.registered_files - batch.terminal_files();
        let reason = format!("It waits for {open} of its {} files", batch.registered_files);
        Output::Waits { until: now + pause, reason }
    }

    /// The failure of the stage for an error of the database or the storage.
    fn failed(&self, error: &Error) -> Failure {
        let of_storage = match error {
            Error::Refused(refusal) => refusal.code == RefusalCode::StorageFull,
            Error::Storage { .. } | Error::StorageFull { .. } | Error::BlobExists { .. } => true,
            _ => return database_failed(error),
        };
        if !of_storage {
            return Failure::new(Code::Unknown, format!("A file of this archive was not taken: {error}"));
        }
        excused(&self.blobs, storage_failed(error))
    }
}

/// Queues the files of an archive again that had failed or were cancelled when the archive was retried. Repeating it is safe:
/// a file that fails again after that is left.
struct RetryMembers {
    archive: Arc<File>,
    batch: Uuid,
    retried_at: Time,
    now: Time,
}

impl Write for RetryMembers {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        let ended = members::lock_failed_before(tx, self.batch, self.retried_at).await?;
        let ended = ended.into_iter().filter(|file| !is_infected(file));
        let ended: Vec<(Stage, File)> = ended.map(|file| (file.next_stage, file)).collect();
        if ended.is_empty() {
            return Ok(());
        }
        let mut by = self.archive.tenant_user();
        if let Some(user) = &self.archive.retried_by {
            by.user.clone_from(user);
        }
        let by = RetriedBy { user: &by, operation: None, trace: None, now: self.now };
        revive_all(tx, &ended, &by).await.map(drop)
    }
}
