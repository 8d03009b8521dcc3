//! The processes that wait for documents.
//!
//! To start one takes longer than most documents do, so they are kept and used again, and one that nobody has used yet
//! stands ready. Each serves one tenant only: a document that takes its process over may then see and spoil what the
//! same tenant sends next, and nothing of anybody else.

use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError, Weak};

use tokio::io::AsyncRead;

pub use super::reader::Document;

use super::confine::{Landlock, Protections};
use super::reader::Reader;
use super::{Program, SandboxConfig};
use crate::error::{Error, ErrorKind};
use crate::reading::Reading;

/// How many documents are read at once is for the caller to decide.
#[derive(Clone)]
pub struct Pool {
    inner: Arc<Inner>,
}

struct Inner {
    program: Program,
    config: SandboxConfig,
    /// The last used at the end.
    idle: Mutex<Vec<Reader>>,
    told_what_is_missing: Once,
}

impl Pool {
    pub fn new(program: Program, config: SandboxConfig) -> Self {
        let told_what_is_missing = Once::new();
        Self { inner: Arc::new(Inner { program, config, idle: Mutex::default(), told_what_is_missing }) }
    }

    /// The program that reads them.
    pub fn program(&self) -> &Program {
        &self.inner.program
    }

    /// Reads a document. Dropping the answer's future kills the process that reads it.
    pub async fn read(
        &self,
        document: &Document<'_>,
        bytes: impl AsyncRead + Unpin,
    ) -> Result<Reading, Error> {
        let mut reader = match self.inner.take(document.tenant) {
            Some(reader) => reader,
            None => self.inner.start().await?,
        };
        if reader.tenant().is_none() {
            self.start_ahead();
        }
        let reading = reader.read(document, bytes).await?;
        if !reader.is_spent() {
            self.inner.put_back(reader);
        }
        Ok(reading)
    }

    /// Sees to it that a process stands ready that nobody has used yet. The first one also shows what this machine can
    /// protect from.
    pub fn start_ahead(&self) {
        let inner = Arc::downgrade(&self.inner);
        tokio::spawn(async move {
            let start = inner.upgrade().filter(|inner| !inner.has_unused()).map(|inner| {
                let (program, config) = (inner.program.clone(), inner.config.clone());
                async move { Reader::start(&program, &config).await }
            });
            let Some(start) = start else { return };
            // Meanwhile the pool may have been dropped, and then this process is too.
            match (start.await, Weak::upgrade(&inner)) {
                (Ok(reader), Some(inner)) => {
                    inner.tell_what_is_missing(&reader.protections);
                    inner.put_back(reader);
                }
                (Err(error), _) => {
                    tracing::error!(%error, "the process that reads documents cannot be started");
                }
                (Ok(_), None) => {}
            }
        });
    }
}

impl Inner {
    async fn start(&self) -> Result<Reader, Error> {
        let reader = Reader::start(&self.program, &self.config).await.map_err(|error| {
            tracing::error!(%error, "the process that reads documents cannot be started");
            Error::new(ErrorKind::NotStarted, "The process that reads documents could not be started")
        })?;
        self.tell_what_is_missing(&reader.protections);
        Ok(reader)
    }

    /// The one that this tenant used last, or one that nobody has used.
    fn take(&self, tenant: &str) -> Option<Reader> {
        let mut idle = self.idle();
        idle.retain(|reader| !reader.has_ended());
        let of = |whose: Option<&str>| idle.iter().rposition(|reader| reader.tenant() == whose);
        let found = of(Some(tenant)).or_else(|| of(None))?;
        Some(idle.remove(found))
    }

    fn put_back(&self, reader: Reader) {
        let mut idle = self.idle();
        idle.push(reader);
        if idle.len() > self.config.idle {
            // The one that was not used for longest, which is not the one that stands ready.
            let oldest = idle.iter().position(|reader| reader.tenant().is_some()).unwrap_or(0);
            drop(idle.remove(oldest));
        }
    }

    fn has_unused(&self) -> bool {
        self.idle().iter().any(|reader| reader.tenant().is_none() && !reader.has_ended())
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Reader>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell_what_is_missing(&self, protections: &Protections) {
        self.told_what_is_missing.call_once(|| {
            match protections.landlock {
                Landlock::Full => {}
                Landlock::Partial => tracing::warn!(
                    "this kernel knows an older landlock: documents are read without all of its protection"
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
