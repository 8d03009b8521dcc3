//! The lists, quotations and tables of a page while they are open.

use super::super::Attributes;
use super::super::lists::List;
use super::super::tables::Grid;
use super::{Block, MAX_DEPTH, Text};
use crate::flow::Gap;

impl Text<'_> {
    // --- Lists and quotations ---

    pub(super) fn begin_list(&mut self, element: &str, attributes: Attributes<'_>) {
        self.structure();
        self.push(Block::List(List::new(element, attributes)));
    }

    pub(super) fn begin_item(&mut self, attributes: Attributes<'_>) {
        self.structure();
        // An item without a marker only indents the list in it.
        let has_no_marker = attributes.get("style").is_some_and(|style| {
            style.split(';').any(|rule| rule.trim_start().starts_with("list-style") && rule.contains("none"))
        });
        if self.too_deep > 0 || has_no_marker {
            return self.widen(Gap::Line);
        }
        if !self.end_blocks_down_to(|block| matches!(block, Block::List(_))) {
            self.push(Block::List(List::implied()));
        }
        let Some(Block::List(list)) = self.open.last_mut() else { return };
        let marker = list.marker(attributes);
        if std::mem::replace(&mut list.has_open_item, true) {
            self.flow.end_item();
        }
        self.flow.begin_item(&marker);
        self.is_new_item = true;
    }

    pub(super) fn end_list(&mut self) {
        if self.ends_too_deep() {
            return;
        }
        if self.end_blocks_down_to(|block| matches!(block, Block::List(_))) {
            self.structure();
            self.pop();
        } else {
            self.widen(Gap::Paragraph);
        }
    }

    pub(super) fn end_implied_list(&mut self) {
        if matches!(self.open.last(), Some(Block::List(list)) if list.is_implied) {
            self.structure();
            self.pop();
        }
    }

    pub(super) fn begin_quote(&mut self) {
        self.structure();
        if self.push(Block::Quote) {
            self.flow.begin_quote();
        }
    }

    pub(super) fn end_quote(&mut self) {
        if !self.ends_too_deep() && self.end_blocks_down_to(|block| matches!(block, Block::Quote)) {
            self.structure();
            self.pop();
        }
    }

    // --- Tables ---

    pub(super) fn begin_table(&mut self) {
        self.structure();
        let is_layout = self.layout.get(self.tables - 1).copied().unwrap_or(false);
        if self.push(if is_layout { Block::Layout } else { Block::Table(Grid::default()) }) {
            self.open_tables += 1;
        }
        self.gap = Gap::Paragraph;
    }

    /// The innermost table, with what is open in it ended.
    pub(super) fn table(&mut self) -> Option<&mut Block> {
        if self.open_tables == 0 || self.too_deep > 0 {
            return None;
        }
        self.end_heading();
        self.end_link();
        while let Some(block) = self.open.pop_if(|block| matches!(block, Block::List(_) | Block::Quote)) {
            self.end_block(block);
        }
        self.is_new_item = false;
        self.open.last_mut()
    }

    pub(super) fn begin_row(&mut self) {
        match self.table() {
            Some(Block::Table(_)) => {
                self.gap = Gap::None;
                if let Some(Block::Table(grid)) = self.open.last_mut() {
                    grid.begin_row(&mut self.flow);
                }
            }
            Some(_) => self.widen(Gap::Paragraph),
            None => self.widen(Gap::Line),
        }
    }

    pub(super) fn end_row(&mut self) {
        match self.table() {
            Some(Block::Table(_)) => {
                self.gap = Gap::None;
                if let Some(Block::Table(grid)) = self.open.last_mut() {
                    grid.end_row(&mut self.flow);
                }
            }
            _ => self.widen(Gap::Line),
        }
    }

    pub(super) fn begin_cell(&mut self, attributes: Attributes<'_>) {
        match self.table() {
            Some(Block::Table(_)) => {
                self.gap = Gap::None;
                if let Some(Block::Table(grid)) = self.open.last_mut() {
                    self.cells += grid.begin_cell(attributes, &mut self.flow);
                }
            }
            Some(_) => self.widen(Gap::Paragraph),
            None => self.widen(Gap::Space),
        }
    }

    pub(super) fn end_cell(&mut self) {
        let is_layout = matches!(self.table(), Some(Block::Layout));
        self.widen(if is_layout { Gap::Paragraph } else { Gap::Space });
    }

    pub(super) fn end_table(&mut self) {
        if !self.ends_too_deep() && self.table().is_some() {
            self.structure();
            self.pop();
        }
        self.widen(Gap::Paragraph);
    }

    // --- What is open ---

    /// Returns whether there is room for it.
    pub(super) fn push(&mut self, block: Block) -> bool {
        if self.open.len() >= MAX_DEPTH || self.too_deep > 0 {
            self.too_deep += 1;
            self.gap = Gap::Paragraph;
            return false;
        }
        self.open.push(block);
        true
    }

    /// Whether what ends was beyond the limit of depth.
    pub(super) fn ends_too_deep(&mut self) -> bool {
        let is_too_deep = self.too_deep > 0;
        self.too_deep = self.too_deep.saturating_sub(1);
        is_too_deep
    }

    /// Ends what is open in the innermost block of a kind. Returns whether there is one, the open table included only.
    pub(super) fn end_blocks_down_to(&mut self, is_wanted: fn(&Block) -> bool) -> bool {
        let is_table = |block: &Block| matches!(block, Block::Table(_) | Block::Layout);
        let found = self.open.iter().rev().find(|block| is_wanted(block) || is_table(block));
        if !found.is_some_and(is_wanted) {
            return false;
        }
        while let Some(block) = self.open.pop_if(|block| !is_wanted(block)) {
            self.end_block(block);
        }
        true
    }

    pub(super) fn pop(&mut self) {
        if let Some(block) = self.open.pop() {
            self.end_block(block);
        }
    }

    pub(super) fn end_block(&mut self, block: Block) {
        match block {
            Block::List(list) => {
                if list.has_open_item {
                    self.flow.end_item();
                }
                self.flow.end_list();
            }
            Block::Quote => self.flow.end_quote(),
            Block::Table(grid) => {
                self.open_tables -= 1;
                grid.end(&mut self.flow);
            }
            Block::Layout => self.open_tables -= 1,
        }
    }
}
