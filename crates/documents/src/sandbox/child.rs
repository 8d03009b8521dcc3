//! The process itself: reads one document after another until there are no more.

use std::cell::RefCell;
use std::io::{self, BufRead, Read, Write};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Duration;

use super::SandboxConfig;
use super::confine::confine;
use super::memory;
#[cfg(debug_assertions)]
use super::misbehaviour::{Next, misbehave};
use super::protocol::{
    EXIT_NOT_CONFINED, HELLO, Header, NO_PAGE, PICTURE, PLACES, PROGRESS, PROGRESS_EVERY_MS, REFUSAL,
    Refusal, TEXT, encode_places, frame_header,
};
use crate::Document;
use crate::error::{Error, ErrorKind};
use crate::reading::{Picture, Reading};
use landfall_core::clock::{Clock, Time, to_delta};

/// What the server tells the process that it starts.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// The process that starts it.
    #[arg(long)]
    pub parent: i32,
    #[arg(long)]
    pub memory_mb: u64,
    #[arg(long)]
    pub cpu_seconds: u64,
    #[arg(long)]
    pub documents: u64,
    /// Documents say what the process is to do wrong. The name is for whoever looks for the process.
    #[cfg(debug_assertions)]
    #[arg(long)]
    pub misbehaving: Option<String>,
    /// A protection to go without, to see what the others are worth.
    #[cfg(debug_assertions)]
    #[arg(long)]
    pub without: Vec<String>,
}

impl Arguments {
    /// The same on the command line.
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
    pub(super) fn goes_without(&self, protection: &str) -> bool {
        self.without.iter().any(|left_out| left_out == protection)
    }

    #[cfg(not(debug_assertions))]
    #[expect(clippy::unused_self, reason = "only a program that is being worked on can go without anything")]
    pub(super) fn goes_without(&self, _protection: &str) -> bool {
        false
    }
}

/// Runs until there is nothing more to read.
pub fn run(arguments: &Arguments) -> ExitCode {
    let confined = memory::end_by_exit_code().and_then(|()| confine(arguments));
    let protections = match confined {
        Ok(protections) => protections,
        Err(error) => {
            eprintln!("could not be confined: {error}");
            return ExitCode::from(u8::try_from(EXIT_NOT_CONFINED).unwrap_or(u8::MAX));
        }
    };
    let greeting = serde_json::to_vec(&protections).map_err(io::Error::from);
    let served = greeting.and_then(|greeting| {
        let mut answers = Answers { out: io::stdout().lock(), last_sign: None };
        answers.frame(HELLO, &greeting)?;
        answers.out.flush()?;
        serve(arguments, io::stdin().lock(), answers)
    });
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg_attr(
    not(debug_assertions),
    expect(unused_variables, reason = "only a program that is being worked on misbehaves")
)]
fn serve(arguments: &Arguments, mut requests: impl BufRead, mut answers: Answers) -> io::Result<()> {
    while let Some((header, bytes)) = next_document(&mut requests)? {
        answers.progress()?;
        #[cfg(debug_assertions)]
        if arguments.misbehaving.is_some() && misbehave(&bytes, &mut answers)? == Next::Nothing {
            continue;
        }
        match read(&header, &bytes, &mut answers).and_then(|reading| within(&header, reading)) {
            Ok((reading, places)) => {
                answers.frame(TEXT, reading.extracted.text.as_bytes())?;
                for picture in &reading.pictures {
                    answers.picture(picture)?;
                }
                answers.frame(PLACES, &places)?;
            }
            Err(failure) => answers.frame(REFUSAL, &serde_json::to_vec(&Refusal::from(failure))?)?,
        }
        answers.out.flush()?;
    }
    Ok(())
}

/// `None` when the server wants nothing more.
fn next_document(requests: &mut impl BufRead) -> io::Result<Option<(Header, Vec<u8>)>> {
    if requests.fill_buf()?.is_empty() {
        return Ok(None);
    }
    let mut length = [0; 4];
    requests.read_exact(&mut length)?;
    let mut header = vec![0; u32::from_le_bytes(length) as usize];
    requests.read_exact(&mut header)?;
    let header: Header = serde_json::from_slice(&header)?;
    let mut bytes = Vec::with_capacity(usize::try_from(header.size).unwrap_or(usize::MAX));
    if requests.take(header.size).read_to_end(&mut bytes)? as u64 == header.size {
        Ok(Some((header, bytes)))
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

fn read(header: &Header, bytes: &[u8], answers: &mut Answers) -> Result<Reading, Error> {
    memory::forget();
    let answers = RefCell::new(answers);
    // A server that does not listen any more is about to kill this process.
    let progress = || {
        drop(answers.borrow_mut().progress());
        // The server stops this process by killing it.
        ControlFlow::Continue(())
    };
    let document = Document { bytes, name: &header.name, content_type: header.content_type.as_deref() };
    let reading = || crate::read(document, &header.limits, &progress).map(Reading::tidied);
    catch_unwind(AssertUnwindSafe(reading)).unwrap_or_else(|_| {
        Err(if memory::was_refused() {
            Error::new(ErrorKind::OutOfMemory, "Reading this file needs more memory than a document may use")
        } else {
            Error::new(
                ErrorKind::Damaged,
                "This file cannot be read: reading it ended in an unexpected error. It may be damaged",
            )
        })
    })
}

/// What is to be answered, unless it is more than the server takes.
fn within(header: &Header, reading: Reading) -> Result<(Reading, Vec<u8>), Error> {
    let places = encode_places(&reading.extracted);
    if reading.extracted.text.len() + places.len() > header.limits.text_bytes {
        return Err(header.limits.too_much_text());
    }
    Ok((reading, places))
}

/// The way back to the server.
pub(super) struct Answers {
    pub(super) out: io::StdoutLock<'static>,
    last_sign: Option<Time>,
}

impl Answers {
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

    /// Says that a part of the work is done, unless that was said a moment ago.
    pub(super) fn progress(&mut self) -> io::Result<()> {
        let now = Clock::System.now();
        let pause = to_delta(Duration::from_millis(PROGRESS_EVERY_MS));
        if self.last_sign.is_none_or(|last| now < last || now - last >= pause) {
            self.last_sign = Some(now);
            self.frame(PROGRESS, &[])?;
            self.out.flush()?;
        }
        Ok(())
    }
}
