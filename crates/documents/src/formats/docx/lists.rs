//! The lists of the body, and the items that are open.

use super::paragraph::Paragraph;
use super::styles::Style;
use crate::formats::items::{ListItem, OpenItems};
use crate::formats::numbering::{LEVELS, Numbering};

#[derive(Default)]
pub struct Lists {
    pub numbering: Numbering,
    pub open: OpenItems,
}

impl Lists {
    /// The list that a paragraph is in, by its own properties or by its style.
    pub fn item(&self, paragraph: &Paragraph<'_>, style: &Style) -> Option<ListItem> {
        let own = paragraph.list.as_deref();
        let list = own.or(style.list.as_deref()).filter(|list| *list != "0")?.to_owned();
        let of_style = || style.list_style.as_deref().and_then(|id| self.numbering.level_of_style(&list, id));
        let level = paragraph
            .list_level
            .or_else(|| if own.is_none() { of_style().or(style.list_level) } else { style.list_level })
            .unwrap_or(0)
            .min(LEVELS - 1);
        Some(ListItem { list, level })
    }
}
