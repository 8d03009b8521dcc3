//! What the styles of a document say about its paragraphs: heading, list, code, quotation.

use std::collections::HashMap;

use crate::elements::{Element, Elements, Piece};
use crate::error::Error;
use crate::limits::Bounds;

/// How many styles may inherit from one another. A longer chain is a cycle.
const MAX_CHAIN: usize = 16;

#[derive(Default)]
pub struct Styles(HashMap<String, Style>);

/// What a style says, with what it inherits.
#[derive(Default, Clone)]
pub struct Style {
    based_on: Option<String>,
    /// The level of a heading, from 1; 0 for a style that is no heading although it inherits from one.
    heading: Option<u8>,
    pub list: Option<String>,
    pub list_level: Option<usize>,
    /// How deep the lists of the built-in styles `List Bullet 2` to `List Number 5` are in others.
    list_depth: Option<usize>,
    /// The style whose list this is: this one, or one that it inherits from.
    pub list_style: Option<String>,
    code: Option<bool>,
    quote: Option<bool>,
    monospaced: Option<bool>,
}

impl Style {
    pub fn heading(&self) -> Option<u8> {
        self.heading.filter(|level| *level > 0)
    }

    pub fn list_depth(&self) -> usize {
        self.list_depth.unwrap_or(0)
    }

    pub fn is_code(&self) -> bool {
        self.code == Some(true)
    }

    pub fn is_quote(&self) -> bool {
        self.quote == Some(true)
    }

    pub fn is_monospaced(&self) -> bool {
        self.monospaced == Some(true)
    }
}

impl Styles {
    pub fn read(source: &str, bounds: Bounds<'_>) -> Result<Self, Error> {
        let mut styles: HashMap<String, Style> = HashMap::new();
        let mut elements = Elements::new(source, bounds);
        let mut current = None;
        while let Some(piece) = elements.next()? {
            let Piece::Open(element) = piece else { continue };
            if element.name() == "style" {
                current = element.attribute("styleId");
                if let Some(id) = &current {
                    styles.insert(id.clone(), Style::default());
                }
            } else if let Some(id) = &current
                && let Some(style) = styles.get_mut(id)
            {
                style.set(&element, id);
            }
        }
        let resolved = styles.keys().map(|id| (id.clone(), resolved(&styles, id))).collect();
        Ok(Self(resolved))
    }

    pub fn get(&self, id: &str) -> Style {
        let known = self.0.get(id).cloned();
        // Some programs use the styles of Word without defining them.
        known.unwrap_or_else(|| Style { heading: level_of_id(id), ..Style::default() })
    }
}

impl Style {
    fn set(&mut self, element: &Element<'_>, id: &str) {
        let value = || element.attribute("val").unwrap_or_default();
        match element.name() {
            // The names of the built-in styles are English in every language.
            "name" => {
                let name = value().to_lowercase();
                self.heading = self.heading.or(level_of_name(&name));
                self.list_depth = depth_of_name(&name);
                self.code = is_code_name(&name).then_some(true);
                self.quote =
                    matches!(name.as_str(), "quote" | "intense quote" | "block text").then_some(true);
            }
            "basedOn" => self.based_on = Some(value()),
            "outlineLvl" => self.heading = Some(heading_level(&value())),
            "numId" => {
                self.list = Some(value());
                self.list_style = Some(id.to_owned());
            }
            "ilvl" => self.list_level = value().parse().ok(),
            "rFonts" => self.monospaced = Some(is_monospaced(element)),
            _ => {}
        }
    }
}

/// The level of a heading by an outline level. Nine levels are headings, the tenth is body text, which is 0 here.
pub fn heading_level(outline_level: &str) -> u8 {
    outline_level.parse::<u8>().ok().filter(|level| *level < 9).map_or(0, |level| level + 1)
}

/// Whether an element that can be switched off is on.
pub fn is_on(element: &Element<'_>) -> bool {
    !matches!(element.attribute("val").as_deref(), Some("0" | "false" | "off"))
}

/// Whether all letters of the font are equally wide, as code is written.
pub fn is_monospaced(fonts: &Element<'_>) -> bool {
    const FONTS: &[&str] = &[
        "courier",
        "consolas",
        "menlo",
        "monaco",
        "lucida console",
        "cascadia",
        "source code",
        "fira code",
        "fira mono",
        "jetbrains mono",
        "dejavu sans mono",
        "liberation mono",
        "ubuntu mono",
        "roboto mono",
        "andale mono",
        "sf mono",
        "inconsolata",
    ];
    let font =
        fonts.attribute("ascii").or_else(|| fonts.attribute("hAnsi")).unwrap_or_default().to_lowercase();
    FONTS.iter().any(|monospaced| font.starts_with(monospaced))
}

fn level_of_name(name: &str) -> Option<u8> {
    if name == "title" {
        return Some(1);
    }
    name.strip_prefix("heading ").and_then(|level| level.trim().parse().ok())
}

fn depth_of_name(name: &str) -> Option<usize> {
    let number = name.strip_prefix("list bullet ").or_else(|| name.strip_prefix("list number "))?;
    number.parse::<usize>().ok().filter(|number| (2..=5).contains(number)).map(|number| number - 1)
}

fn level_of_id(id: &str) -> Option<u8> {
    let id = id.to_lowercase();
    if id == "title" { Some(1) } else { id.strip_prefix("heading").and_then(|level| level.parse().ok()) }
}

fn is_code_name(name: &str) -> bool {
    matches!(
        name,
        "code"
            | "source code"
            | "sourcecode"
            | "code block"
            | "codeblock"
            | "html preformatted"
            | "preformatted"
            | "preformatted text"
            | "macro"
            | "macro text"
            | "program listing"
            | "code snippet"
    )
}

fn resolved(styles: &HashMap<String, Style>, id: &str) -> Style {
    let mut whole = Style::default();
    let mut next = styles.get(id);
    for _ in 0..MAX_CHAIN {
        let Some(style) = next else { break };
        whole.heading = whole.heading.or(style.heading);
        if whole.list.is_none() {
            whole.list.clone_from(&style.list);
            whole.list_style.clone_from(&style.list_style);
        }
        whole.list_level = whole.list_level.or(style.list_level);
        whole.list_depth = whole.list_depth.or(style.list_depth);
        whole.code = whole.code.or(style.code);
        whole.quote = whole.quote.or(style.quote);
        whole.monospaced = whole.monospaced.or(style.monospaced);
        next = style.based_on.as_ref().and_then(|id| styles.get(id));
    }
    whole
}
