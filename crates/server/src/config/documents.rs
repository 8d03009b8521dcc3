//! The limits of reading a document, and OCR.

use std::time::Duration;

use landfall_documents::ArchiveLimits;
use landfall_documents::limits::Limits;
use landfall_documents::sandbox::SandboxConfig;

use super::declared::group;
use super::reader::{Reader, one_of};

group! { "Documents and OCR" {
    EXTRACT_MEMORY_BYTES = "1GB": "Memory that the process that reads a document may map; a document that needs more fails with `MEMORY_ERROR`."
    EXTRACT_CPU_SECONDS = "120": "Processor time for one document; a document that needs more fails with `STAGE_TIMEOUT`."
    EXTRACT_CHILD_DOCUMENTS = "50": "How many documents of one tenant a process reads before it is replaced; 1 gives each document its own process."
    EXTRACT_MAX_PAGES = "5000": "Pages or slides of a document; a document with more is refused."
    EXTRACT_MAX_CELLS = "5000000": "Non-empty cells of a spreadsheet; a spreadsheet with more is refused."
    EXTRACT_MAX_TEXT_BYTES = "64MB": "The most text that one document may contain; a document with more fails with `TOO_LARGE`."
    ARCHIVE_MAX_FILES = "1000": "The most files in one ZIP archive, those in inner archives included; an archive with more fails with `TOO_LARGE`."
    ARCHIVE_MAX_BYTES = "1GB": "What the files of one ZIP archive may have together when they are unpacked; an archive with more fails with `TOO_LARGE`, and one file in it may be as large as `MAX_FILE_BYTES`."
    OCR = "auto": "`auto` reads images and scanned pages if the program `tesseract` is on the path; `off` does not."
    OCR_LANGUAGES = "eng": "The languages to recognise, as tesseract names them, for example `eng+deu`; each must be installed."
} }

/// How long reading a document may continue without any progress.
const STALL: Duration = Duration::from_mins(1);
const MB: u64 = 1 << 20;

/// `timeout` is that of the extract stage.
pub(super) fn read_sandbox(read: &mut Reader, timeout: Duration) -> SandboxConfig {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let text_bytes = read.size_between(EXTRACT_MAX_TEXT_BYTES, MB, 1_024 * MB);
    SandboxConfig {
        // Less is not enough for the program itself.
        memory_mb: read.size_between(EXTRACT_MEMORY_BYTES, 256 * MB, 1_048_576 * MB) / MB,
        cpu_seconds: read.between(EXTRACT_CPU_SECONDS, 1, 1_000_000),
        timeout,
        stall: STALL,
        limits: Limits {
            pages: read.at_least(EXTRACT_MAX_PAGES, 1),
            cells: read.at_least(EXTRACT_MAX_CELLS, 1),
            text_bytes: usize::try_from(text_bytes).unwrap_or(usize::MAX),
            ..Limits::default()
        },
        documents: read.between(EXTRACT_CHILD_DOCUMENTS, 1, 1_000_000),
        idle: 2 * cores,
    }
}

/// The size of one file in an archive is that of any upload.
pub(super) fn read_archives(read: &mut Reader) -> ArchiveLimits {
    ArchiveLimits {
        members: read.between(ARCHIVE_MAX_FILES, 1, 10_000),
        total_bytes: read.size_between(ARCHIVE_MAX_BYTES, MB, 1_048_576 * MB),
        ..ArchiveLimits::default()
    }
}

/// `None` where OCR is off.
pub(super) fn read_ocr_languages(read: &mut Reader) -> Option<String> {
    let wanted = read.with(OCR, |text| one_of(text, &[("auto", true), ("off", false)]));
    let languages = read.with(OCR_LANGUAGES, ocr_languages);
    wanted.then_some(languages)
}

/// They become an argument of a program, so only names are allowed.
fn ocr_languages(text: &str) -> Result<String, String> {
    let is_name = |name: &str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    if text.split('+').all(is_name) {
        Ok(text.to_owned())
    } else {
        Err("names of tesseract's languages joined by +, like eng+deu".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use landfall_documents::limits::{DEFAULT_MAX_CELLS, DEFAULT_MAX_PAGES, DEFAULT_MAX_TEXT_MB};

    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_readers() {
        assert_eq!(EXTRACT_MAX_PAGES.default, DEFAULT_MAX_PAGES.to_string());
        assert_eq!(EXTRACT_MAX_CELLS.default, DEFAULT_MAX_CELLS.to_string());
        assert_eq!(EXTRACT_MAX_TEXT_BYTES.default, format!("{DEFAULT_MAX_TEXT_MB}MB"));
    }
}
