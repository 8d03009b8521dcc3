//! Each format: its text, its places, its limits, and how a damaged document ends.

use std::ops::ControlFlow;

use landfall_documents::{Document, Error, ErrorKind, Extracted, Limits, Reading, Recognised};
use landfall_test_documents as made;
use proptest::prelude::*;

fn read_within(bytes: &[u8], name: &str, limits: &Limits) -> Result<Reading, Error> {
    landfall_documents::read(Document { bytes, name, content_type: None }, limits, &|| {
        ControlFlow::Continue(())
    })
}

fn read(bytes: &[u8], name: &str) -> Result<Extracted, Error> {
    read_within(bytes, name, &Limits::default())?.finish(Recognised::NotInstalled)
}

fn kind(bytes: &[u8], name: &str) -> ErrorKind {
    read(bytes, name).expect_err(name).kind()
}

/// Page, heading and the words up to the next place.
fn places(extracted: &Extracted) -> Vec<(Option<i64>, Option<&str>, &str)> {
    let ends = extracted.places.iter().skip(1).map(|place| place.start).chain([extracted.text.len()]);
    extracted
        .places
        .iter()
        .zip(ends)
        .map(|(place, end)| (place.page, place.heading.as_deref(), extracted.text[place.start..end].trim()))
        .collect()
}

fn plain_docx() -> Vec<u8> {
    made::docx(&made::paragraph("The harbour closes at low tide."))
}

fn plain_pptx() -> Vec<u8> {
    made::pptx(&[("Tides", "They come and go", "Say it slowly"), ("", "The moon", "")])
}

fn plain_xlsx() -> Vec<u8> {
    let rows = "<sheetData><row r=\"1\"><c r=\"A1\" t=\"s\"><v>0</v></c><c r=\"B1\"><v>2.5</v></c></row>\
        <row r=\"2\"><c r=\"A2\" t=\"inlineStr\"><is><t>ebb &amp; flow</t></is></c><c r=\"B2\" s=\"1\"><v>45000</v></c>\
        <c r=\"C2\" t=\"b\"><v>1</v></c><c r=\"D2\" t=\"e\"><v>#DIV/0!</v></c></row></sheetData>";
    made::xlsx(&[("Levels", rows), ("Empty", "<sheetData/>")], "<si><t>height</t></si>")
}

fn plain_odt() -> Vec<u8> {
    made::open_document(
        "text",
        "<text:h text:outline-level=\"1\">Tides</text:h><text:p>High<text:s/>water</text:p>",
    )
}

fn plain_pdf() -> Vec<u8> {
    made::pdf(&[&["The harbour closes", "at low tide"], &["Second page"]])
}

#[test]
fn a_pdf_has_a_place_for_each_page() {
    let extracted = read(&plain_pdf(), "a.pdf").unwrap();
    let found = places(&extracted);
    assert_eq!(found.len(), 2, "{extracted:?}");
    assert_eq!((found[0].0, found[1].0), (Some(1), Some(2)));
    assert!(found[0].2.contains("The harbour closes") && found[0].2.contains("at low tide"), "{found:?}");
    assert_eq!(found[1].2, "Second page");
}

#[test]
fn the_outline_of_a_pdf_gives_its_headings() {
    let contents = [made::lines(&["1 Tides", "They come and go"]), made::lines(&["The Moon", "It is round"])];
    let further = [
        b"<< /First 9 0 R >>".to_vec(),
        b"<< /Title (Tides) /Next 10 0 R >>".to_vec(),
        // A cycle, which only a hostile outline has.
        b"<< /Title <FEFF0054006800650020004D006F006F006E> /Next 9 0 R >>".to_vec(),
    ];
    let pdf = made::pdf_of_contents(&contents, "/Outlines 8 0 R", &further);
    let extracted = read(&pdf, "a.pdf").unwrap();
    let headings: Vec<_> = places(&extracted).into_iter().filter_map(|(_, heading, _)| heading).collect();
    assert_eq!(headings, ["1 Tides", "The Moon"]);
}

#[test]
fn a_word_document_is_read_in_order() {
    let body = "<w:p><w:pPr><w:pStyle w:val=\"berschrift1\"/><w:tabs><w:tab/></w:tabs></w:pPr><w:r><w:t>Tides</w:t></w:r></w:p>\
        <w:p><w:r><w:t xml:space=\"preserve\">High </w:t></w:r><w:r><w:t>wa</w:t></w:r><w:r><w:t>ter</w:t><w:footnoteReference w:id=\"2\"/></w:r>\
        <w:del><w:r><w:delText>gone</w:delText><w:t>gone</w:t></w:r></w:del><w:r><w:br/><w:t>next line</w:t></w:r></w:p>\
        <w:tbl><w:tr><w:tc><w:p><w:r><w:t>a</w:t></w:r></w:p><w:p><w:r><w:t>b</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>c</w:t></w:r></w:p></w:tc></w:tr>\
        <w:tr><w:tc><w:p><w:r><w:t>d</w:t></w:r></w:p></w:tc></w:tr></w:tbl>\
        <w:p><w:r><mc:AlternateContent><mc:Choice><w:txbxContent><w:p><w:r><w:t>In a box</w:t></w:r></w:p></w:txbxContent></mc:Choice>\
        <mc:Fallback><w:txbxContent><w:p><w:r><w:t>In a box</w:t></w:r></w:p></w:txbxContent></mc:Fallback></mc:AlternateContent></w:r></w:p>\
        <w:p><m:oMath><m:f><m:num><m:r><m:t>1</m:t></m:r></m:num><m:den><m:r><m:t>2</m:t></m:r></m:den></m:f></m:oMath></w:p>";
    let styles =
        b"<w:styles><w:style w:styleId=\"berschrift1\"><w:name w:val=\"heading 1\"/></w:style></w:styles>";
    let notes = b"<w:footnotes><w:footnote w:id=\"2\"><w:p><w:r><w:t>At spring tide</w:t></w:r></w:p></w:footnote></w:footnotes>";
    let parts: &[(&str, &[u8])] = &[("word/styles.xml", styles), ("word/footnotes.xml", notes)];
    let relations = [("s", "styles", "styles.xml"), ("f", "footnotes", "footnotes.xml")];
    let extracted = read(&made::docx_with(body, parts, &relations), "a.docx").unwrap();
    assert_eq!(
        extracted.text,
        "# Tides\n\nHigh water\nnext line\n\nAt spring tide\n\n| a b | c |\n| --- | --- |\n| d | |\n\nIn a box\n\n$\\frac{1}{2}$"
    );
    assert_eq!(extracted.places.len(), 1);
    assert_eq!((extracted.places[0].start, extracted.places[0].heading.as_deref()), (0, Some("Tides")));
}

#[test]
fn a_presentation_has_its_slides_in_the_order_of_the_show() {
    let extracted = read(&plain_pptx(), "a.pptx").unwrap();
    assert_eq!(
        places(&extracted),
        [
            (Some(1), None, ""),
            (None, Some("Tides"), "## Tides\n\nThey come and go\n\nSay it slowly"),
            (Some(2), Some("Slide 2"), "The moon"),
        ]
    );
}

#[test]
fn a_workbook_has_a_place_and_a_table_for_each_sheet() {
    let extracted = read(&plain_xlsx(), "a.xlsx").unwrap();
    assert_eq!(
        places(&extracted),
        [(
            None,
            Some("Levels"),
            "## Levels\n\n| height | 2.5 | | |\n| --- | --- | --- | --- |\n| ebb & flow | 3/15/2023 | TRUE | #DIV/0! |"
        )]
    );
}

#[test]
fn open_documents_of_all_three_kinds_are_read() {
    let extracted = read(&plain_odt(), "a.odt").unwrap();
    assert_eq!(extracted.text, "# Tides\n\nHigh water");
    assert_eq!(extracted.places[0].heading.as_deref(), Some("Tides"));
    let sheet = "<table:table table:name=\"Levels\"><table:table-row><table:table-cell><text:p>a</text:p></table:table-cell>\
        <table:table-cell table:number-columns-repeated=\"16384\"/><table:table-cell><text:p>b</text:p></table:table-cell>\
        </table:table-row><table:table-row table:number-rows-repeated=\"1048576\"><table:table-cell><text:p>c</text:p>\
        </table:table-cell></table:table-row></table:table>";
    let extracted = read(&made::open_document("spreadsheet", sheet), "a.ods").unwrap();
    assert_eq!(
        places(&extracted),
        [(None, Some("Levels"), "## Levels\n\n| a | | b |\n| --- | --- | --- |\n| c | | |")]
    );
    let slides = "<draw:page><draw:frame presentation:class=\"title\"><draw:text-box><text:p>Tides</text:p></draw:text-box>\
        </draw:frame></draw:page><draw:page><draw:frame><draw:text-box><text:p>The moon</text:p></draw:text-box></draw:frame></draw:page>";
    let extracted = read(&made::open_document("presentation", slides), "a.odp").unwrap();
    let found: Vec<_> = places(&extracted).into_iter().filter(|(_, _, words)| !words.is_empty()).collect();
    assert_eq!(found, [(None, Some("Tides"), "## Tides"), (Some(2), None, "The moon")]);
}

#[test]
fn pictures_of_office_documents_are_passed_on_to_ocr_in_their_place() {
    let picture = made::picture_of("TIDE");
    assert!(picture.len() > 1_500, "{}", picture.len());
    let shown = "<w:p><w:r><w:drawing><a:blip r:embed=\"i\"/></w:drawing></w:r></w:p>";
    let body = made::paragraph("Before.") + shown + &made::paragraph("After.") + shown;
    let parts: [(&str, &[u8]); 1] = [("word/media/image1.bmp", &picture)];
    let docx = made::docx_with(&body, &parts, &[("i", "image", "media/image1.bmp")]);
    let digits: String = picture.iter().map(|byte| format!("{byte:02x}")).collect();
    let rtf =
        format!("{{\\rtf1 Before.{{\\*\\shppict{{\\pict\\pngblip {digits}}}}}\\par After.}}").into_bytes();
    for (bytes, name) in [(docx, "a.docx"), (rtf, "a.rtf")] {
        let reading = read_within(&bytes, name, &Limits::default()).unwrap();
        // A picture that is shown twice is read once.
        assert_eq!(reading.pictures.len(), 1, "{name}");
        assert_eq!(reading.pictures[0].bytes, picture, "{name}");
        let whole = reading.finish(Recognised::Words(vec![Some("TIDE".to_owned())])).unwrap();
        assert_eq!(whole.text, "Before.\n\nTIDE\n\nAfter.", "{name}");
    }
}

#[test]
fn the_bytes_decide_the_format_and_not_the_name() {
    for name in ["a.docx", "a.txt", "a", "a.html"] {
        assert!(read(&plain_xlsx(), name).unwrap().text.contains("ebb & flow"));
        assert!(read(&plain_docx(), name).unwrap().text.contains("low tide"));
        assert!(read(&plain_pdf(), name).unwrap().text.contains("low tide"));
        assert!(read(br"{\rtf1 low tide}", name).unwrap().text.contains("low tide"));
    }
    for bytes in [plain_docx(), b"plain text".to_vec(), Vec::new()] {
        assert_eq!(kind(&bytes, "a.pdf"), ErrorKind::NotPdf);
    }
}

#[test]
fn an_archive_of_a_kind_of_its_own_is_unsupported() {
    let failure = read(&made::archive(&[("mimetype", b"application/x-something")]), "a.docx").unwrap_err();
    assert_eq!(failure.kind(), ErrorKind::UnsupportedType);
    assert!(
        failure.message().contains("ZIP archive") && failure.message().contains("DOCX"),
        "{}",
        failure.message()
    );
    let program = made::archive(&[("META-INF/MANIFEST.MF", b"x")]);
    assert!(read(&program, "a.jar").unwrap_err().message().contains("a program (Java or Android)"));
}

#[test]
fn the_error_of_an_encrypted_document_names_the_password() {
    let manifest = b"<manifest:file-entry><manifest:encryption-data/></manifest:file-entry>";
    let mime_type = b"application/vnd.oasis.opendocument.text";
    let odt = made::archive(&[
        ("mimetype", mime_type),
        ("META-INF/manifest.xml", manifest),
        ("content.xml", b"\x03\x99"),
    ]);
    let office = made::compound(&["EncryptionInfo", "EncryptedPackage"], b"");
    let mut pdf = plain_pdf();
    let trailer = pdf.windows(7).rposition(|window| window == b"trailer").unwrap();
    let encrypt = b"trailer\n<< /Encrypt << /Filter /Standard /V 2 /R 3 /Length 128 /P -44 \
        /O <0000000000000000000000000000000000000000000000000000000000000000> \
        /U <0000000000000000000000000000000000000000000000000000000000000000> >> /ID [<00> <00>] ";
    pdf.splice(trailer..trailer + 10, encrypt.iter().copied());
    for (bytes, name) in [(odt, "a.odt"), (office, "a.docx"), (pdf, "a.pdf")] {
        let failure = read(&bytes, name).expect_err(name);
        assert_eq!(failure.kind(), ErrorKind::Invalid, "{name}: {failure}");
        assert!(failure.message().contains("password"), "{name}: {failure}");
    }
}

#[test]
fn an_old_office_document_is_recognised_by_its_streams_only() {
    let mention = |name: &str| name.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    for name in ["WordDocument", "EncryptedPackage", "PowerPoint Document"] {
        let failure = read(&made::compound(&["Workbook"], &mention(name)), "a.xls").unwrap_err();
        assert_eq!(failure.kind(), ErrorKind::Damaged, "a workbook without any sheets: {failure}");
        assert!(failure.message().contains("spreadsheet"), "{failure}");
    }
    let word = read(&made::compound(&["1Table", "WordDocument"], &mention("Workbook")), "a.doc").unwrap_err();
    assert!(word.message().contains("Word document"), "{word}");
    let cut_short = read(&made::compound(&["Workbook"], b"")[..1_024], "a.xls").unwrap_err();
    assert!(cut_short.kind() == ErrorKind::Damaged && cut_short.message().contains("damaged"), "{cut_short}");
}

#[test]
fn a_truncated_pdf_is_damaged_and_not_empty() {
    let whole = plain_pdf();
    let cycle = b"%PDF-1.7\n1 0 obj\n<</Type/Catalog/Pages 2 0 R>>\nendobj\n2 0 obj\n\
        <</Type/Pages/Kids[2 0 R]/Count 1000000>>\nendobj\nxref\n0 3\n0000000000 65535 f \n0000000009 00000 n \n\
        0000000054 00000 n \ntrailer<</Size 3/Root 1 0 R>>\nstartxref\n111\n%%EOF";
    for bytes in [&whole[..whole.len() / 3], cycle] {
        let failure = read(bytes, "a.pdf").unwrap_err();
        assert_eq!(failure.kind(), ErrorKind::Damaged, "{failure}");
        assert!(failure.message().contains("damaged"), "{failure}");
    }
    assert_eq!(kind(&made::pdf(&[&[""]]), "a.pdf"), ErrorKind::NoText);
}

#[test]
fn a_document_without_words_has_no_text() {
    assert_eq!(kind(&made::docx(""), "a.docx"), ErrorKind::NoText);
    assert_eq!(kind(&made::pptx(&[("", "", "")]), "a.pptx"), ErrorKind::NoText);
    assert_eq!(kind(&made::xlsx(&[("A", "<sheetData/>")], ""), "a.xlsx"), ErrorKind::NoText);
    assert_eq!(kind(&made::open_document("text", "<text:p/>"), "a.odt"), ErrorKind::NoText);
    assert_eq!(kind(&made::pdf(&[&[]]), "a.pdf"), ErrorKind::NoText);
    assert_eq!(kind(b"{\\rtf1 }", "a.rtf"), ErrorKind::NoText);
    assert_eq!(kind(b"<?xml version='1.0'?><a b='c'/>", "a.xml"), ErrorKind::NoText);
}

#[test]
fn pictures_and_scanned_pages_are_passed_on_to_ocr() {
    let png = b"\x89PNG\r\n\x1A\n....".to_vec();
    let reading = read_within(&png, "a.png", &Limits::default()).unwrap();
    assert_eq!(reading.pictures[0].bytes, png);
    assert!(read(&png, "a.png").unwrap_err().message().contains("tesseract"));

    let scan = made::stream(
        "/Type /XObject /Subtype /Image /Width 200 /Height 100 /ColorSpace /DeviceGray /BitsPerComponent 8",
        &vec![200; 200 * 100],
    );
    let shown = made::stream("", b"q 500 0 0 250 20 20 cm /Im0 Do Q");
    let pdf = made::pdf_of_contents(&[made::lines(&["First page"]), shown], "", &[scan]);
    let reading = read_within(&pdf, "a.pdf", &Limits::default()).unwrap();
    assert_eq!(reading.pictures.len(), 1);
    assert_eq!(reading.pictures[0].page, Some(2));
    assert!(reading.pictures[0].bytes.starts_with(b"\x89PNG"));
    let whole = reading.finish(Recognised::Words(vec![Some("Read by OCR".to_owned())])).unwrap();
    assert_eq!(places(&whole), [(Some(1), None, "First page"), (Some(2), None, "Read by OCR")]);
}

// --- Limits ---

#[test]
fn an_archive_that_unpacks_to_too_much_is_refused() {
    let bomb = vec![b' '; 64 << 20];
    for (bytes, name) in [
        (made::docx_with("", &[("word/styles.xml", &bomb)], &[("s", "styles", "styles.xml")]), "a.docx"),
        (made::xlsx(&[("A", "<sheetData/>")], std::str::from_utf8(&bomb).unwrap()), "a.xlsx"),
        (made::open_document("text", std::str::from_utf8(&bomb).unwrap()), "a.odt"),
    ] {
        let failure = read(&bytes, name).expect_err(name);
        assert_eq!(failure.kind(), ErrorKind::Invalid, "{name}: {failure}");
        assert!(failure.message().contains("unpacks"), "{name}: {failure}");
    }
}

#[test]
fn the_unpacked_bytes_of_all_parts_are_added_up() {
    let slide = "x".repeat(4_000);
    let slides: Vec<(&str, &str, &str)> = vec![("", &slide, ""); 40];
    let limits = Limits { unpacked_bytes: 100_000, ..Limits::default() };
    let failure = read_within(&made::pptx(&slides), "a.pptx", &limits).unwrap_err();
    assert_eq!(failure.kind(), ErrorKind::Invalid);
}

#[test]
fn an_archive_of_too_many_parts_is_refused() {
    let names: Vec<String> = (0..50).map(|n| format!("{n}.xml")).collect();
    let parts: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), &b""[..])).collect();
    let limits = Limits { archive_entries: 20, ..Limits::default() };
    let failure = read_within(&made::docx_with("", &parts, &[]), "a.docx", &limits).unwrap_err();
    assert_eq!(failure.kind(), ErrorKind::Invalid);
    assert!(failure.message().contains("more than 20 parts"));
}

#[test]
fn entities_in_an_office_document_are_never_expanded() {
    let document = made::docx(&made::paragraph("before &lol; after"));
    assert_eq!(read(&document, "a.docx").unwrap().text, "before after");
}

#[test]
fn deep_nesting_is_refused_in_each_format() {
    let deep = "<w:p>".repeat(100_000);
    assert_eq!(kind(&made::docx(&deep), "a.docx"), ErrorKind::Invalid);
    assert_eq!(kind(&made::open_document("text", &"<text:p>".repeat(100_000)), "a.odt"), ErrorKind::Invalid);
    // A web page has no limit: no tree is built of it.
    let page = format!("<html>{}end", "<div>".repeat(300_000));
    assert_eq!(read(page.as_bytes(), "a.html").unwrap().text, "end");
}

#[test]
fn the_declared_size_of_a_sheet_costs_nothing() {
    let sheet = "<dimension ref=\"A1:XFD1048576\"/><sheetData><row r=\"1\"><c r=\"A1\"><v>1</v></c></row>\
        <row r=\"1048576\"><c r=\"XFD1048576\"><v>2</v></c></row></sheetData>";
    assert_eq!(read(&made::xlsx(&[("A", sheet)], ""), "a.xlsx").unwrap().text, "## A\n\n1\n\n2");
}

#[test]
fn a_sheet_with_too_many_cells_is_refused() {
    let cells: String = (1..=600).map(|n| format!("<c r=\"A{n}\"><v>{n}</v></c>")).collect();
    let sheet = format!("<sheetData><row>{cells}</row></sheetData>");
    let book = made::xlsx(&[("A", &sheet), ("B", &sheet)], "");
    let limits = Limits { cells: 1_000, ..Limits::default() };
    assert_eq!(read_within(&book, "a.xlsx", &limits).unwrap_err().kind(), ErrorKind::TooLarge);
    assert!(read(&book, "a.xlsx").is_ok());
}

#[test]
fn a_document_with_too_many_pages_is_refused() {
    let limits = Limits { pages: 2, ..Limits::default() };
    let pages: &[&[&str]] = &[&["one"], &["two"], &["three"]];
    assert_eq!(read_within(&made::pdf(pages), "a.pdf", &limits).unwrap_err().kind(), ErrorKind::TooLarge);
    assert!(read_within(&made::pdf(&pages[..2]), "a.pdf", &limits).is_ok());
    let slides = [("a", "b", "c"); 3];
    assert_eq!(read_within(&made::pptx(&slides), "a.pptx", &limits).unwrap_err().kind(), ErrorKind::TooLarge);
}

#[test]
fn a_presentation_is_refused_at_the_first_slide_beyond_the_limit() {
    // The list is damaged at its end, which is not reached with one slide too many.
    assert_eq!(kind(&made::pptx_of_missing_slides(5_001), "a.pptx"), ErrorKind::TooLarge);
    assert_eq!(kind(&made::pptx_of_missing_slides(5_000), "a.pptx"), ErrorKind::Damaged);
}

#[test]
fn the_prefix_of_a_reference_to_a_slide_does_not_matter() {
    let slides = [("Tides", "They come and go", "")];
    let read = |prefix| read(&made::pptx_with_prefix(prefix, &slides), "a.pptx").unwrap().text;
    assert_eq!(read("rel"), read("r"));
}

#[test]
fn a_document_with_too_much_text_is_refused_in_each_format() {
    let limits = Limits { text_bytes: 1_000, ..Limits::default() };
    let long = "word ".repeat(1_000);
    for (bytes, name) in [
        (made::docx(&made::paragraph(&long)), "a.docx"),
        (made::pptx(&[("a", &long, "b")]), "a.pptx"),
        (
            made::xlsx(
                &[("A", "<sheetData><row><c t=\"s\"><v>0</v></c></row></sheetData>")],
                &format!("<si><t>{long}</t></si>"),
            ),
            "a.xlsx",
        ),
        (made::open_document("text", &format!("<text:p>{long}</text:p>")), "a.odt"),
        (made::pdf(&[&[&long]]), "a.pdf"),
        (format!("{{\\rtf1 {long}}}").into_bytes(), "a.rtf"),
        (format!("<?xml version='1.0'?><a>{long}</a>").into_bytes(), "a.xml"),
        (format!("From: a@b\nTo: c@d\nSubject: e\n\n{long}").into_bytes(), "a.eml"),
        (format!("<html>{long}").into_bytes(), "a.html"),
        (long.clone().into_bytes(), "a.txt"),
        (long.clone().into_bytes(), "a.csv"),
    ] {
        let failure = read_within(&bytes, name, &limits).expect_err(name);
        assert_eq!(failure.kind(), ErrorKind::TooLarge, "{name}: {failure}");
    }
}

#[test]
fn a_stream_that_unpacks_to_a_gigabyte_does_not_fill_memory() {
    // A gigabyte in a megabyte.
    let bomb = made::stream("/Filter /FlateDecode", &made::packed_blanks(1_000));
    let pdf = made::pdf_of_contents(&[made::lines(&["First page"]), bomb], "", &[]);
    let before = peak_memory();
    let ending = read(&pdf, "a.pdf");
    let grown = peak_memory().saturating_sub(before);
    assert!(grown < 700 << 20, "{} MB", grown >> 20);
    if let Ok(extracted) = ending {
        assert_eq!(extracted.text.trim(), "First page");
    }
}

/// The peak memory of this process, which is that of one test if each test has its own process.
fn peak_memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|kilobytes| kilobytes.parse::<usize>().ok()).unwrap_or(0) << 10
}

#[test]
fn a_reader_stops_if_the_caller_wants_it() {
    for (bytes, name) in [(plain_docx(), "a.docx"), (plain_pdf(), "a.pdf"), (plain_xlsx(), "a.xlsx")] {
        let document = Document { bytes: &bytes, name, content_type: None };
        let failure =
            landfall_documents::read(document, &Limits::default(), &|| ControlFlow::Break(())).unwrap_err();
        assert_eq!(failure.kind(), ErrorKind::Stopped, "{name}");
    }
}

// --- Damage ---

fn every_kind() -> Vec<(Vec<u8>, &'static str)> {
    let email =
        b"From: a@b.c\r\nTo: d@e.f\r\nSubject: Tides\r\nContent-Type: multipart/mixed; boundary=x\r\n\r\n\
        --x\r\nContent-Type: text/html\r\n\r\n<p>High water</p>\r\n--x--\r\n";
    vec![
        (plain_docx(), "a.docx"),
        (plain_pptx(), "a.pptx"),
        (plain_xlsx(), "a.xlsx"),
        (plain_odt(), "a.odt"),
        (plain_pdf(), "a.pdf"),
        (br"{\rtf1\ansi{\fonttbl{\f0 A;}}\f0 High \'e9 \u8364? {\b water}\par}".to_vec(), "a.rtf"),
        (b"<?xml version='1.0'?><a>High <b>water</b> &#233;</a>".to_vec(), "a.xml"),
        (email.to_vec(), "a.eml"),
        (b"{\"a\": [1, {\"b\": \"water\"}]}".to_vec(), "a.json"),
        (b"a,b\n\"x, y\",2\n".to_vec(), "a.csv"),
        (b"<html><body><h1>High</h1><p>water &eacute;</p></body></html>".to_vec(), "a.html"),
        (
            b"<ul><li>a<ol><li>b</ol></ul><table><tr><td rowspan=2>c<td>d<tr><td>e</table><pre>f</pre>"
                .to_vec(),
            "a.html",
        ),
        (made::outlook(("__substg1.0_10130102", b"<p>High water</p>"), &[]), "a.msg"),
        (made::book(&[("a.xhtml", "<p>High water</p>")], &[]), "a.epub"),
        (made::signed(b"High water"), "a.txt.p7m"),
        (made::archive(&[("a.txt", b"High water"), ("b/c.md", b"# Low")]), "a.zip"),
        (b"From a@b.c Mon Mar  2 09:30:00 2026\nSubject: High\n\nwater\n".to_vec(), "a.mbox"),
        (b"{\"cells\": [{\"cell_type\": \"code\", \"source\": [\"x\"]}]}".to_vec(), "a.ipynb"),
        (b"1\n00:00:01,000 --> 00:00:02,000\n<i>High</i> water\n".to_vec(), "a.srt"),
        (b"\\section{High} $x$ \\begin{tabular}{l}a & b\\\\ \\end{tabular}".to_vec(), "a.tex"),
    ]
}

/// A damaged document may end only with an error that another attempt would not change.
fn assert_ends_well(bytes: &[u8], name: &str) {
    if let Err(failure) = read(bytes, name) {
        let expected = [
            ErrorKind::Damaged,
            ErrorKind::Invalid,
            ErrorKind::NoText,
            ErrorKind::UnsupportedType,
            ErrorKind::NotPdf,
            ErrorKind::TooLarge,
        ];
        assert!(expected.contains(&failure.kind()), "{name}: {failure}");
        assert!(failure.message().len() > 10, "{name}: {failure}");
    }
}

#[test]
fn a_truncated_document_ends_in_text_or_in_an_error() {
    for (bytes, name) in every_kind() {
        assert!(read(&bytes, name).is_ok(), "{name}");
        for part in 0..20 {
            assert_ends_well(&bytes[..bytes.len() * part / 20], name);
        }
    }
}

#[test]
fn a_pdf_that_makes_the_library_panic_is_damaged() {
    let mut pdf = plain_pdf();
    let object = pdf.windows(7).position(|window| window == b"2 0 obj").unwrap();
    pdf[object + 1] = 0xFF;
    assert_ends_well(&pdf, "a.pdf");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_document_with_changed_bytes_ends_in_text_or_in_an_error(
        format in any::<prop::sample::Index>(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
    ) {
        let mut kinds = every_kind();
        let (mut bytes, name) = kinds.swap_remove(format.index(kinds.len()));
        for (at, byte) in flips {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        assert_ends_well(&bytes, name);
    }
}
