//! The order and the structure of PDF pages, each made for the test.

use std::ops::ControlFlow;

use landfall_documents::{Document, Extracted, Limits, Reading, Recognised, WarningCode};
use landfall_test_documents as made;

fn reading(pdf: &[u8]) -> Reading {
    let document = Document { bytes: pdf, name: "a.pdf", content_type: None };
    landfall_documents::read(document, &Limits::default(), &|| ControlFlow::Continue(())).unwrap()
}

fn read(pdf: &[u8]) -> Extracted {
    reading(pdf).finish(Recognised::NotInstalled).unwrap()
}

/// Operators that write a text at a place.
fn at(x: i32, y: i32, size: i32, text: &str) -> String {
    format!("BT /F1 {size} Tf 1 0 0 1 {x} {y} Tm ({text}) Tj ET\n")
}

/// Lines below one another.
fn column(x: i32, top: i32, lines: &[&str]) -> String {
    lines.iter().zip(0..).map(|(line, number)| at(x, top - 14 * number, 12, line)).collect()
}

/// A PDF of one page with further entries of its dictionary, and further objects from number 6 on.
fn page_with(entries: &str, content: &str, further: &[Vec<u8>]) -> Vec<u8> {
    let mut objects = vec![
        b"<< /Type /Catalog /Pages 2 0 R /Names << /EmbeddedFiles << /Names [(note.txt) 6 0 R] >> >> >>"
            .to_vec(),
        b"<< /Type /Pages /Count 1 /Kids [4 0 R] >>".to_vec(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_vec(),
        format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 5 0 R \
             /Resources << /Font << /F1 3 0 R >> >> {entries} >>"
        )
        .into_bytes(),
        made::stream("", content.as_bytes()),
    ];
    objects.extend_from_slice(further);
    made::pdf_of_objects(&objects)
}

fn page(content: &str) -> Vec<u8> {
    page_with("", content, &[])
}

fn in_order(text: &str, words: &[&str]) {
    let mut rest = text;
    for word in words {
        let at = rest.find(word).unwrap_or_else(|| panic!("{word:?} is not in its place in {text:?}"));
        rest = &rest[at + word.len()..];
    }
}

const LEFT: &[&str] = &[
    "The harbour closes when the water is",
    "too low for the boats that come in at",
    "night, and it opens again as soon as the",
    "first of them can pass the stones near",
    "the old light without touching them.",
];
const RIGHT: &[&str] = &[
    "Nobody who has seen the stones would",
    "wish to pass them at low water, and the",
    "master of the harbour keeps a list of the",
    "boats that tried it in the last hundred",
    "years and of those that came back.",
];

#[test]
fn columns_are_read_one_after_the_other_below_their_title() {
    let content = at(200, 780, 20, "Two columns") + &column(60, 700, LEFT) + &column(320, 700, RIGHT);
    let text = read(&page(&content)).text;
    assert!(text.starts_with("# Two columns\n\nThe harbour closes"), "{text}");
    in_order(&text, &["touching them.", "Nobody who has seen", "came back."]);
}

#[test]
fn the_rows_of_a_table_without_lines_stay_together() {
    let rows =
        [("Boat", "Tons", "Home"), ("Annie", "12", "Ely"), ("Bella", "7", "Rye"), ("Clara", "31", "Deal")];
    let content: String = rows
        .iter()
        .zip(0..)
        .map(|((a, b, c), row)| {
            let y = 700 - 20 * row;
            // The table is drawn column by column.
            at(60, y, 12, a) + &at(200, y, 12, b) + &at(300, y, 12, c)
        })
        .collect();
    let expected = "| Boat | Tons | Home |\n| --- | --- | --- |\n| Annie | 12 | Ely |\n| Bella | 7 | Rye |\n| Clara | 31 | Deal |";
    assert_eq!(read(&page(&content)).text, expected);
}

#[test]
fn a_table_with_lines_keeps_its_empty_cells_and_the_words_of_each_cell() {
    let mut content = String::new();
    for y in [600, 640, 680, 720] {
        content += &format!("60 {y} m 360 {y} l S\n");
    }
    for x in [60, 160, 260, 360] {
        content += &format!("{x} 600 m {x} 720 l S\n");
    }
    for (x, y, text) in [
        (65, 705, "Boat"),
        (165, 705, "Seen last by the"),
        (165, 691, "master of the port"),
        (265, 705, "Home"),
        (65, 655, "Annie"),
        (265, 655, "Ely"),
        (65, 615, "Bella"),
        (165, 615, "Friday"),
        (265, 615, "Rye"),
    ] {
        content += &at(x, y, 10, text);
    }
    let expected = "| Boat | Seen last by the master of the port | Home |\n| --- | --- | --- |\n\
                    | Annie | | Ely |\n| Bella | Friday | Rye |";
    assert_eq!(read(&page(&content)).text, expected);
}

#[test]
fn headings_have_levels_by_their_size_and_lists_are_nested_by_their_indentation() {
    let content = at(60, 780, 24, "Harbours")
        + &column(60, 740, &["A harbour is a place where boats are safe from the sea and from one another."])
        + &at(60, 700, 16, "Rules")
        + &column(60, 676, &["1. Come in slowly.", "2. Tie up:"])
        + &column(80, 648, &["\\225 at the wall,", "\\225 or at a buoy."])
        + &column(60, 620, &["3. Pay the master."])
        + &at(60, 580, 16, "Prices")
        + &column(60, 556, &["They are on the board beside the office of the master."]);
    let expected = "# Harbours\n\nA harbour is a place where boats are safe from the sea and from one another.\n\n\
                    ## Rules\n\n1. Come in slowly.\n2. Tie up:\n   - at the wall,\n   - or at a buoy.\n3. Pay the master.\n\n\
                    ## Prices\n\nThey are on the board beside the office of the master.";
    assert_eq!(read(&page(&content)).text, expected);
}

#[test]
fn a_running_head_and_page_numbers_are_kept_once() {
    let contents: Vec<Vec<u8>> = (1..=4)
        .map(|number| {
            let content = at(60, 810, 9, "Harbours of the east")
                + &column(60, 740, &[&format!("This is what page {number} says about them.")])
                + &column(60, 400, &["And this is in the middle of the page."])
                + &at(290, 30, 9, &number.to_string());
            made::stream("", content.as_bytes())
        })
        .collect();
    let text = read(&made::pdf_of_contents(&contents, "", &[])).text;
    assert_eq!(text.matches("Harbours of the east").count(), 1, "{text}");
    assert_eq!(text.matches("in the middle of the page").count(), 4, "{text}");
    assert!(text.contains("page 4 says") && !text.contains("\n\n4"), "{text}");
}

#[test]
fn words_that_are_divided_at_the_end_of_a_line_are_one_word() {
    let lines =
        ["Boats come into the har-", "bour when the tide is high and the wind", "is from the well-known"];
    let text = read(&page(&column(60, 700, &lines))).text;
    assert!(text.contains("the harbour when") && text.contains("well-known"), "{text}");
}

#[test]
fn text_that_is_drawn_twice_to_make_it_bold_is_read_once() {
    let content =
        at(60, 700, 12, "The tide comes in.") + "1 0 0 1 0.3 0 cm\n" + &at(60, 700, 12, "The tide comes in.");
    assert_eq!(read(&page(&content)).text, "The tide comes in.");
}

#[test]
fn boxes_are_on_the_page_as_it_is_shown() {
    let content = at(60, 821, 12, "Upper left");
    let whole = |turn: i32| read(&page_with(&format!("/Rotate {turn}"), &content, &[])).boxes[0].area;
    let upright = whole(0);
    assert!(upright.left.abs_diff(1008) < 30 && upright.top < 250 && upright.bottom < 400, "{upright:?}");
    // Turned to the right, what was above is on the right.
    let turned = whole(90);
    assert!(turned.right > 9_700 && turned.top.abs_diff(1008) < 30, "{turned:?}");
    let over = whole(180);
    assert!(over.right.abs_diff(10_000 - 1008) < 30 && over.bottom > 9_700, "{over:?}");
}

#[test]
fn turned_text_is_read_in_its_own_direction() {
    // Two lines up the page, on a page that is shown turned.
    let content = "BT /F1 12 Tf 0 1 -1 0 100 60 Tm (The first line of it) Tj ET\n\
                   BT /F1 12 Tf 0 1 -1 0 114 60 Tm (and the second line) Tj ET\n";
    let text = read(&page_with("/Rotate 90", content, &[])).text;
    in_order(&text, &["The first line of it", "and the second line"]);
}

/// Programs whose pages begin at the top turn the page over first, and each text back.
#[test]
fn turned_text_on_a_page_that_is_turned_over_is_read_in_its_own_direction() {
    let content = "1 0 0 -1 0 842 cm\n\
                   BT /F1 12 Tf 0 -1 -1 0 100 782 Tm (The first line will fill it) Tj ET\n\
                   BT /F1 12 Tf 0 -1 -1 0 114 782 Tm (and a little million more) Tj ET\n";
    let text = read(&page_with("/Rotate 90", content, &[])).text;
    in_order(&text, &["The first line will fill it", "and a little million more"]);
}

/// The number of each entry stands apart from it.
#[test]
fn a_list_of_contents_in_two_columns_is_read_column_by_column() {
    let mut content = String::new();
    for number in 0..10 {
        let y = 700 - 16 * number;
        content += &at(60, y, 11, &format!("1.{number}"));
        content += &at(90, y, 11, &format!("Left title number {number} of the harbour"));
        content += &at(320, y, 11, &format!("2.{number}"));
        content += &at(350, y, 11, &format!("Right title number {number} of the harbour"));
    }
    let text = read(&page(&content)).text;
    in_order(
        &text,
        &["1.0", "Left title number 0", "1.9", "Left title number 9", "2.0", "Right title number 0"],
    );
}

#[test]
fn fields_notes_links_and_attached_files_are_read() {
    let annotations = "/Annots [\
        << /Subtype /Widget /FT /Tx /V (Annie) /Rect [120 690 300 712] >> \
        << /Subtype /Widget /FT /Btn /AS /Yes /Rect [120 660 132 672] >> \
        << /Subtype /Text /Contents (Is that right?) /Rect [400 700 420 720] >> \
        << /Subtype /Link /A << /S /URI /URI (https://example.org/tides) >> /Rect [58 598 140 612] >> ]";
    let content =
        at(60, 695, 12, "Boat:") + &at(60, 662, 12, "Paid") + &at(60, 600, 12, "Tide tables are here");
    let further = [
        b"<< /Type /Filespec /F (note.txt) /EF << /F 7 0 R >> >>".to_vec(),
        made::stream("/Type /EmbeddedFile", b"The moon is to blame."),
    ];
    let extracted = read(&page_with(annotations, &content, &further));
    let text = &extracted.text;
    in_order(
        text,
        &[
            "Boat: Annie",
            "Paid \u{2612}",
            "(https://example.org/tides)",
            "> Is that right?",
            "The moon is to blame.",
        ],
    );
    assert!(text.contains("[Tide tables"), "{text}");
    assert_eq!(extracted.warnings, []);
}

#[test]
fn the_value_of_a_field_stands_on_the_line_of_its_label() {
    let field = |value: &str, y: i32| {
        format!("<< /Subtype /Widget /FT /Tx /V ({value}) /Rect [200 {} 320 {}] >>", y - 11, y + 13)
    };
    let annotations =
        format!("/Annots [{} {} {}]", field("Annie", 700), field("Ely", 660), field("1987", 620));
    let labels = at(60, 700, 12, "Ship") + &at(60, 660, 12, "Port") + &at(60, 620, 12, "Built");
    assert_eq!(
        read(&page_with(&annotations, &labels, &[])).text.trim(),
        "| Ship | Annie |\n| --- | --- |\n| Port | Ely |\n| Built | 1987 |"
    );
}

/// A page in a font without a mapping, whose codes are the numbers of its glyphs.
fn unmapped(codes: &str) -> Vec<u8> {
    let hexadecimal: String = codes.chars().map(|code| format!("{:04X}", code as u32)).collect();
    let content = format!("BT /F1 12 Tf 60 700 Td <{hexadecimal}> Tj ET");
    let objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>".to_vec(),
        b"<< /Type /Pages /Count 1 /Kids [4 0 R] >>".to_vec(),
        b"<< /Type /Font /Subtype /Type0 /BaseFont /ABCDEF+Own /Encoding /Identity-H /DescendantFonts [6 0 R] >>".to_vec(),
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 5 0 R /Resources << /Font << /F1 3 0 R >> >> >>"
            .to_vec(),
        made::stream("", content.as_bytes()),
        b"<< /Type /Font /Subtype /CIDFontType2 /BaseFont /ABCDEF+Own /DW 500 \
          /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> >>"
            .to_vec(),
    ];
    made::pdf_of_objects(&objects)
}

#[test]
fn the_numbers_of_glyphs_never_become_text() {
    let document = Document { bytes: &unmapped("70HWDO6KDIW"), name: "a.pdf", content_type: None };
    let ending = landfall_documents::read(document, &Limits::default(), &|| ControlFlow::Continue(()))
        .and_then(|reading| reading.finish(Recognised::NotInstalled));
    if let Ok(extracted) = &ending {
        assert!(!extracted.text.contains("HWDO"), "{extracted:?}");
        assert!(extracted.warnings.iter().any(|warning| warning.code == WarningCode::CharactersUnmapped));
    }
    assert!(ending.is_err(), "{ending:?}");
}

#[test]
fn a_page_of_many_columns_and_rules_ends_soon() {
    let mut content = String::new();
    for number in 0..20_000 {
        let (x, y) = (number * 37 % 590, number * 91 % 840);
        content += &format!("{x} {y} m {} {y} l S {x} {y} m {x} {} l S\n", x + 20, y + 20);
        content += &at(x, y, 3, "ab");
    }
    assert!(read(&page(&content)).text.contains("ab"));
}

#[test]
fn the_lines_of_a_drawing_on_the_page_are_those_of_a_table() {
    // The drawing is half as large, and stands at another place. Before it there is a picture with the words of a line in it.
    let lines: String = [0, 60, 120].iter().map(|y| format!("0 {y} m 400 {y} l S ")).collect();
    let form = made::stream(
        "/Type /XObject /Subtype /Form /BBox [0 0 400 120] /Matrix [0.5 0 0 0.5 0 0]",
        format!("{lines} 0 0 200 120 re S 0 0 400 120 re S").as_bytes(),
    );
    let cells = [(110, 710, "Port"), (210, 710, "Level"), (110, 680, "Rye"), (210, 680, "5.62")];
    let words: String = cells.iter().map(|(x, y, text)| at(*x, *y, 12, text)).collect();
    let content =
        format!("BI /W 4 /H 1 /BPC 8 /CS /G ID 0 0 m 600 0 l S EI\nq 1 0 0 1 100 670 cm /Fm Do Q\n{words}");
    let entries = "/Resources << /Font << /F1 3 0 R >> /XObject << /Fm 6 0 R >> >>";
    let text = read(&page_with(entries, &content, &[form])).text;
    in_order(&text, &["| Port | Level |", "| Rye | 5.62 |"]);
}

#[test]
fn a_page_of_many_dashed_lines_ends_soon() {
    let line = "0 0 0 RG\n[] 0 d\n0.48 w\n6.72 825.92 m\n6.72 833.84 l\nS\nf\n";
    let content = line.repeat(20_000) + &at(72, 700, 12, "The tide comes in.");
    assert_eq!(read(&page(&content)).text.trim(), "The tide comes in.");
}

#[test]
fn a_table_of_contents_keeps_each_title_with_its_number() {
    let entries = [("Tides", "3"), ("Harbours of the north", "17"), ("Boats", "42"), ("Stones", "101")];
    let content: String = entries
        .iter()
        .zip(0..)
        .map(|((title, number), row)| {
            let y = 700 - 16 * row;
            at(60, y, 12, title) + &at(220, y, 12, ". . . . . . . . . . . . . . .") + &at(400, y, 12, number)
        })
        .collect();
    let text = read(&page(&content)).text;
    for (title, number) in entries {
        let line = text.lines().find(|line| line.contains(title)).expect(title);
        assert!(line.split_whitespace().any(|word| word == number), "{line}");
    }
}

#[test]
fn pairs_of_short_lines_are_read_row_by_row() {
    let rows = [
        ("Name of the boat", "Annie of Ely"),
        ("Name of the master", "Orla Byrne"),
        ("Home of the boat", "The north quay"),
        ("Length over all", "Twelve metres"),
        ("Seen for the last time", "On Friday at noon"),
    ];
    // Drawn column by column, as forms are.
    let left: String =
        rows.iter().zip(0..).map(|((label, _), row)| at(60, 700 - 18 * row, 12, label)).collect();
    let right: String =
        rows.iter().zip(0..).map(|((_, value), row)| at(300, 700 - 18 * row, 12, value)).collect();
    let text = read(&page(&(left + &right))).text;
    let expected: Vec<&str> = rows.iter().flat_map(|(label, value)| [*label, *value]).collect();
    in_order(&text, &expected);
}

#[test]
fn lines_around_blocks_do_not_join_the_columns_inside() {
    // A frame of two cells. The left one has a small table of its own, without lines.
    let mut content = String::new();
    for y in [500, 720, 760] {
        content += &format!("60 {y} m 540 {y} l S\n");
    }
    for x in [60, 300, 540] {
        content += &format!("{x} 500 m {x} 760 l S\n");
    }
    content += &at(65, 735, 12, "Fees of the port");
    content += &at(305, 735, 12, "Remarks");
    for (row, (kind, day, night)) in
        [("Kind", "Day", "Night"), ("Ferry", "12", "15"), ("Tug", "7", "9"), ("Yacht", "31", "40")]
            .iter()
            .enumerate()
    {
        let y = 700 - 16 * i32::try_from(row).unwrap();
        content += &(at(65, y, 12, kind) + &at(150, y, 12, day) + &at(220, y, 12, night));
    }
    content += &at(305, 700, 12, "Nobody pays at low water.");
    let text = read(&page(&content)).text;
    for row in ["Ferry | 12 | 15", "Tug | 7 | 9", "Yacht | 31 | 40"] {
        assert!(text.contains(row), "{row}: {text}");
    }
}

#[test]
fn an_exponent_belongs_to_what_it_stands_beside() {
    // Lines so close that the exponents of the second one reach into the first one.
    let content = at(60, 700, 12, "The energy of the wave is as follows.")
        + &at(60, 689, 12, "E = mc")
        + &at(98, 694, 8, "2")
        + &at(112, 689, 12, "and so on.")
        + &at(60, 660, 8, "1")
        + &at(65, 656, 10, "Measured at the old quay in the spring.");
    let text = read(&page(&content)).text;
    in_order(&text, &["as follows. E = mc2 and so on.", "1 Measured at the old quay"]);
}

#[test]
fn raised_and_lowered_letters_of_a_word_stay_in_their_places() {
    // As the name of LaTeX is set: the A is small, raised and drawn upon the L, the E is lowered.
    let letter = |x: f32, y: f32, size: f32, letter: char| {
        format!("BT /F1 {size} Tf 1 0 0 1 {x} {y} Tm ({letter}) Tj ET\n")
    };
    let content = at(60, 700, 10, "Set with")
        + &letter(102.0, 700.0, 10.0, 'L')
        + &letter(104.2, 702.1, 7.0, 'A')
        + &letter(107.6, 700.0, 10.0, 'T')
        + &letter(112.1, 697.8, 10.0, 'E')
        + &letter(117.5, 700.0, 10.0, 'X')
        + &at(128, 700, 10, "in one day.");
    assert_eq!(read(&page(&content)).text, "Set with LATEX in one day.");
}

#[test]
fn decimals_that_are_set_apart_stay_with_their_number() {
    let mut content = at(60, 700, 10, "Boat") + &at(200, 700, 10, "Tons") + &at(300, 700, 10, "Home");
    for (row, (boat, whole, part, home)) in
        [("Annie", "1,062", ".6", "Ely"), ("Bella", "467", ".9", "Rye"), ("Clara", "12", ".5", "Deal")]
            .iter()
            .enumerate()
    {
        let y = 680 - 16 * i32::try_from(row).unwrap();
        // The points stand below one another.
        let width = match whole.len() {
            5 => 25,
            3 => 17,
            _ => 11,
        };
        content += &(at(60, y, 10, boat)
            + &at(222 - width, y, 10, whole)
            + &at(225, y, 10, part)
            + &at(300, y, 10, home));
    }
    let text = read(&page(&content)).text;
    assert!(text.contains("| Annie | 1,062.6 | Ely |") && text.contains("| Clara | 12.5 | Deal |"), "{text}");
}

#[test]
fn a_column_without_lines_beside_one_with_lines_keeps_its_rows() {
    let mut content = String::new();
    // Lines between the rows of the right column only.
    for y in [600, 720] {
        content += &format!("60 {y} m 260 {y} l S\n");
    }
    for y in [640, 680] {
        content += &format!("160 {y} m 260 {y} l S\n");
    }
    for x in [60, 160, 260] {
        content += &format!("{x} 600 m {x} 720 l S\n");
    }
    for (y, boat, home) in [(695, "Annie", "Ely"), (655, "Bella", "Rye"), (615, "Clara", "Deal")] {
        content += &(at(65, y, 10, boat) + &at(165, y, 10, home));
    }
    let expected = "| Annie | Ely |\n| --- | --- |\n| Bella | Rye |\n| Clara | Deal |";
    assert_eq!(read(&page(&content)).text, expected);
    // A cell over three rows whose words are not beside those of each row stays whole.
    let whole =
        content.replace("(Annie)", "(All of)").replace("65 655", "65 683").replace("65 615", "65 671");
    let text = read(&page(&whole)).text;
    assert!(text.contains("All of Bella Clara"), "{text}");
}

/// Level lines from the left to the right.
fn level(places: &[i32]) -> String {
    places.iter().map(|y| format!("60 {y} m 560 {y} l S\n")).collect()
}

#[test]
fn a_cell_in_the_middle_of_two_rows_is_in_the_upper_one() {
    let rows =
        [(700, "float", "2.41"), (680, "radar", "2.39"), (660, "float", "5.62"), (640, "radar", "5.60")];
    let cells = rows.map(|(y, gauge, mean)| at(200, y, 12, gauge) + &at(300, y, 12, mean)).concat();
    let head = at(70, 730, 12, "Harbour") + &at(200, 730, 12, "Gauge") + &at(300, 730, 12, "Mean");
    let names = at(70, 690, 12, "Ely") + &at(70, 650, 12, "Rye");
    let expected = "| Harbour | Gauge | Mean |\n| --- | --- | --- |\n| Ely | float | 2.41 |\n| | radar | 2.39 |\n\
                    | Rye | float | 5.62 |\n| | radar | 5.60 |";
    // A line above and below the head and one at the end, or one below each group too.
    for places in [&[750, 720, 630][..], &[750, 720, 673, 630]] {
        let text = read(&page(&(head.clone() + &names + &cells + &level(places)))).text;
        assert_eq!(text.trim(), expected, "{places:?}");
    }
}

#[test]
fn columns_of_text_between_level_lines_are_no_table() {
    let content = column(72, 700, LEFT) + &column(330, 700, RIGHT);
    let content =
        content + &at(72, 760, 12, "Harbour") + &at(330, 760, 12, "News") + &level(&[780, 740, 300]);
    let text = read(&page(&content)).text;
    assert!(!text.contains('|'), "{text}");
    in_order(&text, LEFT);
    in_order(&text, RIGHT);
}

#[test]
fn labels_with_colons_and_their_values_are_entries() {
    let rows = [
        ("Name:", "Annie", "Flag:", "Ireland"),
        ("Built:", "1987", "Draught:", "1.4 m"),
        ("Port:", "Ely", "", ""),
    ];
    let row = |(y, (a, b, c, d)): (i32, (&str, &str, &str, &str))| {
        at(72, y, 12, a) + &at(160, y, 12, b) + &at(320, y, 12, c) + &at(400, y, 12, d)
    };
    let content: String = [700, 680, 660].into_iter().zip(rows).map(row).collect();
    assert_eq!(
        read(&page(&content)).text.trim(),
        "Name: Annie\n\nFlag: Ireland\n\nBuilt: 1987\n\nDraught: 1.4 m\n\nPort: Ely"
    );
    // A label with several values beside it is a row of a table.
    let rows = [("North:", "12", "7"), ("South:", "15", "9"), ("West:", "11", "8")];
    let row = |(y, (a, b, c)): (i32, (&str, &str, &str))| {
        at(72, y, 12, a) + &at(160, y, 12, b) + &at(260, y, 12, c)
    };
    let content: String = [700, 680, 660].into_iter().zip(rows).map(row).collect();
    assert!(read(&page(&content)).text.contains("| North: | 12 | 7 |"));
}

#[test]
fn lines_of_one_cell_and_heads_over_several_columns_are_told_from_rows() {
    let cells = [
        (70, 730, "Limits in metres of all our harbours"),
        (70, 712, "Port"),
        (200, 712, "Lower limit"),
        (400, 712, "Upper limit"),
        (70, 680, "Ely"),
        (200, 680, "What was measured at"),
        (400, 680, "What the boats of the"),
        (200, 666, "the mouth in spring"),
        (400, 666, "pilots need"),
        (70, 652, "Rye"),
        (200, 652, "Not known"),
        (400, 652, "As in the year before"),
    ];
    let content: String = cells.iter().map(|(x, y, text)| at(*x, *y, 12, text)).collect();
    assert_eq!(
        read(&page(&(content + &level(&[750, 700, 640])))).text.trim(),
        "| Limits in metres of all our harbours | | |\n| --- | --- | --- |\n| Port | Lower limit | Upper limit |\n\
         | Ely | What was measured at the mouth in spring | What the boats of the pilots need |\n\
         | Rye | Not known | As in the year before |"
    );
}
