//! The open list items and quotations: what stands before each line in them.

use std::fmt::Write;

/// Deeper lists are written at this depth.
const MAX_DEPTH: usize = 12;

#[derive(Default)]
pub struct Blocks {
    open: Vec<Block>,
    /// Blocks beyond [`MAX_DEPTH`], which are only counted.
    too_deep: usize,
    /// What stands before each line of the open blocks.
    prefix: String,
    /// What stood before the last line that was written.
    written: String,
    /// Whether an item has ended at this depth, so that the next one continues its list.
    continues_at: Option<usize>,
}

enum Block {
    /// An item with its marker, which is written before its first word only.
    Item {
        marker: Option<String>,
        width: usize,
    },
    Quote,
}

/// Whether a marker says only that there is an item.
pub fn is_bullet(marker: &str) -> bool {
    !marker.chars().any(char::is_alphanumeric)
}

/// Whether a word at the beginning of a line would be read as a mark of Markdown that the document did not mean.
pub fn looks_like_mark(word: &str) -> bool {
    let hashes = word.bytes().take_while(|byte| *byte == b'#').count();
    (1..=6).contains(&hashes) && hashes == word.len() || word.starts_with("```") || word.starts_with("~~~")
}

/// The marker as Markdown has it. Only numbers with a dot or a bracket are list markers; the others become the first
/// word of an item with a bullet, so that they are kept as the document shows them.
fn in_markdown(marker: &str) -> String {
    let marker = marker.trim();
    if is_bullet(marker) {
        return "- ".to_owned();
    }
    let digits = marker.bytes().take_while(u8::is_ascii_digit).count();
    if (1..=9).contains(&digits) && matches!(&marker[digits..], "." | ")") {
        format!("{marker} ")
    } else {
        format!("- {marker} ")
    }
}

impl Blocks {
    pub fn is_in_item(&self) -> bool {
        self.open.iter().any(|block| matches!(block, Block::Item { .. }))
    }

    /// Whether the next item is the first one of its list.
    pub fn begins_list(&self) -> bool {
        self.continues_at != Some(self.open.len())
    }

    pub fn begin_item(&mut self, marker: &str) {
        self.continues_at = None;
        if self.open.len() >= MAX_DEPTH {
            self.too_deep += 1;
            return;
        }
        let marker = in_markdown(marker);
        let width = if marker.starts_with("- ") { 2 } else { marker.len() };
        self.open.push(Block::Item { marker: Some(marker), width });
    }

    pub fn end_item(&mut self) {
        if self.too_deep > 0 {
            self.too_deep -= 1;
            return;
        }
        // A quotation that was opened in the item ends with it.
        if let Some(at) = self.open.iter().rposition(|block| matches!(block, Block::Item { .. })) {
            self.open.truncate(at);
            self.continues_at = Some(at);
        }
        self.update();
    }

    pub fn end_list(&mut self) {
        self.continues_at = None;
    }

    pub fn begin_quote(&mut self) {
        self.continues_at = None;
        if self.open.len() >= MAX_DEPTH {
            self.too_deep += 1;
        } else {
            self.open.push(Block::Quote);
        }
    }

    pub fn end_quote(&mut self) {
        if self.too_deep > 0 {
            self.too_deep -= 1;
        } else if let Some(at) = self.open.iter().rposition(|block| matches!(block, Block::Quote)) {
            self.open.truncate(at);
        }
        self.continues_at = None;
        self.update();
    }

    /// Whether a block was opened whose marker is not written yet.
    pub fn has_new(&self) -> bool {
        self.open.iter().any(|block| matches!(block, Block::Item { marker: Some(_), .. }))
    }

    /// What stands before an empty line between the last line and the next one: the marks of blocks that both are in.
    pub fn prefix_of_empty_line(&self) -> &str {
        let both = self.prefix.bytes().zip(self.written.bytes()).take_while(|(next, last)| next == last);
        self.prefix[..both.count()].trim_end()
    }

    /// Writes what stands before a line, with the markers of new items.
    pub fn write_prefix(&mut self, text: &mut String) {
        for block in &mut self.open {
            match block {
                Block::Quote => text.push_str("> "),
                Block::Item { marker, width } => match marker.take() {
                    Some(marker) => text.push_str(&marker),
                    None => _ = write!(text, "{:1$}", "", *width),
                },
            }
        }
        self.update();
        self.written.clone_from(&self.prefix);
    }

    fn update(&mut self) {
        self.prefix.clear();
        for block in &self.open {
            match block {
                Block::Quote => self.prefix.push_str("> "),
                Block::Item { width, .. } => _ = write!(self.prefix, "{:1$}", "", *width),
            }
        }
    }
}
