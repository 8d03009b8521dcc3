//! Standard input: it is written to a temporary file first, because the size of an upload must be known before its first
//! byte.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Problem;
use super::candidates::{Candidate, Place, empty};
use super::sources::STANDARD_INPUT;
use crate::format::size;

/// Reads standard input to its end, up to `limit` bytes. The temporary file has no name, so that nothing is left behind.
pub fn read(input: &mut impl Read, name: &str, limit: u64) -> io::Result<Result<Candidate, Problem>> {
    let mut file = tempfile::tempfile_in(folder())?;
    let bytes = io::copy(&mut input.take(limit.saturating_add(1)), &mut file)?;
    file.flush()?;
    Ok(candidate(file, name, bytes, limit))
}

fn candidate(file: File, name: &str, bytes: u64, limit: u64) -> Result<Candidate, Problem> {
    if bytes > limit {
        let message = format!("Standard input has more than {}, the most that the server takes", size(limit));
        return Err(Problem::new("TOO_LARGE", message));
    }
    if bytes == 0 {
        return Err(empty());
    }
    Ok(Candidate {
        place: Place::Spooled(Arc::new(file)),
        shown: STANDARD_INPUT.to_owned(),
        name: name.to_owned(),
        below: None,
        noted: Arc::default(),
        size: bytes,
    })
}

/// `/tmp` is in memory on many machines, and a document may be larger than that.
fn folder() -> PathBuf {
    let large = Path::new("/var/tmp");
    if std::env::var_os("TMPDIR").is_none() && large.is_dir() {
        large.to_owned()
    } else {
        std::env::temp_dir()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upload::candidates::hash;

    #[test]
    fn standard_input_is_read_up_to_the_limit() {
        let read = |text: &str, limit| read(&mut text.as_bytes(), "tide.txt", limit).unwrap();
        let hashed = hash(read("high tide", 9).unwrap()).unwrap();
        assert_eq!((hashed.candidate.size, hashed.candidate.name.as_str()), (9, "tide.txt"));
        assert_eq!(hashed.checksums.md5, "b20175bacd47df48fd1d2ece3764a900");
        assert_eq!(read("high tide", 8).unwrap_err().code, "TOO_LARGE");
        assert_eq!(read("", 8).unwrap_err().code, "EMPTY");
    }
}
