//! Folders for the data of tests. They are in memory where there is enough of it, so that no sync waits for a disk.

use std::path::Path;
use std::time::Duration;

use tempfile::{Builder, TempDir};

const MEMORY: &str = "/dev/shm";
/// More than the tests that run at the same time need. In a container there are often only 64 MiB.
const NEEDED_BYTES: u64 = 1 << 30;
const PREFIX: &str = "landfall-test-";
/// No test takes this long.
const MAX_AGE: Duration = Duration::from_hours(24);

/// A folder of its own for a test. Programs may not be allowed to run from it.
pub fn temporary() -> TempDir {
    let mut builder = Builder::new();
    let builder = builder.prefix(PREFIX);
    let in_memory = if has_room(MEMORY) { builder.tempdir_in(MEMORY).ok() } else { None };
    in_memory.unwrap_or_else(|| builder.tempdir().expect("a temporary folder"))
}

fn has_room(folder: &str) -> bool {
    rustix::fs::statvfs(folder).is_ok_and(|found| found.f_bavail * found.f_frsize >= NEEDED_BYTES)
}

/// Removes what killed tests left: in memory it would stay until the machine is restarted.
pub fn remove_abandoned() {
    let Ok(entries) = Path::new(MEMORY).read_dir() else { return };
    for entry in entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX)) {
        let created = entry.metadata().and_then(|found| found.modified());
        if created.is_ok_and(|created| created.elapsed().is_ok_and(|age| age > MAX_AGE)) {
            // One that belongs to another account stays.
            drop(std::fs::remove_dir_all(entry.path()));
        }
    }
}
