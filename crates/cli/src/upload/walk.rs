//! Walks through a folder, a folder at a time, so that the first files can be sent while the rest is not listed yet.
//!
//! Symbolic links are not followed. What they point to inside the folder is found under its own name, and nothing outside
//! the folder is read. So there are no loops either. Hidden files are left out unless they are wanted.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::Problem;
use super::candidates::{Candidate, Place, name, unreadable};
use super::excludes::Excludes;
use super::pattern::{Open, Pattern};

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// Without waiting for the other end of a pipe.
const FILE: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// A folder that the command line names. It stays open, so that all paths below it are those of one folder.
#[derive(Debug)]
pub struct Root {
    pub path: PathBuf,
    folder: OwnedFd,
}

impl Root {
    pub fn open_at(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), folder: rustix::fs::open(path, FOLDER, Mode::empty())? })
    }

    /// Opens a file below the folder. No part of the path may be a link, whenever it became one.
    pub fn open(&self, below: &Path) -> io::Result<File> {
        self.open_with(below, FILE).map(File::from)
    }

    fn open_with(&self, below: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let below = if below.as_os_str().is_empty() { Path::new(".") } else { below };
        let within = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        match rustix::fs::openat2(&self.folder, below, flags, Mode::empty(), within) {
            // An old kernel, or a container that does not know the call.
            Err(Errno::NOSYS | Errno::PERM) => self.open_step_by_step(below, flags),
            opened => Ok(opened?),
        }
    }

    fn open_step_by_step(&self, below: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let names: Vec<&Path> = below
            .components()
            .filter_map(|part| match part {
                Component::Normal(name) => Some(Path::new(name)),
                _ => None,
            })
            .collect();
        let (last, above) =
            names.split_last().map_or((Path::new("."), &[][..]), |(last, above)| (*last, above));
        let mut at = rustix::fs::openat(&self.folder, ".", FOLDER, Mode::empty())?;
        for name in above {
            at = rustix::fs::openat(&at, *name, FOLDER | OFlags::NOFOLLOW, Mode::empty())?;
        }
        Ok(rustix::fs::openat(&at, last, flags | OFlags::NOFOLLOW, Mode::empty())?)
    }

    /// The entries of a folder, by name.
    fn list(&self, below: &Path) -> io::Result<Vec<Entry>> {
        let folder = self.open_with(below, FOLDER)?;
        let mut entries = Vec::new();
        for entry in Dir::read_from(&folder)? {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let kind = match rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(found) => match FileType::from_raw_mode(found.st_mode) {
                    FileType::RegularFile => Kind::File(u64::try_from(found.st_size).unwrap_or(0)),
                    FileType::Directory => Kind::Folder,
                    FileType::Symlink => Kind::Link,
                    _ => Kind::Special,
                },
                // It was removed in between.
                Err(Errno::NOENT) => continue,
                Err(error) => Kind::Failed(error),
            };
            entries.push(Entry { name: OsString::from_vec(name.to_bytes().to_vec()), kind });
        }
        entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }
}

#[derive(Debug)]
struct Entry {
    name: OsString,
    kind: Kind,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    File(u64),
    Folder,
    Link,
    Special,
    Failed(Errno),
}

/// What a walk finds.
#[derive(Debug)]
pub enum Found {
    File(Candidate),
    LeftOut(LeftOut),
    /// A path that cannot be sent, and why.
    Problem(String, Problem),
}

/// Why something in a folder is not sent, though no pattern excludes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeftOut {
    Link,
    Empty,
    /// A pipe, a socket or a device.
    Special,
}

pub struct Walk {
    root: Arc<Root>,
    excludes: Arc<Excludes>,
    pattern: Option<Arc<Pattern>>,
    /// The folders from the root to where the walk is, with what is left of each.
    levels: Vec<Level>,
    /// The folder itself could not be listed.
    failed: Option<(String, Problem)>,
}

struct Level {
    below: PathBuf,
    /// With what the names are compared. `None`: all of them are wanted.
    open: Option<Open>,
    entries: std::vec::IntoIter<Entry>,
}

impl Walk {
    /// All files in a folder, or those that a pattern finds there.
    pub fn new(root: Root, excludes: Arc<Excludes>, pattern: Option<Arc<Pattern>>) -> Self {
        let open = pattern.is_some().then(Pattern::start);
        let mut walk = Self { root: Arc::new(root), excludes, pattern, levels: Vec::new(), failed: None };
        walk.enter(PathBuf::new(), open);
        walk
    }

    fn enter(&mut self, below: PathBuf, open: Option<Open>) {
        match self.root.list(&below) {
            Ok(entries) => self.levels.push(Level { below, open, entries: entries.into_iter() }),
            Err(error) => self.failed = Some((self.shown(&below), unreadable(&error))),
        }
    }

    fn shown(&self, below: &Path) -> String {
        // `./a.pdf` is shown as the user would type it.
        let root = if self.root.path == Path::new(".") { Path::new("") } else { &self.root.path };
        let path = root.join(below);
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { &path };
        path.to_string_lossy().into_owned()
    }

    /// Looks at one entry.
    fn visit(&mut self, at: &Path, open: Option<Open>, entry: Entry) -> Option<Found> {
        let below = at.join(&entry.name);
        let is_folder = matches!(entry.kind, Kind::Folder);
        let (wanted, open_below) = match (open, &self.pattern) {
            (Some(open), Some(pattern)) => {
                let compared = pattern.compare(open, &entry.name, is_folder, self.excludes.hidden_too);
                // All of a folder that matches is wanted.
                (compared.matches, if compared.matches { None } else { compared.below })
            }
            _ => (!self.excludes.hides(&entry.name), None),
        };
        let is_on_the_way = is_folder && open_below.is_some();
        if !(wanted || is_on_the_way) || self.excludes.contains(&below, is_folder) {
            return None;
        }
        match entry.kind {
            Kind::Folder => {
                self.enter(below, open_below);
                None
            }
            Kind::Link => Some(Found::LeftOut(LeftOut::Link)),
            Kind::Special => Some(Found::LeftOut(LeftOut::Special)),
            Kind::File(0) => Some(Found::LeftOut(LeftOut::Empty)),
            Kind::File(size) => Some(self.file(below, size)),
            Kind::Failed(error) => Some(Found::Problem(self.shown(&below), unreadable(&error.into()))),
        }
    }

    fn file(&self, below: PathBuf, size: u64) -> Found {
        let shown = self.shown(&below);
        let named = name(&below).and_then(|name| match below.to_str() {
            Some(text) => Ok((name, text.to_owned())),
            None => Err(Problem::new("INVALID_FILE_NAME", "Its path is not valid UTF-8; rename the folder")),
        });
        match named {
            Ok((name, text)) => {
                let place = Place::Below(self.root.clone(), below);
                Found::File(Candidate { place, shown, name, below: Some(text), noted: Arc::default(), size })
            }
            Err(problem) => Found::Problem(shown, problem),
        }
    }
}

impl Iterator for Walk {
    type Item = Found;

    fn next(&mut self) -> Option<Found> {
        loop {
            if let Some((shown, problem)) = self.failed.take() {
                return Some(Found::Problem(shown, problem));
            }
            let level = self.levels.last_mut()?;
            let Some(entry) = level.entries.next() else {
                self.levels.pop();
                continue;
            };
            let (at, open) = (level.below.clone(), level.open);
            if let Some(found) = self.visit(&at, open, entry) {
                return Some(found);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn folder(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "tide").unwrap();
        }
        folder
    }

    fn walk(at: &Path, exclude: &[&str], hidden: bool, pattern: Option<&str>) -> Vec<Found> {
        let exclude: Vec<String> = exclude.iter().map(|pattern| (*pattern).to_owned()).collect();
        let excludes = Arc::new(Excludes::new(&exclude, &[], hidden).unwrap());
        let pattern = pattern.map(|text| Arc::new(Pattern::parse(text).unwrap()));
        Walk::new(Root::open_at(at).unwrap(), excludes, pattern).collect()
    }

    fn paths(found: &[Found]) -> Vec<&str> {
        let below = |found| match found {
            &Found::File(Candidate { ref below, .. }) => below.as_deref(),
            _ => None,
        };
        found.iter().filter_map(below).collect()
    }

    #[test]
    fn every_file_is_found_once_with_its_path_below_the_folder() {
        let folder = folder(&["b.txt", "a/deep/c.txt", "a/b.txt", ".hidden/x", "a/.y"]);
        assert_eq!(paths(&walk(folder.path(), &[], false, None)), ["a/b.txt", "a/deep/c.txt", "b.txt"]);
        assert_eq!(
            paths(&walk(folder.path(), &["deep/"], true, None)),
            [".hidden/x", "a/.y", "a/b.txt", "b.txt"]
        );
        assert_eq!(paths(&walk(folder.path(), &[], false, Some("**/b.txt"))), ["a/b.txt", "b.txt"]);
        assert_eq!(paths(&walk(folder.path(), &[], false, Some("a*"))), ["a/b.txt", "a/deep/c.txt"]);
        assert_eq!(paths(&walk(folder.path(), &["b.txt"], false, Some("a*"))), ["a/deep/c.txt"]);
    }

    #[test]
    fn links_lead_nowhere() {
        let outside = folder(&["secret.txt"]);
        let folder = folder(&["a/b.txt"]);
        symlink("..", folder.path().join("a/loop")).unwrap();
        symlink(outside.path(), folder.path().join("out")).unwrap();
        symlink(outside.path().join("secret.txt"), folder.path().join("out.txt")).unwrap();
        let found = walk(folder.path(), &[], false, None);
        assert_eq!(paths(&found), ["a/b.txt"]);
        assert_eq!(found.iter().filter(|found| matches!(found, Found::LeftOut(LeftOut::Link))).count(), 3);
    }

    #[test]
    fn a_folder_that_becomes_a_link_after_the_walk_leads_nowhere_either() {
        let outside = folder(&["b.txt"]);
        std::fs::write(outside.path().join("b.txt"), "secret").unwrap();
        let folder = folder(&["a/b.txt"]);
        let found = walk(folder.path(), &[], false, None);
        let Found::File(candidate) = &found[0] else { panic!("{found:?}") };
        assert!(candidate.place.open().is_ok());
        std::fs::remove_dir_all(folder.path().join("a")).unwrap();
        symlink(outside.path(), folder.path().join("a")).unwrap();
        assert!(candidate.place.open().is_err());
        let Place::Below(root, path) = &candidate.place else { panic!("{candidate:?}") };
        assert!(root.open_step_by_step(path, FILE).is_err());
    }

    #[test]
    fn what_cannot_be_sent_is_counted_or_named() {
        let folder = folder(&["a.txt"]);
        std::fs::write(folder.path().join("empty.txt"), "").unwrap();
        std::fs::write(folder.path().join(OsString::from_vec(b"caf\xe9.txt".to_vec())), "tide").unwrap();
        let found = walk(folder.path(), &[], false, None);
        assert_eq!(paths(&found), ["a.txt"]);
        assert!(found.iter().any(|found| matches!(found, Found::LeftOut(LeftOut::Empty))), "{found:?}");
        let problem = |found: &Found| matches!(found, Found::Problem(_, problem) if problem.code == "INVALID_FILE_NAME");
        assert!(found.iter().any(problem), "{found:?}");
    }
}
