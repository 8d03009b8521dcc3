//! What the presentations of both formats have in common: how a slide begins, and its lists.

use crate::flow::Flow;

/// The level of the heading of a slide. The title of the whole presentation is the first.
const LEVEL: u8 = 2;

/// Begins a slide with its title. One without a title is named by its number, which is not written.
pub fn begin_slide(flow: &mut Flow, number: i64, title: &str, is_of_presentation: bool, is_hidden: bool) {
    let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
    let unnamed = format!("Slide {number}");
    flow.place(Some(number), title.is_empty().then(|| unnamed.clone()));
    if title.is_empty() && !is_hidden {
        return;
    }
    flow.begin_heading(if is_of_presentation { 1 } else { LEVEL });
    flow.words(if title.is_empty() { &unnamed } else { &title });
    if is_hidden {
        flow.words(" (hidden)");
    }
    flow.end_heading();
}

/// The levels of the open items of a list, each deeper than the one before it.
#[derive(Default)]
pub struct List(Vec<usize>);

impl List {
    /// Begins an item. It is in the last one if that has a lower level.
    pub fn begin_item(&mut self, flow: &mut Flow, level: usize, marker: &str) {
        while self.0.last().is_some_and(|open| *open >= level) {
            self.0.pop();
            flow.end_item();
        }
        self.0.push(level);
        flow.begin_item(marker);
    }

    pub fn end(&mut self, flow: &mut Flow) {
        if self.0.is_empty() {
            return;
        }
        for _ in self.0.drain(..) {
            flow.end_item();
        }
        flow.end_list();
    }
}
