//! Remembers uploads that are not finished, so that the same command goes on with them after it was interrupted.
//!
//! Each has a file of its own in the user's state folder, and holds a lock on it while it runs. The lock ends with the
//! program, however that ends. The file is removed with the upload.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::candidates::{Checksums, Stamp};
use landfall_core::clock::{Clock, Time, to_delta};

/// The server gives an unfinished upload up much sooner.
const MAX_AGE: Duration = Duration::from_hours(30 * 24);
/// How many notes one command looks at to remove old ones.
const MAX_PRUNED: usize = 10_000;
const MAX_NOTE_BYTES: u64 = 64 * 1024;
/// Another command may remove a note while this one opens it.
const OPEN_ATTEMPTS: usize = 10;

/// An upload that was begun.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Note {
    pub server: String,
    pub path: PathBuf,
    pub upload_url: String,
    pub file_id: Uuid,
    pub batch_id: Uuid,
    /// The file as it was when the upload began. If it is another now, the upload is of no use.
    pub stamp: Stamp,
    /// The checksum of the beginning of the file.
    pub head: String,
    pub checksums: Checksums,
    pub begun_at: Time,
}

/// The notes about uploads to one server.
#[derive(Debug)]
pub struct Unfinished {
    folder: Option<PathBuf>,
    server: String,
}

/// The right to upload one file.
#[derive(Debug)]
pub enum Claim {
    Held(Box<Held>),
    /// Another command uploads it at this moment.
    Busy,
    /// There is no folder for notes, so the upload cannot be continued by another command.
    Unavailable,
}

impl Unfinished {
    pub fn new(server: &str) -> Self {
        Self { folder: folder().and_then(|folder| prepare(folder).ok()), server: server.to_owned() }
    }

    #[cfg(test)]
    fn at(folder: &Path, server: &str) -> Self {
        Self { folder: Some(folder.to_owned()), server: server.to_owned() }
    }

    /// Takes the right to upload a file, with the note about an earlier upload of it if there is one.
    pub fn claim(&self, path: &Path) -> io::Result<Claim> {
        let Some(folder) = &self.folder else { return Ok(Claim::Unavailable) };
        let note = folder.join(self.name(path));
        for _ in 0..OPEN_ATTEMPTS {
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .open(&note)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(Claim::Busy),
                Err(TryLockError::Error(error)) => return Err(error),
            }
            // The command that held the lock before may have removed the note.
            let is_there = std::fs::metadata(&note).is_ok_and(|found| same(&found, &file));
            if !is_there {
                continue;
            }
            let mut held = Held { file, path: note, note: None };
            held.note = held.read().filter(|note| note.server == self.server && note.path == path);
            return Ok(Claim::Held(Box::new(held)));
        }
        Ok(Claim::Busy)
    }

    /// Removes notes that are too old to be of use, such as those about files that are gone.
    pub fn prune(&self) {
        let Some(Ok(entries)) = self.folder.as_ref().map(std::fs::read_dir) else { return };
        for entry in entries.take(MAX_PRUNED).flatten() {
            let modified = entry.metadata().and_then(|found| found.modified()).map(Time::from);
            let is_old = modified.is_ok_and(|at| Clock::System.now() - at > to_delta(MAX_AGE));
            if is_old
                && let Ok(file) = File::open(entry.path())
                && file.try_lock().is_ok()
            {
                // If this fails, the next command tries again.
                drop(std::fs::remove_file(entry.path()));
            }
        }
    }

    fn name(&self, path: &Path) -> String {
        use std::os::unix::ffi::OsStrExt;
        let mut hash = Sha256::new();
        hash.update(self.server.as_bytes());
        hash.update([0]);
        hash.update(path.as_os_str().as_bytes());
        format!("{}.json", hex::encode(&hash.finalize()[..16]))
    }
}

/// `$XDG_STATE_HOME/landfall/uploads`. A relative path in the variable does not count.
fn folder() -> Option<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))?;
    Some(state.join("landfall/uploads"))
}

fn prepare(folder: PathBuf) -> io::Result<PathBuf> {
    DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
    Ok(folder)
}

fn same(found: &std::fs::Metadata, file: &File) -> bool {
    file.metadata().is_ok_and(|own| (own.dev(), own.ino()) == (found.dev(), found.ino()))
}

/// The note about one file, which no other command has at the same time.
#[derive(Debug)]
pub struct Held {
    file: File,
    path: PathBuf,
    pub note: Option<Note>,
}

impl Held {
    /// A note that cannot be read is none: the program was killed while it wrote it.
    fn read(&mut self) -> Option<Note> {
        let mut text = Vec::new();
        (&self.file).take(MAX_NOTE_BYTES).read_to_end(&mut text).ok()?;
        serde_json::from_slice(&text).ok()
    }

    pub fn write(&mut self, note: Note) -> io::Result<()> {
        use std::io::Seek;
        let text = serde_json::to_vec(&note)?;
        self.file.set_len(0)?;
        self.file.rewind()?;
        self.file.write_all(&text)?;
        self.file.sync_data()?;
        self.note = Some(note);
        Ok(())
    }

    /// The upload is over: nothing is left to go on with.
    pub fn forget(&mut self) {
        self.note = None;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.note.is_none() {
            // The lock is still held. What cannot be removed is pruned later.
            drop(std::fs::remove_file(&self.path));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upload::candidates::head;

    const SERVER: &str = "http://127.0.0.1:3002";

    fn note(path: &Path, server: &str) -> Note {
        let (stamp, head) = head(&File::open(path).unwrap()).unwrap();
        Note {
            server: server.to_owned(),
            path: path.to_owned(),
            upload_url: String::new(),
            file_id: Uuid::nil(),
            batch_id: Uuid::nil(),
            stamp,
            head,
            checksums: Checksums { md5: String::new(), sha256: String::new() },
            begun_at: Clock::System.now(),
        }
    }

    fn held(claim: Claim) -> Held {
        match claim {
            Claim::Held(held) => *held,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_note_is_found_again_until_the_upload_is_over() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("big.pdf");
        std::fs::write(&file, "tide").unwrap();
        let notes = prepare(folder.path().join("notes")).unwrap();
        let unfinished = Unfinished::at(&notes, SERVER);
        let mut first = held(unfinished.claim(&file).unwrap());
        assert!(first.note.is_none());
        first.write(note(&file, SERVER)).unwrap();
        assert!(matches!(unfinished.claim(&file).unwrap(), Claim::Busy), "one command at a time");
        drop(first);
        let elsewhere = Unfinished::at(&notes, "http://elsewhere");
        assert!(held(elsewhere.claim(&file).unwrap()).note.is_none(), "the note is about one server");
        let mut second = held(unfinished.claim(&file).unwrap());
        assert_eq!(second.note.as_ref().unwrap().stamp, note(&file, SERVER).stamp);
        second.forget();
        drop(second);
        assert_eq!(std::fs::read_dir(&notes).unwrap().count(), 0, "nothing is left behind");
    }

    #[test]
    fn a_note_that_was_half_written_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("big.pdf");
        std::fs::write(&file, "tide").unwrap();
        let unfinished = Unfinished::at(folder.path(), SERVER);
        let mut first = held(unfinished.claim(&file).unwrap());
        first.write(note(&file, SERVER)).unwrap();
        first.file.set_len(20).unwrap();
        drop(first);
        assert!(held(unfinished.claim(&file).unwrap()).note.is_none());
    }

    #[test]
    fn old_notes_are_removed_and_those_in_use_stay() {
        let folder = tempfile::tempdir().unwrap();
        let unfinished = Unfinished::at(folder.path(), SERVER);
        let old = std::time::SystemTime::from(Clock::System.now() - to_delta(MAX_AGE * 2));
        let mut kept = Vec::new();
        for name in ["old", "held", "new"] {
            let file = folder.path().join(name);
            std::fs::write(&file, "tide").unwrap();
            let mut claimed = held(unfinished.claim(&file).unwrap());
            claimed.write(note(&file, SERVER)).unwrap();
            if name != "new" {
                claimed.file.set_modified(old).unwrap();
            }
            if name == "held" {
                kept.push(claimed);
            }
            std::fs::remove_file(&file).unwrap();
        }
        unfinished.prune();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}
