//! The figures, and the table that shows them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::databases::Kind;
use super::measure::median;

/// Figures by name, in the order in which they were added.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Figures(Vec<(String, f64)>);

impl Figures {
    pub fn add(&mut self, name: impl Into<String>, value: f64) {
        self.0.push((name.into(), value));
    }
}

/// One line for each figure, one column for each database.
#[derive(Default)]
pub struct Table {
    lines: Vec<String>,
    values: BTreeMap<(String, &'static str), Vec<f64>>,
}

const NAME_WIDTH: usize = 58;

impl Table {
    pub fn add(&mut self, kind: Kind, figures: Figures) {
        for (name, value) in figures.0 {
            if !self.lines.contains(&name) {
                self.lines.push(name.clone());
            }
            self.values.entry((name, kind.name())).or_default().push(value);
        }
    }

    /// A figure that was measured several times is shown as its median.
    pub fn print(&self) {
        println!("\n{:NAME_WIDTH$} {:>10} {:>10}   target", "", "SQLite", "PostgreSQL");
        let mut group = "";
        for line in &self.lines {
            let its_group = line.split(':').next().unwrap_or_default();
            if its_group != group && !group.is_empty() {
                println!();
            }
            group = its_group;
            let [sqlite, postgres] = Kind::ALL.map(|kind| {
                self.values
                    .get(&(line.clone(), kind.name()))
                    .map_or_else(String::new, |values| number(median(values)))
            });
            println!("{line:NAME_WIDTH$} {sqlite:>10} {postgres:>10}   {}", target(line));
        }
    }
}

/// The target of a figure.
fn target(line: &str) -> &'static str {
    match line {
        line if line.ends_with("files: CPU ms per flow") => "under 0.2",
        "idle: confirm to ready, p50 ms" => "under 5",
        line if line.contains("while every core embeds") && line.ends_with("p99 ms") => "under 20",
        line if line.contains("files: ") && line.ends_with("p99 ms") => "under 50",
        "takeover: kill to work, at most ms" => "under 500",
        "intake: CPU ms per file" => "under 0.6",
        "intake: registration of 1000 files, p50 ms" => "under 15",
        "orphans: MiB that memory grew by" => "under 50",
        "claim: ratio"
        | "settle: ratio"
        | "stuck sweep: ratio"
        | "upload expiry: ratio"
        | "dashboard counts: ratio"
        | "start: ratio"
        | "delete: ratio"
        | "audit: ratio" => "1.0, within 20 %",
        _ => "",
    }
}

/// Three significant digits, with separators of thousands.
fn number(value: f64) -> String {
    match value {
        value if value >= 1_000.0 => {
            let digits = format!("{value:.0}");
            let groups = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy);
            groups.collect::<Vec<_>>().join(",")
        }
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value if value >= 1.0 => format!("{value:.2}"),
        value => format!("{value:.3}"),
    }
}
