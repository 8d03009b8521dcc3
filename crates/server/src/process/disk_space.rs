//! How much room is left on the file systems of the database and of the blobs.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use landfall_core::clock::Stopwatch;
use landfall_core::refusal::{Refusal, RefusalCode};
use landfall_store::Error;

/// The file systems are asked at most so often, however many requests there are.
const CACHED_FOR: Duration = Duration::from_millis(500);

#[derive(Clone)]
pub struct DiskSpace {
    inner: Arc<Inner>,
}

struct Inner {
    folders: Vec<PathBuf>,
    /// With less than this, nothing new is taken in.
    least: u64,
    last: Mutex<Option<(Stopwatch, u64)>>,
}

impl DiskSpace {
    /// Looks at the file systems of these folders.
    pub fn new(folders: Vec<PathBuf>, least: u64) -> Self {
        Self { inner: Arc::new(Inner { folders, least, last: Mutex::default() }) }
    }

    /// The bytes that are free on the fullest of the file systems.
    pub async fn free(&self) -> Result<u64, Error> {
        if let Some((asked, free)) = &*self.inner.last.lock().unwrap_or_else(PoisonError::into_inner)
            && asked.elapsed() < CACHED_FOR
        {
            return Ok(*free);
        }
        let inner = self.inner.clone();
        // A network file system may take its time.
        let asked = landfall_core::blocking::run(move || inner.ask()).await;
        asked.unwrap_or_else(|panic| Err(Error::Internal(format!("the look at the disk panicked: {panic}"))))
    }

    /// Refuses what would need more room, where there is too little. A file system that cannot be asked refuses nothing: what
    /// is written there will say what is wrong.
    pub async fn require_room(&self) -> Result<(), Error> {
        match self.free().await {
            Ok(free) if free < self.inner.least => Err(too_little(free).into()),
            Ok(_) => Ok(()),
            Err(error) => {
                tracing::warn!(%error, "the free space of the disk is not known");
                Ok(())
            }
        }
    }

    /// Whether there is enough room; otherwise how much there is.
    pub async fn check(&self) -> Result<(), String> {
        match self.free().await {
            Ok(free) if free < self.inner.least => {
                Err(format!("{} MB are free and MIN_FREE_DISK is {} MB", free >> 20, self.inner.least >> 20))
            }
            Ok(_) => Ok(()),
            Err(error) => {
                tracing::warn!(%error, "the free space of the disk is not known");
                Err("The free space of the disk is not known".to_owned())
            }
        }
    }
}

impl Inner {
    fn ask(&self) -> Result<u64, Error> {
        let mut least = u64::MAX;
        for folder in &self.folders {
            let disk = rustix::fs::statvfs(folder).map_err(|error| Error::Storage {
                what: format!("ask for the free space of {}", folder.display()),
                source: std::io::Error::from(error).into(),
            })?;
            least = least.min(disk.f_bavail.saturating_mul(disk.f_frsize));
        }
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some((Stopwatch::start(), least));
        Ok(least)
    }
}

fn too_little(free: u64) -> Refusal {
    let message = format!(
        "The server's disk is nearly full ({} MB are free), so it takes in nothing new until there is room again; send the \
         request again later",
        free >> 20
    );
    Refusal::new(RefusalCode::StorageFull, message).retryable()
}
