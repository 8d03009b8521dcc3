//! The confined process: reads one document after another until its standard input is closed.

use std::cell::RefCell;
use std::ffi::OsString;
use std::io::{self, BufRead, Read, Write};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Duration;

use super::Content;
use super::SandboxConfig;
use super::arguments::{CommandLine, number, required, unknown};
use super::confine::confine;
use super::memory;
#[cfg(debug_assertions)]
use super::misbehaviour::{Next, misbehave};
use super::protocol::{
    CONTENTS, EXIT_NOT_CONFINED, FromArchive, HELLO, Header, MEMBER, MISSING, Missing, NO_PAGE, PICTURE,
    PLACES, PROGRESS, PROGRESS_EVERY_MS, REFUSAL, Refusal, TEXT, encode_places, frame_header,
};
use crate::Document;
use crate::error::{Error, ErrorKind};
use crate::members::{Contents, ListedMember, Member};
use crate::reading::{Picture, Reading};
use landfall_core::clock::{Clock, Time, to_delta};
use landfall_core::warning::Warning;

/// The command line of the process.
#[derive(Debug, Clone)]
pub struct Arguments {
    /// The process that started it.
    pub parent: i32,
    pub memory_mb: u64,
    pub cpu_seconds: u64,
    pub documents: u64,
    /// Whether documents may order the process to misbehave. The value of the option is a mark by which a test finds
    /// the process.
    #[cfg(debug_assertions)]
    pub misbehaving: bool,
    /// Protections to leave out, so that a test can check each of the others alone.
    #[cfg(debug_assertions)]
    pub without: Vec<String>,
}

impl Arguments {
    pub fn parse(arguments: impl Iterator<Item = OsString>) -> Result<Self, String> {
        let mut arguments = CommandLine::new(arguments);
        let (mut parent, mut memory_mb, mut cpu_seconds, mut documents) = (None, None, None, None);
        #[cfg(debug_assertions)]
        let (mut misbehaving, mut without) = (false, Vec::new());
        while let Some((name, value)) = arguments.next_option()? {
            match name.as_str() {
                "--parent" => parent = Some(number(&name, &value)?),
                "--memory-mb" => memory_mb = Some(number(&name, &value)?),
                "--cpu-seconds" => cpu_seconds = Some(number(&name, &value)?),
                "--documents" => documents = Some(number(&name, &value)?),
                #[cfg(debug_assertions)]
                "--misbehaving" => misbehaving = true,
                #[cfg(debug_assertions)]
                "--without" => without.push(value.to_string_lossy().into_owned()),
                name => return Err(unknown(name)),
            }
        }
        Ok(Self {
            parent: required("--parent", parent)?,
            memory_mb: required("--memory-mb", memory_mb)?,
            cpu_seconds: required("--cpu-seconds", cpu_seconds)?,
            documents: required("--documents", documents)?,
            #[cfg(debug_assertions)]
            misbehaving,
            #[cfg(debug_assertions)]
            without,
        })
    }

    pub(super) fn to_command_line(config: &SandboxConfig) -> Vec<String> {
        [
            ("--parent", u64::from(std::process::id())),
            ("--memory-mb", config.memory_mb),
            ("--cpu-seconds", config.cpu_seconds),
            ("--documents", config.documents),
        ]
        .into_iter()
        .flat_map(|(name, value)| [name.to_owned(), value.to_string()])
        .collect()
    }

    #[cfg(debug_assertions)]
    pub(super) fn is_without(&self, protection: &str) -> bool {
        self.without.iter().any(|left_out| left_out == protection)
    }

    #[cfg(not(debug_assertions))]
    #[expect(clippy::unused_self, reason = "only a debug build can leave out a protection")]
    pub(super) fn is_without(&self, _protection: &str) -> bool {
        false
    }
}

/// Runs until the standard input is closed.
pub fn run(arguments: &Arguments) -> ExitCode {
    let confined = memory::exit_on_failed_allocation().and_then(|()| confine(arguments));
    let protections = match confined {
        Ok(protections) => protections,
        Err(error) => {
            eprintln!("could not be confined: {error}");
            return ExitCode::from(u8::try_from(EXIT_NOT_CONFINED).unwrap_or(u8::MAX));
        }
    };
    let hello = serde_json::to_vec(&protections).map_err(io::Error::from);
    let served = hello.and_then(|hello| {
        let mut responses = Responses { out: io::stdout().lock(), last_progress: None };
        responses.frame(HELLO, &hello)?;
        responses.out.flush()?;
        serve(arguments, io::stdin().lock(), responses)
    });
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg_attr(not(debug_assertions), expect(unused_variables, reason = "only a debug build misbehaves"))]
fn serve(arguments: &Arguments, mut requests: impl BufRead, mut responses: Responses) -> io::Result<()> {
    while let Some((header, bytes)) = next_document(&mut requests)? {
        responses.progress()?;
        #[cfg(debug_assertions)]
        if arguments.misbehaving && misbehave(&bytes, &mut responses)? == Next::Nothing {
            continue;
        }
        match read(&header, &bytes, &mut responses).and_then(|content| within_limit(&header, content)) {
            Ok(Response::Reading(reading, places)) => {
                responses.frame(TEXT, reading.extracted.text.as_bytes())?;
                for picture in &reading.pictures {
                    responses.picture(picture)?;
                }
                responses.missing(*reading)?;
                responses.frame(PLACES, &places)?;
            }
            Ok(Response::Contents(contents)) => {
                responses.frame(CONTENTS, &serde_json::to_vec(&contents)?)?;
            }
            Err(error) => responses.frame(REFUSAL, &serde_json::to_vec(&Refusal::from(error))?)?,
        }
        responses.out.flush()?;
    }
    Ok(())
}

/// `None` when the parent has closed the pipe.
fn next_document(requests: &mut impl BufRead) -> io::Result<Option<(Header, Vec<u8>)>> {
    if requests.fill_buf()?.is_empty() {
        return Ok(None);
    }
    let mut length = [0; 4];
    requests.read_exact(&mut length)?;
    let mut header = vec![0; u32::from_le_bytes(length) as usize];
    requests.read_exact(&mut header)?;
    let header = Header::decode(&header)?;
    let mut bytes = Vec::with_capacity(usize::try_from(header.size).unwrap_or(usize::MAX));
    if requests.take(header.size).read_to_end(&mut bytes)? as u64 == header.size {
        Ok(Some((header, bytes)))
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

/// Reads a document, or unpacks an archive of files if that is wanted.
fn read(header: &Header, bytes: &[u8], responses: &mut Responses) -> Result<Content, Error> {
    memory::reset();
    let responses = RefCell::new(responses);
    let progress = || {
        // A parent that does not read any more is about to kill this process, which is also how it stops the reading.
        drop(responses.borrow_mut().progress());
        ControlFlow::Continue(())
    };
    let document = Document { bytes, name: &header.name, content_type: header.content_type.as_deref() };
    let reading = || {
        let Some(wanted) = &header.archive else {
            return crate::read(document, &header.limits, &progress)
                .map(|reading| Content::of(reading.cleaned()));
        };
        match crate::read_unless_archive(document, &header.limits, &progress)? {
            Some(reading) => Ok(Content::of(reading.cleaned())),
            None => unpack(bytes, wanted, &progress, &responses).map(Content::Archive),
        }
    };
    catch_unwind(AssertUnwindSafe(reading)).unwrap_or_else(|_| {
        Err(if memory::allocation_failed() {
            Error::new(ErrorKind::OutOfMemory, "Reading this file needs more memory than a document may use")
        } else {
            Error::new(
                ErrorKind::Damaged,
                "This file cannot be read: reading it ended in an unexpected error; it may be damaged",
            )
        })
    })
}

/// Unpacks an archive, and sends its files if that is wanted.
fn unpack(
    bytes: &[u8],
    wanted: &FromArchive,
    progress: &dyn Fn() -> ControlFlow<()>,
    responses: &RefCell<&mut Responses>,
) -> Result<Contents, Error> {
    let mut members = Vec::new();
    let unpacked = crate::archive_members(bytes, &wanted.limits, progress, &mut |member| {
        if wanted.with_content {
            // A parent that does not read any more is about to kill this process.
            drop(responses.borrow_mut().member(&member));
        }
        members.push(ListedMember { size: member.bytes.len() as u64, path: member.path });
        Ok(())
    })?;
    Ok(Contents { members, left_out: unpacked.left_out, more_left_out: unpacked.more_left_out })
}

/// What is sent at the end.
enum Response {
    /// The reading and its encoded places.
    Reading(Box<Reading>, Vec<u8>),
    Contents(Contents),
}

/// What was found, unless it is more than the parent accepts.
fn within_limit(header: &Header, content: Content) -> Result<Response, Error> {
    let mut reading = match content {
        Content::Document(reading) => reading,
        Content::Archive(contents) => return Ok(Response::Contents(contents)),
    };
    let mut places = encode_places(&reading.extracted);
    // A text is worth more than where it is on its pages.
    if reading.extracted.text.len() + places.len() > header.limits.text_bytes {
        reading.extracted.boxes.clear();
        places = encode_places(&reading.extracted);
    }
    if reading.extracted.text.len() + places.len() > header.limits.text_bytes {
        return Err(header.limits.too_much_text());
    }
    Ok(Response::Reading(reading, places))
}

/// The frames to the parent.
pub(super) struct Responses {
    pub(super) out: io::StdoutLock<'static>,
    last_progress: Option<Time>,
}

impl Responses {
    pub(super) fn frame(&mut self, kind: u8, content: &[u8]) -> io::Result<()> {
        let length = u32::try_from(content.len()).map_err(|_| io::ErrorKind::FileTooLarge)?;
        self.out.write_all(&frame_header(kind, length))?;
        self.out.write_all(content)
    }

    fn picture(&mut self, picture: &Picture) -> io::Result<()> {
        let mut content = Vec::with_capacity(16 + picture.bytes.len());
        content.extend((picture.text_offset as u64).to_le_bytes());
        content.extend(picture.page.unwrap_or(NO_PAGE).to_le_bytes());
        content.extend(&picture.bytes);
        self.frame(PICTURE, &content)
    }

    fn member(&mut self, member: &Member) -> io::Result<()> {
        let path = u32::try_from(member.path.len()).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let length = u32::try_from(4 + member.path.len() + member.bytes.len());
        let length = length.map_err(|_| io::ErrorKind::FileTooLarge)?;
        self.out.write_all(&frame_header(MEMBER, length))?;
        self.out.write_all(&path.to_le_bytes())?;
        self.out.write_all(member.path.as_bytes())?;
        self.out.write_all(&member.bytes)
    }

    fn missing(&mut self, reading: Reading) -> io::Result<()> {
        let warnings = Warning::bounded(reading.extracted.warnings);
        let missing = Missing { warnings, pages: reading.pages };
        if missing == Missing::default() {
            Ok(())
        } else {
            self.frame(MISSING, &serde_json::to_vec(&missing)?)
        }
    }

    /// Reports progress, unless it did so less than a pause ago.
    pub(super) fn progress(&mut self) -> io::Result<()> {
        let now = Clock::System.now();
        let pause = to_delta(Duration::from_millis(PROGRESS_EVERY_MS));
        if self.last_progress.is_none_or(|last| now < last || now - last >= pause) {
            self.last_progress = Some(now);
            self.frame(PROGRESS, &[])?;
            self.out.flush()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_of_the_parent_is_read_by_the_child() {
        let config =
            SandboxConfig { memory_mb: 300, cpu_seconds: 4, documents: 5, ..SandboxConfig::default() };
        let line = Arguments::to_command_line(&config);
        let parse = |line: &[String]| {
            Arguments::parse(line.iter().map(OsString::from).collect::<Vec<_>>().into_iter())
        };
        let read = parse(&line).unwrap();
        assert_eq!((read.memory_mb, read.cpu_seconds, read.documents), (300, 4, 5));
        assert_eq!(u32::try_from(read.parent).unwrap(), std::process::id());
        assert_eq!(parse(&line[2..]).unwrap_err(), "--parent is missing");
        assert_eq!(parse(&["--what".to_owned(), "1".to_owned()]).unwrap_err(), "--what is not an option");
    }
}
