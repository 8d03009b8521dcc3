//! A file that may be sent: where its bytes are, and what they are.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use md5::Md5;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::Problem;
use super::walk::Root;

/// How many bytes at the beginning of a file tell whether it is still the same.
const HEAD_BYTES: u64 = 1 << 20;
const READ_BYTES: usize = 256 * 1024;

#[derive(Debug, Clone)]
pub struct Candidate {
    pub place: Place,
    /// The path as the user reads it.
    pub shown: String,
    pub name: String,
    /// The path below the folder that the command line names.
    pub below: Option<String>,
    /// What the command line notes about every file.
    pub noted: Arc<Map<String, Value>>,
    pub size: u64,
}

impl Candidate {
    /// What is stored with the file.
    pub fn attributes(&self) -> Option<Map<String, Value>> {
        let path = self.below.clone().map(|path| ("path".to_owned(), Value::String(path)));
        let noted = self.noted.iter().map(|(name, value)| (name.clone(), value.clone()));
        let all: Map<String, Value> = path.into_iter().chain(noted).collect();
        (!all.is_empty()).then_some(all)
    }
}

/// Where the bytes are.
#[derive(Debug, Clone)]
pub enum Place {
    /// A path that the command line names. Links in it are followed.
    Named(PathBuf),
    /// A path below a folder, with no links in it.
    Below(Arc<Root>, PathBuf),
    /// A file without a name, which ends with this program.
    Spooled(Arc<File>),
}

impl Place {
    /// Opens the file to read it. Where there is no regular file, it is not there.
    pub fn open(&self) -> io::Result<Arc<File>> {
        let file = match self {
            Self::Spooled(file) => return Ok(file.clone()),
            Self::Named(path) => open_without_waiting(path)?,
            Self::Below(root, path) => root.open(path)?,
        };
        if file.metadata()?.is_file() {
            Ok(Arc::new(file))
        } else {
            Err(io::Error::new(io::ErrorKind::NotFound, "it is not a regular file any more"))
        }
    }

    /// The absolute path, if the file can be found again by it.
    pub fn path(&self) -> Option<PathBuf> {
        match self {
            Self::Named(path) => std::fs::canonicalize(path).ok(),
            Self::Below(root, path) => std::fs::canonicalize(&root.path).ok().map(|root| root.join(path)),
            Self::Spooled(_) => None,
        }
    }
}

/// A pipe in place of the file must not hold the program up.
fn open_without_waiting(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    std::fs::OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)
}

/// What a file system says about a file. If it is the same, the bytes probably are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    pub size: u64,
    modified_s: i64,
    modified_ns: i64,
    device: u64,
    inode: u64,
}

impl Stamp {
    pub fn of(metadata: &Metadata) -> Self {
        Self {
            size: metadata.len(),
            modified_s: metadata.mtime(),
            modified_ns: metadata.mtime_nsec(),
            device: metadata.dev(),
            inode: metadata.ino(),
        }
    }
}

/// The checksums of all bytes of a file, in hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checksums {
    pub md5: String,
    pub sha256: String,
}

/// A candidate whose bytes were read once.
#[derive(Debug, Clone)]
pub struct Hashed {
    pub candidate: Candidate,
    pub checksums: Checksums,
    /// As it was when the bytes were read.
    pub stamp: Stamp,
}

/// A file that the command line names.
pub fn inspect(path: &Path) -> Result<Candidate, Problem> {
    let found = path.metadata().map_err(|error| unreadable(&error))?;
    if !found.is_file() {
        return Err(Problem::new("NOT_A_FILE", "This is not a regular file"));
    }
    if found.len() == 0 {
        return Err(empty());
    }
    Ok(Candidate {
        shown: path.to_string_lossy().into_owned(),
        name: name(path)?,
        below: None,
        noted: Arc::default(),
        size: found.len(),
        place: Place::Named(path.to_owned()),
    })
}

/// The last part of a path.
pub fn name(path: &Path) -> Result<String, Problem> {
    let name = path.file_name().and_then(|name| name.to_str());
    name.map(ToOwned::to_owned)
        .ok_or_else(|| Problem::new("INVALID_FILE_NAME", "Its name is not valid UTF-8; rename it"))
}

pub fn unreadable(error: &io::Error) -> Problem {
    Problem::new("UNREADABLE", format!("This cannot be read: {error}"))
}

pub fn empty() -> Problem {
    Problem::new("EMPTY", "This file is empty")
}

pub fn changed(before: u64, now: u64) -> Problem {
    let how = if before == now {
        "This file changed during the upload".to_owned()
    } else {
        format!("This file had {before} bytes and now has {now}: it changed during the upload")
    };
    Problem::new("CHANGED", how)
}

/// Reads a whole file once. It takes as long as the disk does, so it is for a thread that may block.
pub fn hash(mut candidate: Candidate) -> Result<Hashed, Problem> {
    let (stamp, checksums) = checksums(&candidate.place).map_err(|error| unreadable(&error))?;
    if stamp.size == 0 {
        return Err(empty());
    }
    candidate.size = stamp.size;
    Ok(Hashed { candidate, checksums, stamp })
}

fn checksums(place: &Place) -> io::Result<(Stamp, Checksums)> {
    let file = place.open()?;
    let before = file.metadata()?;
    let (mut md5, mut sha256) = (Md5::new(), Sha256::new());
    let size = read(&file, u64::MAX, |part| {
        md5.update(part);
        sha256.update(part);
    })?;
    let checksums = Checksums { md5: hex::encode(md5.finalize()), sha256: hex::encode(sha256.finalize()) };
    // The size is that of the bytes that were read; a file may grow meanwhile.
    Ok((Stamp { size, ..Stamp::of(&before) }, checksums))
}

/// The checksum of the beginning of a file, with what the file system says about it.
pub fn head(file: &File) -> io::Result<(Stamp, String)> {
    let stamp = Stamp::of(&file.metadata()?);
    let mut sha256 = Sha256::new();
    read(file, HEAD_BYTES, |part| sha256.update(part))?;
    Ok((stamp, hex::encode(sha256.finalize())))
}

/// Reads up to `limit` bytes from the beginning; returns how many there were.
fn read(file: &File, limit: u64, mut each: impl FnMut(&[u8])) -> io::Result<u64> {
    let mut buffer = vec![0; READ_BYTES];
    let mut at = 0;
    while at < limit {
        let room = buffer.len().min(usize::try_from(limit - at).unwrap_or(usize::MAX));
        match file.read_at(&mut buffer[..room], at) {
            Ok(0) => break,
            Ok(read) => {
                each(&buffer[..read]);
                at += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_cannot_be_sent_are_found_before_the_upload() {
        let folder = tempfile::tempdir().unwrap();
        let empty = folder.path().join("empty.txt");
        std::fs::write(&empty, "").unwrap();
        let code = |path: &Path| inspect(path).unwrap_err().code;
        assert_eq!(code(&empty), "EMPTY");
        assert_eq!(code(&folder.path().join("missing.txt")), "UNREADABLE");
        assert_eq!(code(Path::new("/dev/null")), "NOT_A_FILE");
    }

    #[test]
    fn the_size_is_that_of_the_bytes_that_were_hashed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        std::fs::write(&path, "tide").unwrap();
        let candidate = inspect(&path).unwrap();
        std::fs::write(&path, "high tide").unwrap();
        let hashed = hash(candidate).unwrap();
        assert_eq!((hashed.candidate.size, hashed.stamp.size), (9, 9));
        assert_eq!(hashed.checksums.md5, "b20175bacd47df48fd1d2ece3764a900");
    }

    #[test]
    fn a_file_that_became_a_pipe_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        std::fs::write(&path, "tide").unwrap();
        let candidate = inspect(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &path,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        assert_eq!(hash(candidate).unwrap_err().code, "UNREADABLE");
    }
}
