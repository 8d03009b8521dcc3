use super::*;

fn written(write: impl FnOnce(&mut Flow)) -> Extracted {
    let mut flow = Flow::new(&Limits::default());
    write(&mut flow);
    flow.finish().unwrap()
}

#[test]
fn of_two_gaps_the_wider_counts_and_there_is_none_at_the_edges() {
    let extracted = written(|flow| {
        flow.widen(Gap::Paragraph);
        flow.words(" one two\n");
        flow.widen(Gap::Paragraph);
        flow.widen(Gap::Line);
        flow.words("three ");
    });
    assert_eq!(extracted.text, "one two\n\nthree");
}

#[test]
fn a_page_begins_with_its_first_word() {
    let extracted = written(|flow| {
        flow.place(Some(1), None);
        flow.words("one");
        flow.place(Some(2), None);
        flow.place(Some(3), Some("Tides".to_owned()));
        flow.words("three");
    });
    assert_eq!(extracted.text, "one\n\nthree");
    let places: Vec<_> = extracted.places.iter().map(|p| (p.start, p.page, p.heading.as_deref())).collect();
    assert_eq!(places, [(0, Some(1), None), (5, Some(3), Some("Tides"))]);
}

#[test]
fn a_text_beyond_the_limit_is_refused() {
    let limits = Limits { text_bytes: 1_000, ..Limits::default() };
    let mut flow = Flow::new(&limits);
    for _ in 0..1_000 {
        flow.words("again and again ");
    }
    assert!(flow.len() < 1_100);
    assert_eq!(flow.finish().unwrap_err().kind(), crate::ErrorKind::TooLarge);

    let mut flow = Flow::new(&limits);
    flow.begin_table();
    flow.begin_row();
    for _ in 0..1_000 {
        flow.begin_cell();
    }
    assert!(flow.is_full());
}

#[test]
fn a_heading_has_its_level_and_is_a_place() {
    let extracted = written(|flow| {
        flow.words("Before.");
        flow.begin_heading(2);
        flow.words(" Low ");
        flow.words("water");
        flow.end_heading();
        flow.words("After. # is a sign");
        flow.widen(Gap::Paragraph);
        flow.words("# too");
        flow.begin_heading(1);
        flow.end_heading();
    });
    assert_eq!(extracted.text, "Before.\n\n## Low water\n\nAfter. # is a sign\n\n\\# too");
    let place = Place { start: 9, page: None, heading: Some("Low water".to_owned()), level: Some(2) };
    assert_eq!(extracted.places, [place]);
}

#[test]
fn lists_are_nested_and_keep_their_markers() {
    let extracted = written(|flow| {
        flow.words("Steps");
        flow.begin_item("1.");
        flow.words("cast off");
        flow.begin_item("•");
        flow.words("bow");
        flow.widen(Gap::Paragraph);
        flow.words("line");
        flow.end_item();
        flow.begin_item("b)");
        flow.words("stern");
        flow.end_item();
        flow.end_list();
        flow.end_item();
        flow.begin_item("2.");
        flow.words("sail");
        flow.end_item();
        flow.end_list();
        flow.words("Done.");
    });
    assert_eq!(
        extracted.text,
        "Steps\n\n1. cast off\n   - bow\n\n     line\n   - b) stern\n2. sail\n\nDone."
    );
}

#[test]
fn tables_keep_their_empty_cells_and_lie_on_lines() {
    let extracted = written(|flow| {
        flow.words("Tides");
        flow.begin_table();
        for row in [["Port", "High", "Low"], ["Ayr", "", "2|3"], ["", "", ""]] {
            flow.begin_row();
            for cell in row {
                flow.begin_cell();
                flow.words(cell);
                flow.widen(Gap::Paragraph);
            }
        }
        flow.begin_row();
        flow.begin_cell();
        flow.words("Oban");
        flow.begin_table();
        flow.begin_row();
        flow.begin_cell();
        flow.words("inner");
        flow.begin_cell();
        flow.words("table");
        flow.end_table();
        flow.end_table();
        flow.words("After.");
    });
    assert_eq!(
        extracted.text,
        "Tides\n\n| Port | High | Low |\n| --- | --- | --- |\n| Ayr | | 2\\|3 |\n| Oban inner / table | | |\n\nAfter."
    );
    let one = written(|flow| {
        flow.begin_table();
        flow.begin_row();
        flow.begin_cell();
        flow.words("A frame");
        flow.end_table();
    });
    assert_eq!(one.text, "A frame");
}

#[test]
fn a_link_has_its_address_unless_the_address_is_its_text() {
    let extracted = written(|flow| {
        for (target, words) in [
            ("https://a.example/x", "the tables"),
            ("https://b.example", "https://b.example"),
            ("#top", "top"),
            ("javascript:x", "run"),
        ] {
            flow.begin_link(target);
            flow.words(words);
            flow.end_link();
            flow.words(" ");
        }
    });
    assert_eq!(extracted.text, "[the tables](https://a.example/x) https://b.example top run");
}

#[test]
fn code_and_quotations_are_marked() {
    let extracted = written(|flow| {
        flow.begin_quote();
        flow.words("So he said.");
        flow.widen(Gap::Paragraph);
        flow.words("Twice.");
        flow.end_quote();
        flow.code_block("rust", "fn a() {\n\n}\n");
    });
    assert_eq!(extracted.text, "> So he said.\n>\n> Twice.\n\n```rust\nfn a() {\n\n}\n```");
}

#[test]
fn another_document_is_embedded_with_its_headings() {
    let inner = || {
        let mut flow = Flow::new(&Limits::default());
        flow.begin_heading(1);
        flow.words("Inner");
        flow.end_heading();
        flow.words("text");
        assert!(flow.picture(Some(7), b"bytes"));
        flow.finish_reading(PageCount::default()).unwrap()
    };
    let mut flow = Flow::new(&Limits::default());
    flow.words("Outer");
    flow.embed(inner());
    flow.words("after");
    let reading = flow.finish_reading(PageCount::default()).unwrap();
    assert_eq!(reading.extracted.text, "Outer\n\n# Inner\n\ntext\n\nafter");
    assert_eq!(reading.extracted.places[0].start, 7);
    assert_eq!(reading.pictures[0].text_offset, "Outer\n\n# Inner\n\ntext".len());
}
