//! PDFs whose parts contain themselves or each other. Each is read or refused with a reason, in a number of steps that its
//! size bounds: a walk that does not end keeps its test from ending.

use std::ops::ControlFlow;

use landfall_documents::{Document, Error, ErrorKind, Extracted, Limits, Recognised};
use landfall_test_documents as made;

const TEXT: &[u8] = b"BT /F1 12 Tf 72 700 Td (The tide comes in.) Tj ET";

fn read(bytes: &[u8]) -> Result<Extracted, Error> {
    let document = Document { bytes, name: "a.pdf", content_type: None };
    let reading = landfall_documents::read(document, &Limits::default(), &|| ControlFlow::Continue(()))?;
    reading.finish(Recognised::NotInstalled)
}

#[track_caller]
fn refused(bytes: &[u8], kind: ErrorKind, reason: &str) {
    let error = read(bytes).expect_err("it cannot be read");
    assert_eq!(error.kind(), kind, "{}", error.message());
    assert!(error.message().contains(reason), "{}", error.message());
}

fn objects(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// A catalog with this tree of pages, and further objects from number 3.
fn tree(root: &str, further: Vec<Vec<u8>>) -> Vec<u8> {
    let mut all = objects(&["<< /Type /Catalog /Pages 2 0 R >>", root]);
    all.extend(further);
    made::pdf_of_objects(&all)
}

#[test]
fn a_tree_of_pages_that_contains_itself_twice_is_refused() {
    let bytes = tree("<</Type/Pages/Kids[2 0 R 2 0 R]/Count 99>>", Vec::new());
    assert!(bytes.len() < 300, "a very small file");
    refused(&bytes, ErrorKind::Invalid, "contains itself");
}

#[test]
fn a_tree_whose_branches_lead_to_each_other_is_refused() {
    let below =
        (3..303).map(|_| format!("<</Type/Pages/Kids[{}]/Count 1>>", "3 0 R 4 0 R ".repeat(20)).into_bytes());
    let kids: String = (3..303).map(|number| format!("{number} 0 R ")).collect();
    let bytes = tree(&format!("<</Type/Pages/Kids[{kids}]/Count 999999>>"), below.collect());
    refused(&bytes, ErrorKind::Invalid, "contains itself");
}

#[test]
fn the_pages_of_a_tree_that_contains_itself_once_are_read_once() {
    let further = vec![
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>"
            .to_vec(),
        made::stream("", TEXT),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>".to_vec(),
    ];
    let extracted = read(&tree("<</Type/Pages/Kids[2 0 R 3 0 R]/Count 99>>", further)).unwrap();
    assert_eq!(extracted.text.trim(), "The tide comes in.");
    assert!(extracted.warnings.is_empty(), "{:?}", extracted.warnings);
}

#[test]
fn a_tree_of_pages_that_is_too_deep_is_refused_before_the_stack_ends() {
    let below =
        (3..20_000).map(|number| format!("<</Type/Pages/Kids[{} 0 R]/Count 1>>", number + 1).into_bytes());
    let bytes = tree("<</Type/Pages/Kids[3 0 R]/Count 1>>", below.collect());
    refused(&bytes, ErrorKind::Invalid, "nested more than 512 levels");
}

#[test]
fn a_tree_with_more_entries_than_pages_is_refused() {
    let kids: String = (0..40_000).map(|number| format!("{} 0 R ", number + 100)).collect();
    let bytes = tree(&format!("<</Type/Pages/Kids[{kids}]/Count 40000>>"), Vec::new());
    refused(&bytes, ErrorKind::Invalid, "far more entries than pages");
}

#[test]
fn pages_without_a_list_are_found_if_they_are_few() {
    let pages = |count: usize| {
        let page =
            b"<</Type/Page/MediaBox[0 0 600 800]/Contents 3 0 R/Resources<</Font<</F1 4 0 R>>>>>>".to_vec();
        let mut further =
            vec![made::stream("", TEXT), b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>".to_vec()];
        further.extend(vec![page; count]);
        tree("<</Type/Pages/Kids[]/Count 0>>", further)
    };
    assert_eq!(read(&pages(3)).unwrap().text.matches("tide").count(), 3);
    refused(&pages(10_000), ErrorKind::Damaged, "its list of pages is empty");
}

/// A page that draws the first of these drawings, each of which draws the next one twice; the last one draws `last`.
fn drawings(count: usize, last: &str) -> Vec<u8> {
    let forms = (0..count).map(|number| {
        let content = if number + 1 == count { last } else { "q /X Do Q q 1 0 0 1 0 -40 cm /X Do Q" };
        let next = if number + 1 == count { 6 } else { 7 + number };
        let dictionary = format!(
            "/Type /XObject /Subtype /Form /BBox [0 0 600 800] \
             /Resources << /Font << /F1 3 0 R >> /XObject << /X {next} 0 R >> >>"
        );
        made::stream(&dictionary, content.as_bytes())
    });
    let page = made::stream("", b"/Im0 Do");
    made::pdf_of_contents(&[page], "", &forms.collect::<Vec<_>>())
}

#[test]
fn drawings_that_draw_one_another_without_end_are_refused() {
    let text = std::str::from_utf8(TEXT).unwrap();
    refused(&drawings(60, text), ErrorKind::Damaged, "page 1 of 1 cannot be read");
    refused(&drawings(60, "0 0 m 9 9 l S"), ErrorKind::Damaged, "page 1 of 1 cannot be read");
    refused(&drawings(3, "/X Do"), ErrorKind::Damaged, "page 1 of 1 cannot be read");
}

/// They are counted in an encrypted document too.
#[test]
fn encrypted_drawings_that_draw_one_another_without_end_are_refused() {
    let bytes = include_bytes!("structure/files/pdf/locked-drawings.pdf");
    refused(bytes, ErrorKind::Damaged, "page 1 of 1 cannot be read");
}

#[test]
fn drawings_within_drawings_are_read() {
    let text = std::str::from_utf8(TEXT).unwrap();
    assert!(read(&drawings(4, text)).unwrap().text.contains("The tide comes in."));
}

#[test]
fn names_fields_and_outlines_that_contain_themselves_are_read_once() {
    let catalog =
        "/Names << /EmbeddedFiles 6 0 R >> /AcroForm << /Fields [8 0 R] >> /Outlines << /First 9 0 R >>";
    let further = [
        format!("<< /Kids [{}] /Names [{}] >>", "6 0 R ".repeat(1_000), "(a) 7 0 R ".repeat(1_000)),
        "<< /Type /Filespec /F (a.txt) >>".to_owned(),
        "<< /FT /Tx /T (a) /Kids [8 0 R 8 0 R] >>".to_owned(),
        "<< /Title (Tides) /Next 9 0 R /First 9 0 R >>".to_owned(),
    ];
    let further: Vec<Vec<u8>> = further.map(String::into_bytes).into();
    let extracted = read(&made::pdf_of_contents(&[made::stream("", TEXT)], catalog, &further)).unwrap();
    assert_eq!(extracted.text.trim(), "The tide comes in.");
    let warning = &extracted.warnings[0];
    assert!(warning.message.contains("attachments in this file were not read"), "{warning:?}");
}
