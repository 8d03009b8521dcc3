//! The files in a ZIP archive, unpacked one after the other within limits.
//!
//! An archive in an archive is unpacked in its place, so its members have its path before theirs.

mod path;

use std::collections::HashMap;
use std::io::{Cursor, Read};
use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};
use zip::ZipArchive;
use zip::read::ZipFile;

use crate::archive::{Archive, declared_entries};
use crate::error::{Error, ErrorKind};
use crate::limits::{Bounds, Limits};

/// How much is unpacked between two reports of progress.
const BATCH_SIZE: usize = 64 * 1024;
/// The most members that are named as left out. The others are counted.
const MAX_NAMED: usize = 1_000;

/// What one archive may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchiveLimits {
    /// Files, those in inner archives included. An archive with more is refused.
    pub members: usize,
    /// Bytes of one file. A larger one is left out.
    pub member_bytes: u64,
    /// Bytes of all files together, those in inner archives included. An archive with more is refused.
    pub total_bytes: u64,
    /// Archives inside one another, the outermost not counted. Deeper ones are left out.
    pub depth: usize,
    /// How many times larger than packed a file may be, once it is larger than [`ArchiveLimits::suspicious_bytes`].
    /// An archive with a file beyond it is refused.
    pub ratio: u64,
    /// The size up to which the ratio does not matter.
    pub suspicious_bytes: u64,
}

impl Default for ArchiveLimits {
    fn default() -> Self {
        let of_documents = Limits::default();
        Self {
            members: 1_000,
            member_bytes: 50 << 20,
            total_bytes: 1 << 30,
            depth: 3,
            ratio: of_documents.unpacked_ratio,
            suspicious_bytes: of_documents.suspicious_bytes,
        }
    }
}

/// A file of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its folders and its name, separated by `/`. It has no `..`, no root, no drive, no empty part and no control
    /// character, and no other member of the archive has the same one.
    pub path: String,
    /// The unpacked content.
    pub bytes: Vec<u8>,
}

/// What an archive holds beside the members that were passed on.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Unpacked {
    /// How many members were passed on.
    pub members: usize,
    /// Files that were left out, at most 1,000 of them.
    pub left_out: Vec<LeftOut>,
    /// Files that were left out and are not named in [`Unpacked::left_out`].
    pub more_left_out: usize,
}

/// What is in an archive, without the content of its files.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contents {
    /// The files that can be unpacked, in the order of the archive.
    pub members: Vec<ListedMember>,
    /// Files that are left out, at most 1,000 of them.
    pub left_out: Vec<LeftOut>,
    /// Files that are left out and are not named in [`Contents::left_out`].
    pub more_left_out: usize,
}

/// A file of an archive, without its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedMember {
    /// As in [`Member::path`].
    pub path: String,
    /// The bytes that it has when it is unpacked.
    pub size: u64,
}

/// A file of an archive that was not passed on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// As in [`Member::path`].
    pub path: String,
    /// Why it was left out.
    pub reason: WhyLeftOut,
}

/// Why a file of an archive was not passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WhyLeftOut {
    /// It is protected by a password.
    Encrypted,
    /// It is larger than [`ArchiveLimits::member_bytes`].
    TooLarge,
    /// It is an archive deeper inside others than [`ArchiveLimits::depth`].
    TooDeep,
    /// Its content cannot be unpacked, or is packed in a way that is not supported.
    Damaged,
    /// It is a link to another file.
    Link,
}

impl WhyLeftOut {
    /// A sentence for the person whose archive it is.
    pub const fn message(self) -> &'static str {
        match self {
            Self::Encrypted => "It is protected by a password. Upload a copy without one",
            Self::TooLarge => "It is larger than a file may be",
            Self::TooDeep => "It is an archive inside too many others. Upload it as a file of its own",
            Self::Damaged => "It cannot be unpacked: it is damaged, or packed in an unusual way",
            Self::Link => "It is a link to another file",
        }
    }
}

/// Whether these bytes are a ZIP archive of files, and not a document that is stored as one (DOCX, ODT, EPUB, Pages).
pub fn is_archive(bytes: &[u8]) -> bool {
    let limits = Limits::default();
    let bounds = Bounds::new(&limits, &|| ControlFlow::Continue(()));
    bytes.starts_with(b"PK\x03\x04")
        && Archive::open(bytes, bounds).is_ok_and(|archive| !is_document(&archive))
}

/// Whether the archive has a part that only documents have.
pub(crate) fn is_document(archive: &Archive<'_>) -> bool {
    const PARTS: &[&str] = &[
        "mimetype",
        "[Content_Types].xml",
        "META-INF/container.xml",
        "META-INF/MANIFEST.MF",
        "AndroidManifest.xml",
        "Index/Document.iwa",
        "Index.zip",
        "buildVersionHistory.plist",
    ];
    PARTS.iter().any(|part| archive.has(part))
}

/// Unpacks the files of a ZIP archive and passes each of them to `take`, in the order of the archive. `take` may stop
/// with an error. `progress` is called regularly during the work; if it returns `Break`, the work stops with
/// [`ErrorKind::Stopped`].
///
/// Folders, and files that only operating systems write (`__MACOSX`, `.DS_Store`, `Thumbs.db`, `desktop.ini`), are not
/// passed on. One file at a time is in memory, and one for each archive around it.
///
/// An archive that exceeds a limit is an error. What was passed on before is good, but is not all there is.
pub fn archive_members(
    bytes: &[u8],
    limits: &ArchiveLimits,
    progress: &dyn Fn() -> ControlFlow<()>,
    take: &mut dyn FnMut(Member) -> Result<(), Error>,
) -> Result<Unpacked, Error> {
    let mut unpacker = Unpacker {
        limits,
        progress,
        take,
        paths: HashMap::new(),
        seen: 0,
        budget: limits.total_bytes,
        unpacked: Unpacked::default(),
    };
    unpacker.archive(bytes, "", 0)?;
    Ok(unpacker.unpacked)
}

struct Unpacker<'a> {
    limits: &'a ArchiveLimits,
    progress: &'a dyn Fn() -> ControlFlow<()>,
    take: &'a mut dyn FnMut(Member) -> Result<(), Error>,
    /// The paths that were given, in lower case, with how often each was wanted.
    paths: HashMap<String, usize>,
    /// Entries so far: folders and what is left out cost time too.
    seen: usize,
    /// How many bytes may still be unpacked.
    budget: u64,
    unpacked: Unpacked,
}

impl Unpacker<'_> {
    fn archive(&mut self, bytes: &[u8], folder: &str, depth: usize) -> Result<(), Error> {
        // The directory is read as a whole, so its declared length is checked first.
        let most_entries = self.limits.members.saturating_mul(4) as u64;
        if declared_entries(bytes).is_some_and(|entries| entries > most_entries) {
            return Err(self.too_many());
        }
        let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|error| damaged(&error))?;
        for index in 0..archive.len() {
            self.seen += 1;
            if self.seen as u64 > most_entries {
                return Err(self.too_many());
            }
            let Some(entry) = archive.name_for_index(index) else { continue };
            let name = entry.unwrap_or_default().into_owned();
            if name.ends_with(['/', '\\']) || path::is_of_system(&name) {
                continue;
            }
            let path = self.path(folder, &name);
            match self.unpack(&mut archive, index)? {
                Ok(content) => self.member(path, content, depth)?,
                Err(reason) => self.leave_out(path, reason),
            }
        }
        Ok(())
    }

    fn member(&mut self, path: String, bytes: Vec<u8>, depth: usize) -> Result<(), Error> {
        if is_archive(&bytes) {
            if depth >= self.limits.depth {
                self.leave_out(path, WhyLeftOut::TooDeep);
                return Ok(());
            }
            return match self.archive(&bytes, &path, depth + 1) {
                Err(error) if error.kind() == ErrorKind::Damaged => {
                    self.leave_out(path, WhyLeftOut::Damaged);
                    Ok(())
                }
                ending => ending,
            };
        }
        if self.unpacked.members >= self.limits.members {
            return Err(self.too_many());
        }
        self.unpacked.members += 1;
        (self.take)(Member { path, bytes })
    }

    /// The content of an entry, or why it is left out.
    fn unpack(
        &mut self,
        archive: &mut ZipArchive<Cursor<&[u8]>>,
        index: usize,
    ) -> Result<Result<Vec<u8>, WhyLeftOut>, Error> {
        self.report_progress()?;
        match archive.by_index_raw(index) {
            Ok(entry) if entry.encrypted() => return Ok(Err(WhyLeftOut::Encrypted)),
            Ok(entry) if entry.is_symlink() => return Ok(Err(WhyLeftOut::Link)),
            Ok(_) => {}
            Err(_) => return Ok(Err(WhyLeftOut::Damaged)),
        }
        match archive.by_index(index) {
            Ok(entry) => self.content(entry),
            Err(_) => Ok(Err(WhyLeftOut::Damaged)),
        }
    }

    fn content(
        &mut self,
        mut entry: ZipFile<'_, Cursor<&[u8]>>,
    ) -> Result<Result<Vec<u8>, WhyLeftOut>, Error> {
        let packed = entry.compressed_size().max(1);
        let mut content = Vec::new();
        let mut batch = vec![0; BATCH_SIZE];
        loop {
            self.report_progress()?;
            let Ok(length) = entry.read(&mut batch) else { return Ok(Err(WhyLeftOut::Damaged)) };
            if length == 0 {
                return Ok(Ok(content));
            }
            let unpacked = (content.len() + length) as u64;
            let is_bomb = unpacked > self.limits.suspicious_bytes && unpacked / packed > self.limits.ratio;
            if is_bomb || self.budget < length as u64 {
                return Err(self.too_much());
            }
            self.budget -= length as u64;
            if unpacked > self.limits.member_bytes {
                return Ok(Err(WhyLeftOut::TooLarge));
            }
            content.extend_from_slice(&batch[..length]);
        }
    }

    /// The path of an entry, different from all before it. Not every system tells upper from lower case.
    fn path(&mut self, folder: &str, name: &str) -> String {
        let path = path::harmless(folder, name);
        let wanted = self.paths.entry(path.to_lowercase()).or_insert(0);
        *wanted += 1;
        let mut number = *wanted;
        if number == 1 {
            return path;
        }
        loop {
            let numbered = path::numbered(&path, number);
            if self.paths.insert(numbered.to_lowercase(), 1).is_none() {
                self.paths.insert(path.to_lowercase(), number);
                return numbered;
            }
            number += 1;
        }
    }

    fn leave_out(&mut self, path: String, reason: WhyLeftOut) {
        if self.unpacked.left_out.len() < MAX_NAMED {
            self.unpacked.left_out.push(LeftOut { path, reason });
        } else {
            self.unpacked.more_left_out += 1;
        }
    }

    fn report_progress(&self) -> Result<(), Error> {
        match (self.progress)() {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Error::new(ErrorKind::Stopped, "Unpacking was stopped")),
        }
    }

    fn too_many(&self) -> Error {
        let message = format!("There are more than {} files in this archive, the limit", self.limits.members);
        Error::new(ErrorKind::TooLarge, message)
    }

    fn too_much(&self) -> Error {
        let limit = self.limits.total_bytes >> 20;
        let message = format!(
            "This archive unpacks to more than {limit} MB, or to far more than its size can hold. Upload its files in \
             several archives"
        );
        Error::new(ErrorKind::TooLarge, message)
    }
}

fn damaged(error: &zip::result::ZipError) -> Error {
    Error::new(ErrorKind::Damaged, "This archive is damaged and cannot be unpacked").with_detail(error)
}

#[cfg(test)]
mod tests;
