//! What is missing of a document is told: in a warning where the rest can be read, in an error where it is too much.

use std::ops::ControlFlow;

use landfall_documents::{Document, Error, ErrorKind, Extracted, Limits, Recognised, WarningCode, read};
use landfall_test_documents as made;

fn extract(bytes: &[u8], name: &str) -> Result<Extracted, Error> {
    extract_within(bytes, name, &Limits::default())
}

fn extract_within(bytes: &[u8], name: &str, limits: &Limits) -> Result<Extracted, Error> {
    let document = Document { bytes, name, content_type: None };
    read(document, limits, &|| ControlFlow::Continue(()))?.finish(Recognised::NotInstalled)
}

/// The warnings of a document that can be read.
fn warnings(bytes: &[u8], name: &str) -> Vec<(WarningCode, String)> {
    let extracted = extract(bytes, name).expect(name);
    extracted.warnings.into_iter().map(|warning| (warning.code, warning.message)).collect()
}

/// The one warning of a document that can be read.
fn warning(bytes: &[u8], name: &str) -> (WarningCode, String) {
    let mut warnings = warnings(bytes, name);
    assert_eq!(warnings.len(), 1, "{name}: {warnings:?}");
    warnings.remove(0)
}

const PAGES: [&str; 4] = ["The first page", "The second page", "The third page", "The fourth page"];

fn four_pages() -> Vec<u8> {
    made::pdf(&PAGES.each_ref().map(std::slice::from_ref))
}

fn position(bytes: &[u8], text: &str) -> usize {
    bytes.windows(text.len()).position(|window| window == text.as_bytes()).expect(text)
}

#[test]
fn a_whole_document_has_no_warnings() {
    let slides = [("Tides", "They come and go", "Slowly"), ("", "The moon", "")];
    let sheet = "<sheetData><row r=\"1\"><c r=\"A1\"><v>2.5</v></c></row></sheetData>";
    let message = b"From: a@example.org\r\nMIME-Version: 1.0\r\nSubject: s\r\n\r\nThe tide is high.";
    for (bytes, name) in [
        (four_pages(), "a.pdf"),
        (made::docx(&made::paragraph("The harbour closes.")), "a.docx"),
        (made::pptx(&slides), "a.pptx"),
        (made::xlsx(&[("A", sheet)], ""), "a.xlsx"),
        (made::open_document("text", "<text:p>High water</text:p>"), "a.odt"),
        (br"{\rtf1 High {\b water}}".to_vec(), "a.rtf"),
        (message.to_vec(), "a.eml"),
        (b"<?xml version='1.0'?><a><b>High water</b></a>".to_vec(), "a.xml"),
        (b"<html><p>High water".to_vec(), "a.html"),
        (b"Gr\xFC\xDFe aus K\xF6ln, sch\xF6ne Gr\xFC\xDFe".to_vec(), "a.txt"),
    ] {
        assert_eq!(warnings(&bytes, name), [], "{name}");
    }
}

// --- A PDF that breaks off ---

#[test]
fn a_pdf_that_breaks_off_names_the_pages_that_are_missing() {
    let whole = four_pages();
    let (code, message) = warning(&whole[..position(&whole, "The fourth page")], "a.pdf");
    assert_eq!(code, WarningCode::Truncated);
    assert!(message.contains("Page 4 of 4 cannot be read"), "{message}");
    assert!(message.contains("Upload the whole file again"), "{message}");
}

#[test]
fn a_pdf_of_which_less_than_half_is_left_is_refused() {
    let whole = four_pages();
    let error = extract(&whole[..position(&whole, "The second page")], "a.pdf").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Damaged);
    assert!(error.message().contains("only 1 of 4 pages can be read"), "{error}");
}

#[test]
fn a_pdf_is_never_cut_in_silence_wherever_it_is_cut() {
    let whole = four_pages();
    let end = position(&whole, "startxref");
    for length in (20..end).step_by(7) {
        match extract(&whole[..length], "a.pdf") {
            Err(error) => assert_eq!(error.kind(), ErrorKind::Damaged, "{length}: {error}"),
            Ok(extracted) => {
                let warning = extracted.warnings.first().unwrap_or_else(|| panic!("silence at {length}"));
                assert_eq!(warning.code, WarningCode::Truncated, "{length}: {warning:?}");
            }
        }
    }
}

#[test]
fn a_pdf_without_its_list_of_pages_says_that_their_number_is_unknown() {
    let whole = four_pages();
    // As programs write it that put the list at the end.
    let lost = String::from_utf8_lossy(&whole[..position(&whole, "10 0 obj")])
        .replace("/Type /Catalog", "/Type /Nothing")
        .replace("/Type /Pages", "/Type /Nothings");
    let (code, message) = warning(lost.as_bytes(), "a.pdf");
    assert_eq!(code, WarningCode::Truncated);
    assert!(message.contains("3 pages were found. Pages after page 3 are missing"), "{message}");
}

#[test]
fn a_pdf_for_the_web_says_how_many_bytes_and_pages_are_missing() {
    let contents = PAGES.map(|line| made::lines(&[line]));
    let cut = |length: usize, pages: usize| {
        made::pdf_of_contents(&contents, &format!("/Linearized 1 /L {length} /N {pages}"), &[])
    };
    let (code, message) = warning(&cut(90_000, 6), "a.pdf");
    assert_eq!(code, WarningCode::Truncated);
    assert!(message.contains("of 90000 bytes are there"), "{message}");
    assert!(message.contains("Pages 5–6 of 6 cannot be read"), "{message}");
    assert_eq!(extract(&cut(90_000, 9), "a.pdf").unwrap_err().kind(), ErrorKind::Damaged);
    // A program that edits the file makes it longer and leaves the old numbers.
    assert_eq!(warnings(&cut(300, 2), "a.pdf"), []);
}

// --- Damage in the middle ---

/// A PDF whose pages refer to these objects. 1 is the catalog, 2 the list, 3 the font.
fn pdf_of_pages(contents: &[&str], objects: &[Vec<u8>]) -> Vec<u8> {
    let kids: String = (0..contents.len()).map(|n| format!("{} 0 R ", 4 + n)).collect();
    let mut all = vec![
        b"<< /Type /Catalog /Pages 2 0 R >>".to_vec(),
        format!("<< /Type /Pages /Count {} /Kids [{kids}] >>", contents.len()).into_bytes(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_vec(),
    ];
    for contents in contents {
        let page = format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] {contents} /Resources << /Font << /F1 3 0 R >> >> >>"
        );
        all.push(page.into_bytes());
    }
    all.extend_from_slice(objects);
    made::pdf_of_objects(&all)
}

#[test]
fn pages_whose_content_is_gone_are_named_and_empty_pages_are_not() {
    let text = "/Contents 8 0 R";
    let objects =
        [made::lines(&["Something to read"]), made::stream("/Filter /FlateDecode", b"not packed at all")];
    let lost = pdf_of_pages(&[text, "/Contents 77 0 R", text, text], &objects);
    let (code, message) = warning(&lost, "a.pdf");
    assert_eq!(code, WarningCode::PagesUnreadable);
    assert!(message.starts_with("Page 2 of 4 is damaged"), "{message}");
    let broken = pdf_of_pages(&[text, text, "/Contents 9 0 R", "/Contents [9 0 R]"], &objects);
    let (code, message) = warning(&broken, "a.pdf");
    assert_eq!(code, WarningCode::PagesUnreadable);
    assert!(message.starts_with("Pages 3–4 of 4 are damaged"), "{message}");
    assert_eq!(warnings(&pdf_of_pages(&[text, "", "", "/Contents null"], &objects), "a.pdf"), []);
    let most = pdf_of_pages(&[text, "/Contents 9 0 R", "/Contents 77 0 R", "/Contents 9 0 R"], &objects);
    let error = extract(&most, "a.pdf").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Damaged);
    assert!(error.message().contains("pages 2–4 of 4 cannot be read"), "{error}");
}

#[test]
fn slides_that_are_missing_are_named() {
    let slides =
        [("One", "first", ""), ("Two", "second", ""), ("Three", "third", ""), ("Four", "fourth", "")];
    let lose = |names: &[&str]| {
        let mut bytes = made::pptx(&slides);
        for name in names {
            // Another name of the same length: the part is not found.
            for at in (0..bytes.len() - name.len())
                .filter(|at| bytes[*at..].starts_with(name.as_bytes()))
                .collect::<Vec<_>>()
            {
                bytes[at] = b'x';
            }
        }
        bytes
    };
    let (code, message) = warning(&lose(&["ppt/slides/slide1.xml"]), "a.pptx");
    assert_eq!(code, WarningCode::PagesUnreadable);
    assert!(message.starts_with("Slide 4 of 4 is damaged"), "{message}");
    let most = ["ppt/slides/slide1.xml", "ppt/slides/slide2.xml", "ppt/slides/slide3.xml"];
    let error = extract(&lose(&most), "a.pptx").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Damaged);
    assert!(error.message().contains("slides 2–4 of 4"), "{error}");
}

// --- Characters ---

/// A page of these characters, in a font that says only of ASCII what its characters are.
fn pdf_with_unmapped(text: &str) -> Vec<u8> {
    let codes: String = text.encode_utf16().map(|code| format!("{code:04X}")).collect();
    let map = "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /Made def /CMapType 2 def \
        1 begincodespacerange <0000> <FFFF> endcodespacerange 1 beginbfrange <0020> <007E> <0020> endbfrange \
        endcmap end end";
    made::pdf_of_objects(&[
        b"<< /Type /Catalog /Pages 2 0 R >>".to_vec(),
        b"<< /Type /Pages /Count 1 /Kids [4 0 R] >>".to_vec(),
        b"<< /Type /Font /Subtype /Type0 /BaseFont /Made /Encoding /Identity-H /DescendantFonts [6 0 R]
          /ToUnicode 7 0 R >>"
            .to_vec(),
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 5 0 R
          /Resources << /Font << /F1 3 0 R >> >> >>"
            .to_vec(),
        made::stream("", format!("BT /F1 12 Tf 72 700 Td <{codes}> Tj ET").as_bytes()),
        b"<< /Type /Font /Subtype /CIDFontType2 /BaseFont /Made /DW 500
          /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> >>"
            .to_vec(),
        made::stream("", map.as_bytes()),
    ])
}

#[test]
fn characters_without_a_mapping_are_counted() {
    let pdf = pdf_with_unmapped("e\u{201}cient and di\u{202}cult, o\u{201}ce and a\u{203}airs");
    assert_eq!(extract(&pdf, "a.pdf").unwrap().text, "ecient and dicult, oce and aairs");
    let (code, message) = warning(&pdf, "a.pdf");
    assert_eq!(code, WarningCode::CharactersUnmapped);
    assert!(message.starts_with("4 of 31 characters"), "{message}");
    assert!(message.contains("page 1 of 1"), "{message}");
    assert_eq!(warnings(&pdf_with_unmapped("The harbour closes"), "a.pdf"), []);
}

#[test]
fn a_pdf_of_mostly_unmapped_characters_is_refused() {
    let error = extract(&pdf_with_unmapped("ok \u{201}\u{202}\u{203}\u{204}\u{205}"), "a.pdf").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Damaged);
    assert!(error.message().contains("5 of 7 characters"), "{error}");
}

#[test]
fn bytes_that_cannot_be_decoded_are_counted() {
    let good = "Größere Änderungen kosten fünf Prozent, süße Grüße aus Köln.\n".repeat(20);
    let (code, message) = warning(&[good.as_bytes(), b"\xFF", good.as_bytes()].concat(), "a.txt");
    assert_eq!(code, WarningCode::CharactersUnmapped);
    assert!(message.starts_with("1 of ") && message.contains("UTF-8"), "{message}");
    let body = made::paragraph("caf\u{FFFD} au lait");
    assert_eq!(warning(&made::docx(&body), "a.docx").0, WarningCode::CharactersUnmapped);
}

// --- Parts that are not read ---

#[test]
fn attachments_of_a_message_are_counted_and_named() {
    let part =
        |headers: &str| format!("--x\r\n{headers}\r\nContent-Transfer-Encoding: base64\r\n\r\nJVBERi0=\r\n");
    let message = |parts: &str, end: &str| {
        format!(
            "From: a@example.org\r\nSubject: s\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=x\r\n\r\n\
             --x\r\nContent-Type: text/plain\r\n\r\nSee the files.\r\n{parts}{end}"
        )
    };
    let logo = part("Content-Type: image/png; name=logo.png\r\nContent-ID: <logo>");
    assert_eq!(warnings(message(&logo, "--x--\r\n").as_bytes(), "a.eml"), []);
    let files = part("Content-Type: application/zip\r\nContent-Disposition: attachment; filename=a.zip")
        + &part("Content-Type: application/pdf\r\nContent-Disposition: attachment; filename=b.pdf")
        + &logo;
    let (code, text) = warning(message(&files, "--x--\r\n").as_bytes(), "a.eml");
    assert_eq!(code, WarningCode::PartsNotRead);
    assert!(text.starts_with("2 attachments in this file were not read: a.zip, b.pdf."), "{text}");
    let (code, _) = warning(message("", "").as_bytes(), "a.eml");
    assert_eq!(code, WarningCode::Truncated);
}

#[test]
fn attachments_of_a_pdf_are_counted_and_named() {
    let catalog = "/Names << /EmbeddedFiles << /Kids [6 0 R] >> >>";
    let names = b"<< /Names [(first) << /Type /Filespec /F (a.zip) /UF (\xFE\xFF\0b\0.\0e\0x\0e) >> (second) 7 0 R] >>";
    let further = [names.to_vec(), b"<< /Type /Filespec /F (c.zip) >>".to_vec()];
    let pdf = made::pdf_of_contents(&[made::lines(&["See the files"])], catalog, &further);
    let (code, message) = warning(&pdf, "a.pdf");
    assert_eq!(code, WarningCode::PartsNotRead);
    assert!(message.starts_with("2 attachments in this file were not read: b.exe, c.zip."), "{message}");
}

#[test]
fn embedded_files_and_charts_of_office_documents_are_counted() {
    let relations = "<Relationships><Relationship Id=\"a\" Type=\"http://x/package\" \
        Target=\"../embeddings/behind.xlsx\"/></Relationships>";
    let parts: [(&str, &[u8]); 5] = [
        ("word/embeddings/oleObject1.bin", b"x"),
        ("word/embeddings/behind.xlsx", b"x"),
        ("word/charts/chart1.xml", b"<c/>"),
        ("word/charts/style1.xml", b"<c/>"),
        ("word/charts/_rels/chart1.xml.rels", relations.as_bytes()),
    ];
    let document = made::docx_with(&made::paragraph("The harbour closes."), &parts, &[]);
    let found = warnings(&document, "a.docx");
    assert!(found.iter().all(|(code, _)| *code == WarningCode::PartsNotRead), "{found:?}");
    assert!(
        found[0].1.starts_with("1 embedded file in this file was not read: oleObject1.bin."),
        "{found:?}"
    );
    assert!(found[1].1.starts_with("1 chart in this file was not read."), "{found:?}");
    assert_eq!(found.len(), 2);
    let object = "<text:p>Words<draw:frame><draw:object xlink:href=\"./Object 1\"/></draw:frame></text:p>";
    let (_, message) = warning(&made::open_document("text", object), "a.odt");
    assert!(message.starts_with("1 embedded file in this file was not read: Object 1."), "{message}");
    let (_, message) = warning(br"{\rtf1 Words {\object{\*\objdata 0105}}}", "a.rtf");
    assert!(
        message.starts_with("1 embedded file in this file was not read: an embedded object."),
        "{message}"
    );
}

#[test]
fn pictures_are_worth_a_warning_where_there_is_little_text() {
    let bytes = vec![7; 30_000];
    let scan: (&str, &[u8]) = ("word/media/image1.png", &bytes);
    let logo: (&str, &[u8]) = ("word/media/image2.png", &[7; 3_000]);
    let text = |times| made::paragraph(&"The harbour closes at low tide. ".repeat(times));
    let with = |times, picture| made::docx_with(&text(times), &[picture], &[]);
    assert!(warning(&with(1, scan), "a.docx").1.starts_with("1 picture in this file was not read."));
    assert_eq!(warnings(&with(100, scan), "a.docx"), []);
    assert_eq!(warnings(&with(1, logo), "a.docx"), []);
    let error = extract(&with(0, scan), "a.docx").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoText);
    assert!(error.message().contains("1 picture in this file was not read"), "{error}");
}

#[test]
fn texts_that_break_off_say_so() {
    assert_eq!(warning(br"{\rtf1 Half a {\b sent", "a.rtf").0, WarningCode::Truncated);
    assert_eq!(warning(b"<?xml version='1.0'?><a><b>Half a sent", "a.xml").0, WarningCode::Truncated);
}

// --- OCR ---

fn scanned(pages: usize) -> Vec<u8> {
    let scan = made::stream(
        "/Type /XObject /Subtype /Image /Width 200 /Height 100 /ColorSpace /DeviceGray /BitsPerComponent 8",
        &vec![200; 200 * 100],
    );
    let shown = made::stream("", b"q 500 0 0 250 20 20 cm /Im0 Do Q");
    let mut contents = vec![made::lines(&["First page"])];
    contents.resize(pages, shown);
    made::pdf_of_contents(&contents, "", &[scan])
}

#[test]
fn pages_beyond_the_limit_of_pictures_are_named() {
    let limits = Limits { pictures: 3, ..Limits::default() };
    let document = Document { bytes: &scanned(5), name: "a.pdf", content_type: None };
    let reading = read(document, &limits, &|| ControlFlow::Continue(())).unwrap();
    assert_eq!((reading.pages.total, reading.pages.without_picture), (5, 1));
    let words = (2..=4).map(|page| Some(format!("page {page}"))).collect();
    let extracted = reading.finish(Recognised::Words(words)).unwrap();
    let [warning] = &extracted.warnings[..] else { panic!("{:?}", extracted.warnings) };
    assert_eq!((warning.code, warning.page), (WarningCode::OcrIncomplete, Some(5)));
    assert!(warning.message.starts_with("Page 5 of 5"), "{}", warning.message);
}

#[test]
fn a_scan_of_which_ocr_gets_less_than_half_is_refused() {
    let limits = Limits { pictures: 2, ..Limits::default() };
    let document = Document { bytes: &scanned(9), name: "a.pdf", content_type: None };
    let reading = read(document, &limits, &|| ControlFlow::Continue(())).unwrap();
    let words = vec![Some("two".to_owned()), Some("three".to_owned())];
    let error = reading.finish(Recognised::Words(words)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Damaged);
    assert!(error.message().contains("6 of 9 pages"), "{error}");
}

#[test]
fn without_ocr_the_scanned_pages_are_named() {
    let (code, message) = warning(&scanned(3), "a.pdf");
    assert_eq!(code, WarningCode::OcrIncomplete);
    assert!(message.starts_with("Pages 2–3 of 3 are pictures") && message.contains("tesseract"), "{message}");
}
