//! Reads documents in this process and writes the text of each to a folder:
//! `cargo run --profile readers -p landfall-documents --example read_each -- [--way WAY] [--repeat N] FOLDER FILE…`.
//!
//! `bench/readers` compares the texts and the costs with those of other programs. `--way` reads PDFs as one of the calls of
//! the library does: `text`, `plain` or `lines`. A form feed stands between the pages of a document that has them. The line
//! of a file has its name, the bytes of the file and of the text, and the error if there is one.

use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use landfall_documents::{Document, Extracted, Limits, Recognised};
use pdf_oxide::PdfDocument;
use pdf_oxide::converters::ConversionOptions;

struct Arguments {
    way: String,
    repeat: u32,
    folder: PathBuf,
    files: Vec<PathBuf>,
}

fn main() -> ExitCode {
    let Some(arguments) = parse(std::env::args_os().skip(1)) else {
        eprintln!("usage: read_each [--way reader|text|plain|lines] [--repeat N] FOLDER FILE...");
        return ExitCode::from(2);
    };
    for file in &arguments.files {
        if let Err(error) = read_one(&arguments, file) {
            eprintln!("{}: {error}", file.display());
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn parse(mut arguments: impl Iterator<Item = OsString>) -> Option<Arguments> {
    let (mut way, mut repeat, mut paths) = ("reader".to_owned(), 1, Vec::new());
    while let Some(argument) = arguments.next() {
        match argument.to_str() {
            Some("--way") => way = arguments.next()?.into_string().ok()?,
            Some("--repeat") => repeat = arguments.next()?.to_str()?.parse().ok()?,
            Some(option) if option.starts_with('-') => return None,
            _ => paths.push(PathBuf::from(argument)),
        }
    }
    let is_known = matches!(way.as_str(), "reader" | "text" | "plain" | "lines");
    let mut paths = paths.into_iter();
    (is_known && repeat > 0).then_some(())?;
    Some(Arguments { way, repeat, folder: paths.next()?, files: paths.collect() })
}

fn read_one(arguments: &Arguments, file: &Path) -> std::io::Result<()> {
    let bytes = std::fs::read(file)?;
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let mut text = Ok(String::new());
    for _ in 0..arguments.repeat {
        text = match arguments.way.as_str() {
            "reader" => by_reader(&bytes, &name),
            way => by_library(&bytes, way).map_err(|error| error.to_string()),
        };
    }
    let (text, error) = match text {
        Ok(text) => (text, String::new()),
        Err(error) => (String::new(), error.replace(['\n', '\t'], " ")),
    };
    println!("{name}\t{}\t{}\t{error}", bytes.len(), text.len());
    std::fs::write(arguments.folder.join(format!("{name}.md")), text)
}

fn by_reader(bytes: &[u8], name: &str) -> Result<String, String> {
    let document = Document { bytes, name, content_type: None };
    let reading = landfall_documents::read(document, &Limits::default(), &|| ControlFlow::Continue(()));
    let extracted = reading.and_then(|reading| reading.finish(Recognised::NotInstalled));
    extracted.map(|extracted| by_pages(&extracted)).map_err(|error| error.to_string())
}

/// The text with a form feed where a page begins.
fn by_pages(extracted: &Extracted) -> String {
    let (mut text, mut at, mut last) = (String::with_capacity(extracted.text.len()), 0, 0);
    for place in &extracted.places {
        let page = place.page.unwrap_or(last);
        if page > last {
            text.push_str(&extracted.text[at..place.start]);
            // Pages without text have no place.
            text.extend((last.max(1)..page).map(|_| '\u{C}'));
            (at, last) = (place.start, page);
        }
    }
    text.push_str(&extracted.text[at..]);
    text
}

fn by_library(bytes: &[u8], way: &str) -> pdf_oxide::Result<String> {
    let document = PdfDocument::from_bytes(bytes.to_vec())?;
    let mut text = String::new();
    for page in 0..document.page_count()? {
        match way {
            "lines" => {
                for line in document.extract_text_lines(page)? {
                    text.push_str(&line.text);
                    text.push('\n');
                }
            }
            "plain" => text.push_str(&document.to_plain_text(page, &ConversionOptions::default())?),
            _ => text.push_str(&document.extract_text(page)?),
        }
        text.push('\u{C}');
    }
    Ok(text)
}
