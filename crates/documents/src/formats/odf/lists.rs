//! The open lists of an OpenDocument text, and how far they have counted.

use std::collections::HashMap;

use super::styles::{LEVELS, ListStyle, Styles, marker};
use crate::elements::Element;
use crate::flow::Flow;
use crate::formats::items::{ListItem, OpenItems};
use crate::formats::numerals::{BULLET, Numerals};

/// Counters of lists that later ones may go on with.
const MAX_REMEMBERED: usize = 10_000;

#[derive(Default)]
pub struct Lists {
    open: Vec<List>,
    /// The items that are open in the flow. They stay open after their list: the next one may go on inside them.
    items: OpenItems,
    numbers: Vec<u32>,
    /// How far the lists have counted that are closed, by style and by id.
    by_style: HashMap<String, Vec<u32>>,
    by_id: HashMap<String, Vec<u32>>,
    headings: [u32; LEVELS],
}

/// Lists that were open where another text begins.
pub struct OpenLists {
    open: Vec<List>,
    items: OpenItems,
    numbers: Vec<u32>,
}

#[derive(Default)]
struct List {
    style: Option<String>,
    id: Option<String>,
    item: Item,
}

/// The open item of a list.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Item {
    #[default]
    None,
    /// Without words so far, with the number that it begins at if it has one of its own.
    New(Option<u32>),
    /// A header of the list, which has no marker.
    Header,
    Begun,
    /// It has words, but they are a heading.
    Heading,
}

impl Lists {
    pub fn begin_list(&mut self, element: &Element<'_>) {
        let own = element.attribute("style-name").filter(|style| !style.is_empty());
        let style = own.or_else(|| self.open.last().and_then(|list| list.style.clone()));
        let goes_on = element.attribute("continue-numbering").as_deref() == Some("true");
        if self.open.is_empty() {
            let by_id = element.attribute("continue-list").and_then(|id| self.by_id.get(&id));
            let by_style = style.as_ref().filter(|_| goes_on).and_then(|style| self.by_style.get(style));
            self.numbers = by_id.or(by_style).cloned().unwrap_or_default();
        }
        let id = element.attribute("id");
        self.open.push(List { style, id, item: Item::None });
    }

    pub fn end_list(&mut self, flow: &mut Flow) {
        let Some(list) = self.open.pop() else { return };
        if self.open.is_empty() && self.by_id.len() + self.by_style.len() < MAX_REMEMBERED {
            self.by_id.extend(list.id.map(|id| (id, self.numbers.clone())));
            self.by_style.extend(list.style.map(|style| (style, self.numbers.clone())));
        }
        if !self.open.is_empty() {
            self.items.end_from(self.open.len(), flow);
        }
    }

    /// A heading follows, which is in no item even if it is in a list.
    pub fn end_all_items(&mut self, flow: &mut Flow) {
        self.items.end(flow);
    }

    /// Something that is in no list follows.
    pub fn end_items(&mut self, flow: &mut Flow) {
        if self.open.is_empty() {
            self.items.end(flow);
        }
    }

    pub fn begin_item(&mut self, element: &Element<'_>) {
        let start = element.attribute("start-value").and_then(|start| start.parse().ok());
        let is_header = element.name() == "list-header";
        if let Some(list) = self.open.last_mut() {
            list.item = if is_header { Item::Header } else { Item::New(start) };
        }
    }

    pub fn end_item(&mut self) {
        if let Some(list) = self.open.last_mut() {
            list.item = Item::None;
        }
    }

    /// The first paragraph of an item begins it.
    pub fn begin_paragraph(&mut self, styles: &Styles, paragraph_style: &str, flow: &mut Flow) {
        let Some(marker) = self.count(styles, paragraph_style) else { return };
        let level = self.open.len().saturating_sub(1);
        let Some(list) = self.open.last_mut() else { return };
        list.item = Item::Begun;
        if !marker.is_empty() {
            let item = ListItem { list: list.style.clone().unwrap_or_default(), level };
            self.items.begin(item, &marker, flow);
        }
    }

    /// The number of a heading, by its place in a list or by its level.
    pub fn heading_number(&mut self, styles: &Styles, element: &Element<'_>, level: usize) -> String {
        let style = element.attribute("style-name").unwrap_or_default();
        if let Some(marker) = self.count(styles, &style) {
            if let Some(list) = self.open.last_mut() {
                list.item = Item::Heading;
            }
            if marker != BULLET {
                return marker;
            }
        }
        let level = level.clamp(1, LEVELS) - 1;
        if element.attribute("is-list-header").as_deref() == Some("true") {
            return String::new();
        }
        let start = |at: usize| styles.outline[at].as_ref().map_or(1, |level| level.start);
        self.headings[level] =
            if self.headings[level] == 0 { start(level) } else { self.headings[level].saturating_add(1) };
        self.headings[level + 1..].fill(0);
        let is_numbered = styles.outline[level]
            .as_ref()
            .is_some_and(|level| !matches!(level.numerals, Numerals::None | Numerals::Bullet));
        let numbers: Vec<u32> = (0..LEVELS).map(|at| self.headings[at].max(1)).collect();
        if is_numbered { marker(&styles.outline, level, &numbers) } else { String::new() }
    }

    /// Counts the open item if it is new, and returns its marker.
    fn count(&mut self, styles: &Styles, paragraph_style: &str) -> Option<String> {
        let level = self.open.len().checked_sub(1)?;
        let list = &self.open[level];
        let Item::New(start) = list.item else { return None };
        let of_paragraph = || styles.list_of_paragraph(paragraph_style);
        let style = list.style.clone().or_else(of_paragraph);
        let none = ListStyle::default();
        let levels = style.as_deref().and_then(|style| styles.list(style)).unwrap_or(&none);
        let first = |at: usize| levels.get(at).and_then(Option::as_ref).map_or(1, |level| level.start);
        while self.numbers.len() < level {
            self.numbers.push(first(self.numbers.len()));
        }
        let next = self.numbers.get(level).map_or_else(|| first(level), |number| number.saturating_add(1));
        self.numbers.truncate(level);
        self.numbers.push(start.unwrap_or(next));
        Some(marker(levels, level, &self.numbers))
    }

    pub fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Whether the next paragraph is the first of its item.
    pub fn is_new(&self) -> bool {
        self.open.last().is_some_and(|list| matches!(list.item, Item::New(_)))
    }

    /// Takes the open lists away, for a text of its own in one of them.
    pub fn set_aside(&mut self) -> OpenLists {
        OpenLists {
            open: std::mem::take(&mut self.open),
            items: std::mem::take(&mut self.items),
            numbers: std::mem::take(&mut self.numbers),
        }
    }

    pub fn put_back(&mut self, lists: OpenLists, flow: &mut Flow) {
        self.items.end(flow);
        (self.open, self.items, self.numbers) = (lists.open, lists.items, lists.numbers);
    }
}
