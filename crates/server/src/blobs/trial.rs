//! Tries what Landfall needs of the storage, one thing after the other, and says what is wrong.

use super::{Backend, Blobs};
use landfall_store::Error;

/// One thing that was tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trial {
    pub name: &'static str,
    pub verdict: Verdict,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Passed,
    /// It works, with a disadvantage.
    Warning(String),
    Failed(String),
    /// It was not tried.
    Skipped(String),
}

impl Verdict {
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Warning(_) => "warning",
            Self::Failed(_) => "failed",
            Self::Skipped(_) => "skipped",
        }
    }

    pub fn message(&self) -> Option<&str> {
        match self {
            Self::Passed => None,
            Self::Warning(message) | Self::Failed(message) | Self::Skipped(message) => Some(message),
        }
    }
}

/// For whom the storage has to work.
#[derive(Debug, Clone, Default)]
pub struct Audience {
    /// Whether clients send bytes straight to an object store.
    pub is_direct: bool,
    /// The origins of pages whose scripts do.
    pub origins: Vec<String>,
}

pub(super) const WRITE: &str = "write";
pub(super) const READ: &str = "read";
pub(super) const LIST: &str = "list";
pub(super) const CONDITIONAL_PUT: &str = "conditional put";
pub(super) const DELETE: &str = "delete";

impl Blobs {
    /// Tries everything with objects of its own, which it removes.
    pub async fn try_everything(&self, audience: &Audience) -> Vec<Trial> {
        match &self.backend {
            Backend::Local(_) => self.try_folder().await,
            Backend::Objects(objects) => objects.try_everything(audience).await,
        }
    }

    async fn try_folder(&self) -> Vec<Trial> {
        let file = landfall_core::random::new_uuid();
        let key = Self::key(file, landfall_core::random::new_uuid());
        let mut trials = Vec::new();
        let mut tried = |name, result: Result<bool, Error>, otherwise: &str| {
            let verdict = match result {
                Ok(true) => Verdict::Passed,
                Ok(false) => Verdict::Failed(otherwise.to_owned()),
                Err(error) => Verdict::Failed(format!("The folder cannot be used: {error}")),
            };
            let has_passed = verdict == Verdict::Passed;
            trials.push(Trial { name, verdict });
            has_passed
        };
        if tried(WRITE, self.publish_probe(&key).await.map(|()| true), "") {
            let size = self.read(&key).await.map(|blob| blob.size() == PROBE.len() as u64);
            tried(READ, size, "The folder does not give back what was written");
            let listed = self.keys_of(file).await.map(|keys| keys == [key.clone()]);
            tried(LIST, listed, "The folder does not list what was written");
            let again = match self.publish_probe(&key).await {
                Err(Error::BlobExists { .. }) => Ok(true),
                other => other.map(|()| false),
            };
            tried(CONDITIONAL_PUT, again, "The folder lets a second upload replace the first");
            let removed = match self.remove(&key).await {
                Ok(()) => self.size(&key).await.map(|size| size.is_none()),
                Err(error) => Err(error),
            };
            tried(DELETE, removed, "What was deleted is still there");
        }
        trials
    }

    async fn publish_probe(&self, key: &str) -> Result<(), Error> {
        let mut incoming = self.receive(landfall_core::random::new_uuid(), key).await?;
        incoming.write(PROBE).await?;
        let published = incoming.publish(|_| Ok(())).await;
        if published.is_ok() {
            incoming.finish().await;
        }
        published.map(drop)
    }
}

pub(super) const PROBE: &[u8] = b"Landfall tries its storage.";
