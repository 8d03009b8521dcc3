//! Documents that hold others: mails, mailboxes, books, archives, signed files.

use std::ops::ControlFlow;

use landfall_documents::{Document, Error, ErrorKind, Extracted, Limits, Reading, Recognised};
use landfall_test_documents as made;
use landfall_test_documents::{base64, book, fixed_properties, outlook, signed, utf16};

fn reading(bytes: &[u8], name: &str) -> Result<Reading, Error> {
    let document = Document { bytes, name, content_type: None };
    landfall_documents::read(document, &Limits::default(), &|| ControlFlow::Continue(()))
}

fn read(bytes: &[u8], name: &str) -> Result<Extracted, Error> {
    reading(bytes, name)?.finish(Recognised::NotInstalled)
}

fn text(bytes: &[u8], name: &str) -> String {
    read(bytes, name).expect(name).text
}

// --- Mails ---

/// A mail with these parts, each with its headers.
fn mail(parts: &[&str]) -> String {
    let parts: String = parts.iter().map(|part| format!("--x\r\n{part}\r\n")).collect();
    format!(
        "From: a@b.c\r\nSubject: Tides\r\nMessage-ID: <1@b.c>\r\nContent-Type: multipart/mixed; boundary=x\r\n\r\n\
         {parts}--x--\r\n"
    )
}

const IN_BASE64: &str = "\r\nContent-Transfer-Encoding: base64\r\n\r\n";

fn attached(name: &str, kind: &str, content: &str) -> String {
    format!(
        "Content-Type: {kind}; name=\"{name}\"\r\nContent-Disposition: attachment; filename=\"{name}\"\r\n\r\n{content}"
    )
}

#[test]
fn attachments_are_read_in_their_place_under_their_names() {
    let inner = "From: d@e.f\r\nSubject: Inner\r\nMessage-ID: <2@b.c>\r\n\r\nInside.";
    let message = mail(&[
        "Content-Type: text/plain\r\n\r\nSee below.",
        &attached("list.md", "text/markdown", "## Spring\r\n\r\n- high\r\n"),
        &attached("page.html", "text/html", "<h2>Neap</h2><p>low</p>"),
        &attached("in.eml", "message/rfc822", inner),
        &attached("data.bin", "application/octet-stream", "AAECAwQFBgc=").replace("\r\n\r\n", IN_BASE64),
    ]);
    let extracted = read(message.as_bytes(), "a.eml").unwrap();
    assert_eq!(
        extracted.text,
        "Subject: Tides\nFrom: a@b.c\n\nSee below.\n\n# list.md\n\n## Spring\n\n- high\n\n\
         # page.html\n\n## Neap\n\nlow\n\n# Inner\n\nSubject: Inner\nFrom: d@e.f\n\nInside.\n\nAttachment: data.bin"
    );
    let headings: Vec<_> = extracted.places.iter().filter_map(|place| place.heading.as_deref()).collect();
    assert_eq!(headings, ["Tides", "list.md", "Spring", "page.html", "Neap", "Inner", "Inner"]);
    for place in extracted.places.iter().filter(|place| place.level.is_some()) {
        assert!(extracted.text[place.start..].starts_with('#'), "{place:?}");
    }
    assert!(extracted.warnings[0].message.starts_with("1 attachment in this file was not read: data.bin"));
}

#[test]
fn mails_of_careless_programs_are_read() {
    // Bytes that are no text, another character set than is declared, and attachments of before MIME.
    let with_zeros =
        mail(&["Content-Type: text/plain\r\n\r\nHigh water"]).replace("--x--\r\n", "--x--\r\n\0\0");
    assert!(text(with_zeros.as_bytes(), "a.eml").ends_with("High water"));

    let declared =
        mail(&["Content-Type: text/plain; charset=utf-8\r\n\r\nCaf? am H?gel, sch?ne Gr??e aus K?ln"]);
    let mut bytes = declared.into_bytes();
    let mut letters = [0xE9, 0xFC, 0xF6, 0xFC, 0xDF, 0xF6].into_iter();
    for byte in bytes.iter_mut().filter(|byte| **byte == b'?') {
        *byte = letters.next().unwrap();
    }
    let extracted = read(&bytes, "a.eml").unwrap();
    assert!(extracted.text.ends_with("Café am Hügel, schöne Grüße aus Köln"), "{}", extracted.text);
    assert_eq!(extracted.warnings, []);

    let old = mail(&[&attached(
        "tides.txt",
        "application/octet-stream",
        "begin 644 tides.txt\r\n#2&EG\r\n`\r\nend",
    )]);
    assert!(text(old.as_bytes(), "a.eml").ends_with("# tides.txt\n\nHig"));
}

#[test]
fn a_scan_that_is_attached_has_no_page_of_the_mail() {
    let scan = made::stream(
        "/Type /XObject /Subtype /Image /Width 200 /Height 100 /ColorSpace /DeviceGray /BitsPerComponent 8",
        &vec![200; 200 * 100],
    );
    let shown = made::stream("", b"q 500 0 0 250 20 20 cm /Im0 Do Q");
    let pdf = base64(&made::pdf_of_contents(&[made::lines(&["First page"]), shown], "", &[scan]));
    let message = mail(&[&attached("scan.pdf", "application/pdf", &pdf).replacen("\r\n\r\n", IN_BASE64, 1)]);
    let reading = reading(message.as_bytes(), "a.eml").unwrap();
    assert_eq!(reading.pictures.len(), 1);
    assert_eq!(reading.pictures[0].page, None);
}

#[test]
fn a_picture_is_where_the_body_shows_it() {
    let message = "From: a@b.c\r\nMessage-ID: <1@b>\r\nContent-Type: multipart/related; boundary=x\r\n\r\n--x\r\n\
        Content-Type: text/html\r\n\r\n<p>before</p><img src='cid:p1'><p>after</p>\r\n--x\r\nContent-Type: image/png\r\n\
        Content-ID: <p1>\r\nContent-Transfer-Encoding: base64\r\n\r\niVBORw0KGgo=\r\n--x--\r\n";
    let reading = reading(message.as_bytes(), "a.eml").unwrap();
    assert_eq!(reading.pictures.len(), 1);
    let whole = reading.finish(Recognised::Words(vec![Some("in the picture".to_owned())])).unwrap();
    assert!(whole.text.ends_with("before\n\nin the picture\n\nafter"), "{}", whole.text);
    assert_eq!(whole.warnings, []);
}

#[test]
fn a_saved_web_page_is_a_page_and_no_mail() {
    let page = "From: <Saved by Blink>\r\nSnapshot-Content-Location: http://a.b/\r\nSubject: Tides\r\nMIME-Version: 1.0\r\n\
        Content-Type: multipart/related; type=\"text/html\"; boundary=x\r\n\r\n--x\r\nContent-Type: text/html\r\n\
        Content-Location: http://a.b/\r\n\r\n<h1>Tides</h1><ul><li>high</ul>\r\n--x--\r\n";
    assert_eq!(text(page.as_bytes(), "a.mhtml"), "# Tides\n\n- high");
}

#[test]
fn an_encrypted_mail_is_refused_and_says_what_to_do() {
    let pgp = mail(&[]).replace("multipart/mixed", "multipart/encrypted");
    let enveloped = "From: a@b.c\r\nMessage-ID: <1@b>\r\nContent-Type: application/pkcs7-mime; name=smime.p7m\r\n\
        Content-Transfer-Encoding: base64\r\n\r\nMA8GCSqGSIb3DQEHA6ACMAA=\r\n";
    for message in [&pgp, enveloped] {
        let failure = read(message.as_bytes(), "a.eml").unwrap_err();
        assert_eq!(failure.kind(), ErrorKind::Invalid, "{failure}");
        assert!(failure.message().contains("encrypted"), "{failure}");
    }
}

#[test]
fn what_is_signed_is_read() {
    let docx = made::docx(&made::paragraph("Signed words"));
    assert_eq!(text(&signed(&docx), "contract.docx.p7m"), "Signed words");
    let entity = b"Content-Type: text/html\r\n\r\n<h1>Tides</h1>";
    let in_base64 = base64(&signed(entity));
    let message = format!(
        "From: a@b.c\r\nSubject: s\r\nMessage-ID: <1@b>\r\nContent-Type: application/pkcs7-mime; smime-type=signed-data; \
         name=smime.p7m\r\nContent-Transfer-Encoding: base64\r\n\r\n{in_base64}\r\n"
    );
    assert_eq!(text(message.as_bytes(), "a.eml"), "Subject: s\nFrom: a@b.c\n\n# Tides");
}

#[test]
fn mails_in_mails_are_read_to_a_depth() {
    let mut message = "Message-ID: <1@b>\r\nSubject: innermost\r\n\r\nend".to_owned();
    for depth in 0..6 {
        let part = attached(&format!("{depth}.eml"), "message/rfc822", &message);
        message = format!(
            "Message-ID: <1@b>\r\nSubject: level {depth}\r\nContent-Type: multipart/mixed; boundary=b{depth}\r\n\r\n\
             --b{depth}\r\n{part}\r\n--b{depth}--\r\n"
        );
    }
    let extracted = read(message.as_bytes(), "a.eml").unwrap();
    assert!(extracted.text.contains("# level 2"), "{}", extracted.text);
    assert!(!extracted.text.contains("innermost"), "{}", extracted.text);
    assert!(extracted.warnings.iter().any(|warning| warning.message.contains("was not read")));
}

// --- Outlook ---

const HEADERS: &str = "Subject: The tides\nFrom: Ann <a@b.c>\nTo: Bob; Cat\nDate: 2026-03-02T02:30:00Z";

#[test]
fn each_body_of_an_outlook_message_is_read() {
    let page = b"<h1>H\xF6he</h1><ul><li>one</ul>";
    let rtf = [
        &[0; 8][..],
        b"MELA\0\0\0\0",
        br"{\rtf1\ansi\fromhtml1 {\*\htmltag64 <h1>}H\'f6he{\*\htmltag64 </h1>}}",
    ]
    .concat();
    let plain_rtf = [&[0; 8][..], b"MELA\0\0\0\0", br"{\rtf1\ansi H\'f6he\par}"].concat();
    for (name, content, expected) in [
        ("__substg1.0_10130102", page.to_vec(), "# Höhe\n\n- one"),
        ("__substg1.0_1000001F", utf16("Plain\r\nwords\r\n"), "Plain\nwords"),
        ("__substg1.0_1000001E", b"H\xF6he".to_vec(), "Höhe"),
        ("__substg1.0_10090102", rtf, "# Höhe"),
        ("__substg1.0_10090102", plain_rtf, "Höhe"),
    ] {
        assert_eq!(
            text(&outlook((name, &content), &[]), "a.msg"),
            format!("{HEADERS}\n\n{expected}"),
            "{name}"
        );
    }
}

#[test]
fn attachments_of_outlook_messages_are_read() {
    let at = |number: usize, stream: &str| format!("__attach_version1.0_#0000000{number}/{stream}");
    let person = |number: usize, stream: &str| format!("__recip_version1.0_#0000000{number}/{stream}");
    let others = [
        (at(0, "__substg1.0_3707001F"), utf16("list.md")),
        (at(0, "__substg1.0_37010102"), b"## Spring\n\n- high\n".to_vec()),
        (at(1, "__substg1.0_3001001F"), utf16("Inner")),
        (at(1, "__substg1.0_3701000D/__properties_version1.0"), fixed_properties(24, &[])),
        (at(1, "__substg1.0_3701000D/__substg1.0_0037001F"), utf16("Inner")),
        (at(1, "__substg1.0_3701000D/__substg1.0_1000001F"), utf16("Inside")),
        (at(2, "__substg1.0_3707001F"), utf16("x.bin")),
        (at(2, "__substg1.0_37010102"), vec![0, 1, 2]),
        (person(0, "__substg1.0_3001001F"), utf16("Bob")),
        (person(0, "__substg1.0_39FE001F"), utf16("bob@b.c")),
        (person(1, "__substg1.0_3001001F"), utf16("Cat")),
        (person(1, "__properties_version1.0"), fixed_properties(8, &[(0x0C15, 2)])),
    ];
    let others: Vec<(&str, Vec<u8>)> =
        others.iter().map(|(name, content)| (name.as_str(), content.clone())).collect();
    let message = outlook(("__substg1.0_1000001F", &utf16("Words")), &others);
    let extracted = read(&message, "a.msg").unwrap();
    assert_eq!(
        extracted.text,
        "Subject: The tides\nFrom: Ann <a@b.c>\nTo: Bob <bob@b.c>\nCc: Cat\nDate: 2026-03-02T02:30:00Z\n\nWords\n\n\
         # list.md\n\n## Spring\n\n- high\n\n# Inner\n\nSubject: Inner\n\nInside\n\nAttachment: x.bin"
    );
    assert_eq!(extracted.warnings.len(), 1);
    assert!(extracted.warnings[0].message.contains("1 attachment in this file was not read: x.bin"));
    for part in 0..40 {
        drop(read(&message[..message.len() * part / 40], "a.msg"));
    }
}

#[test]
fn a_message_that_contains_itself_ends() {
    let inner = "__attach_version1.0_#00000000/__substg1.0_3701000D/__properties_version1.0";
    let mut message =
        outlook(("__substg1.0_1000001F", &utf16("Words")), &[(inner, fixed_properties(24, &[]))]);
    // The folder of the inner message begins where the outer one does.
    let name = utf16("__substg1.0_3701000D");
    let folder = message.windows(name.len()).position(|window| window == name).unwrap();
    let root = message.windows(20).position(|window| window == utf16("Root Entry")).unwrap();
    let first: [u8; 4] = message[root + 76..root + 80].try_into().unwrap();
    message[folder + 76..folder + 80].copy_from_slice(&first);
    let extracted = read(&message, "a.msg").unwrap();
    assert!(extracted.text.matches("Words").count() <= 4, "{}", extracted.text);
}

// --- Books ---

#[test]
fn a_book_is_read_in_the_order_of_its_spine_with_its_titles() {
    let contents = "<ncx><navMap><navPoint><navLabel><text>The second</text></navLabel><content src='b.xhtml#x'/></navPoint>\
        <navPoint><navLabel><text>Not used</text></navLabel><content src='a.xhtml'/></navPoint></navMap></ncx>";
    let chapters = [
        (
            "a.xhtml",
            "<html><head><title>no</title></head><body><h2>First</h2><p>one<br/>two</p></body></html>",
        ),
        ("b.xhtml", "<html><head><title/></head><body><p>words</p><img src='../i/p.png'/></body></html>"),
    ];
    let bytes = book(&chapters, &[("O/toc.ncx", contents), ("i/p.png", "picture")]);
    let reading = reading(&bytes, "a.epub").unwrap();
    assert_eq!(reading.pictures[0].bytes, b"picture");
    assert_eq!(reading.extracted.text, "# The second\n\nwords\n\n## First\n\none\ntwo");
}

#[test]
fn a_book_begins_with_its_title_and_its_authors_unless_it_shows_them() {
    let package = "<package xmlns:dc='d'><metadata><dc:title>Tides &amp; Harbours</dc:title><dc:title>Tides</dc:title>\
        <dc:creator>Ada Wright</dc:creator><dc:creator>Ben\n Okafor</dc:creator></metadata>\
        <manifest><item id='a' href='a.xhtml'/></manifest><spine><itemref idref='a'/></spine></package>";
    let with = |page: &str| {
        let parts: [(&str, &[u8]); 4] = [
            ("mimetype", b"application/epub+zip"),
            ("META-INF/container.xml", b"<c><rootfile full-path='p.opf'/></c>"),
            ("p.opf", package.as_bytes()),
            ("a.xhtml", page.as_bytes()),
        ];
        text(&made::archive(&parts), "a.epub")
    };
    assert_eq!(
        with("<h1>First</h1><p>High water.</p>"),
        "# Tides & Harbours\n\nAda Wright, Ben Okafor\n\n# First\n\nHigh water."
    );
    assert_eq!(
        with("<h1>TIDES &amp; HARBOURS</h1><p>by Ben Okafor</p>"),
        "Ada Wright\n\n# TIDES & HARBOURS\n\nby Ben Okafor"
    );
}

#[test]
fn a_protected_book_is_refused_and_a_chapter_that_is_missing_is_named() {
    let chapters = [("a.xhtml", "<p>one</p>"), ("b.xhtml", "<p>two</p>")];
    let fonts = "<encryption><CipherReference URI=\"O/font.otf\"/></encryption>";
    assert_eq!(text(&book(&chapters, &[("META-INF/encryption.xml", fonts)]), "a.epub"), "two\n\none");
    let all = fonts.replace("font.otf", "a.xhtml");
    let failure = read(&book(&chapters, &[("META-INF/encryption.xml", &all)]), "a.epub").unwrap_err();
    assert!(failure.message().contains("DRM"), "{failure}");
    let mut lost = book(&chapters, &[]);
    for at in 0..lost.len() - 9 {
        if lost[at..].starts_with(b"O/b.xhtml") {
            lost[at] = b'X';
        }
    }
    let extracted = read(&lost, "a.epub").unwrap();
    assert!(extracted.warnings[0].message.contains("1 chapter in this file was not read: O/b.xhtml"));
}

#[test]
fn a_book_that_unpacks_to_too_much_is_refused() {
    let bomb = " ".repeat(64 << 20);
    let failure = read(&book(&[("a.xhtml", &bomb)], &[]), "a.epub").unwrap_err();
    assert_eq!(failure.kind(), ErrorKind::Invalid, "{failure}");
}

// --- Archives and previews ---

#[test]
fn the_files_of_an_archive_are_under_their_paths() {
    let docx = made::docx(&made::paragraph("In Word"));
    let inner = made::archive(&[("deep.md", b"# Deep")]);
    let bytes = made::archive(&[
        ("notes/a.txt", b"In text"),
        ("b.docx", &docx),
        ("c.zip", &inner),
        ("d.bin", &[0, 1, 2]),
    ]);
    let extracted = read(&bytes, "a.zip").unwrap();
    assert_eq!(
        extracted.text,
        "# notes/a.txt\n\nIn text\n\n# b.docx\n\nIn Word\n\n# c.zip/deep.md\n\n# Deep"
    );
    assert!(extracted.warnings[0].message.starts_with("1 file in this file was not read: d.bin"));
}

#[test]
fn an_archive_that_unpacks_to_too_much_is_refused() {
    let bomb = vec![b' '; 64 << 20];
    let failure = read(&made::archive(&[("a.txt", &bomb)]), "a.zip").unwrap_err();
    assert_eq!(failure.kind(), ErrorKind::TooLarge, "{failure}");
}

#[test]
fn a_document_of_pages_is_read_by_its_preview_with_a_warning() {
    let pdf = made::pdf(&[&["Preview words"]]);
    let pages = made::archive(&[("Index/Document.iwa", b"x"), ("QuickLook/Preview.pdf", &pdf)]);
    let extracted = read(&pages, "a.pages").unwrap();
    assert_eq!(extracted.text, "Preview words");
    assert!(extracted.warnings[0].message.contains("only its preview"));
    let picture = made::archive(&[("Index/Document.iwa", b"x"), ("preview.jpg", b"\xFF\xD8\xFF")]);
    assert_eq!(reading(&picture, "a.key").unwrap().pictures.len(), 1);
    let failure = read(&made::archive(&[("Index/Document.iwa", b"x")]), "a.numbers").unwrap_err();
    assert!(failure.message().contains("Export it as PDF"), "{failure}");
}

// --- What is not read ---

#[test]
fn files_without_a_reader_are_named_with_what_would_help() {
    for (bytes, words) in [
        (
            &b"\0\0\0\x18ftypheic\0\0\0\0"[..],
            "a picture of a phone (HEIC), which is not supported. Save the picture as JPEG",
        ),
        (b"\0\0\0\x1Cftypavif\0\0\0\0", "a picture (AVIF)"),
        (b"\xFF\x0A\0\0\0", "a picture (JPEG XL)"),
        (b"ID3\x04\0\0\0", "an audio file (MP3), which is not supported. Upload a transcript"),
        (b"RIFF\0\0\0\0WAVEfmt ", "an audio file (WAV)"),
        (b"\0\0\0\x20ftypisom\0\0", "a video (MP4)"),
        (b"Rar!\x1A\x07\0", "a RAR archive, which is not supported. Unpack it"),
        (b"SQLite format 3\0", "a database (SQLite)"),
        (b"wOF2\0\x01\0\0", "a font (WOFF2)"),
    ] {
        let failure = read(bytes, "a.bin").unwrap_err();
        assert_eq!(failure.kind(), ErrorKind::UnsupportedType);
        assert!(failure.message().contains(words), "{failure}");
    }
    let ebcdic = [0xC8, 0x85, 0x93, 0x93, 0x96, 0x40, 0xE6, 0x96, 0x99, 0x93, 0x84, 0x4B].repeat(20);
    let failure = read(&ebcdic, "a.txt").unwrap_err();
    assert!(failure.message().contains("EBCDIC"), "{failure}");
}

#[test]
fn texts_are_read_by_their_extension() {
    for (name, source, expected) in [
        ("a.rs", "fn a() {}\n", "```rust\nfn a() {}\n```"),
        ("a.srt", "1\n00:00:01,000 --> 00:00:02,000\nHello\n", "Hello"),
        ("a.tex", "\\section{One} two", "# One\n\ntwo"),
        ("a.ipynb", "{\"cells\":[{\"cell_type\":\"markdown\",\"source\":\"# One\"}]}", "# One"),
        ("a.org", "* One\n", "# One\n"),
        ("a.md", "---\na: b\n---\nOne\n===\n", "One\n===\n"),
    ] {
        assert_eq!(text(source.as_bytes(), name), expected, "{name}");
    }
}
