//! Office documents that are made to cost much, or are damaged, end in text or in a clear error.

use std::ops::ControlFlow;

use landfall_documents::{Document, Error, ErrorKind, Extracted, Limits, Recognised};
use landfall_test_documents as made;

const DOC: &[u8] = include_bytes!("structure/files/harbour.doc");

fn read(bytes: &[u8], name: &str) -> Result<Extracted, Error> {
    let document = Document { bytes, name, content_type: None };
    landfall_documents::read(document, &Limits::default(), &|| ControlFlow::Continue(()))?
        .finish(Recognised::NotInstalled)
}

fn assert_text_or_error(bytes: &[u8], name: &str) {
    if let Err(error) = read(bytes, name) {
        let kinds = [
            ErrorKind::Damaged,
            ErrorKind::Invalid,
            ErrorKind::NoText,
            ErrorKind::UnsupportedType,
            ErrorKind::TooLarge,
        ];
        assert!(kinds.contains(&error.kind()), "{error}");
    }
}

#[test]
fn a_word_document_that_is_cut_or_changed_ends_in_text_or_in_an_error() {
    for length in (0..DOC.len()).step_by(97) {
        assert_text_or_error(&DOC[..length], "a.doc");
    }
    for at in (0..DOC.len()).step_by(29) {
        for value in [0x00, 0xFF, DOC[at] ^ 0x55] {
            let mut changed = DOC.to_vec();
            changed[at] = value;
            assert_text_or_error(&changed, "a.doc");
        }
    }
}

/// The main stream of a Word document with these numbers at these places.
fn word_stream(numbers: &[(usize, u32)]) -> Vec<u8> {
    let mut stream = vec![0; 8_192];
    stream[..4].copy_from_slice(&[0xEC, 0xA5, 0xC1, 0]);
    for (at, number) in numbers {
        stream[*at..*at + 4].copy_from_slice(&number.to_le_bytes());
    }
    stream
}

#[test]
fn a_word_document_whose_parts_point_to_each_other_is_read_within_its_limits() {
    // Each of 20,000 pieces is the whole stream, so the text would be 160 MB.
    let pieces: u32 = 20_000;
    let mut table = vec![2];
    table.extend((12 * pieces + 4).to_le_bytes());
    table.extend((0..=pieces).flat_map(|piece| (piece * 8_192).to_le_bytes()));
    for _ in 0..pieces {
        table.extend([0, 0]);
        table.extend(0x4000_0000_u32.to_le_bytes());
        table.extend([0, 0]);
    }
    let stream = word_stream(&[(76, pieces * 8_192), (418, 0), (422, u32::try_from(table.len()).unwrap())]);
    let bytes = made::compound_of(&[("WordDocument", &stream), ("0Table", &table)]);
    assert_eq!(read(&bytes, "a.doc").unwrap_err().kind(), ErrorKind::TooLarge);
}

#[test]
fn a_word_document_with_a_password_says_so() {
    let mut stream = word_stream(&[]);
    stream[11] = 1;
    let error = read(&made::compound_of(&[("WordDocument", &stream)]), "a.doc").unwrap_err();
    assert!(error.message().contains("password"), "{error}");
}

#[test]
fn names_of_streams_may_be_in_capitals() {
    let names = [("WORDDOCUMENT", "WordDocument"), ("1TABLE", "1Table")];
    let mut bytes = DOC.to_vec();
    let units = |name: &str| name.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    for (capitals, name) in names {
        let (capitals, name) = (units(capitals), units(name));
        let at = bytes.windows(name.len()).position(|window| window == name).unwrap();
        bytes[at..at + name.len()].copy_from_slice(&capitals);
    }
    assert!(read(&bytes, "a.doc").unwrap().text.contains("# The harbour"));
}

#[test]
fn documents_in_documents_are_read_to_a_depth_of_three() {
    let reference = "<w:p><w:r><w:object><o:OLEObject r:id=\"d\"/></w:object></w:r></w:p>";
    let mut document = made::docx(&made::paragraph("Depth five."));
    for depth in ["four", "three", "two", "one", "zero"] {
        let body = made::paragraph(&format!("Depth {depth}.")) + reference;
        document = made::docx_with(
            &body,
            &[("word/embeddings/a.docx", &document)],
            &[("d", "package", "embeddings/a.docx")],
        );
    }
    let extracted = read(&document, "a.docx").unwrap();
    assert_eq!(extracted.text, "Depth zero.\n\nDepth one.\n\nDepth two.\n\nDepth three.");
    assert!(extracted.warnings[0].message.contains("a.docx"), "{:?}", extracted.warnings);
}

#[test]
fn a_document_that_embeds_many_others_is_read_within_its_limits() {
    let inner = made::docx(&made::paragraph("Inner."));
    let names: Vec<String> = (0..700).map(|n| format!("word/embeddings/d{n}.docx")).collect();
    let ids: Vec<String> = (0..700).map(|n| format!("d{n}")).collect();
    let targets: Vec<String> = (0..700).map(|n| format!("embeddings/d{n}.docx")).collect();
    let parts: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), inner.as_slice())).collect();
    let relations: Vec<(&str, &str, &str)> =
        ids.iter().zip(&targets).map(|(id, target)| (id.as_str(), "package", target.as_str())).collect();
    let body: String = ids
        .iter()
        .map(|id| format!("<w:p><w:r><w:object><o:OLEObject r:id=\"{id}\"/></w:object></w:r></w:p>"))
        .collect();
    let extracted = read(&made::docx_with(&body, &parts, &relations), "a.docx").unwrap();
    assert_eq!(extracted.text.matches("Inner.").count(), 500);
    assert!(extracted.warnings[0].message.starts_with("200 embedded files"), "{:?}", extracted.warnings);
}

#[test]
fn repetitions_in_an_open_document_do_not_multiply() {
    let mut inside = "<text:p>x</text:p>".to_owned();
    for _ in 0..7 {
        inside = format!(
            "<table:table-row table:number-rows-repeated=\"200\"><table:table-cell table:number-columns-repeated=\"200\">\
             {inside}</table:table-cell></table:table-row>"
        );
    }
    let limits = Limits { cells: 100_000, ..Limits::default() };
    let bytes = made::open_document("spreadsheet", &format!("<table:table>{inside}</table:table>"));
    let document = Document { bytes: &bytes, name: "a.ods", content_type: None };
    let error = landfall_documents::read(document, &limits, &|| ControlFlow::Continue(())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
}

#[test]
fn wide_cells_and_deep_text_boxes_are_bounded() {
    let row = format!(
        "<w:tr><w:tc><w:tcPr><w:gridSpan w:val=\"4000000000\"/></w:tcPr>{}</w:tc></w:tr>",
        made::paragraph("a")
    );
    let table = format!("<w:tbl>{}</w:tbl>", row.repeat(3_000));
    assert!(read(&made::docx(&table), "a.docx").is_ok());
    let mut boxes = made::paragraph("innermost");
    for _ in 0..60 {
        boxes = format!("<w:p><w:r><w:t>box</w:t><w:txbxContent>{boxes}</w:txbxContent></w:r></w:p>");
    }
    assert_eq!(read(&made::docx(&boxes), "a.docx").unwrap().text.matches("box").count(), 9);
}

#[test]
fn an_rtf_of_open_notes_and_edges_is_read_within_its_limits() {
    let notes = [b"{\\rtf1 a".to_vec(), b"{\\footnote b".repeat(400), b"}".repeat(401)].concat();
    assert!(read(&notes, "a.rtf").unwrap().text.contains('b'));
    let edges =
        [b"{\\rtf1\\trowd".to_vec(), b"\\cellx9".repeat(200_000), b"\\pard\\intbl a\\cell\\row}".to_vec()]
            .concat();
    assert!(read(&edges, "a.rtf").unwrap().text.contains('a'));
    let cells =
        [b"{\\rtf1\\trowd\\pard\\intbl ".to_vec(), b"a\\cell".repeat(200_000), b"\\row}".to_vec()].concat();
    assert_text_or_error(&cells, "a.rtf");
}
