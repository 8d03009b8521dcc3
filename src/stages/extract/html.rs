//! The text that a person sees on a page, a block a paragraph, with the headings it stands under.

use scraper::{Html, Node};

use crate::failure::{Code, Failure};
use crate::stages::{Extracted, Markup, Place};

/// Deeper than any page that a person wrote. The parser's time grows with the square of the depth.
const DEEPEST: usize = 512;

pub fn looks_like(text: &str) -> bool {
    let start = text.trim_start();
    let start = &start.as_bytes()[..start.len().min(32)].to_ascii_lowercase();
    [&b"<!doctype html"[..], b"<html"].iter().any(|mark| start.starts_with(mark))
}

pub fn extract(source: &str) -> Result<Extracted, Failure> {
    if nesting(source) > DEEPEST {
        return Err(Failure::new(
            Code::ValidationError,
            format!("The page nests its elements deeper than {DEEPEST} levels"),
        ));
    }
    let page = Html::parse_document(source);
    let mut text = Text::default();
    // Not recursion: how deep the parser lets elements go is not ours to say.
    for edge in page.tree.root().traverse() {
        match edge {
            ego_tree::iter::Edge::Open(node) => match node.value() {
                Node::Text(words) if text.hidden == 0 => text.words(words),
                Node::Element(element) => text.open(element.name()),
                _ => {}
            },
            ego_tree::iter::Edge::Close(node) => {
                if let Node::Element(element) = node.value() {
                    text.close(element.name());
                }
            }
        }
    }
    Ok(text.finish())
}

/// How deep elements nest at the most, seen before any parser is let loose on them. Tags that are never closed count
/// as nesting, which is what the parser will make of them too, except for those that cannot contain anything.
fn nesting(source: &str) -> usize {
    const VOID: &[&str] = &[
        "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source",
        "track", "wbr", "p", "li", "td", "th", "tr", "dt", "dd", "option",
    ];
    let (mut depth, mut deepest) = (0_usize, 0);
    for tag in source.split('<').skip(1) {
        if let Some(_closing) = tag.strip_prefix('/') {
            depth = depth.saturating_sub(1);
        } else if tag.starts_with(|c: char| c.is_ascii_alphabetic()) {
            let name: String =
                tag.chars().take_while(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
            let closed_at_once = tag.split('>').next().is_some_and(|inside| inside.ends_with('/'));
            if !closed_at_once && !VOID.contains(&name.as_str()) {
                depth += 1;
                deepest = deepest.max(depth);
            }
        }
    }
    deepest
}

#[derive(Default)]
struct Text {
    text: String,
    places: Vec<Place>,
    /// How many elements we are in that show nothing.
    hidden: usize,
    /// Whether a space, a line break or an empty line is due before the next word.
    gap: Gap,
    heading_start: Option<usize>,
    preformatted: usize,
}

#[derive(Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Gap {
    #[default]
    None,
    Space,
    Line,
    Paragraph,
}

impl Text {
    fn open(&mut self, element: &str) {
        if is_hidden(element) {
            self.hidden += 1;
        }
        match element {
            "br" => self.widen(Gap::Line),
            "td" | "th" => self.widen(Gap::Space),
            _ => self.widen(gap_around(element)),
        }
        if element == "pre" {
            self.preformatted += 1;
        }
        if is_heading(element) {
            self.heading_start = Some(self.text.len());
        }
    }

    fn close(&mut self, element: &str) {
        if is_hidden(element) {
            self.hidden -= 1;
        }
        if element == "pre" {
            self.preformatted -= 1;
        }
        if is_heading(element)
            && let Some(start) = self.heading_start.take()
        {
            let heading = self.text[start..].trim();
            if !heading.is_empty() {
                let start = self.text.len() - self.text[start..].trim_start().len();
                self.places.push(Place { start, page: None, heading: Some(heading.to_owned()) });
            }
        }
        self.widen(gap_around(element));
    }

    fn words(&mut self, words: &str) {
        if self.preformatted > 0 {
            self.fill_gap();
            self.text.push_str(words);
            return;
        }
        if words.starts_with(char::is_whitespace) {
            self.widen(Gap::Space);
        }
        for (number, word) in words.split_whitespace().enumerate() {
            if number > 0 {
                self.widen(Gap::Space);
            }
            self.fill_gap();
            self.text.push_str(word);
        }
        if words.ends_with(char::is_whitespace) {
            self.widen(Gap::Space);
        }
    }

    fn widen(&mut self, gap: Gap) {
        self.gap = self.gap.max(gap);
    }

    fn fill_gap(&mut self) {
        if !self.text.is_empty() {
            self.text.push_str(match self.gap {
                Gap::None => "",
                Gap::Space => " ",
                Gap::Line => "\n",
                Gap::Paragraph => "\n\n",
            });
        }
        self.gap = Gap::None;
    }

    fn finish(self) -> Extracted {
        Extracted { text: self.text, markup: Markup::Plain, places: self.places }
    }
}

fn is_hidden(element: &str) -> bool {
    matches!(element, "script" | "style" | "template" | "noscript" | "head" | "svg" | "iframe" | "object")
}

fn is_heading(element: &str) -> bool {
    matches!(element, "h1" | "h2" | "h3" | "h4" | "h5" | "h6")
}

fn gap_around(element: &str) -> Gap {
    match element {
        "p" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "ul" | "ol" | "dl" | "table" | "pre"
        | "blockquote" | "section" | "article" | "header" | "footer" | "main" | "nav" | "aside"
        | "figure" | "form" | "hr" => Gap::Paragraph,
        "div" | "li" | "tr" | "dt" | "dd" | "figcaption" | "caption" | "address" | "option" | "body" => {
            Gap::Line
        }
        _ => Gap::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_becomes_what_a_person_reads_on_it() {
        let page = "<html><head><title>T</title><style>p{}</style></head><body><h1>Over <i>view</i></h1>
            <p>One&nbsp;two
            three.</p><ul><li>first<li>second</ul><table><tr><td>a</td><td>b</td></tr></table>
            <script>alert(1)</script></body></html>";
        let extracted = extract(page).unwrap();
        assert_eq!(extracted.text, "Over view\n\nOne two three.\n\nfirst\nsecond\n\na b");
        assert_eq!(extracted.places, [Place { start: 0, page: None, heading: Some("Over view".to_owned()) }]);
    }

    #[test]
    fn words_that_only_markup_divides_stay_one_word() {
        assert_eq!(extract("<p>un<b>believ</b>able</p>").unwrap().text, "unbelievable");
    }

    #[test]
    fn a_page_that_nests_without_end_is_refused_before_it_is_parsed() {
        let bomb = "<div>".repeat(300_000);
        assert_eq!(extract(&bomb).unwrap_err().code, Code::ValidationError);
    }
}
