use super::sizes::MAX_CHARACTERS_PER_TOKEN;
use super::*;
use landfall_core::text::{Area, Place};

fn in_chunks(extracted: &Extracted, config: ChunkConfig) -> Result<Vec<Chunk>, Failure> {
    chunk(extracted, config, &Tokens::BuiltIn, || ControlFlow::Continue(()))
}

fn of_size(size_tokens: usize, overlap_tokens: usize) -> ChunkConfig {
    ChunkConfig { chunking: Chunking::Structure, size_tokens, overlap_tokens }
}

#[test]
fn no_chunk_crosses_a_heading_or_a_page() {
    let text = "Before.\n\nTides\n\nLow water.\n\nOn the next page.";
    let place = |at: &str, page, heading: Option<&str>| Place {
        start: text.find(at).expect("it is there"),
        page,
        heading: heading.map(str::to_owned),
        level: None,
    };
    let places = vec![place("Tides", Some(1), Some("Tides")), place("On the", Some(2), None)];
    let extracted = Extracted { places, ..Extracted::plain(text.to_owned()) };
    let config = of_size(100, 10);
    let chunks = in_chunks(&extracted, config).expect("chunks");
    let found: Vec<_> = chunks.iter().map(|c| (c.text.as_str(), c.page, c.heading.as_deref())).collect();
    assert_eq!(
        found,
        [
            ("Before.", None, None),
            ("Tides\n\nLow water.", Some(1), Some("Tides")),
            ("On the next page.", Some(2), Some("Tides")),
        ]
    );
}

#[test]
fn a_heading_alone_is_no_chunk() {
    let text = "# Handbook\n\n## Work\n\n### Hours\n\nFrom nine to five.";
    let places =
        [("# Handbook", "Handbook"), ("## Work", "Work"), ("### Hours", "Hours")].map(|(at, heading)| {
            Place {
                start: text.find(at).expect("it is there"),
                page: None,
                heading: Some(heading.to_owned()),
                level: None,
            }
        });
    let extracted =
        Extracted { markup: Markup::Markdown, places: places.to_vec(), ..Extracted::plain(text.to_owned()) };
    let config = of_size(100, 10);
    let chunks = in_chunks(&extracted, config).expect("chunks");
    assert_eq!(chunks.len(), 1);
    assert_eq!((chunks[0].text.as_str(), chunks[0].heading.as_deref()), (text, Some("Hours")));
}

#[test]
fn places_are_counted_in_characters() {
    let text = "Größe öäü. ".repeat(100);
    let extracted = Extracted::plain(text.clone());
    let config = of_size(30, 10);
    let characters: Vec<char> = text.chars().collect();
    for chunk in in_chunks(&extracted, config).expect("chunks") {
        assert_eq!(characters[chunk.char_start..chunk.char_end].iter().collect::<String>(), chunk.text);
        assert!(chunk.tokens <= 30);
    }
}

#[test]
fn a_text_that_is_hard_to_split_still_gives_small_chunks() {
    let image = format!("Before. ![](data:image/png;base64,{}) After.", "iVBORw0KGgo".repeat(10_000));
    for (text, markup) in [
        ("a.".repeat(50_000), Markup::Plain),
        ("word ".repeat(40_000), Markup::Plain),
        ("a".repeat(200_000), Markup::Plain),
        (image, Markup::Markdown),
        ("> ".repeat(20_000), Markup::Markdown),
        ("ภาษาไทยไม่มีช่องว่างระหว่างคำ".repeat(300), Markup::Plain),
    ] {
        let extracted = Extracted { markup, ..Extracted::plain(text) };
        let config = of_size(120, 20);
        let chunks = in_chunks(&extracted, config).expect("chunks");
        assert!(chunks.iter().all(|chunk| chunk.text.chars().count() <= 120 * MAX_CHARACTERS_PER_TOKEN));
    }
}

fn markdown(text: &str) -> Extracted {
    Extracted { markup: Markup::Markdown, ..Extracted::plain(text.to_owned()) }
}

/// A heading of each line that has one.
fn with_headings(text: &str) -> Extracted {
    let mut places = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if let Some((marks, heading)) = line.trim().split_once("# ") {
            let level = u8::try_from(marks.len() + 1).expect("a level");
            places.push(Place { start, page: None, heading: Some(heading.to_owned()), level: Some(level) });
        }
        start += line.len();
    }
    Extracted { places, ..markdown(text) }
}

fn table(rows: usize) -> String {
    let row = |number| format!("| Berth {number} | The ferry of {number} o'clock leaves from here |\n");
    format!("| Place | Use |\n| --- | --- |\n{}", (0..rows).map(row).collect::<String>())
}

#[test]
fn a_table_that_goes_on_repeats_its_header_and_no_row_is_torn() {
    let text = format!("The berths are these.\n\n{}\nAfter the table.", table(40));
    let chunks = in_chunks(&markdown(&text), of_size(60, 10)).expect("chunks");
    assert!(chunks.len() > 5, "{}", chunks.len());
    let header = "| Place | Use |\n| --- | --- |\n";
    let characters: Vec<char> = text.chars().collect();
    let mut rows = 0;
    for chunk in &chunks {
        assert!(chunk.tokens <= 60, "{chunk:?}");
        assert_eq!(chunk.text.matches(header).count(), 1, "{chunk:?}");
        let shown = chunk.text.lines().filter(|line| line.starts_with("| Berth"));
        rows += shown.inspect(|row| assert!(text.contains(&format!("\n{row}\n")), "{row}")).count();
        // The place is that of the rows.
        let stored: String = characters[chunk.char_start..chunk.char_end].iter().collect();
        assert_eq!(
            chunk.text.strip_prefix(header).unwrap_or(&chunk.text),
            stored.strip_prefix(header).unwrap_or(&stored)
        );
    }
    assert_eq!(rows, 40);
    assert!(chunks[0].text.starts_with("The berths"));
    assert!(chunks.last().expect("a chunk").text.ends_with("After the table."));
}

#[test]
fn a_header_that_leaves_no_room_for_a_row_is_not_repeated() {
    let wide = "A very long name of a column in this table ".repeat(3);
    let row = "| The ferry leaves from here at noon and comes back in the evening, every day but Sunday |\n";
    let text = format!("| {wide} |\n| --- |\n{}", row.repeat(4));
    let chunks = in_chunks(&markdown(&text), of_size(40, 0)).expect("chunks");
    assert_eq!(chunks.iter().map(|chunk| chunk.text.matches(row.trim()).count()).sum::<usize>(), 4);
    assert!(chunks.iter().all(|chunk| chunk.tokens <= 40), "{chunks:?}");
}

#[test]
fn a_row_that_is_too_long_alone_is_split() {
    let text = format!("{}| long | {} |\n", table(2), "the ferry leaves ".repeat(100));
    let chunks = in_chunks(&markdown(&text), of_size(60, 10)).expect("chunks");
    assert!(chunks.len() > 3);
    assert!(chunks.iter().all(|chunk| chunk.tokens <= 60));
}

#[test]
fn no_item_is_torn_and_one_that_fits_keeps_the_items_in_it() {
    let item = |number| {
        format!(
            "- Take the {number} rope from the hook beside the door\n  and look at it.\n  - Is it wet?\n  - Is it worn?\n"
        )
    };
    let text = (0..30).map(item).collect::<String>();
    // With some of these sizes the beginning of an item has room in a chunk, and the rest of it has not.
    for size in [30, 45, 60, 66, 70, 75, 90] {
        let chunks = in_chunks(&markdown(&text), of_size(size, 10)).expect("chunks");
        assert!(chunks.len() > 5);
        for chunk in &chunks {
            assert!(chunk.text.starts_with("- Take") && chunk.text.ends_with("worn?"), "{size}: {chunk:?}");
            assert_eq!(chunk.text.matches("- Take").count(), chunk.text.matches("worn?").count());
        }
        assert_eq!(chunks.iter().map(|chunk| chunk.text.matches("- Take").count()).sum::<usize>(), 30);
    }
}

#[test]
fn an_item_with_too_much_in_it_is_cut_between_its_items() {
    let inner = |number| format!("  - The buoy with number {number} is green and has a bell\n");
    let text = format!("1. The buoys:\n{}2. The lights", (0..20).map(inner).collect::<String>());
    let chunks = in_chunks(&markdown(&text), of_size(50, 0)).expect("chunks");
    assert_eq!(chunks.iter().map(|chunk| chunk.text.matches("The buoy with").count()).sum::<usize>(), 20);
    assert_eq!(chunks.iter().map(|chunk| chunk.text.matches("has a bell").count()).sum::<usize>(), 20);
    assert!(chunks.iter().all(|chunk| !chunk.text.ends_with("number") && chunk.tokens <= 50));
    assert!(chunks[0].text.starts_with("1. The buoys:\n  - The buoy with number 0"));
}

#[test]
fn a_short_table_is_kept_whole_and_a_heading_stays_with_it() {
    let before = "The harbour master is in the old tower, beside the customs house on the quay. ".repeat(3);
    let text = format!("{before}\n\n{}", table(2));
    let chunks = in_chunks(&markdown(&text), of_size(60, 10)).expect("chunks");
    assert_eq!(chunks.len(), 2, "{chunks:?}");
    assert!(chunks[1].text.starts_with("| Place"));
    let text = format!("# Berths\n\n{}", table(20));
    let chunks = in_chunks(&with_headings(&text), of_size(60, 10)).expect("chunks");
    assert!(
        chunks[0].text.starts_with("# Berths\n\n| Place") && chunks[0].text.contains("Berth 0"),
        "{chunks:?}"
    );
}

#[test]
fn a_chunk_has_the_headings_above_it() {
    let text = "# Handbook\n\nAbout.\n\n## Hours\n\nFrom nine.\n\n#### Sundays\n\nClosed.\n\n## Pay\n\nGood.\n\n# Annex\n\nNone.";
    let chunks = in_chunks(&with_headings(text), of_size(60, 0)).expect("chunks");
    let paths: Vec<Vec<&str>> =
        chunks.iter().map(|chunk| chunk.headings.iter().map(String::as_str).collect()).collect();
    assert_eq!(
        paths,
        [
            vec!["Handbook"],
            vec!["Handbook", "Hours"],
            vec!["Handbook", "Hours", "Sundays"],
            vec!["Handbook", "Pay"],
            vec!["Annex"]
        ]
    );
    for chunk in chunks {
        assert_eq!(chunk.headings.last(), chunk.heading.as_ref());
    }
}

#[test]
fn a_chunk_has_its_places_on_the_pages() {
    let text = "First words here.\n\nSecond words here.\n\nThird words here.";
    let area = |top| Area { left: 1_000, top, right: 9_000, bottom: top + 200 };
    let part = |words: &str, page, top| {
        let start = text.find(words).expect("it is there");
        TextBox { start, end: start + words.len(), page, area: area(top) }
    };
    let boxes = vec![part("First words", 1, 100), part("Second words here", 1, 400), part("Third", 2, 0)];
    let extracted = Extracted { boxes, ..markdown(text) };
    let chunks = in_chunks(&extracted, of_size(5, 0)).expect("chunks");
    let places: Vec<_> = chunks.into_iter().map(|chunk| chunk.places).collect();
    let place = |page, top| PageArea { page, area: area(top) };
    assert_eq!(places, [vec![place(1, 100)], vec![place(1, 400)], vec![place(2, 0)]]);
}

#[test]
fn many_places_become_one_for_each_page() {
    let text = "a b ".repeat(200);
    let boxes = (0..200)
        .map(|number: u16| TextBox {
            start: usize::from(number) * 4,
            end: usize::from(number) * 4 + 3,
            page: if number < 100 { 1 } else { 2 },
            area: Area { left: number, top: 0, right: number + 10, bottom: 50 },
        })
        .collect();
    let extracted = Extracted { boxes, ..markdown(&text) };
    let chunks = in_chunks(&extracted, of_size(1_000, 0)).expect("chunks");
    let area = |left, right| Area { left, top: 0, right, bottom: 50 };
    let whole = [PageArea { page: 1, area: area(0, 109) }, PageArea { page: 2, area: area(100, 209) }];
    assert_eq!(chunks[0].places, whole);
}

#[test]
fn prose_shares_short_paragraphs_with_the_chunk_before() {
    let paragraph = |number| format!("The tide of day {number} is low.\n\n");
    let text = (0..12).map(paragraph).collect::<String>();
    let chunks = in_chunks(&markdown(&text), of_size(30, 10)).expect("chunks");
    for pair in chunks.windows(2) {
        assert!(pair[1].char_start < pair[0].char_end, "{pair:?}");
        assert!(pair[1].char_end > pair[0].char_end, "{pair:?}");
    }
}

#[test]
fn hostile_markdown_gives_small_chunks_with_every_word() {
    let nested: String = (0..300).map(|depth| format!("{}- word{depth}\n", "  ".repeat(depth))).collect();
    let rows = format!("| a |\n| --- |\n{}", "||\n".repeat(1_000));
    let links = "[a](https://example.org/a/long/address/that/goes/on/and/on) ".repeat(300);
    let headings = "# a\n".repeat(1_000);
    let fence = format!("```\n{}", "word\n".repeat(1_000));
    let quotes = format!("{} word\n", ">".repeat(3_000)).repeat(10);
    for text in [nested, rows, links, headings, fence, quotes] {
        let chunks = in_chunks(&markdown(&text), of_size(60, 10)).expect("chunks");
        assert!(chunks.iter().all(|chunk| chunk.text.chars().count() <= 60 * 24), "{}", &text[..40]);
        // Between two chunks there are only white space and the marks before a line.
        let mut end = 0;
        for chunk in &chunks {
            if let Some(between) = text.get(end..chunk.char_start) {
                assert!(between.chars().all(|c| c.is_whitespace() || c == '>'), "{between:?}");
            }
            end = end.max(chunk.char_end);
        }
        assert!(text[end..].trim().is_empty(), "{:?} is missing of {:?}", &text[end..], &text[..40]);
    }
}
