//! Running heads and page numbers: lines at the edge of several pages. They are kept once.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::layout::{Page, PageLine, Part};

/// Rows at each edge of a page that may be running heads.
const MAX_ROWS: usize = 1;
/// Baselines that differ by less than this, in points, are at the same height.
const SAME_HEIGHT: f32 = 4.0;
/// The step from a running head to the text, as a share of the size. In a paragraph it is 1.2.
const APART: f32 = 1.5;
/// A head of a chapter is on at least this many pages.
const MIN_PAGES: usize = 3;

/// Removes the lines at the edges of pages that are repeated, but for the first of each.
pub fn remove_repeated<'a>(pages: impl Iterator<Item = &'a mut Page>) {
    let mut pages: Vec<&mut Page> = pages.collect();
    let mut seen: HashMap<(String, i32), usize> = HashMap::new();
    let edges: Vec<Vec<Vec<(String, i32)>>> = pages.iter().map(|page| edge_rows(page)).collect();
    for rows in &edges {
        // On its page, a line counts once, at its own height and at the two around it.
        let on_page: HashSet<(&String, i32)> = rows
            .iter()
            .flatten()
            .flat_map(|(words, height)| (height - 1..=height + 1).map(move |height| (words, height)))
            .collect();
        for (words, height) in on_page {
            *seen.entry((words.clone(), height)).or_default() += 1;
        }
    }
    let least = MIN_PAGES.min(pages.len().max(2));
    let mut kept: HashSet<String> = HashSet::new();
    for (page, rows) in pages.iter_mut().zip(&edges) {
        let is_repeated = |line: &(String, i32)| seen.get(line).is_some_and(|pages| *pages >= least);
        let repeated: HashSet<&(String, i32)> =
            rows.iter().flatten().filter(|line| is_repeated(line)).collect();
        let mut now = Vec::new();
        for part in &mut page.parts {
            let Part::Lines(lines) = part else { continue };
            lines.retain(|line| {
                let key = (words(line), height(line));
                let is_kept = !line.at_edge || !repeated.contains(&key) || !kept.contains(&key.0);
                now.push(key.0);
                is_kept
            });
        }
        kept.extend(now.into_iter().filter(|words| repeated.iter().any(|(repeated, _)| repeated == words)));
        page.parts.retain(|part| !matches!(part, Part::Lines(lines) if lines.is_empty()));
    }
}

/// The outermost rows at the upper and lower edge of a page, each with its lines. A gap parts them from the text.
fn edge_rows(page: &Page) -> Vec<Vec<(String, i32)>> {
    let mut rows: BTreeMap<i32, Row> = BTreeMap::new();
    for part in &page.parts {
        let Part::Lines(lines) = part else { continue };
        for line in lines {
            let row = rows.entry(height(line)).or_default();
            row.size = row.size.max(line.size);
            row.baseline = line.baseline;
            if line.at_edge {
                row.lines.push((words(line), height(line)));
            }
        }
    }
    let rows: Vec<Row> = rows.into_values().collect();
    let is_apart = |upper: &Row, lower: &Row| {
        lower.baseline - upper.baseline > APART * upper.size.min(lower.size).max(1.0)
    };
    // How many of the first rows are parted from what follows.
    let outer = |rows: &[&Row]| {
        (1..=MAX_ROWS).rev().find(|number| {
            rows.len() > *number && {
                let (a, b) = (rows[number - 1], rows[*number]);
                if a.baseline < b.baseline { is_apart(a, b) } else { is_apart(b, a) }
            }
        })
    };
    let down: Vec<&Row> = rows.iter().collect();
    let up: Vec<&Row> = rows.iter().rev().collect();
    let above = outer(&down).unwrap_or(0);
    let below = outer(&up).unwrap_or(0);
    let edges = down.iter().take(above).chain(up.iter().take(below));
    edges.map(|row| row.lines.clone()).filter(|lines| !lines.is_empty()).collect()
}

/// The lines at one height of a page.
#[derive(Default)]
struct Row {
    lines: Vec<(String, i32)>,
    baseline: f32,
    size: f32,
}

fn height(line: &PageLine) -> i32 {
    #[expect(clippy::cast_possible_truncation, reason = "a place on a page")]
    let height = (line.baseline / SAME_HEIGHT).round() as i32;
    height
}

/// The words of a line, with each number as one sign.
fn words(line: &PageLine) -> String {
    let mut words = String::new();
    for character in line.text.chars() {
        if !character.is_numeric() {
            words.push(character);
        } else if !words.ends_with('#') {
            words.push('#');
        }
    }
    words
}
