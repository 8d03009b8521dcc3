//! Fonts that say which letters their glyphs are by names, or by an encoding of their own.

use std::ops::ControlFlow;

use landfall_documents::{Document, Limits, Recognised};
use landfall_test_documents as made;

/// The text of a page that shows these codes with this font. Further objects begin with number 6.
fn text(font: &str, further: &[Vec<u8>], content: &str) -> String {
    let mut objects = vec![
        b"<< /Type /Catalog /Pages 2 0 R >>".to_vec(),
        b"<< /Type /Pages /Count 1 /Kids [4 0 R] >>".to_vec(),
        font.as_bytes().to_vec(),
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 5 0 R /Resources << \
          /Font << /F1 3 0 R /F2 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>"
            .to_vec(),
        made::stream("", content.as_bytes()),
    ];
    objects.extend_from_slice(further);
    let pdf = made::pdf_of_objects(&objects);
    let document = Document { bytes: &pdf, name: "a.pdf", content_type: None };
    let reading = landfall_documents::read(document, &Limits::default(), &|| ControlFlow::Continue(()));
    reading.unwrap().finish(Recognised::NotInstalled).unwrap().text
}

#[test]
fn a_ligature_is_read_as_all_its_letters() {
    let font = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding << /Type /Encoding \
                /Differences [128 /T_h /f_f /f_f_i.alt] >> >>";
    let content = "BT /F1 12 Tf 72 700 Td (\\200e di\\201erent o\\202ces close at low tide.) Tj ET";
    assert_eq!(text(font, &[], content).trim(), "The different offices close at low tide.");
}

/// A font in the compact format with three glyphs, as the fonts of mathematical signs of TeX have them: the backslash and the
/// braces are at the codes of `n`, `f` and `g`.
fn compact_font() -> Vec<u8> {
    let (encoding, charset, glyphs) = (40_u8, 45_u8, 52_u8);
    let entry = |offset: u8, operator: u8| [29, 0, 0, 0, offset, operator];
    [
        &[1, 0, 4, 1][..],
        &[0, 1, 1, 1, 5],
        b"SIGN",
        &[0, 1, 1, 1, 19],
        &entry(charset, 15),
        &entry(encoding, 16),
        &entry(glyphs, 17),
        // No names and no subroutines of its own.
        &[0, 0, 0, 0],
        &[0, 3, b'f', b'g', b'n'],
        // The standard names `braceleft`, `braceright` and `backslash`.
        &[0, 0, 92, 0, 94, 0, 61],
        &[0, 4, 1, 1, 2, 3, 4, 5, 14, 14, 14, 14],
    ]
    .concat()
}

#[test]
fn the_encoding_that_is_built_into_a_compact_font_is_used() {
    let font = "<< /Type /Font /Subtype /Type1 /BaseFont /ABCDEF+SIGN /FirstChar 102 /LastChar 110 \
                /Widths [500 500 500 500 500 500 500 500 500] /FontDescriptor 6 0 R >>";
    let further = [
        b"<< /Type /FontDescriptor /FontName /ABCDEF+SIGN /Flags 4 /FontFile3 7 0 R >>".to_vec(),
        made::stream("/Subtype /Type1C", &compact_font()),
    ];
    let content = "BT 72 700 Td /F1 12 Tf (n) Tj /F2 12 Tf (begin) Tj /F1 12 Tf (f) Tj \
                   /F2 12 Tf (tide) Tj /F1 12 Tf (g) Tj ET";
    assert_eq!(text(font, &further, content).trim(), "\\begin{tide}");
}

/// Whatever its name says: the font Symbol has Greek letters at these codes.
#[test]
fn the_encoding_that_is_built_into_a_font_named_after_symbols_is_used() {
    let font = "<< /Type /Font /Subtype /Type1 /BaseFont /ABCDEF+Harbour-Math-Symbols /FirstChar 104 /LastChar 105 \
                /Widths [500 500] /FontDescriptor 6 0 R >>";
    let program = b"%!PS-AdobeFont-1.0: Harbour-Math-Symbols\n/FontName /Harbour-Math-Symbols def\n\
        /Encoding 256 array\n0 1 255 {1 index exch /.notdef put} for\ndup 104 /bracketleft put\ndup 105 /bracketright put\n\
        readonly def\ncurrentfile eexec\n";
    let further = [
        b"<< /Type /FontDescriptor /FontName /ABCDEF+Harbour-Math-Symbols /Flags 4 /FontFile 7 0 R >>"
            .to_vec(),
        made::stream(&format!("/Length1 {} /Length2 0 /Length3 0", program.len()), program),
    ];
    let content = "BT 72 700 Td /F1 12 Tf (h) Tj /F2 12 Tf (tide) Tj /F1 12 Tf (i) Tj ET";
    assert_eq!(text(font, &further, content).trim(), "[tide]");
}

#[test]
fn the_ligatures_of_a_drawn_font_of_tex_are_read() {
    let glyph = made::stream("", b"500 0 0 0 500 700 d1 0 0 500 700 re f");
    let names = ["a11", "a12", "a101", "a99", "a116", "a110", "a100"];
    let drawn: String = names.iter().map(|name| format!("/{name} 6 0 R ")).collect();
    let widths = "500 ".repeat(106);
    let font = format!(
        "<< /Type /Font /Subtype /Type3 /FontBBox [0 0 500 700] /FontMatrix [0.001 0 0 0.001 0 0] /FirstChar 11 \
         /LastChar 116 /Widths [{widths}] /CharProcs << {drawn} >> /Encoding << /Type /Encoding \
         /Differences [11 /a11 /a12 99 /a99 /a100 /a101 110 /a110 116 /a116] >> >>"
    );
    let content = "BT 72 700 Td /F1 12 Tf (e\\013ect) Tj ( ) Tj 60 0 Td (\\014nd) Tj ET";
    assert_eq!(text(&font, &[glyph], content).trim(), "effect find");
}

#[test]
fn the_codes_without_a_letter_in_the_encoding_of_windows_are_bullets() {
    let font = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>";
    let content = "BT /F1 12 Tf 72 700 Td (\\177 At the mouth) Tj 0 -20 Td (\\201 At the quay) Tj ET";
    assert_eq!(text(font, &[], content).trim(), "- At the mouth\n- At the quay");
}

#[test]
fn the_numbers_of_the_signs_of_a_font_of_pictures_are_no_letters() {
    let font = "<< /Type /Font /Subtype /Type1 /BaseFont /ABCDEF+Wingdings-Regular /ToUnicode 6 0 R >>";
    let map = b"/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /A def /CMapType 2 def \
                1 begincodespacerange <00> <FF> endcodespacerange 2 beginbfchar <79> <0079> <84> <0084> endbfchar \
                endcmap end end";
    let line = |y: i32, sign: &str, words: &str| {
        format!("BT /F1 16 Tf 1 0 0 1 72 {y} Tm ({sign}) Tj /F2 12 Tf 1 0 0 1 96 {y} Tm ({words}) Tj ET\n")
    };
    let content = [
        line(700, "y", "The first of two remarks, which is"),
        "BT /F2 12 Tf 1 0 0 1 96 686 Tm (so long that it goes on) Tj ET\n".to_owned(),
        line(660, "\\204", "The second remark"),
    ];
    assert_eq!(
        text(font, &[made::stream("", map)], &content.concat()).trim(),
        "- The first of two remarks, which is so long that it goes on\n- The second remark"
    );
}

/// Lines in the font F1, if they begin with a star, and in F2.
fn lines(lines: &[&str]) -> String {
    let font = |line: &str| if line.starts_with('*') { "F1" } else { "F2" };
    let line = |(line, number): (&&str, i32)| {
        let words = line.trim_start_matches('*');
        format!("BT /{} 12 Tf 1 0 0 1 72 {} Tm ({words}) Tj ET\n", font(line), 700 - 14 * number)
    };
    lines.iter().zip(0..).map(line).collect()
}

const ITALIC: &str = "<< /Type /Font /Subtype /Type1 /BaseFont /Times-Italic >>";

#[test]
fn a_line_in_italics_above_a_paragraph_is_a_heading() {
    let content = lines(&[
        "The harbour closes at low tide, and it opens again in the morning.",
        "*The old locks",
        "They were built by the town when the first boats came up the river,",
        "and they are still in use today.",
    ]);
    in_lines(&text(ITALIC, &[], &content), &["### The old locks"]);
}

#[test]
fn words_in_italics_inside_a_paragraph_are_no_heading() {
    let content = lines(&[
        "The harbour closes at low tide, as it is told in the book of which the name is",
        "*The harbours of the eastern coast and all their locks, with maps and tables of",
        "tides, and it opens again in the morning, when the water has come back.",
    ]);
    assert!(!text(ITALIC, &[], &content).contains('#'));
}

fn in_lines(text: &str, expected: &[&str]) {
    for line in expected {
        assert!(text.lines().any(|found| found == *line), "{line:?} is no line of {text:?}");
    }
}
