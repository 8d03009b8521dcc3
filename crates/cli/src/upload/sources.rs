//! What the command line names: files, folders, patterns, and standard input.

use std::collections::HashSet;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::Problem;
use super::candidates::{Candidate, Place, inspect, unreadable};
use super::excludes::Excludes;
use super::pattern::{self, Pattern};
use super::walk::{Found, LeftOut, Root, Walk};

/// The name for standard input.
pub const STANDARD_INPUT: &str = "-";

#[derive(Debug, Clone)]
pub struct Sources {
    pub paths: Vec<PathBuf>,
    pub excludes: Arc<Excludes>,
    /// What was read from standard input.
    pub spooled: Option<Candidate>,
    /// What is noted about every file.
    pub noted: Arc<Map<String, Value>>,
}

impl Sources {
    /// All files, one after the other. Nothing is listed before it is its turn.
    pub fn files(&self) -> impl Iterator<Item = Found> + '_ {
        // One source names every file once.
        let mut seen = (self.paths.len() > 1).then(HashSet::new);
        self.paths
            .iter()
            .flat_map(|path| self.files_of(path))
            .filter(move |found| match (&mut seen, found) {
                (Some(seen), Found::File(candidate)) => identity(candidate).is_none_or(|id| seen.insert(id)),
                _ => true,
            })
            .map(|found| match found {
                Found::File(candidate) => Found::File(Candidate { noted: self.noted.clone(), ..candidate }),
                other => other,
            })
    }

    /// How many files and bytes there are.
    pub fn count(&self) -> Total {
        let mut total = Total::default();
        for found in self.files() {
            if let Found::File(candidate) = found {
                total.files += 1;
                total.bytes += candidate.size;
            }
        }
        total
    }

    fn files_of(&self, path: &Path) -> Box<dyn Iterator<Item = Found> + '_> {
        if path.as_os_str() == STANDARD_INPUT {
            return Box::new(self.spooled.clone().map(Found::File).into_iter());
        }
        let problem =
            |problem| Some(Found::Problem(path.to_string_lossy().into_owned(), problem)).into_iter();
        let found = match path.metadata() {
            Ok(found) => found,
            // A file that is there is meant, whatever its name looks like.
            Err(_) if path.symlink_metadata().is_err() => match path.to_str() {
                Some(text) if pattern::is_pattern(text) => return self.matches(text),
                _ => return Box::new(problem(unreadable(&std::io::ErrorKind::NotFound.into()))),
            },
            Err(error) => return Box::new(problem(unreadable(&error))),
        };
        if found.is_dir() {
            return match Root::open_at(path) {
                Ok(root) => Box::new(Walk::new(root, self.excludes.clone(), None)),
                Err(error) => Box::new(problem(unreadable(&error))),
            };
        }
        if self.excludes.contains_named(path) {
            return Box::new(std::iter::empty());
        }
        match inspect(path) {
            Ok(candidate) => Box::new(Some(Found::File(candidate)).into_iter()),
            Err(found) => Box::new(problem(found)),
        }
    }

    fn matches(&self, text: &str) -> Box<dyn Iterator<Item = Found> + '_> {
        let problem =
            |problem| Box::new(Some(Found::Problem(text.to_owned(), problem)).into_iter()) as Box<_>;
        let pattern = match Pattern::parse(text) {
            Ok(pattern) => pattern,
            Err(found) => return problem(found),
        };
        let root = match Root::open_at(&pattern.base) {
            Ok(root) => root,
            Err(error) => return problem(unreadable(&error)),
        };
        let mut walk = Walk::new(root, self.excludes.clone(), Some(Arc::new(pattern))).peekable();
        if walk.peek().is_none() {
            return problem(Problem::new("NO_MATCH", "No file matches this pattern"));
        }
        Box::new(walk)
    }
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Total {
    pub files: usize,
    pub bytes: u64,
}

/// What was left out of folders, by reason.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LeftOutCounts {
    pub links: usize,
    pub empty: usize,
    pub special: usize,
}

impl LeftOutCounts {
    pub fn add(&mut self, what: LeftOut) {
        *match what {
            LeftOut::Link => &mut self.links,
            LeftOut::Empty => &mut self.empty,
            LeftOut::Special => &mut self.special,
        } += 1;
    }
}

/// Tells two names of one file from two files: the folder that it is in, and its name there. `None` if it is gone.
fn identity(candidate: &Candidate) -> Option<[u8; 16]> {
    let path = match &candidate.place {
        Place::Named(path) => path.clone(),
        Place::Below(root, below) => root.path.join(below),
        Place::Spooled(_) => return None,
    };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let found = folder.metadata().ok()?;
    let mut hash = Sha256::new();
    hash.update(found.dev().to_le_bytes());
    hash.update(found.ino().to_le_bytes());
    hash.update(path.file_name()?.as_bytes());
    hash.finalize()[..16].try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(folder: &Path, paths: &[&str]) -> Sources {
        Sources {
            paths: paths.iter().map(|path| folder.join(path)).collect(),
            excludes: Arc::new(Excludes::new(&["*.tmp".to_owned()], &[], false).unwrap()),
            spooled: None,
            noted: Arc::default(),
        }
    }

    fn names(sources: &Sources) -> Vec<String> {
        let name = |found| match found {
            Found::File(candidate) => candidate.name,
            Found::Problem(_, problem) => problem.code,
            Found::LeftOut(what) => format!("{what:?}"),
        };
        sources.files().map(name).collect()
    }

    #[test]
    fn a_file_that_is_named_twice_is_sent_once() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("sub")).unwrap();
        for name in ["a.txt", "sub/b.txt", "sub/c.tmp", "d.tmp", "[x].txt"] {
            std::fs::write(folder.path().join(name), "tide").unwrap();
        }
        std::fs::hard_link(folder.path().join("a.txt"), folder.path().join("other.txt")).unwrap();
        let at = folder.path();
        assert_eq!(
            names(&sources(at, &["a.txt", "sub", "*.txt", "sub/b.txt", "./a.txt"])),
            ["a.txt", "b.txt", "[x].txt", "other.txt"]
        );
        assert_eq!(names(&sources(at, &["[x].txt"])), ["[x].txt"], "a name that is there is no pattern");
        assert_eq!(names(&sources(at, &["*.md", "d.tmp", "missing"])), ["NO_MATCH", "UNREADABLE"]);
        assert_eq!(sources(at, &["sub", "a.txt"]).count(), Total { files: 2, bytes: 8 });
    }
}
