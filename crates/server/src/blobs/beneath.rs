//! Files below a folder, reached without following a symbolic link on the way. A user who can write to the folder cannot
//! make the server read, write or remove a file elsewhere.
//!
//! Every call opens the path again, a folder at a time, so that the folder itself may be moved away and put back. The way to
//! the folder itself is the operator's and may have links in it.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};

/// Only the server's user may use what it creates.
const FOLDER_MODE: Mode = Mode::RWXU;
const FILE_MODE: Mode = Mode::from_raw_mode(0o600);
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
const NO_LINK: OFlags = OFlags::NOFOLLOW;

/// Whether the folders on the way are created.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    Fail,
    Create,
}

/// A folder below the root; the empty path is the root.
pub fn folder(root: &Path, path: &str, missing: Missing) -> io::Result<OwnedFd> {
    let mut at = open_root(root)?;
    for name in names_in(path) {
        at = step(&at, name, missing)?.folder;
    }
    Ok(at)
}

/// A folder on the way to an entry.
pub struct Step {
    pub folder: OwnedFd,
    /// Whether it was created just now.
    pub is_new: bool,
}

/// The folders on the way to a folder below the root, with itself and without the root. Missing ones are created.
pub fn way(root: &Path, path: &str) -> io::Result<Vec<Step>> {
    let root = open_root(root)?;
    let mut way: Vec<Step> = Vec::new();
    for name in names_in(path) {
        let at = way.last().map_or(&root, |step| &step.folder);
        way.push(step(at, name, Missing::Create)?);
    }
    Ok(way)
}

fn open_root(root: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(root, FOLDER, Mode::empty())?)
}

fn names_in(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|name| !name.is_empty())
}

fn step(at: &OwnedFd, name: &str, missing: Missing) -> io::Result<Step> {
    let open = || rustix::fs::openat(at, name, FOLDER | NO_LINK, Mode::empty());
    match open() {
        Err(rustix::io::Errno::NOENT) if missing == Missing::Create => {}
        opened => return Ok(Step { folder: opened?, is_new: false }),
    }
    let is_new = match rustix::fs::mkdirat(at, name, FOLDER_MODE) {
        Err(rustix::io::Errno::EXIST) => false,
        made => made.map(|()| true)?,
    };
    Ok(Step { folder: open()?, is_new })
}

/// The folder that an entry is in, and the entry's name.
pub fn parent<'a>(root: &Path, path: &'a str, missing: Missing) -> io::Result<(OwnedFd, &'a str)> {
    let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
    Ok((folder(root, above, missing)?, name))
}

/// Opens a file to read it. Where there is a link, a folder or a pipe, there is no file.
pub fn open(root: &Path, path: &str) -> io::Result<File> {
    let (parent, name) = parent(root, path, Missing::Fail)?;
    // Without waiting for the other end of a pipe.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | NO_LINK;
    let opened = rustix::fs::openat(parent, name, flags, Mode::empty());
    let file = File::from(opened.map_err(|error| if is_link(error) { no_file() } else { error.into() })?);
    if file.metadata()?.is_file() { Ok(file) } else { Err(no_file()) }
}

/// Creates a file that is not there yet.
pub fn create(root: &Path, path: &str) -> io::Result<File> {
    let (parent, name) = parent(root, path, Missing::Fail)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | NO_LINK;
    Ok(File::from(rustix::fs::openat(parent, name, flags, FILE_MODE)?))
}

/// Opens a file to read and write it. Where there is a link, a folder or a pipe, there is no file.
pub fn open_to_write(root: &Path, path: &str) -> io::Result<File> {
    let (parent, name) = parent(root, path, Missing::Fail)?;
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK | NO_LINK;
    let opened = rustix::fs::openat(parent, name, flags, Mode::empty());
    let file = File::from(opened.map_err(|error| if is_link(error) { not_a_file() } else { error.into() })?);
    if file.metadata()?.is_file() { Ok(file) } else { Err(not_a_file()) }
}

/// Creates a file that is not there yet, to read and write it.
pub fn create_to_write(root: &Path, path: &str) -> io::Result<File> {
    let (parent, name) = parent(root, path, Missing::Fail)?;
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | NO_LINK;
    Ok(File::from(rustix::fs::openat(parent, name, flags, FILE_MODE)?))
}

/// The metadata of a file. Where there is a link, a folder or a pipe, there is no file.
pub fn metadata(root: &Path, path: &str) -> io::Result<Stat> {
    let (parent, name) = parent(root, path, Missing::Fail)?;
    let found = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if FileType::from_raw_mode(found.st_mode).is_file() { Ok(found) } else { Err(no_file()) }
}

/// Removes an entry that is not a folder. Of a link, the link itself.
pub fn remove(root: &Path, path: &str) -> io::Result<()> {
    let (parent, name) = parent(root, path, Missing::Fail)?;
    Ok(rustix::fs::unlinkat(parent, name, AtFlags::empty())?)
}

/// Removes a folder that has nothing in it.
pub fn remove_folder(root: &Path, path: &str) -> io::Result<()> {
    let (parent, name) = parent(root, path, Missing::Fail)?;
    Ok(rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR)?)
}

/// Gives a file a second name, in folders that are created if need be. Returns the folders on the way to it.
pub fn link(root: &Path, from: &str, to: &str) -> io::Result<Vec<Step>> {
    let (from_folder, from) = parent(root, from, Missing::Fail)?;
    let (above, name) = to.rsplit_once('/').ok_or(io::ErrorKind::InvalidInput)?;
    let way = way(root, above)?;
    let to_folder = &way.last().ok_or(io::ErrorKind::InvalidInput)?.folder;
    rustix::fs::linkat(from_folder, from, to_folder, name, AtFlags::empty())?;
    Ok(way)
}

/// Makes the entries of a folder durable.
pub fn sync(root: &Path, path: &str) -> io::Result<()> {
    Ok(rustix::fs::fsync(folder(root, path, Missing::Fail)?.as_fd())?)
}

/// The entries of a folder, and which of them are folders.
pub fn names(root: &Path, path: &str) -> io::Result<Vec<(String, bool)>> {
    let folder = folder(root, path, Missing::Fail)?;
    let mut names = Vec::new();
    for entry in Dir::read_from(&folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name == "." || name == ".." {
            continue;
        }
        let kind = match entry.file_type() {
            // Some file systems do not say.
            FileType::Unknown => match rustix::fs::statat(&folder, &name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(found) => FileType::from_raw_mode(found.st_mode),
                Err(rustix::io::Errno::NOENT) => continue,
                Err(error) => return Err(error.into()),
            },
            known => known,
        };
        names.push((name, kind.is_dir()));
    }
    Ok(names)
}

fn no_file() -> io::Error {
    io::Error::from(io::ErrorKind::NotFound)
}

/// There is something that cannot be written like a file.
fn not_a_file() -> io::Error {
    io::Error::from(io::ErrorKind::InvalidInput)
}

fn is_link(error: rustix::io::Errno) -> bool {
    error == rustix::io::Errno::LOOP
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A folder, and beside it one that must not be reached.
    fn folders() -> (tempfile::TempDir, std::path::PathBuf, std::path::PathBuf) {
        let both = tempfile::tempdir().expect("a folder");
        let (root, outside) = (both.path().join("root"), both.path().join("outside"));
        for folder in [&root, &outside] {
            std::fs::create_dir(folder).expect("it is made");
        }
        std::fs::write(outside.join("secret"), "hush").expect("it is written");
        (both, root, outside)
    }

    #[test]
    fn no_link_is_followed_wherever_it_stands() {
        let (_both, root, outside) = folders();
        symlink(outside.join("secret"), root.join("file")).expect("a link");
        symlink(&outside, root.join("folder")).expect("a link");
        for path in ["file", "folder/secret"] {
            assert!(open(&root, path).is_err(), "{path}");
            assert!(metadata(&root, path).is_err(), "{path}");
        }
        assert!(create(&root, "folder/new").is_err());
        assert!(folder(&root, "folder/below", Missing::Create).is_err());
        assert!(names(&root, "folder").is_err());
        assert!(remove(&root, "folder/secret").is_err());
        std::fs::write(root.join("own"), "1").expect("it is written");
        assert!(link(&root, "own", "folder/own").is_err());
        remove(&root, "file").expect("the link itself is removed");
        assert_eq!(std::fs::read_to_string(outside.join("secret")).expect("it is there"), "hush");
        assert_eq!(std::fs::read_dir(&outside).expect("a folder").count(), 1);
        assert_eq!(
            names(&root, "").expect("a listing").iter().filter(|(_, is_folder)| *is_folder).count(),
            0
        );
    }

    #[test]
    fn the_root_itself_may_be_a_link_of_the_operator() {
        let (both, root, _) = folders();
        symlink(&root, both.path().join("link")).expect("a link");
        create(&both.path().join("link"), "file").expect("it is created");
        assert!(open(&root, "file").is_ok());
    }

    #[test]
    fn what_is_created_is_for_the_server_alone() {
        use std::os::unix::fs::PermissionsExt;
        let (_both, root, _) = folders();
        folder(&root, "a/b", Missing::Create).expect("it is made");
        create(&root, "a/b/file").expect("it is created");
        let mode = |path: &str| {
            std::fs::metadata(root.join(path)).expect("it is there").permissions().mode() & 0o777
        };
        assert_eq!([mode("a"), mode("a/b"), mode("a/b/file")], [0o700, 0o700, 0o600]);
    }
}
