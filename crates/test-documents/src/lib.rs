//! Small documents of each kind, made by hand, so that tests know their exact content.

mod containers;

use std::io::{Cursor, Write};

use flate2::Compression;
use flate2::write::ZlibEncoder;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

pub use containers::{base64, book, fixed_properties, outlook, signed, utf16};

/// A ZIP archive of these parts.
pub fn archive(parts: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
    for (name, bytes) in parts {
        writer.start_file(*name, options).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// The container of old Office documents with streams of these names, at most three, and these bytes in none of them.
pub fn compound(streams: &[&str], other: &[u8]) -> Vec<u8> {
    const NONE: u32 = u32::MAX;
    const END: u32 = 0xFFFF_FFFE;
    let mut header = vec![0; 512];
    header[..8].copy_from_slice(b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1");
    header[30] = 9;
    header[48..52].copy_from_slice(&1_u32.to_le_bytes());
    header[68..72].copy_from_slice(&END.to_le_bytes());
    header[80..].fill(0xFF);
    let table = [0xFFFF_FFFD, END].into_iter().chain([NONE; 126]).flat_map(u32::to_le_bytes);
    let mut directory = Vec::new();
    for (number, name) in (1..).zip(["Root Entry"].iter().chain(streams)) {
        let mut entry: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
        entry.resize(128, 0);
        let next: u32 = if number <= streams.len() { u32::try_from(number).unwrap() } else { NONE };
        let [after, within] = if number == 1 { [NONE, next] } else { [next, NONE] };
        entry[68..80].copy_from_slice(&[NONE, after, within].map(u32::to_le_bytes).concat());
        directory.extend(entry);
    }
    directory.resize(512, 0xFF);
    header.into_iter().chain(table).chain(directory).chain(other.iter().copied()).collect()
}

/// The container of old Office documents with these streams. Those below 4,096 bytes are kept as Office
/// keeps them, in short sectors. A name with slashes is a path: the stream is in folders.
pub fn compound_of(streams: &[(&str, &[u8])]) -> Vec<u8> {
    const NONE: u32 = u32::MAX;
    const END: u32 = 0xFFFF_FFFE;
    const SHORT_BELOW: usize = 4_096;
    let as_number = |length: usize| u32::try_from(length).unwrap();
    // Which sector comes after which; a run of sectors for each content.
    let add = |content: &[u8], sector: usize, sectors: &mut Vec<u8>, table: &mut Vec<u32>| {
        let first = as_number(table.len());
        let number = content.len().div_ceil(sector);
        table.extend((1..number).map(|n| first + as_number(n)));
        table.extend((number > 0).then_some(END));
        sectors.extend_from_slice(content);
        sectors.resize(table.len() * sector, 0);
        if number > 0 { first } else { END }
    };
    let (mut sectors, mut table) = (Vec::new(), Vec::new());
    let (mut short, mut short_table) = (Vec::new(), Vec::new());
    let firsts: Vec<u32> = streams
        .iter()
        .map(|(_, content)| match content.len() {
            ..SHORT_BELOW => add(content, 64, &mut short, &mut short_table),
            _ => add(content, 512, &mut sectors, &mut table),
        })
        .collect();
    let first_short = add(&short, 512, &mut sectors, &mut table);
    let short_table: Vec<u8> = short_table.into_iter().flat_map(u32::to_le_bytes).collect();
    let first_of_table = add(&short_table, 512, &mut sectors, &mut table);
    // The folders of each path, and then the streams. The number of an entry is its place in this list.
    let mut entries: Vec<(String, u8, u32, usize)> = vec![(String::new(), 5, first_short, short.len())];
    for (path, _) in streams {
        for (at, _) in path.match_indices('/') {
            if entries.iter().all(|(known, ..)| *known != path[..at]) {
                entries.push((path[..at].to_owned(), 1, 0, 0));
            }
        }
    }
    for ((path, content), first) in streams.iter().zip(&firsts) {
        entries.push(((*path).to_owned(), 2, *first, content.len()));
    }
    let folder_of = |path: &str| path.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
    let mut directory = Vec::new();
    for (number, (path, kind, first, size)) in entries.iter().enumerate() {
        let name = if number == 0 { "Root Entry" } else { path.rsplit('/').next().unwrap_or_default() };
        let mut entry: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let length = u16::try_from(entry.len() + 2).unwrap();
        entry.resize(128, 0);
        entry[64..66].copy_from_slice(&length.to_le_bytes());
        entry[66] = *kind;
        let find = |from: usize, folder: &str| {
            let mut later = entries.iter().enumerate().skip(from.max(1));
            later.find(|(_, (other, ..))| folder_of(other) == folder).map_or(NONE, |(at, _)| as_number(at))
        };
        let after = if number == 0 { NONE } else { find(number + 1, &folder_of(path)) };
        let within = if *kind == 2 { NONE } else { find(1, path) };
        entry[68..80].copy_from_slice(&[NONE, after, within].map(u32::to_le_bytes).concat());
        entry[116..120].copy_from_slice(&first.to_le_bytes());
        entry[120..124].copy_from_slice(&as_number(*size).to_le_bytes());
        directory.extend(entry);
    }
    let first_of_directory = add(&directory, 512, &mut sectors, &mut table);
    let mut header = vec![0; 512];
    header[..8].copy_from_slice(b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1");
    // The version, the order of the bytes, and the sizes of both kinds of sectors.
    header[24..34].copy_from_slice(&[0x3E, 0, 3, 0, 0xFE, 0xFF, 9, 0, 6, 0]);
    header[68..72].copy_from_slice(&END.to_le_bytes());
    header[48..52].copy_from_slice(&first_of_directory.to_le_bytes());
    header[56..60].copy_from_slice(&as_number(SHORT_BELOW).to_le_bytes());
    header[60..64].copy_from_slice(&first_of_table.to_le_bytes());
    header[64..68].copy_from_slice(&as_number(short_table.len().div_ceil(512)).to_le_bytes());
    header[76..].fill(0xFF);
    // The table is at the end, and has entries for its own sectors too.
    let number = (1..=table.len() + 1).find(|number| (table.len() + number) * 4 <= number * 512).unwrap();
    header[44..48].copy_from_slice(&as_number(number).to_le_bytes());
    for at in 0..number {
        header[76 + 4 * at..][..4].copy_from_slice(&as_number(table.len()).to_le_bytes());
        table.push(0xFFFF_FFFD);
    }
    table.resize(number * 128, NONE);
    header.into_iter().chain(sectors).chain(table.into_iter().flat_map(u32::to_le_bytes)).collect()
}

const MAIN: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";

fn relationships(relations: &[(&str, &str, &str)]) -> String {
    let relations: String = relations
        .iter()
        .map(|(id, kind, target)| {
            format!("<Relationship Id=\"{id}\" Type=\"{MAIN}/{kind}\" Target=\"{target}\"/>")
        })
        .collect();
    format!("<?xml version=\"1.0\"?><Relationships>{relations}</Relationships>")
}

fn content_types(main_part: &str, kind: &str) -> String {
    format!(
        "<Types><Default Extension=\"xml\" ContentType=\"application/xml\"/><Override PartName=\"/{main_part}\" \
         ContentType=\"application/vnd.openxmlformats-officedocument.{kind}.main+xml\"/></Types>"
    )
}

/// A Word document with this inside its body, beside further parts.
pub fn docx_with(body: &str, parts: &[(&str, &[u8])], relations: &[(&str, &str, &str)]) -> Vec<u8> {
    let document = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><w:document xmlns:w=\"w\" xmlns:m=\"m\" xmlns:mc=\"mc\">\
         <w:body>{body}<w:sectPr/></w:body></w:document>"
    );
    let types = content_types("word/document.xml", "wordprocessingml.document");
    let top = relationships(&[("rId1", "officeDocument", "word/document.xml")]);
    let relations = relationships(relations);
    let mut all: Vec<(&str, &[u8])> = vec![
        ("[Content_Types].xml", types.as_bytes()),
        ("_rels/.rels", top.as_bytes()),
        ("word/document.xml", document.as_bytes()),
        ("word/_rels/document.xml.rels", relations.as_bytes()),
    ];
    all.extend(parts);
    archive(&all)
}

pub fn docx(body: &str) -> Vec<u8> {
    docx_with(body, &[], &[])
}

pub fn paragraph(text: &str) -> String {
    format!("<w:p><w:r><w:t xml:space=\"preserve\">{text}</w:t></w:r></w:p>")
}

/// A presentation of slides, each a title, a text and notes; listed from the last to the first part.
pub fn pptx(slides: &[(&str, &str, &str)]) -> Vec<u8> {
    pptx_with_prefix("r", slides)
}

/// One whose references to slides have this prefix. Each program chooses its own.
pub fn pptx_with_prefix(prefix: &str, slides: &[(&str, &str, &str)]) -> Vec<u8> {
    let types = content_types("ppt/presentation.xml", "presentationml.presentation");
    let top = relationships(&[("rId1", "officeDocument", "ppt/presentation.xml")]);
    // Neither the names of the parts nor their order in the archive say which slide comes first; the list does.
    let part = |number: usize| slides.len() - number;
    let list: String =
        (0..slides.len()).map(|n| format!("<p:sldId id=\"{}\" {prefix}:id=\"rId{n}\"/>", 256 + n)).collect();
    let presentation =
        format!("<p:presentation xmlns:{prefix}=\"{MAIN}\"><p:sldIdLst>{list}</p:sldIdLst></p:presentation>");
    let targets: Vec<(String, String)> =
        (0..slides.len()).map(|n| (format!("rId{n}"), format!("slides/slide{}.xml", part(n)))).collect();
    let targets: Vec<(&str, &str, &str)> =
        targets.iter().map(|(id, target)| (id.as_str(), "slide", target.as_str())).collect();
    let mut parts: Vec<(String, String)> = vec![
        ("[Content_Types].xml".to_owned(), types),
        ("_rels/.rels".to_owned(), top),
        ("ppt/presentation.xml".to_owned(), presentation),
        ("ppt/_rels/presentation.xml.rels".to_owned(), relationships(&targets)),
    ];
    let shape = |placeholder: &str, text: &str| {
        format!(
            "<p:sp><p:nvSpPr><p:nvPr><p:ph type=\"{placeholder}\"/></p:nvPr></p:nvSpPr>\
             <p:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:txBody></p:sp>"
        )
    };
    for (number, (title, text, notes)) in slides.iter().enumerate() {
        let part = part(number);
        let title = if title.is_empty() { String::new() } else { shape("title", title) };
        let slide =
            format!("<p:sld><p:cSld><p:spTree>{}{title}</p:spTree></p:cSld></p:sld>", shape("body", text));
        let notes = format!("<p:notes>{}{}</p:notes>", shape("sldNum", "77"), shape("body", notes));
        let target = format!("../notesSlides/notesSlide{part}.xml");
        parts.push((format!("ppt/slides/slide{part}.xml"), slide));
        parts.push((
            format!("ppt/slides/_rels/slide{part}.xml.rels"),
            relationships(&[("rId1", "notesSlide", &target)]),
        ));
        parts.push((format!("ppt/notesSlides/notesSlide{part}.xml"), notes));
    }
    let parts: Vec<(&str, &[u8])> =
        parts.iter().map(|(name, text)| (name.as_str(), text.as_bytes())).collect();
    archive(&parts)
}

/// A presentation that lists this many slides, none of which exists, and is damaged after the last.
pub fn pptx_of_missing_slides(number: usize) -> Vec<u8> {
    let list: String = (0..number).map(|n| format!("<p:sldId id=\"{n}\" r:id=\"s{n}\"/>")).collect();
    let targets: Vec<(String, String)> =
        (0..number).map(|n| (format!("s{n}"), format!("slides/slide{n}.xml"))).collect();
    let targets: Vec<(&str, &str, &str)> =
        targets.iter().map(|(id, target)| (id.as_str(), "slide", target.as_str())).collect();
    archive(&[
        (
            "[Content_Types].xml",
            content_types("ppt/presentation.xml", "presentationml.presentation").as_bytes(),
        ),
        ("_rels/.rels", relationships(&[("rId1", "officeDocument", "ppt/presentation.xml")]).as_bytes()),
        ("ppt/presentation.xml", format!("<p:presentation>{list}</p:broken>").as_bytes()),
        ("ppt/_rels/presentation.xml.rels", relationships(&targets).as_bytes()),
    ])
}

/// A workbook of sheets by name, each with this inside its root.
pub fn xlsx(sheets: &[(&str, &str)], shared_strings: &str) -> Vec<u8> {
    let types = content_types("xl/workbook.xml", "spreadsheetml.sheet");
    let top = relationships(&[("rId1", "officeDocument", "xl/workbook.xml")]);
    let list: String = sheets
        .iter()
        .enumerate()
        .map(|(n, (name, _))| format!("<sheet name=\"{name}\" sheetId=\"{}\" r:id=\"rId{n}\"/>", n + 1))
        .collect();
    let workbook = format!("<workbook xmlns:r=\"{MAIN}\"><sheets>{list}</sheets></workbook>");
    let targets: Vec<(String, String)> =
        (0..sheets.len()).map(|n| (format!("rId{n}"), format!("worksheets/sheet{n}.xml"))).collect();
    let mut targets: Vec<(&str, &str, &str)> =
        targets.iter().map(|(id, target)| (id.as_str(), "worksheet", target.as_str())).collect();
    targets.push(("strings", "sharedStrings", "sharedStrings.xml"));
    targets.push(("styles", "styles", "styles.xml"));
    // The second format of the cells is a date.
    let styles = "<styleSheet><cellXfs><xf numFmtId=\"0\"/><xf numFmtId=\"14\"/></cellXfs></styleSheet>";
    let mut parts: Vec<(String, String)> = vec![
        ("[Content_Types].xml".to_owned(), types),
        ("_rels/.rels".to_owned(), top),
        ("xl/workbook.xml".to_owned(), workbook),
        ("xl/_rels/workbook.xml.rels".to_owned(), relationships(&targets)),
        ("xl/styles.xml".to_owned(), styles.to_owned()),
        ("xl/sharedStrings.xml".to_owned(), format!("<sst>{shared_strings}</sst>")),
    ];
    for (number, (_, inside)) in sheets.iter().enumerate() {
        parts.push((format!("xl/worksheets/sheet{number}.xml"), format!("<worksheet>{inside}</worksheet>")));
    }
    let parts: Vec<(&str, &[u8])> =
        parts.iter().map(|(name, text)| (name.as_str(), text.as_bytes())).collect();
    archive(&parts)
}

/// An OpenDocument file; `kind` is `text`, `spreadsheet` or `presentation`.
pub fn open_document(kind: &str, inside: &str) -> Vec<u8> {
    let mime_type = format!("application/vnd.oasis.opendocument.{kind}");
    let content = format!(
        "<?xml version=\"1.0\"?><office:document-content><office:body><office:{kind}>{inside}</office:{kind}>\
         </office:body></office:document-content>"
    );
    archive(&[
        ("mimetype", mime_type.as_bytes()),
        ("META-INF/manifest.xml", b"<manifest:manifest/>"),
        ("content.xml", content.as_bytes()),
    ])
}

/// A PDF whose objects are these, numbered from 1; the first is the catalog.
pub fn pdf_of_objects(objects: &[Vec<u8>]) -> Vec<u8> {
    let mut file = b"%PDF-1.7\n".to_vec();
    let mut offsets = Vec::new();
    for (number, object) in (1..).zip(objects) {
        offsets.push(file.len());
        file.extend_from_slice(format!("{number} 0 obj\n").as_bytes());
        file.extend_from_slice(object);
        file.extend_from_slice(b"\nendobj\n");
    }
    let table = file.len();
    file.extend_from_slice(format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1).as_bytes());
    for offset in offsets {
        file.extend_from_slice(format!("{offset:010} 00000 n \n").as_bytes());
    }
    file.extend_from_slice(
        format!("trailer\n<< /Size {} /Root 1 0 R >>\nstartxref\n{table}\n%%EOF\n", objects.len() + 1)
            .as_bytes(),
    );
    file
}

/// The object of a stream.
pub fn stream(dictionary: &str, data: &[u8]) -> Vec<u8> {
    let mut object = format!("<< {dictionary} /Length {} >>\nstream\n", data.len()).into_bytes();
    object.extend_from_slice(data);
    object.extend_from_slice(b"\nendstream");
    object
}

/// A PDF of pages, each with these operators as its content.
pub fn pdf_of_contents(contents: &[Vec<u8>], catalog: &str, further: &[Vec<u8>]) -> Vec<u8> {
    // Catalog, tree, font, then each page and its content, then the further objects.
    let kids: String = (0..contents.len()).map(|n| format!("{} 0 R ", 4 + 2 * n)).collect();
    let mut objects = vec![
        format!("<< /Type /Catalog /Pages 2 0 R {catalog} >>").into_bytes(),
        format!("<< /Type /Pages /Count {} /Kids [{kids}] >>", contents.len()).into_bytes(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_vec(),
    ];
    for (number, content) in contents.iter().enumerate() {
        objects.push(
            format!(
                "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents {} 0 R \
                 /Resources << /Font << /F1 3 0 R >> /XObject << /Im0 {} 0 R >> >> >>",
                5 + 2 * number,
                4 + 2 * contents.len()
            )
            .into_bytes(),
        );
        objects.push(content.clone());
    }
    objects.extend_from_slice(further);
    pdf_of_objects(&objects)
}

/// Operators that write these lines from the top of the page.
pub fn lines(lines: &[&str]) -> Vec<u8> {
    let mut operators = "BT /F1 12 Tf 14 TL 72 770 Td".to_owned();
    for line in lines {
        operators.push_str(&format!(" ({line}) Tj T*"));
    }
    stream("", format!("{operators} ET").as_bytes())
}

/// A PDF of pages of lines.
pub fn pdf(pages: &[&[&str]]) -> Vec<u8> {
    let contents: Vec<Vec<u8>> = pages.iter().map(|page| lines(page)).collect();
    pdf_of_contents(&contents, "", &[])
}

/// This many megabytes of blanks, packed as in a stream of a PDF.
pub fn packed_blanks(megabytes: usize) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    let blanks = vec![b' '; 1 << 20];
    for _ in 0..megabytes {
        encoder.write_all(&blanks).unwrap();
    }
    encoder.finish().unwrap()
}

/// A black and white bitmap with this word in it, in capital letters out of D, E, I, S and T.
pub fn picture_of(word: &str) -> Vec<u8> {
    const SCALE: usize = 12;
    const MARGIN: usize = 60;
    let rows = |letter: char| -> [u8; 7] {
        match letter {
            'D' => [0b11110, 0b10001, 0b10001, 0b10001, 0b10001, 0b10001, 0b11110],
            'E' => [0b11111, 0b10000, 0b10000, 0b11110, 0b10000, 0b10000, 0b11111],
            'I' => [0b01110, 0b00100, 0b00100, 0b00100, 0b00100, 0b00100, 0b01110],
            'S' => [0b01111, 0b10000, 0b10000, 0b01110, 0b00001, 0b00001, 0b11110],
            'T' => [0b11111, 0b00100, 0b00100, 0b00100, 0b00100, 0b00100, 0b00100],
            other => panic!("{other} is not drawn"),
        }
    };
    let letters: Vec<[u8; 7]> = word.chars().map(rows).collect();
    // Widths that are a multiple of four need no padding.
    let width = (2 * MARGIN + letters.len() * 6 * SCALE).next_multiple_of(4);
    let height = 2 * MARGIN + 7 * SCALE;
    let is_black = |x: usize, y: usize| {
        let (Some(x), Some(y)) = (x.checked_sub(MARGIN), y.checked_sub(MARGIN)) else { return false };
        let (column, row) = (x / SCALE, y / SCALE);
        row < 7
            && column % 6 < 5
            && letters.get(column / 6).is_some_and(|rows| rows[row] >> (4 - column % 6) & 1 == 1)
    };
    let number = |value: usize| u32::try_from(value).unwrap().to_le_bytes();
    let mut file = b"BM".to_vec();
    for field in [54 + width * height * 3, 0, 54, 40, width, height] {
        file.extend(number(field));
    }
    // One plane of 24 bits, not packed; the rest may be zero.
    file.extend([1, 0, 24, 0]);
    file.extend([0; 24]);
    for y in (0..height).rev() {
        for x in 0..width {
            file.extend([if is_black(x, y) { 0 } else { 255 }; 3]);
        }
    }
    file
}
