//! The example program, as its users run it: it reads each document in a confined process.
#![cfg(feature = "sandbox")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use landfall_test_documents as made;

/// `cargo test` builds the examples beside the tests; a run of this test alone does not.
fn example() -> PathBuf {
    let test = std::env::current_exe().expect("the path of this test");
    let example = test.ancestors().nth(2).expect("a target folder").join("examples/print_text");
    assert!(example.exists(), "first run cargo build -p landfall-documents --example print_text");
    example
}

fn print_text(arguments: &[&str], file: &Path) -> Output {
    Command::new(example()).args(arguments).arg(file).output().expect("the example starts")
}

fn stdout(output: &Output) -> &str {
    assert!(output.status.success(), "{output:?}");
    std::str::from_utf8(&output.stdout).expect("UTF-8")
}

#[test]
fn the_example_prints_the_text_and_the_places_of_a_document() {
    let folder = tempfile::tempdir().unwrap();
    let pdf = folder.path().join("tides.pdf");
    std::fs::write(&pdf, made::pdf(&[&["The harbour closes"], &["Second page"]])).unwrap();
    assert_eq!(stdout(&print_text(&[], &pdf)), "The harbour closes\n\nSecond page\n");
    assert_eq!(
        stdout(&print_text(&["--places"], &pdf)),
        "== page 1\nThe harbour closes\n== page 2\nSecond page\n"
    );
    let markdown = folder.path().join("tides.md");
    std::fs::write(&markdown, "Before.\n\n# Tides\n\nThey come and go.\n").unwrap();
    assert_eq!(
        stdout(&print_text(&["--places"], &markdown)),
        "Before.\n== \"Tides\"\n# Tides\n\nThey come and go.\n"
    );
}

#[test]
fn the_example_says_why_a_document_cannot_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("notes.pdf");
    let ends_with = |output: &Output, code: i32, message: &str| {
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.stdout.is_empty() && stderr.contains(message), "{output:?}");
    };
    ends_with(&print_text(&[], &file), 1, "No such file");
    std::fs::write(&file, "only notes").unwrap();
    ends_with(&print_text(&[], &file), 1, "notes.pdf: The name or type says PDF, but it is not a PDF");
    ends_with(&print_text(&["--what"], &file), 2, "usage: print_text");
    ends_with(&print_text(&["extract-child"], &file), 2, "has no value");
}
