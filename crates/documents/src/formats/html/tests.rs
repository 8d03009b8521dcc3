use std::ops::ControlFlow;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{BufferQueue, Tokenizer, TokenizerOpts};
use proptest::prelude::*;

use super::*;
use crate::error::ErrorKind;
use crate::flow::Flow;
use crate::limits::Limits;
use landfall_core::text::{Extracted, Place};

fn read(page: &str) -> Extracted {
    let limits = Limits::default();
    let bounds = Bounds::new(&limits, &|| ControlFlow::Continue(()));
    super::read(page, bounds).expect("read").extracted
}

#[test]
fn a_page_becomes_its_visible_text() {
    let page = "<html><head><title>T</title><style>p{}</style></head><body><h1>Over <i>view</i></h1>
        <p>One&nbsp;two
        three.</p><ul><li>first<li>second</ul><table><tr><td>a</td><td>b</td></tr></table>
        <script>if (a < b) alert('<p>no</p>')</script></body></html>";
    let extracted = read(page);
    assert_eq!(
        extracted.text,
        "T\n\n# Over view\n\nOne two three.\n\n- first\n- second\n\n| a | b |\n| --- | --- |"
    );
    assert_eq!(
        extracted.places,
        [Place { start: 3, page: None, heading: Some("Over view".to_owned()), level: Some(1) }]
    );
}

#[test]
fn a_word_with_markup_inside_stays_one_word() {
    assert_eq!(read("<p>un<b>believ</b>able</p>").text, "unbelievable");
}

#[test]
fn elements_inside_a_hidden_one_are_hidden() {
    assert_eq!(read("<svg><g><svg>a</svg>b</g></svg>c<template><p>d</p></template>").text, "c");
}

#[test]
fn an_element_that_closes_itself_hides_nothing_after_it() {
    assert_eq!(read("a <svg/>b <svg width=1 /> c<svg><svg/><style/><path/>x</svg>d").text, "a b cd");
    let body = "<head><title>T</title><script src='a.js'/><style/></head><body><iframe/>b</body></html>";
    for xhtml in [
        "<?xml version='1.0'?><html>",
        "<!DOCTYPE html PUBLIC '-//W3C//DTD XHTML 1.0 Strict//EN' 'x.dtd'><html>",
        "<html xmlns='http://www.w3.org/1999/xhtml'>",
    ] {
        assert_eq!(read(&format!("{xhtml}{body}")).text, "T\n\nb");
    }
    assert_eq!(read("<html><title>XHTML</title><script/>b</script>c").text, "XHTML\n\nc");
}

fn different_attributes(number: usize) -> String {
    (0..number).map(|number| format!("a{number} ")).collect()
}

#[test]
fn a_tag_ends_where_a_browser_ends_it() {
    for (page, text) in [
        ("<p title='a > b' x=\"1 > 0\" y=/z>one</p>", "one"),
        ("<p a = 'b>c' d>one<p a=b'>two", "one\n\ntwo"),
        ("<p =\">one<p a=\"\"b=''>two", "one\n\ntwo"),
        ("<p/a/>one<br/>two<b<i a='>'>three", "one\ntwothree"),
        ("<!-- <p a='> --> one <!x '> two <? \" <b c='> three </ '> four", "one two three four"),
        ("a < b <3 </> <p a='>'>c &lt<p a='>'>d", "a < b <3\n\nc <\n\nd"),
        ("<script>if (a<b c='</script x='>'>one", "one"),
        ("<title>a <b c='> d</title e='>'>f", "a <b c='> d\n\nf"),
        ("<style>a</styles x='</style x='>'>one", "one"),
        ("one<p a='never closed>two", "one"),
    ] {
        assert_eq!(read(page).text, text, "{page}");
    }
}

#[test]
fn a_page_that_is_slow_for_other_parsers_is_read_like_any_other() {
    for (page, words) in [
        ("<div>".repeat(300_000) + "end", 1),
        ("<div/>".repeat(300_000) + "end", 1),
        ("<b></x>".repeat(100_000) + "end", 1),
        ("<p><b id=1>x</p>".repeat(20_000), 20_000),
        (format!("<p {}>end", "a=1 ".repeat(20_000)), 1),
        (format!("<p {}>end", different_attributes(200_000)), 1),
        (format!("<p></p {}>end", different_attributes(50_000)), 1),
        (format!("</><p {}>end", different_attributes(50_000)), 1),
        (format!("&am<p {}>end", different_attributes(50_000)), 2),
        (format!("<script>x<x</script {}>end", different_attributes(50_000)), 1),
    ] {
        assert_eq!(read(&page).text.split_whitespace().count(), words);
    }
}

/// Reads a page without removing the attributes.
fn read_whole(page: &str) -> String {
    let limits = Limits::default();
    let bounds = Bounds::new(&limits, &|| ControlFlow::Continue(()));
    let layout = Survey::of(page, bounds).expect("surveyed");
    let tokenizer = Tokenizer::new(
        Page::new(Text::new(is_xhtml(page), layout, &|_| None, bounds)),
        TokenizerOpts::default(),
    );
    let input = BufferQueue::default();
    input.push_back(StrTendril::from_slice(page));
    drop(tokenizer.feed(&input));
    tokenizer.end();
    tokenizer.sink.text.into_inner().finish().and_then(Flow::finish).expect("read").text
}

proptest! {
    #[test]
    fn a_page_reads_the_same_without_the_attributes_of_its_tags(
        pieces in proptest::collection::vec(proptest::sample::select(PIECES), 0..40),
    ) {
        let page = pieces.concat();
        prop_assert_eq!(read(&page).text, read_whole(&page), "{}", page);
    }
}

const PIECES: &[&str] = &[
    "<",
    "</",
    "/",
    ">",
    "/>",
    "=",
    "'",
    "\"",
    " ",
    "\n",
    "\r",
    "a",
    "é",
    "<p",
    "<b ",
    "</b",
    "<svg",
    "</svg>",
    "<br",
    "<script",
    "</script",
    "<style>",
    "</style",
    "<title>",
    "</title>",
    "<!--",
    "-->",
    "--!>",
    "<!",
    "<!doctype",
    "<?",
    "<![CDATA[",
    "]]>",
    "&",
    "&lt",
    "&am",
    "&amp;",
    " href=",
    " x='y'",
    "<plaintext",
    "<li",
    "<ul>",
    "</ol>",
    "<table",
    "<td",
    "</table>",
    "<pre>",
    "</pre>",
    "<a",
    "</a>",
    " hidden",
    " colspan=3",
    "<h2",
    "</h2>",
    "</>",
    "\0",
];

#[test]
fn a_reader_stops_if_the_caller_wants_it() {
    let limits = Limits::default();
    let bounds = Bounds::new(&limits, &|| ControlFlow::Break(()));
    assert_eq!(super::read("<p>a", bounds).unwrap_err().kind(), ErrorKind::Stopped);
}

fn text(page: &str) -> String {
    read(page).text
}

#[test]
fn headings_have_their_level_and_end_where_they_should() {
    let page = "<h1>One</h1>a<h2><a href='#x'>Two</a><br><div>lines</div></h2>b<h3>Three<p>c</p></div><p>d\
        <h6>Six<h5>Five</h5>e";
    assert_eq!(
        text(page),
        "# One\n\na\n\n## Two lines\n\nb\n\n### Three c\n\nd\n\n###### Six\n\n##### Five\n\ne"
    );
    let place = |heading: &str, level| (Some(heading.to_owned()), Some(level));
    let linked = read("<h2><a href='http://a.b/c'>The <i>link</i></a> is here</h2>");
    assert_eq!(linked.text, "## [The link](http://a.b/c) is here");
    assert_eq!((linked.places[0].heading.clone(), linked.places[0].level), place("The link is here", 2));
}

#[test]
fn lists_have_their_markers_and_nest() {
    let page = "before<ol start=3><li>three<ul><li>inner<li><p>second</p><p>with two</p></ul><li value=9>nine\
        <ol type=a><li>letter</ol></li></ol>after";
    assert_eq!(
        text(page),
        "before\n\n3. three\n   - inner\n   - second\n\n     with two\n9. nine\n   - a. letter\n\nafter"
    );
    // A list in a list without an item around it belongs to the item before.
    assert_eq!(text("<ul><li>a</li><ul><li>b</li></ul><li>c</li></ul>"), "- a\n  - b\n- c");
    assert_eq!(text("<li>a<li>b<h1>c</h1>"), "- a\n- b\n\n# c");
    assert_eq!(text("<ul><li>a</ul><p>b</p><ul><li>c</ul>"), "- a\n\nb\n\n- c");
    assert_eq!(
        text("<ul><li><input type=checkbox checked> done<li><input type=checkbox>open"),
        "- [x] done\n- [ ] open"
    );
}

#[test]
fn cells_stay_in_their_columns() {
    let page = "<table><caption>Cap</caption><thead><tr><th>a<th colspan=2>b<tbody><tr><td rowspan=2>c<td><td>d\
        <tr><td>e</td><td>f | g</td></tr></table>after";
    assert_eq!(
        text(page),
        "Cap\n\n| a | b | |\n| --- | --- | --- |\n| c | | d |\n| | e | f \\| g |\n\nafter"
    );
    let lists =
        "<table border=1><tr><td><ul><li>a<li>b</ul><td><a href='http://x.y'>c</a> d<tr><td>e<td>f</table>";
    assert_eq!(text(lists), "| a b | [c](http://x.y) d |\n| --- | --- |\n| e | f |");
}

#[test]
fn a_table_that_only_arranges_the_page_is_no_table() {
    let page = "<table width=100%><tr><td><h1>News</h1><table><tr><th>k<th>v<tr><td>1<td>2</table>\
        <tr><td><ul><li>item</ul></table>end";
    assert_eq!(text(page), "# News\n\n| k | v |\n| --- | --- |\n| 1 | 2 |\n\n- item\n\nend");
    let two = "<table role=presentation><tr><td><h2>Left</h2>one<td><h2>Right</h2>two</table>";
    assert_eq!(text(two), "## Left\n\none\n\n## Right\n\ntwo");
    let nested = "<table><tr><td>a<td>b<tr><td><table><tr><td>1<td>2</table><td>c</table>";
    assert_eq!(text(nested), "| a | b |\n| --- | --- |\n| 1 / 2 | c |");
    // A table that is in no cell of its table.
    let misplaced = "<table width=100% border=0>x<table border=1><tr><th>Day<th>Start<tr><td>Sunday<tr><table border=1><tr>\
                     <th>1<th>2</table></table>";
    assert_eq!(text(misplaced), "x\n\n| Day | Start |\n| --- | --- |\n| Sunday | |\n| 1 / 2 | |");
}

#[test]
fn links_have_their_addresses() {
    for (page, markdown) in [
        ("<a href='http://a.b/c?d=1&amp;e=2'>one</a>, two", "[one](http://a.b/c?d=1&e=2), two"),
        ("<a href='/page.html'> one </a>two", "[one](/page.html) two"),
        ("<a href='#top'>one</a> <a name=x>two</a> <a href='JavaScript:x()'>three</a>", "one two three"),
        ("<a href='http://a.b'>http://a.b</a>", "http://a.b"),
        ("<a href='http://a.b'><h2>Title</h2><p>more</p></a>", "## [Title](http://a.b)\n\nmore"),
        ("<a href='http://a.b/x (y)'>one</a>", "[one](http://a.b/x%20(y))"),
        ("<a href='http://a.b/(y'>one</a>", "[one](http://a.b/%28y)"),
        ("<a href=1><a href=2>two</a> three", "[two](2) three"),
        ("<a href=1 HREF=2>one</a>", "[one](1)"),
        ("<a href=1><p>one</p><p>two</p></a>", "[one](1)\n\ntwo"),
    ] {
        assert_eq!(text(page), markdown, "{page}");
    }
}

#[test]
fn code_keeps_its_lines() {
    let page = "<p>run <code>ls</code><pre class='x language-rust'>\nfn a() {\n    b();\n\n}\n</pre>after\
        <pre><code class=lang-sh># ls<br>x</code></pre>";
    assert_eq!(text(page), "run ls\n\n```rust\nfn a() {\n    b();\n\n}\n```\n\nafter\n\n```sh\n# ls\nx\n```");
}

#[test]
fn quotations_are_marked() {
    assert_eq!(
        text("a<blockquote><p>b</p><ul><li>c</ul><blockquote>d</blockquote></blockquote>e"),
        "a\n\n> b\n>\n> - c\n>\n> > d\n\ne"
    );
}

#[test]
fn what_a_browser_hides_is_left_out() {
    for (page, shown) in [
        ("a<div hidden>b<div>c</div>d</div>e", "a\ne"),
        ("a<p style='color:red; Display: NONE'>b<p>c", "a\n\nc"),
        ("<ul><li>a<li hidden>b<li>c</ul>d", "- a\n- c\n\nd"),
        ("<ul><li>a<li hidden>b</ul>c", "- a\n\nc"),
        ("a<input type=hidden value=b><input type=text value='c d'><textarea>e\nf</textarea>", "a c d e f"),
        ("<details><summary>a</summary>b</details><dialog>c</dialog><dialog open>d</dialog>", "a\n\nb\n\nd"),
        ("a<img hidden alt=b><img alt='c  d' src=x>e", "a![c d]() e"),
        ("<dl><dt>a<dd>b<dt>c<dd>d</dl>", "a\nb\nc\nd"),
        ("<figure><img alt=a><figcaption>b</figcaption></figure>c", "![a]()\n\nb\n\nc"),
        ("<b style='display:none'>a</b>b<video>c</video>", "b"),
    ] {
        assert_eq!(text(page), shown, "{page}");
    }
}

#[test]
fn a_picture_in_the_page_is_for_ocr() {
    let limits = Limits::default();
    let bounds = Bounds::new(&limits, &|| ControlFlow::Continue(()));
    let long = "A".repeat(20_000);
    let page =
        format!("a<img src='data:image/png;base64,iVBO\nRw=='>b<img src='data:image/gif;base64,{long}'>");
    let reading = super::read(&page, bounds).unwrap();
    assert_eq!(reading.pictures[0].bytes, b"\x89PNG");
    assert_eq!(reading.pictures[0].text_offset, 1);
    assert_eq!(reading.pictures[1].bytes.len(), 15_000);
}

#[test]
fn tables_and_lists_without_end_are_bounded() {
    for page in [
        "<table><tr><td>".repeat(20_000) + "end",
        "<ul><li>".repeat(20_000) + "end",
        "<ul>".repeat(20_000) + "<li>end" + &"</ul>".repeat(20_000),
        "<blockquote>".repeat(20_000) + "end",
        "<a href=x>".repeat(20_000) + "end",
        "<table><tr><td colspan=1000 rowspan=65534>".to_owned() + &"<tr>".repeat(20_000) + "<td>end",
        "<pre>".repeat(20_000) + "end",
        "<p hidden><ul hidden></p>".repeat(10_000) + "</ul>end",
    ] {
        assert!(text(&page).contains("end"), "{}", &page[..40]);
    }
    let limits = Limits { cells: 10_000, ..Limits::default() };
    let bounds = Bounds::new(&limits, &|| ControlFlow::Continue(()));
    let page = "<table>".to_owned() + &"<tr><td colspan=1000>x<td>y".repeat(5_000);
    assert_eq!(super::read(&page, bounds).unwrap_err().kind(), ErrorKind::TooLarge);
}

#[test]
fn a_formula_is_latex_and_ends_with_what_is_no_part_of_it() {
    let page = "<p>Half is <math><semantics><mrow><mfrac><mn>1</mn><mn>2</mn></mfrac><mo>&lt;</mo><msup><mi>a</mi>\
        <mn>2</mn></msup><mspace/></mrow><annotation>\\frac</annotation></semantics></math>, so.";
    assert_eq!(read(page).text, "Half is $\\frac{1}{2}<a^{2}$, so.");
    // It has no end, and its second part is no element of a formula.
    assert_eq!(read("<math><mi>x</mi><mo>+</mo><p>After <b>it</b>").text, "$x+$\n\nAfter it");
    assert_eq!(read("<p>None: <math></math>.").text, "None: .");
    let deep = format!("<math>{}<mi>x</mi>", "<mrow>".repeat(9_000));
    assert_eq!(read(&deep).text, "x", "too deep or too long to be read as a formula");
}
