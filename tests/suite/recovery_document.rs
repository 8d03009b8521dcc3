//! `docs/recovery.md` says what breaks and what happens then. Each of its rows names the test that proves it.

use std::collections::BTreeSet;
use std::path::Path;

const DOCUMENT: &str = include_str!("../../docs/recovery.md");
const LAST_COLUMN: &str = "the test that proves it";

/// The cells of each row of the tables that have a column for tests.
fn rows() -> Vec<Vec<&'static str>> {
    let mut rows = Vec::new();
    let mut in_table = false;
    for line in DOCUMENT.lines() {
        let Some(line) = line.strip_prefix("| ").and_then(|line| line.strip_suffix(" |")) else {
            in_table = in_table && line.starts_with("|---");
            continue;
        };
        let cells: Vec<&str> = line.split(" | ").map(str::trim).collect();
        if cells.last() == Some(&LAST_COLUMN) {
            in_table = true;
        } else if in_table {
            rows.push(cells);
        }
    }
    rows
}

/// The text between backticks.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

#[test]
fn every_row_names_existing_tests() {
    let suite = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("tests/suite");
    let rows = rows();
    assert!(rows.len() > 60, "the tables are found: {}", rows.len());
    for row in rows {
        assert_eq!(row.len(), 5, "{row:?}");
        assert!(row.iter().all(|cell| !cell.is_empty()), "{row:?}");
        let tests: Vec<&str> = quoted(row[4]).collect();
        assert!(!tests.is_empty(), "no test proves it: {}", row[0]);
        for test in tests {
            let (module, name) = test.split_once("::").unwrap_or_else(|| panic!("{test} is no module::test"));
            let source = std::fs::read_to_string(suite.join(format!("{module}.rs")));
            let source = source.unwrap_or_else(|error| panic!("{module}.rs: {error}"));
            assert!(source.contains(&format!("fn {name}(")), "there is no test {test}");
        }
    }
}

#[test]
fn every_setting_in_a_row_exists() {
    let example = include_str!("../../.env.example");
    for row in rows() {
        for setting in quoted(row[2]).filter(|word| word.contains('_')) {
            assert!(example.contains(&format!("{setting}=")), "{setting} in {row:?}");
        }
    }
}

#[test]
fn each_of_the_twelve_mistakes_is_documented() {
    let source = include_str!("traps.rs");
    let contracts = source.lines().filter_map(|line| line.strip_prefix("async fn "));
    let traps: BTreeSet<&str> =
        contracts.filter_map(|line| line.split_once("(db: TestDb)")).map(|(name, _)| name).collect();
    assert_eq!(traps.len(), 12);
    for trap in traps {
        assert!(DOCUMENT.contains(&format!("`traps::{trap}`")), "{trap} is not in the document");
    }
}
