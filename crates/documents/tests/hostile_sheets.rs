//! Spreadsheets and presentations that are damaged, or made to cost far more than they are worth.

#[path = "structure/made_sheets.rs"]
mod made_sheets;
#[path = "structure/made_slides.rs"]
mod made_slides;

use std::ops::ControlFlow;

use landfall_documents::{Document, Error, ErrorKind, Limits, Recognised};
use landfall_test_documents as made;

/// Makes a document for a test.
type Builder = fn() -> Vec<u8>;

fn read(bytes: &[u8], name: &str) -> Result<String, Error> {
    read_within(bytes, name, &Limits::default())
}

fn read_within(bytes: &[u8], name: &str, limits: &Limits) -> Result<String, Error> {
    let document = Document { bytes, name, content_type: None };
    let reading = landfall_documents::read(document, limits, &|| ControlFlow::Continue(()))?;
    Ok(reading.finish(Recognised::NotInstalled)?.text)
}

fn assert_ends_well(bytes: &[u8], name: &str) {
    if let Err(error) = read(bytes, name) {
        let expected = [
            ErrorKind::Damaged,
            ErrorKind::Invalid,
            ErrorKind::NoText,
            ErrorKind::UnsupportedType,
            ErrorKind::TooLarge,
        ];
        assert!(expected.contains(&error.kind()), "{name}: {error}");
    }
}

#[test]
fn what_is_damaged_ends_in_text_or_in_an_error() {
    for (name, build) in [made_sheets::DOCUMENTS, made_slides::DOCUMENTS].concat() {
        let whole = build();
        for part in 0..16 {
            assert_ends_well(&whole[..whole.len() * part / 16], name);
        }
        // Every 37th byte, in turn: lengths, offsets, counts and names among them.
        for at in (0..whole.len()).step_by(37) {
            for value in [0, 0xFF, whole[at] ^ 0x10] {
                let mut damaged = whole.clone();
                damaged[at] = value;
                assert_ends_well(&damaged, name);
            }
        }
    }
}

fn sheet(rows: &str) -> Vec<u8> {
    made::xlsx(&[("A", &format!("<sheetData>{rows}</sheetData>"))], "")
}

#[test]
fn a_sparse_sheet_does_not_become_a_large_text() {
    let column = |n: u32| {
        let letter = |n: u32| char::from(b'A' + u8::try_from(n % 26).unwrap());
        format!("{}{}{}", letter(n / 676), letter(n / 26), letter(n))
    };
    // A diagonal through 4,000 rows and columns: 16 million cells, of which 4,000 have words.
    let rows: String = (0..4_000)
        .map(|n| format!("<row r=\"{0}\"><c r=\"{1}{0}\"><v>{n}</v></c></row>", n + 1, column(n)))
        .collect();
    let text = read(&sheet(&rows), "a.xlsx").unwrap();
    assert!(text.contains("| 3999 |") && text.len() < 100_000, "{}", text.len());
}

#[test]
fn cells_without_words_count_too() {
    let limits = Limits { cells: 1_000, ..Limits::default() };
    let empty = sheet(&format!("<row>{}</row>", "<c/>".repeat(1_001)));
    assert_eq!(read_within(&empty, "a.xlsx", &limits).unwrap_err().kind(), ErrorKind::TooLarge);
}

#[test]
fn a_shared_string_in_a_million_cells_is_too_much_text() {
    let long = format!("<si><t>{}</t></si>", "tide ".repeat(5_000));
    let cells = "<c t=\"s\"><v>0</v></c>".repeat(10_000);
    let book = made::xlsx(&[("A", &format!("<sheetData><row>{cells}</row></sheetData>"))], &long);
    assert_eq!(read(&book, "a.xlsx").unwrap_err().kind(), ErrorKind::TooLarge);
}

#[test]
fn empty_shapes_and_cells_of_a_slide_are_bounded() {
    let slide = |inside: &str| {
        made::pptx(&[(
            "",
            &format!("x</a:t></a:r></a:p></p:txBody></p:sp>{inside}<p:sp><p:txBody><a:p><a:r><a:t>y"),
            "",
        )])
    };
    let shapes = slide(&"<p:sp><p:ph/></p:sp>".repeat(60_000));
    assert_eq!(read(&shapes, "a.pptx").unwrap_err().kind(), ErrorKind::TooLarge);
    let limits = Limits { cells: 1_000, ..Limits::default() };
    let cells = slide(&format!(
        "<p:graphicFrame><a:tbl><a:tr>{}</a:tr></a:tbl></p:graphicFrame>",
        "<a:tc/>".repeat(2_000)
    ));
    assert_eq!(read_within(&cells, "a.pptx", &limits).unwrap_err().kind(), ErrorKind::TooLarge);
    // Groups in one another are elements in one another.
    let groups = slide(&"<p:grpSp>".repeat(10_000));
    assert_eq!(read(&groups, "a.pptx").unwrap_err().kind(), ErrorKind::Invalid);
}

#[test]
fn a_table_with_one_wide_row_does_not_widen_a_million_others() {
    let rows =
        format!("{}{}", "<a:tr><a:tc><a:p><a:r><a:t>x</a:t></a:r></a:p></a:tc></a:tr>".repeat(20_000), {
            let cell = "<a:tc><a:p><a:r><a:t>y</a:t></a:r></a:p></a:tc>";
            format!("<a:tr>{}</a:tr>", cell.repeat(1_000))
        });
    let table = format!(
        "x</a:t></a:r></a:p></p:txBody></p:sp><p:graphicFrame><a:tbl>{rows}</a:tbl></p:graphicFrame><p:sp><p:txBody><a:p><a:r><a:t>z"
    );
    let text = read(&made::pptx(&[("", &table, "")]), "a.pptx").unwrap();
    assert!(text.contains("| x |") && text.len() < 400_000, "{}", text.len());
}

#[test]
fn records_that_say_more_than_there_is_are_the_end() {
    // A string of four billion characters, a sheet that begins at the end of the file, and a record without its data.
    let begin = [0x09, 0x08, 16, 0, 0, 6, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let strings = [0xFC, 0, 12, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF];
    let entry = [0x85, 0, 9, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 1, 0, b'A'];
    let stream = [&begin[..], &strings, &entry, &[0x0A, 0, 0xFF, 0xFF]].concat();
    let error = read(&made::compound_of(&[("Workbook", &stream)]), "a.xls").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Damaged, "{error}");
}
