//! Writes the text of shapes: paragraphs, lists, tables.

use std::collections::HashMap;

use super::lists::Counters;
use super::masters::Styles;
use super::shape::{Paragraph, Run, Shape, Table};
use crate::flow::{Flow, Gap};
use crate::formats::presentation::List;

/// Writes paragraphs; those with a bullet or a number are lists.
pub fn paragraphs(
    paragraphs: &[Paragraph],
    shape: &Shape,
    links: &HashMap<String, String>,
    styles: &Styles,
    flow: &mut Flow,
) {
    let mut counters = Counters::default();
    let mut list = List::default();
    for paragraph in paragraphs.iter().filter(|paragraph| has_words(paragraph)) {
        let bullet = match &paragraph.bullet {
            Some(bullet) => bullet.clone(),
            None => styles.bullet(shape, paragraph.level),
        };
        match counters.marker(paragraph.level, &bullet) {
            Some(marker) => list.begin_item(flow, paragraph.level, &marker),
            None => {
                list.end(flow);
                flow.widen(Gap::Paragraph);
            }
        }
        for run in &paragraph.runs {
            write_run(run, shape.link.as_ref(), links, flow);
        }
        flow.widen(Gap::Line);
    }
    list.end(flow);
}

/// Every cell that another one covers is in the file, so the columns stay aligned.
pub fn table(
    table: &Table,
    shape: &Shape,
    links: &HashMap<String, String>,
    styles: &Styles,
    flow: &mut Flow,
) {
    flow.begin_table();
    for row in &table.rows {
        flow.begin_row();
        for cell in row {
            flow.begin_cell();
            paragraphs(cell, shape, links, styles, flow);
        }
    }
    flow.end_table();
}

fn has_words(paragraph: &Paragraph) -> bool {
    paragraph.runs.iter().any(|run| !run.words.trim().is_empty())
}

fn write_run(run: &Run, of_shape: Option<&String>, links: &HashMap<String, String>, flow: &mut Flow) {
    if run.is_break {
        return flow.widen(Gap::Line);
    }
    match run.link.as_ref().or(of_shape).and_then(|id| links.get(id)) {
        Some(target) => {
            flow.begin_link(target);
            flow.words(&run.words);
            flow.end_link();
        }
        None => flow.words(&run.words),
    }
}
