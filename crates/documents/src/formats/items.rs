//! The list items that are open while a text is read.

use crate::flow::Flow;

/// The open items, from the outermost on: their levels, and the lists that they are of.
#[derive(Default)]
pub struct OpenItems(Vec<(usize, String)>);

/// The list of a paragraph, and the level in it.
pub struct ListItem {
    pub list: String,
    pub level: usize,
}

impl OpenItems {
    /// Ends the items that the next one is not in, and begins it.
    pub fn begin(&mut self, item: ListItem, marker: &str, flow: &mut Flow) {
        let mut last_list = None;
        while let Some((_, list)) = self.0.pop_if(|(level, _)| *level >= item.level) {
            flow.end_item();
            last_list = Some(list);
        }
        if last_list.is_some_and(|list| list != item.list) {
            flow.end_list();
        }
        flow.begin_item(marker);
        self.0.push((item.level, item.list));
    }

    pub fn end(&mut self, flow: &mut Flow) {
        if self.0.is_empty() {
            return;
        }
        while self.0.pop().is_some() {
            flow.end_item();
        }
        flow.end_list();
    }

    /// Ends the items at this level and deeper.
    pub fn end_from(&mut self, level: usize, flow: &mut Flow) {
        while self.0.pop_if(|(open, _)| *open >= level).is_some() {
            flow.end_item();
        }
    }

    pub fn is_open(&self) -> bool {
        !self.0.is_empty()
    }

    /// Whether this item goes on inside the list that is open.
    pub fn goes_on_with(&self, item: &ListItem) -> bool {
        item.level > 0 && self.0.iter().any(|(level, list)| *level < item.level && *list == item.list)
    }
}
