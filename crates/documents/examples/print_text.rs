//! Prints the text of a document, read in the sandbox:
//! `cargo run -p landfall-documents --example print_text -- [--places] [--ocr LANGUAGES] FILE`.
//!
//! `--places` prints a line before each part of the text: its page, its heading. `--ocr eng` has tesseract read the
//! pictures, if it is installed. What is missing is told on stderr. The exit code is 1 if the document cannot be read,
//! and 2 for a wrong command line.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use landfall_documents::ocr::Ocr;
use landfall_documents::sandbox::{self, Document, Pool, Program, SandboxConfig};
use landfall_documents::{Error, ErrorKind, Extracted, Reading, Recognised};

const USAGE: &str = "usage: print_text [--places] [--ocr LANGUAGES] FILE";

// Tells a document that needs too much memory from one that crashes its reader.
#[global_allocator]
static ALLOCATOR: sandbox::Allocator = sandbox::Allocator;

struct Arguments {
    file: PathBuf,
    places: bool,
    ocr_languages: Option<String>,
}

fn main() -> ExitCode {
    // The pool starts this program again. That process reads the document, and is done when this returns.
    if let Some(code) = sandbox::run_if_child() {
        return code;
    }
    let Some(arguments) = parse(std::env::args_os().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}: {error}", arguments.file.display());
            ExitCode::FAILURE
        }
    }
}

fn parse(mut arguments: impl Iterator<Item = OsString>) -> Option<Arguments> {
    let (mut file, mut places, mut ocr_languages) = (None, false, None);
    while let Some(argument) = arguments.next() {
        match argument.to_str() {
            Some("--places") => places = true,
            Some("--ocr") => ocr_languages = Some(arguments.next()?.into_string().ok()?),
            Some(option) if option.starts_with('-') => return None,
            _ if file.is_some() => return None,
            _ => file = Some(PathBuf::from(argument)),
        }
    }
    Some(Arguments { file: file?, places, ocr_languages })
}

fn run(arguments: &Arguments) -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let extracted = runtime.block_on(read(arguments))?;
    for warning in &extracted.warnings {
        eprintln!("{}: {}", warning.code, warning.message);
    }
    let mut out = io::stdout().lock();
    if arguments.places {
        print_places(&extracted, &mut out)?;
    } else {
        writeln!(out, "{}", extracted.text.trim_end())?;
    }
    Ok(())
}

async fn read(arguments: &Arguments) -> Result<Extracted, Error> {
    let source = |error: io::Error| Error::new(ErrorKind::Source, error.to_string());
    let file = tokio::fs::File::open(&arguments.file).await.map_err(source)?;
    let size = file.metadata().await.map_err(source)?.len();
    let name = arguments.file.file_name().unwrap_or_default().to_string_lossy();
    let document = Document { label: &name, owner: "", name: &name, content_type: None, size };
    let reading = Pool::new(Program::default(), SandboxConfig::default()).read(&document, file).await?;
    let recognised = recognise(arguments, &reading).await;
    reading.finish(recognised)
}

async fn recognise(arguments: &Arguments, reading: &Reading) -> Recognised {
    let languages = arguments.ocr_languages.as_deref();
    let Some(ocr) = languages.and_then(|languages| Ocr::find(&Program::default(), languages)) else {
        return Recognised::NotInstalled;
    };
    let pictures = reading.pictures.iter().map(|picture| &picture.bytes[..]);
    let (words, error) = ocr.recognise_all(pictures, || async {}).await;
    if let Some(error) = error {
        eprintln!("{error}");
    }
    Recognised::Words(words)
}

fn print_places(extracted: &Extracted, out: &mut impl Write) -> io::Result<()> {
    let starts: Vec<usize> = extracted.places.iter().map(|place| place.start).collect();
    let ends = starts.iter().copied().skip(1).chain([extracted.text.len()]);
    let first = starts.first().copied().unwrap_or(extracted.text.len());
    let before = extracted.text[..first].trim_end();
    if !before.is_empty() {
        writeln!(out, "{before}")?;
    }
    for (place, end) in extracted.places.iter().zip(ends) {
        let page = place.page.map(|page| format!(" page {page}")).unwrap_or_default();
        let heading = place.heading.as_ref().map(|heading| format!(" {heading:?}")).unwrap_or_default();
        writeln!(out, "=={page}{heading}")?;
        let part = extracted.text[place.start..end].trim_end();
        if !part.is_empty() {
            writeln!(out, "{part}")?;
        }
    }
    Ok(())
}
