//! The styles of an OpenDocument file: which paragraphs are headings, and how lists are numbered.

use std::collections::{HashMap, HashSet};

use crate::elements::{Element, Elements, Piece};
use crate::error::Error;
use crate::formats::numerals::{BULLET, Numerals};
use crate::limits::Bounds;

/// Lists and headings have ten levels.
pub const LEVELS: usize = 10;
/// How many styles may inherit from one another. A longer chain is a cycle.
const MAX_CHAIN: usize = 16;

#[derive(Default)]
pub struct Styles {
    paragraphs: HashMap<String, Paragraph>,
    lists: HashMap<String, ListStyle>,
    /// The numbers of headings.
    pub outline: ListStyle,
    /// The styles of words, sheets and slides that are not shown.
    hidden: HashSet<String>,
}

#[derive(Default)]
struct Paragraph {
    parent: Option<String>,
    list: Option<String>,
    name: String,
}

pub type ListStyle = [Option<Level>; LEVELS];

#[derive(Clone, Default)]
pub struct Level {
    pub numerals: Numerals,
    prefix: String,
    suffix: String,
    /// How many levels are shown in the number.
    shown: usize,
    pub start: u32,
}

impl Styles {
    /// Adds the styles of a part. Those of the content are added after those of the document.
    pub fn add(&mut self, source: &str, bounds: Bounds<'_>) -> Result<(), Error> {
        let mut elements = Elements::new(source, bounds);
        let mut list: Option<String> = None;
        let mut style: Option<String> = None;
        while let Some(piece) = elements.next()? {
            match piece {
                Piece::Open(element) => match element.name() {
                    "body" | "master-styles" | "font-face-decls" | "meta" | "settings" => elements.skip()?,
                    "style" => {
                        let id = element.attribute("name").unwrap_or_default();
                        if element.attribute("family").as_deref() == Some("paragraph") {
                            self.paragraphs.insert(id.clone(), Paragraph::of(&element, &id));
                        }
                        style = Some(id);
                    }
                    "text-properties" | "table-properties" | "drawing-page-properties" => {
                        self.hidden.extend(style.clone().filter(|_| hides(&element)));
                    }
                    "list-style" => {
                        list = element.attribute("name");
                        if let Some(id) = &list {
                            self.lists.insert(id.clone(), ListStyle::default());
                        }
                    }
                    "list-level-style-number" | "list-level-style-bullet" | "list-level-style-image" => {
                        if let Some(levels) = list.as_ref().and_then(|id| self.lists.get_mut(id)) {
                            set_level(levels, &element);
                        }
                    }
                    "outline-level-style" => set_level(&mut self.outline, &element),
                    _ => {}
                },
                Piece::Close(name) if name == "list-style" => list = None,
                Piece::Close(name) if name == "style" => style = None,
                _ => {}
            }
        }
        Ok(())
    }

    pub fn is_hidden(&self, style: Option<&str>) -> bool {
        style.is_some_and(|style| self.hidden.contains(style))
    }

    pub fn list(&self, style: &str) -> Option<&ListStyle> {
        self.lists.get(style)
    }

    /// The list style that a paragraph brings with it.
    pub fn list_of_paragraph(&self, style: &str) -> Option<String> {
        self.chain(style).find_map(|paragraph| paragraph.list.clone()).filter(|list| !list.is_empty())
    }

    pub fn role(&self, style: &str) -> Role {
        if !self.paragraphs.contains_key(style) {
            // A style of the program itself need not be in the file.
            return role_of(&shown_name(style));
        }
        let mut roles = self.chain(style).map(|paragraph| role_of(&paragraph.name));
        roles.find(|role| *role != Role::Text).unwrap_or(Role::Text)
    }

    fn chain<'a>(&'a self, style: &str) -> impl Iterator<Item = &'a Paragraph> {
        let first = self.paragraphs.get(style);
        let next = |paragraph: &&Paragraph| self.paragraphs.get(paragraph.parent.as_deref()?);
        std::iter::successors(first, next).take(MAX_CHAIN)
    }
}

/// Whether what has these properties is not shown.
fn hides(properties: &Element<'_>) -> bool {
    match properties.name() {
        "text-properties" => properties.attribute("display").as_deref() == Some("none"),
        "table-properties" => properties.attribute("display").as_deref() == Some("false"),
        _ => properties.attribute("visibility").as_deref() == Some("hidden"),
    }
}

/// What a paragraph is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Text,
    Title,
    Code,
    Quote,
}

impl Paragraph {
    fn of(element: &Element<'_>, id: &str) -> Self {
        let name = element.attribute("display-name").map(|name| name.to_lowercase());
        Self {
            parent: element.attribute("parent-style-name"),
            list: element.attribute("list-style-name"),
            name: name.unwrap_or_else(|| shown_name(id)),
        }
    }
}

fn shown_name(id: &str) -> String {
    id.replace("_20_", " ").to_lowercase()
}

fn role_of(name: &str) -> Role {
    match name {
        "title" => Role::Title,
        "preformatted text" | "source code" | "code" => Role::Code,
        "quotations" | "quote" => Role::Quote,
        _ => Role::Text,
    }
}

fn set_level(levels: &mut ListStyle, element: &Element<'_>) {
    let number = |name: &str| element.attribute(name).and_then(|number| number.parse::<usize>().ok());
    let Some(level) = number("level").and_then(|level| level.checked_sub(1)).filter(|level| *level < LEVELS)
    else {
        return;
    };
    let is_number = matches!(element.name(), "list-level-style-number" | "outline-level-style");
    levels[level] = Some(if is_number {
        Level {
            numerals: Numerals::of_example(&element.attribute("num-format").unwrap_or_default()),
            prefix: element.attribute("num-prefix").unwrap_or_default(),
            suffix: element.attribute("num-suffix").unwrap_or_default(),
            shown: number("display-levels").unwrap_or(1).clamp(1, level + 1),
            start: number("start-value").and_then(|start| u32::try_from(start).ok()).unwrap_or(1),
        }
    } else {
        Level { numerals: Numerals::Bullet, start: 1, ..Level::default() }
    });
}

/// The marker of an item at a level, with these numbers at the levels above it and at its own.
pub fn marker(levels: &ListStyle, level: usize, numbers: &[u32]) -> String {
    let Some(own) = levels.get(level).and_then(Option::as_ref) else { return BULLET.to_owned() };
    match own.numerals {
        Numerals::Bullet => return BULLET.to_owned(),
        Numerals::None => return String::new(),
        _ => {}
    }
    let first = (level + 1).saturating_sub(own.shown);
    let shown: Vec<String> = (first..=level)
        .filter_map(|at| {
            let numerals = levels[at].as_ref().map(|level| level.numerals).unwrap_or_default();
            let number = numerals.write(numbers.get(at).copied().unwrap_or(1));
            (!number.is_empty()).then_some(number)
        })
        .collect();
    format!("{}{}{}", own.prefix, shown.join("."), own.suffix).trim().to_owned()
}
