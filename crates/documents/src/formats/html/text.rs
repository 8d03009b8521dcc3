//! Writes the text of a page while its tags and words arrive.

mod blocks;

use super::super::base64;
use super::elements::{ends_by_itself, gap_around, heading_level, is_hidden_by, is_never_shown, is_void};
use super::formula::Formula;
use super::lists::List;
use super::tables::Grid;
use super::{Attributes, Pictures};
use crate::error::Error;
use crate::flow::{Flow, Gap};
use crate::limits::Bounds;

/// Lists, quotations and tables that are nested deeper than this are read as paragraphs.
const MAX_DEPTH: usize = 100;

pub struct Text<'a> {
    flow: Flow,
    bounds: Bounds<'a>,
    is_xhtml: bool,
    has_title: bool,
    pictures: Pictures<'a>,
    hidden: Option<Hidden>,
    /// The gap before the next word.
    gap: Gap,
    /// The lists, quotations and tables that are open.
    open: Vec<Block>,
    /// How many of them are tables.
    open_tables: usize,
    /// Those beyond [`MAX_DEPTH`], which are only counted.
    too_deep: usize,
    /// The elements that are open in an open heading.
    heading: Option<usize>,
    code: Option<Code>,
    formula: Option<Formula>,
    /// Whether the open link has words.
    link: Option<bool>,
    /// Whether a list item has begun that has no words yet.
    is_new_item: bool,
    /// For each table, whether it only arranges the page.
    layout: Vec<bool>,
    tables: usize,
    cells: usize,
}

/// The outermost hidden element that is open.
struct Hidden {
    element: String,
    /// Elements of this name, the outermost included.
    depth: usize,
    /// All elements that are open in it.
    inside: usize,
}

enum Block {
    List(List),
    Quote,
    Table(Grid),
    /// A table that only arranges the page.
    Layout,
}

/// A block of code while it is read.
struct Code {
    language: String,
    lines: String,
    depth: usize,
}

impl<'a> Text<'a> {
    pub fn new(is_xhtml: bool, layout: Vec<bool>, pictures: Pictures<'a>, bounds: Bounds<'a>) -> Self {
        Self {
            flow: Flow::new(bounds.limits),
            bounds,
            is_xhtml,
            has_title: true,
            pictures,
            hidden: None,
            gap: Gap::None,
            open: Vec::new(),
            open_tables: 0,
            too_deep: 0,
            heading: None,
            code: None,
            formula: None,
            link: None,
            is_new_item: false,
            layout,
            tables: 0,
            cells: 0,
        }
    }

    pub fn without_title(mut self) -> Self {
        self.has_title = false;
        self
    }

    /// Elements of XML may. In HTML the slash means nothing: `<script/>` begins a script.
    pub fn may_close_itself(&self, element: &str) -> bool {
        let in_drawing = self.hidden.as_ref().is_some_and(|hidden| hidden.element == "svg");
        self.is_xhtml || in_drawing || self.formula.is_some() || matches!(element, "svg" | "math")
    }

    pub fn check(&self) -> Result<(), Error> {
        if self.cells > self.bounds.limits.cells {
            return Err(self.bounds.limits.too_many_cells());
        }
        self.flow.check()
    }

    /// Ends everything that is still open.
    pub fn finish(mut self) -> Result<Flow, Error> {
        self.end_formula();
        self.end_code();
        self.end_heading();
        self.end_link();
        while let Some(block) = self.open.pop() {
            self.end_block(block);
        }
        self.check()?;
        Ok(self.flow)
    }

    pub fn words(&mut self, words: &str) {
        if self.hidden.is_some() {
            return;
        }
        if let Some(formula) = &mut self.formula {
            return formula.words(words);
        }
        if let Some(code) = &mut self.code {
            code.lines.push_str(words);
            return;
        }
        if words.trim().is_empty() {
            self.gap = self.gap.max(Gap::Space);
            return;
        }
        self.write_gap();
        // Marks where a long word may be broken are no part of it.
        if words.contains(['\u{AD}', '\u{200B}']) {
            self.flow.words(&words.replace(['\u{AD}', '\u{200B}'], ""));
        } else {
            self.flow.words(words);
        }
    }

    pub fn open(&mut self, element: &str, attributes: Attributes<'_>) {
        self.tables += usize::from(element == "table");
        if self.stays_hidden(element, attributes) {
            return;
        }
        if let Some(formula) = self.formula.as_mut().filter(|_| Formula::has(element)) {
            return formula.open(element);
        }
        self.end_formula();
        if self.code.is_some() {
            return self.open_in_code(element, attributes);
        }
        match element {
            "br" => self.widen(Gap::Line),
            "math" => self.formula = Some(Formula::new()),
            "a" => self.begin_link(attributes),
            "img" => self.picture(attributes),
            "input" => self.input(attributes),
            "ul" | "ol" | "menu" | "dir" => self.begin_list(element, attributes),
            "li" => self.begin_item(attributes),
            "blockquote" => self.begin_quote(),
            "table" => self.begin_table(),
            "thead" | "tbody" | "tfoot" => self.end_row(),
            "tr" => self.begin_row(),
            "td" | "th" => self.begin_cell(attributes),
            "pre" | "xmp" | "listing" => {
                self.structure();
                self.code = Some(Code { language: language(attributes), lines: String::new(), depth: 1 });
            }
            _ => match heading_level(element) {
                Some(level) => {
                    self.structure();
                    self.end_implied_list();
                    self.flow.begin_heading(level);
                    self.heading = Some(0);
                }
                None => self.open_other(element),
            },
        }
    }

    fn open_other(&mut self, element: &str) {
        let gap = gap_around(element);
        if element == "hr" || element == "section" {
            self.end_heading();
        }
        if let Some(inside) = self.heading.as_mut().filter(|_| gap >= Gap::Line && !is_void(element)) {
            *inside += 1;
        }
        self.widen(gap);
    }

    pub fn close(&mut self, element: &str) {
        if self.closes_hidden(element) {
            return;
        }
        if let Some(formula) = self.formula.as_mut().filter(|_| Formula::has(element)) {
            return formula.close(element);
        }
        self.end_formula();
        if self.code.is_some() {
            return self.close_in_code(element);
        }
        match element {
            // Browsers read it as a break and an empty paragraph.
            "br" => self.widen(Gap::Line),
            "a" => self.end_link(),
            "ul" | "ol" | "menu" | "dir" => self.end_list(),
            "li" => {
                self.end_link();
                self.widen(Gap::Line);
            }
            "blockquote" => self.end_quote(),
            "table" => self.end_table(),
            "tr" | "thead" | "tbody" | "tfoot" => self.end_row(),
            "td" | "th" => self.end_cell(),
            _ if heading_level(element).is_some() => self.end_heading(),
            _ => self.close_other(element),
        }
    }

    fn close_other(&mut self, element: &str) {
        let gap = gap_around(element);
        if gap >= Gap::Line {
            match &mut self.heading {
                // The heading has no end of its own.
                Some(0) => self.end_heading(),
                Some(inside) => *inside -= 1,
                None => {}
            }
            if matches!(element, "div" | "body" | "section" | "form" | "center") {
                self.end_implied_list();
            }
        }
        self.widen(gap);
    }

    // --- Hidden elements ---

    /// Whether the element is hidden, or inside one that is.
    fn stays_hidden(&mut self, element: &str, attributes: Attributes<'_>) -> bool {
        if let Some(hidden) = &mut self.hidden {
            let ends = hidden.inside == 0 && ends_by_itself(&hidden.element) && hidden.element == element;
            if !ends {
                hidden.depth += usize::from(hidden.element == element);
                hidden.inside += usize::from(!is_void(element) && !ends_by_itself(element));
                return true;
            }
            self.hidden = None;
        }
        let is_title = element == "title" && !self.has_title;
        if is_title || is_never_shown(element) || is_hidden_by(element, attributes) && !is_void(element) {
            self.hidden = Some(Hidden { element: element.to_owned(), depth: 1, inside: 0 });
            self.widen(gap_around(element));
            return true;
        }
        // An element without content may be hidden too.
        is_hidden_by(element, attributes)
    }

    fn closes_hidden(&mut self, element: &str) -> bool {
        let Some(hidden) = &mut self.hidden else { return false };
        if hidden.element == element {
            hidden.depth -= 1;
            if hidden.depth == 0 {
                self.hidden = None;
            } else if !ends_by_itself(element) {
                hidden.inside = hidden.inside.saturating_sub(1);
            }
            return true;
        }
        // What is around it ends, and so it does.
        if hidden.inside == 0 && ends_by_itself(&hidden.element) && !ends_by_itself(element) {
            self.hidden = None;
            return false;
        }
        hidden.inside = hidden.inside.saturating_sub(usize::from(!ends_by_itself(element)));
        true
    }

    // --- Gaps, headings, links, pictures, fields ---

    fn end_formula(&mut self) {
        let Some(formula) = self.formula.take() else { return };
        match formula.finish(self.bounds) {
            Ok(latex) => {
                self.write_gap();
                self.flow.verbatim(&format!("${latex}$"));
            }
            Err(words) => self.words(&words),
        }
    }

    fn widen(&mut self, gap: Gap) {
        if !self.is_new_item {
            self.gap = self.gap.max(gap);
        }
    }

    fn write_gap(&mut self) {
        let mut gap = std::mem::take(&mut self.gap);
        if self.heading.is_some() {
            gap = gap.min(Gap::Space);
        }
        if gap >= Gap::Line && self.link == Some(true) {
            self.end_link();
        }
        if let Some(has_words) = &mut self.link {
            *has_words = true;
        }
        self.is_new_item = false;
        self.flow.widen(gap);
    }

    /// Prepares for a list, a table or the like, before which the flow makes the gap.
    fn structure(&mut self) {
        self.end_heading();
        // A link may be around a heading or a list; then it is that of the first words.
        if self.link == Some(true) {
            self.end_link();
        }
        self.gap = Gap::None;
        self.is_new_item = false;
    }

    fn end_heading(&mut self) {
        if self.heading.take().is_some() {
            self.end_link();
            self.flow.end_heading();
            self.gap = Gap::Paragraph;
        }
    }

    fn begin_link(&mut self, attributes: Attributes<'_>) {
        self.end_link();
        if let Some(target) = attributes.get("href") {
            self.flow.begin_link(target);
            self.link = Some(false);
        }
    }

    fn end_link(&mut self) {
        if self.link.take().is_some() {
            self.flow.end_link();
        }
    }

    fn picture(&mut self, attributes: Attributes<'_>) {
        if let Some(description) = attributes.get("alt").filter(|text| !text.trim().is_empty()) {
            self.write_gap();
            self.flow.alt_text(description);
            self.gap = Gap::Space;
        }
        let Some(source) = attributes.get("src") else { return };
        if let Some(picture) = inline_picture(source).or_else(|| (self.pictures)(source)) {
            self.flow.picture(None, &picture);
        }
    }

    fn input(&mut self, attributes: Attributes<'_>) {
        let kind = attributes.get("type").unwrap_or("text").trim().to_ascii_lowercase();
        let value = match kind.as_str() {
            "hidden" | "password" | "image" | "file" | "color" | "range" => return,
            "checkbox" | "radio" if attributes.get("checked").is_some() => "[x]",
            "checkbox" | "radio" => "[ ]",
            _ => attributes.get("value").unwrap_or_default(),
        };
        self.widen(Gap::Space);
        if !value.trim().is_empty() {
            self.write_gap();
            self.flow.words(value);
        }
        self.widen(Gap::Space);
    }

    // --- Code ---

    fn open_in_code(&mut self, element: &str, attributes: Attributes<'_>) {
        let Some(code) = &mut self.code else { return };
        match element {
            "pre" | "xmp" | "listing" => code.depth += 1,
            "br" => code.lines.push('\n'),
            "code" if code.language.is_empty() => code.language = language(attributes),
            // Each line of a listing may be an element of its own.
            "div" | "p" | "li" | "tr" if !code.lines.is_empty() && !code.lines.ends_with('\n') => {
                code.lines.push('\n');
            }
            _ => {}
        }
    }

    fn close_in_code(&mut self, element: &str) {
        let Some(code) = &mut self.code else { return };
        match element {
            "pre" | "xmp" | "listing" => {
                code.depth -= 1;
                if code.depth == 0 {
                    self.end_code();
                }
            }
            // A page of which the end of the code is missing.
            "body" | "table" => self.end_code(),
            _ => {}
        }
    }

    fn end_code(&mut self) {
        if let Some(code) = self.code.take() {
            self.flow.code_block(&code.language, &code.lines);
            self.gap = Gap::Paragraph;
        }
    }
}

/// The language of code, as the programs that colour it write it into the class.
fn language(attributes: Attributes<'_>) -> String {
    let class = attributes.get("class").unwrap_or_default();
    let prefixes = ["language-", "lang-", "highlight-source-", "brush:"];
    let named = |class: &str| {
        let name = prefixes.iter().find_map(|prefix| class.strip_prefix(prefix))?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '#' | '_');
        (!name.is_empty() && name.len() <= 30 && name.chars().all(is_name)).then(|| name.to_owned())
    };
    class.split_whitespace().find_map(named).unwrap_or_default()
}

/// A picture that is written into the page.
fn inline_picture(source: &str) -> Option<Vec<u8>> {
    let (kind, content) = source.trim().strip_prefix("data:image/")?.split_once(',')?;
    if !kind.ends_with(";base64") || kind.starts_with("svg") {
        return None;
    }
    Some(base64::decode(content))
}
