//! The processes that read documents.
//!
//! To start a process takes longer than to read most documents. So processes are reused, and one that has read
//! nothing yet is kept ready. Each reads the documents of one owner only: a document that takes its process over can
//! then see and falsify later documents of the same owner, and no others.

use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError, Weak};

use tokio::io::AsyncRead;
use tokio::sync::mpsc;

use super::archive_response::Unpacking;
use super::confine::{Landlock, Protections};
use super::worker::{Document, Worker};
use super::{Content, Program, SandboxConfig};
use crate::error::{Error, ErrorKind};
use crate::members::{ArchiveLimits, Contents, Member};
use crate::reading::Reading;

/// Starts and reuses the processes that read documents. Clones share the processes.
///
/// A pool does not limit how many documents are read at once: each call of [`Pool::read`] uses a process, and starts
/// one if none is idle. Its methods must be called inside a tokio runtime. When the last clone is dropped, the idle
/// processes are killed.
#[derive(Clone)]
pub struct Pool {
    inner: Arc<Inner>,
}

struct Inner {
    program: Program,
    config: SandboxConfig,
    /// In the order of their last use.
    idle: Mutex<Vec<Worker>>,
    missing_protections_logged: Once,
}

impl Pool {
    /// Starts no process yet.
    pub fn new(program: Program, config: SandboxConfig) -> Self {
        let missing_protections_logged = Once::new();
        Self {
            inner: Arc::new(Inner { program, config, idle: Mutex::default(), missing_protections_logged }),
        }
    }

    /// The program that reads the documents.
    pub fn program(&self) -> &Program {
        &self.inner.program
    }

    /// Reads a document. Dropping the future kills the process that reads it.
    ///
    /// The result may have no text, only pictures: [`Reading::finish`] decides whether that is an error.
    pub async fn read(
        &self,
        document: &Document<'_>,
        bytes: impl AsyncRead + Unpin,
    ) -> Result<Reading, Error> {
        match self.content(document, bytes, None).await? {
            Content::Document(reading) => Ok(*reading),
            Content::Archive(_) => Err(not_an_archive()),
        }
    }

    /// Reads a document as [`Pool::read`] does, unless it is an archive of files: then lists them.
    pub async fn read_or_list(
        &self,
        document: &Document<'_>,
        bytes: impl AsyncRead + Unpin,
        limits: &ArchiveLimits,
    ) -> Result<Content, Error> {
        self.content(document, bytes, Some(Unpacking::new(limits, None))).await
    }

    /// Unpacks an archive of files and sends each of them, in the order of the archive. Returns their list.
    ///
    /// The files have the same paths as in the list of [`Pool::read_or_list`] with the same limits. After an error, those
    /// that were sent are good, but are not all there are.
    pub async fn unpack(
        &self,
        document: &Document<'_>,
        bytes: impl AsyncRead + Unpin,
        limits: &ArchiveLimits,
        members: &mpsc::Sender<Member>,
    ) -> Result<Contents, Error> {
        match self.content(document, bytes, Some(Unpacking::new(limits, Some(members)))).await? {
            Content::Archive(contents) => Ok(contents),
            Content::Document(_) => Err(not_an_archive()),
        }
    }

    async fn content(
        &self,
        document: &Document<'_>,
        bytes: impl AsyncRead + Unpin,
        unpacking: Option<Unpacking<'_>>,
    ) -> Result<Content, Error> {
        let mut worker = match self.inner.take(document.owner) {
            Some(worker) => worker,
            None => self.inner.start().await?,
        };
        if worker.owner().is_none() {
            self.warm_up();
        }
        let content = worker.read(document, bytes, unpacking).await?;
        if !worker.must_be_replaced() {
            self.inner.put_back(worker);
        }
        Ok(content)
    }

    /// Starts a process in the background, unless an unused one is ready. The first process also shows which
    /// protections this machine has.
    pub fn warm_up(&self) {
        let inner = Arc::downgrade(&self.inner);
        tokio::spawn(async move {
            let start = inner.upgrade().filter(|inner| !inner.has_unused()).map(|inner| {
                let (program, config) = (inner.program.clone(), inner.config.clone());
                async move { Worker::start(&program, &config).await }
            });
            let Some(start) = start else { return };
            // If the pool has been dropped meanwhile, so is this process.
            match (start.await, Weak::upgrade(&inner)) {
                (Ok(worker), Some(inner)) => {
                    inner.log_missing_protections(&worker.protections);
                    inner.put_back(worker);
                }
                (Err(error), _) => {
                    tracing::error!(%error, "the process that reads documents cannot be started");
                }
                (Ok(_), None) => {}
            }
        });
    }
}

fn not_an_archive() -> Error {
    Error::new(ErrorKind::Damaged, "This file is not what it was when it was recognised")
}

impl Inner {
    async fn start(&self) -> Result<Worker, Error> {
        let worker = Worker::start(&self.program, &self.config).await.map_err(|error| {
            tracing::error!(%error, "the process that reads documents cannot be started");
            Error::new(ErrorKind::NotStarted, "The process that reads documents could not be started")
        })?;
        self.log_missing_protections(&worker.protections);
        Ok(worker)
    }

    /// The process that this owner used last, or an unused one.
    fn take(&self, owner: &str) -> Option<Worker> {
        let mut idle = self.idle();
        idle.retain(|worker| !worker.has_exited());
        let of = |owner: Option<&str>| idle.iter().rposition(|worker| worker.owner() == owner);
        let index = of(Some(owner)).or_else(|| of(None))?;
        Some(idle.remove(index))
    }

    fn put_back(&self, worker: Worker) {
        let mut idle = self.idle();
        idle.push(worker);
        if idle.len() > self.config.idle {
            // The least recently used one. An unused one is kept ready.
            let oldest = idle.iter().position(|worker| worker.owner().is_some()).unwrap_or(0);
            drop(idle.remove(oldest));
        }
    }

    fn has_unused(&self) -> bool {
        self.idle().iter().any(|worker| worker.owner().is_none() && !worker.has_exited())
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Worker>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn log_missing_protections(&self, protections: &Protections) {
        self.missing_protections_logged.call_once(|| {
            match protections.landlock {
                Landlock::Full => {}
                Landlock::Partial => tracing::warn!(
                    "this kernel has an older landlock: documents are read with only a part of its protection"
                ),
                Landlock::None => {
                    tracing::warn!("landlock is not available: documents are read without its protection");
                }
            }
            if !protections.seccomp {
                tracing::warn!("seccomp is not available: documents are read without its protection");
            }
        });
    }
}
