//! Paragraphs and headings of an OpenDocument text.

use super::body::Body;
use super::styles::Role;
use crate::elements::Element;
use crate::flow::Gap;

/// The most spaces that one element stands for.
const MAX_SPACES: usize = 100;

/// Where the words go that are read.
#[derive(Default)]
pub struct Paragraphs {
    /// Nested paragraphs.
    pub open: usize,
    /// Lines of code that were not written yet.
    code: Vec<String>,
    in_code: bool,
    /// Whether the next paragraph goes on in the line that was begun.
    pub goes_on: bool,
    in_quote: bool,
}

impl Body<'_, '_> {
    pub fn begin_paragraph(&mut self, element: &Element<'_>) {
        let style = element.attribute("style-name").unwrap_or_default();
        self.paragraphs.open += 1;
        let goes_on = std::mem::take(&mut self.paragraphs.goes_on);
        if self.paragraphs.open > 1 || self.in_title || goes_on {
            return self.flow.widen(Gap::Space);
        }
        if self.tables.is_open() {
            self.flow.widen(Gap::Space);
            return self.lists.begin_paragraph(&self.styles, &style, &mut self.flow);
        }
        let role = self.styles.role(&style);
        self.end_blocks(role);
        self.lists.end_items(&mut self.flow);
        match role {
            Role::Code => {
                self.paragraphs.in_code = true;
                self.paragraphs.code.push(String::new());
                return;
            }
            Role::Title => return self.flow.begin_heading(1),
            Role::Quote if !self.paragraphs.in_quote => {
                self.paragraphs.in_quote = true;
                self.flow.begin_quote();
            }
            Role::Quote | Role::Text => {}
        }
        if !self.lists.is_new() {
            self.flow.widen(Gap::Paragraph);
        }
        self.lists.begin_paragraph(&self.styles, &style, &mut self.flow);
    }

    pub fn begin_heading(&mut self, element: &Element<'_>) {
        if self.tables.is_open() || self.paragraphs.open > 0 {
            return self.begin_paragraph(element);
        }
        self.paragraphs.open += 1;
        self.end_blocks(Role::Text);
        self.lists.end_all_items(&mut self.flow);
        let level = element.attribute("outline-level").and_then(|level| level.parse().ok()).unwrap_or(1);
        let number = self.lists.heading_number(&self.styles, element, level);
        self.flow.begin_heading(u8::try_from(level).unwrap_or(u8::MAX));
        if !number.is_empty() {
            self.flow.words(&number);
            self.flow.widen(Gap::Space);
        }
    }

    pub fn end_paragraph(&mut self) {
        self.paragraphs.open = self.paragraphs.open.saturating_sub(1);
        if self.paragraphs.open > 0 || self.in_title || self.tables.is_open() {
            return self.flow.widen(Gap::Space);
        }
        if std::mem::take(&mut self.paragraphs.in_code) {
            return;
        }
        self.flow.end_heading();
        if !self.lists.is_open() {
            self.flow.widen(Gap::Paragraph);
        }
    }

    /// White space between the elements is not text.
    pub fn words(&mut self, words: &str) {
        if self.paragraphs.in_code {
            self.paragraphs.add_code(words);
        } else if self.paragraphs.open > 0 {
            self.flow.words(words);
        }
    }

    /// A gap in a paragraph, which is on one line in a cell and in a title.
    pub fn gap(&mut self, gap: Gap, number: usize) {
        if self.paragraphs.in_code {
            let space = match gap {
                Gap::Tab => "\t".to_owned(),
                Gap::Space => " ".repeat(number.min(MAX_SPACES)),
                _ => "\n".to_owned(),
            };
            self.paragraphs.add_code(&space);
        } else if self.paragraphs.open > 0 {
            self.flow.widen(if self.flow.is_in_heading() { Gap::Space } else { gap });
        }
    }

    /// Ends the code and the quotation that a paragraph of this role is not in.
    pub fn end_blocks(&mut self, next: Role) {
        if next != Role::Code && !self.paragraphs.code.is_empty() {
            let lines = std::mem::take(&mut self.paragraphs.code);
            self.flow.code_block("", &lines.join("\n"));
        }
        if next != Role::Quote && std::mem::take(&mut self.paragraphs.in_quote) {
            self.flow.end_quote();
        }
    }
}

impl Paragraphs {
    fn add_code(&mut self, code: &str) {
        if let Some(line) = self.code.last_mut() {
            line.push_str(code);
        }
    }
}
