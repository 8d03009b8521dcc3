//! The files named on the command line, checked before anything is sent.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use futures_util::{StreamExt, stream};
use md5::{Digest, Md5};

use super::Problem;

/// Reading is limited by the disk and hashing by the CPU; two at once keep both busy.
const HASH_CONCURRENCY: usize = 2;

#[derive(Debug, Clone)]
pub struct Candidate {
    pub path: PathBuf,
    pub shown: String,
    pub name: String,
    pub size: u64,
}

/// A candidate with the MD5 of its bytes.
#[derive(Debug, Clone)]
pub struct Hashed {
    pub candidate: Candidate,
    pub md5: String,
}

pub fn inspect(path: &Path) -> Result<Candidate, Problem> {
    let found = path.metadata().map_err(|error| unreadable(&error))?;
    if found.is_dir() {
        return Err(Problem::new("FOLDER", "This is a folder; name the files in it, as in FOLDER/*"));
    }
    if !found.is_file() {
        return Err(Problem::new("NOT_A_FILE", "This is not a regular file"));
    }
    if found.len() == 0 {
        return Err(Problem::new("EMPTY", "This file is empty"));
    }
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .ok_or_else(|| Problem::new("INVALID_FILE_NAME", "Its name is not valid UTF-8"))?;
    Ok(Candidate {
        shown: path.to_string_lossy().into_owned(),
        name: name.to_owned(),
        size: found.len(),
        path: path.to_owned(),
    })
}

pub fn unreadable(error: &io::Error) -> Problem {
    Problem::new("UNREADABLE", format!("This cannot be read: {error}"))
}

/// Reads every file once for its MD5 and its current size. Returns separately the files that cannot be read.
pub async fn hash(files: Vec<Candidate>) -> (Vec<Hashed>, Vec<(Candidate, Problem)>) {
    let mut hashed = Vec::with_capacity(files.len());
    let mut unreadable_files = Vec::new();
    let mut results = stream::iter(files)
        .map(|candidate| async move {
            let path = candidate.path.clone();
            let result = tokio::task::spawn_blocking(move || hash_file(&path)).await;
            (candidate, result.unwrap_or_else(|error| Err(io::Error::other(error))))
        })
        .buffered(HASH_CONCURRENCY);
    while let Some((mut candidate, result)) = results.next().await {
        match result {
            Ok((0, _)) => {
                unreadable_files.push((candidate, Problem::new("EMPTY", "This file is empty")));
            }
            Ok((size, md5)) => {
                candidate.size = size;
                hashed.push(Hashed { candidate, md5 });
            }
            Err(error) => unreadable_files.push((candidate, unreadable(&error))),
        }
    }
    (hashed, unreadable_files)
}

fn hash_file(path: &Path) -> io::Result<(u64, String)> {
    let mut file = File::open(path)?;
    let mut md5 = Md5::new();
    let mut buffer = vec![0; 256 * 1024];
    let mut size = 0;
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok((size, hex::encode(md5.finalize()))),
            Ok(read) => {
                md5.update(&buffer[..read]);
                size += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
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
        assert_eq!(code(folder.path()), "FOLDER");
        assert_eq!(code(&empty), "EMPTY");
        assert_eq!(code(&folder.path().join("missing.txt")), "UNREADABLE");
        assert_eq!(code(Path::new("/dev/null")), "NOT_A_FILE");
    }

    #[tokio::test]
    async fn the_size_is_that_of_the_bytes_that_were_hashed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        std::fs::write(&path, "tide").unwrap();
        let candidate = inspect(&path).unwrap();
        std::fs::write(&path, "high tide").unwrap();
        let (hashed, unreadable) = hash(vec![candidate]).await;
        assert!(unreadable.is_empty());
        assert_eq!(hashed[0].candidate.size, 9);
        assert_eq!(hashed[0].md5, "b20175bacd47df48fd1d2ece3764a900");
    }
}
