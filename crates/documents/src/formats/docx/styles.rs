//! Which paragraph styles of a document are headings.

use std::collections::{HashMap, HashSet};

use crate::elements::{Elements, Piece};
use crate::error::Error;
use crate::limits::Bounds;

/// How many styles may inherit from one another. A longer chain is a cycle.
const MAX_CHAIN: usize = 16;

#[derive(Default)]
pub struct Styles {
    headings: HashSet<String>,
}

#[derive(Default)]
struct Style {
    based_on: Option<String>,
    is_heading: Option<bool>,
}

impl Styles {
    pub fn read(source: &str, bounds: Bounds<'_>) -> Result<Self, Error> {
        let mut styles: HashMap<String, Style> = HashMap::new();
        let mut elements = Elements::new(source, bounds);
        let mut current = None;
        while let Some(piece) = elements.next()? {
            let Piece::Open(element) = piece else { continue };
            let value = || element.attribute("val");
            if element.name() == "style" {
                current = element.attribute("styleId");
                if let Some(id) = &current {
                    styles.insert(id.clone(), Style::default());
                }
                continue;
            }
            let Some(style) = current.as_ref().and_then(|id| styles.get_mut(id)) else { continue };
            match element.name() {
                // The names of the built-in styles are English in every language.
                "name" if value().is_some_and(|name| is_heading_name(&name)) => style.is_heading = Some(true),
                "basedOn" => style.based_on = value(),
                "outlineLvl" => style.is_heading = Some(is_heading_level(value().as_deref())),
                _ => {}
            }
        }
        let headings = styles.keys().filter(|id| inherits_heading(&styles, id)).cloned().collect();
        Ok(Self { headings })
    }

    pub fn is_heading(&self, style: &str) -> bool {
        self.headings.contains(style)
    }
}

/// Nine levels are headings, the tenth is body text.
pub fn is_heading_level(level: Option<&str>) -> bool {
    level.and_then(|level| level.parse::<u8>().ok()).is_some_and(|level| level < 9)
}

fn is_heading_name(name: &str) -> bool {
    let name = name.to_lowercase();
    name == "title" || name.strip_prefix("heading ").is_some_and(|level| level.parse::<u8>().is_ok())
}

fn inherits_heading(styles: &HashMap<String, Style>, id: &str) -> bool {
    let mut style = styles.get(id);
    for _ in 0..MAX_CHAIN {
        let Some(current) = style else { return false };
        if let Some(is_heading) = current.is_heading {
            return is_heading;
        }
        style = current.based_on.as_ref().and_then(|id| styles.get(id));
    }
    false
}
