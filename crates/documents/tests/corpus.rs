//! Compares the words of real documents with what a reference tool found in them. Its references have no marks, so marks
//! and addresses are not compared here. `structure.rs` compares the Markdown with references that were written by hand; those
//! of presentations, workbooks, mails and open documents are all there.
//!
//! The documents are not part of the repository. The folder is `LANDFALL_CORPUS`, by default `../shared/corpus` beside
//! the checkout. Without it these tests print that they are skipped. `formats.rs` does not need it.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};

use unicode_normalization::UnicodeNormalization;

use landfall_documents::{Document, Error, ErrorKind, Extracted, Limits, Recognised, WarningCode};

fn corpus() -> Option<PathBuf> {
    let folder = std::env::var_os("LANDFALL_CORPUS").map_or_else(
        || Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("../shared/corpus"),
        PathBuf::from,
    );
    // A worktree may be one folder deeper than the checkout.
    let deeper = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("../../shared/corpus");
    let found = [folder.clone(), deeper].into_iter().find(|folder| folder.is_dir());
    if found.is_none() {
        eprintln!("SKIPPED: there is no corpus of documents in {}; set LANDFALL_CORPUS", folder.display());
    }
    found
}

/// The documents of a kind, in their order.
fn documents(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the folder is there")
        .map(|entry| entry.expect("readable").path())
        .filter(|path| path.extension().is_some_and(|extension| extension != "txt"))
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "{} is empty", folder.display());
    paths
}

fn read(path: &Path) -> Result<Extracted, Error> {
    let name = path.file_name().expect("a name").to_string_lossy();
    read_bytes(&std::fs::read(path).expect("readable"), &name)
}

fn read_bytes(bytes: &[u8], name: &str) -> Result<Extracted, Error> {
    let document = Document { bytes, name, content_type: None };
    let reading = landfall_documents::read(document, &Limits::default(), &|| ControlFlow::Continue(()))?;
    reading.finish(Recognised::NotInstalled)
}

/// A word ends at white space, at the marks that some tools put around text of another direction, and where the
/// direction of the letters changes.
fn words(text: &str) -> HashMap<String, usize> {
    let mut words = HashMap::new();
    let text = without_marks(text);
    let is_mark =
        |c: char| matches!(c, '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}');
    // Some tools write ligatures as one character.
    let text: String = text.nfkc().collect();
    for word in text.split(|c: char| c.is_whitespace() || is_mark(c)) {
        let characters: Vec<char> = word.chars().collect();
        for part in characters.chunk_by(|a, b| is_arabic(*a) == is_arabic(*b)) {
            *words.entry(one_order_of_lam_and_alef(part)).or_default() += 1;
        }
    }
    words
}

/// The references have neither the marks of Markdown, nor those between the cells of a table in a cell, nor the numbers of
/// lists, nor the descriptions of pictures, nor the addresses of links.
fn without_marks(text: &str) -> String {
    let text = without(&without(text, "![", "]()"), "](", ")").replace(['[', ']'], " ");
    let is_mark = |word: &&str| {
        let number = word.trim_end_matches(['.', ')']);
        let is_number =
            number.len() < word.len() && number.split('.').all(|part| part.parse::<u32>().is_ok());
        is_number || word.chars().all(|c| matches!(c, '#' | '|' | '-' | '>' | '`' | '/' | ';'))
    };
    text.split_whitespace().filter(|word| !is_mark(word)).collect::<Vec<_>>().join(" ")
}

/// The text without what is between two marks.
fn without(text: &str, start: &str, end: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(start) {
        kept.push_str(before);
        kept.push(' ');
        rest = after.split_once(end).map_or("", |(_, after)| after);
    }
    kept + rest
}

fn is_arabic(character: char) -> bool {
    // Its commas and question marks are not letters.
    matches!(character, '\u{600}'..='\u{6FF}') && !matches!(character, '\u{60C}' | '\u{61B}' | '\u{61F}')
}

/// The reference has lam and alef in the wrong order if one glyph stands for both.
fn one_order_of_lam_and_alef(word: &[char]) -> String {
    let word: String = word.iter().collect();
    ["ا", "أ", "إ", "آ"]
        .iter()
        .fold(word, |word, alef| word.replace(&format!("ل{alef}"), &format!("{alef}ل")))
}

fn distinct(text: &str) -> String {
    words(text).into_keys().collect::<Vec<_>>().join(" ")
}

/// The harmonic mean of how much of the reference was found and how much of what was found is in the reference.
fn f1(found: &str, reference: &str) -> f64 {
    let (found, reference) = (words(found), words(reference));
    let common: usize =
        found.iter().map(|(word, count)| (*count).min(reference.get(word).copied().unwrap_or(0))).sum();
    let total: usize = found.values().sum::<usize>() + reference.values().sum::<usize>();
    #[expect(clippy::cast_precision_loss, reason = "counts of words")]
    let score = 2.0 * common as f64 / total.max(1) as f64;
    score
}

/// In the reference of these, the text of a text box is repeated: for each form of the drawing, and for each paragraph
/// around it. So only the set of words is compared, not their number.
const REPEATED_IN_THE_REFERENCE: &[&str] = &["drawingml.docx"];

/// The score of every document of a kind that has a reference.
fn scores(corpus: &Path, kind: &str) -> Vec<(String, f64)> {
    let mut scores = Vec::new();
    for path in documents(&corpus.join(kind)) {
        let Ok(reference) = std::fs::read_to_string(format!("{}.txt", path.display())) else { continue };
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let score = match read(&path) {
            Ok(extracted) if REPEATED_IN_THE_REFERENCE.contains(&name.as_str()) => {
                println!("{kind}: {:.3} {name}, with repetitions", f1(&extracted.text, &reference));
                f1(&distinct(&extracted.text), &distinct(&reference))
            }
            // The reference has no notes of readers, which are written as quotations.
            Ok(extracted) if kind == "pdf" => {
                let lines = extracted.text.lines().filter(|line| !line.starts_with("> "));
                f1(&lines.collect::<Vec<_>>().join("\n"), &reference)
            }
            Ok(extracted) => f1(&extracted.text, &reference),
            Err(failure) => {
                println!("{kind}: {name}: {failure}");
                0.0
            }
        };
        println!("{kind}: {score:.3} {name}");
        scores.push((name, score));
    }
    scores
}

/// Documents that score low, with the least that they reach: the reference repeats a text box, and most of a page has fonts that
/// say the wrong letters.
const LOW: &[(&str, f64)] = &[("drawingml.docx", 0.54), ("skipped_1page.pdf", 0.59)];

fn assert_mean(kind: &str, least: f64, least_of_each: f64) {
    let Some(corpus) = corpus() else { return };
    let scores = scores(&corpus, kind);
    #[expect(clippy::cast_precision_loss, reason = "some dozens")]
    let mean = scores.iter().map(|(_, score)| score).sum::<f64>() / scores.len() as f64;
    println!("{kind}: mean {mean:.4} of {}", scores.len());
    assert!(mean >= least, "{kind}: {mean:.4} is below {least}: {scores:?}");
    for (name, score) in &scores {
        let low = LOW.iter().find(|(low, _)| low == name).map_or(least_of_each, |(_, least)| *least);
        assert!(*score >= low, "{name}: {score:.4} is below {low}");
    }
}

#[test]
fn the_text_of_pdfs_is_found() {
    assert_mean("pdf", 0.96, 0.85);
}

#[test]
fn the_text_of_word_documents_is_found() {
    // The references have the body alone: no charts, descriptions, headers and addresses. `structure.rs` compares those.
    assert_mean("docx", 0.92, 0.82);
}

#[test]
fn the_text_of_web_pages_is_found() {
    assert_mean("html", 0.98, 0.91);
}

#[test]
fn text_from_right_to_left_is_found_in_reading_order() {
    let Some(corpus) = corpus() else { return };
    let scores = scores(&corpus, "pdf");
    let right_to_left: Vec<_> = scores
        .iter()
        .filter(|(name, _)| name.starts_with("right_to_left") || name.starts_with("habibi"))
        .collect();
    assert!(right_to_left.len() >= 5);
    for (name, score) in right_to_left {
        assert!(*score >= 0.8, "{name}: {score:.3}");
    }
}

#[test]
fn a_document_without_text_or_with_a_password_has_its_own_kind_of_error() {
    let Some(corpus) = corpus() else { return };
    for (document, kind) in [
        ("pdf/libreoffice-writer-password.pdf", ErrorKind::Invalid),
        ("pdf/imagemagick-ASCII85Decode.pdf", ErrorKind::NoText),
        ("pdf/imagemagick-CCITTFaxDecode.pdf", ErrorKind::NoText),
        ("pdf/imagemagick-images.pdf", ErrorKind::NoText),
        ("pdf/imagemagick-lzw.pdf", ErrorKind::NoText),
        ("pdf/grayscale-image.pdf", ErrorKind::NoText),
        ("pdf/cmyk-image.pdf", ErrorKind::NoText),
        ("pdf/ocr_test.pdf", ErrorKind::NoText),
    ] {
        let failure = read(&corpus.join(document)).expect_err(document);
        assert_eq!(failure.kind(), kind, "{document}: {failure}");
    }
}

#[test]
fn a_hostile_document_ends_in_text_or_in_an_error() {
    let Some(corpus) = corpus() else { return };
    for path in documents(&corpus.join("hostile")) {
        let ending = std::panic::catch_unwind(AssertUnwindSafe(|| read(&path)));
        let ending = ending.unwrap_or_else(|_| panic!("{} made the reader panic", path.display()));
        match ending {
            Ok(extracted) => println!("{}: {} bytes of text", path.display(), extracted.text.len()),
            Err(failure) => {
                println!("{}: {failure}", path.display());
                assert!(
                    matches!(failure.kind(), ErrorKind::Damaged | ErrorKind::Invalid | ErrorKind::NoText),
                    "{}: {failure}",
                    path.display()
                );
            }
        }
    }
}

/// The documents of the corpus of which something is missing, and the first words about it.
const INCOMPLETE: &[(&str, &str)] = &[
    ("docx/drawingml.docx", "1 picture "),
    ("docx/test_emf_docx.docx", "1 picture "),
    ("pdf/skipped_1page.pdf", "47 of 538 characters "),
    ("pptx/powerpoint_with_image.pptx", "1 picture "),
];

#[test]
fn real_documents_have_no_false_warnings() {
    let Some(corpus) = corpus() else { return };
    let mut found = Vec::new();
    for folder in ["docx", "eml", "html", "odt", "pdf", "pptx", "xlsx"] {
        for path in documents(&corpus.join(folder)) {
            let name = path.file_name().unwrap().to_string_lossy();
            let Ok(extracted) = read(&path) else { continue };
            found.extend(
                extracted.warnings.into_iter().map(|warning| (format!("{folder}/{name}"), warning.message)),
            );
        }
    }
    let expected = |(name, message): &(String, String)| {
        INCOMPLETE.iter().any(|(incomplete, words)| incomplete == name && message.starts_with(words))
    };
    assert!(found.iter().all(expected), "{found:#?}");
    assert_eq!(found.len(), INCOMPLETE.len(), "{found:#?}");
}

#[test]
fn a_real_pdf_is_never_cut_in_silence() {
    let Some(corpus) = corpus() else { return };
    for name in
        ["multi_page.pdf", "bookmark_sample.pdf", "habibi-rotated.pdf", "mistitled_outlines_example.pdf"]
    {
        let whole = std::fs::read(corpus.join("pdf").join(name)).unwrap();
        for percent in [3, 10, 30, 50, 70, 90, 97] {
            let cut = &whole[..whole.len() * percent / 100];
            match read_bytes(cut, name) {
                Err(error) => {
                    assert!(error.message().contains("breaks off"), "{name} at {percent} %: {error}");
                }
                Ok(extracted) => {
                    let codes: Vec<_> = extracted.warnings.iter().map(|warning| warning.code).collect();
                    assert!(codes.contains(&WarningCode::Truncated), "{name} at {percent} %: {codes:?}");
                }
            }
        }
    }
}
