//! Sweeps, as often as it takes to see that only the first of them does something.

use std::collections::BTreeMap;

use landfall_server::app::App;
use landfall_store::args;

use super::at_rest::AtRest;

/// What says when something ran and who was there, which changes without anything being changed.
const RECORDS: [&str; 3] = ["job_runs", "job_schedules", "workers"];

/// How the damage is met first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum First {
    Once,
    TwiceAtOnce,
}

impl First {
    pub const BOTH: [Self; 2] = [Self::Once, Self::TwiceAtOnce];
}

/// Sweeps once, or twice at once, and answers what came of that. Then sweeps again, and twice at once: every row and every
/// blob must stay as the first left it.
pub async fn sweep_until_still<T>(rest: &AtRest, first: First, sweep: impl AsyncFn() -> T) -> Vec<T> {
    let answers = match first {
        First::Once => vec![sweep().await],
        First::TwiceAtOnce => {
            let (one, other) = tokio::join!(sweep(), sweep());
            vec![one, other]
        }
    };
    let healed = (rows(&rest.app).await, rest.stored());
    sweep().await;
    assert_eq!(healed, (rows(&rest.app).await, rest.stored()), "the second sweep changed something");
    tokio::join!(sweep(), sweep());
    assert_eq!(healed, (rows(&rest.app).await, rest.stored()), "two sweeps at once changed something");
    answers
}

/// Every row of every table, as text.
pub async fn rows(app: &App) -> BTreeMap<String, Vec<String>> {
    let mut tx = app.db.read().await.expect("a connection");
    let postgres = tx.is_postgres();
    let tables = if postgres {
        "SELECT CAST(tablename AS TEXT) FROM pg_tables WHERE schemaname = current_schema()"
    } else {
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'
             AND sql NOT LIKE 'CREATE VIRTUAL%'"
    };
    let tables: Vec<(String,)> = tx.rows(tables, args![]).await.expect("the tables");
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (table,) in tables.into_iter().filter(|(table,)| !RECORDS.contains(&table.as_str())) {
        let row = if postgres {
            "CAST(t AS TEXT)".to_owned()
        } else {
            let sql = format!("SELECT name FROM pragma_table_info('{table}')");
            let columns: Vec<(String,)> = tx.rows(sql, args![]).await.expect("the columns");
            let columns: Vec<String> = columns.iter().map(|(name,)| format!("quote(\"{name}\")")).collect();
            columns.join(" || ',' || ")
        };
        let sql = format!("SELECT {row} FROM \"{table}\" AS t ORDER BY 1");
        let rows: Vec<(String,)> = tx.rows(sql, args![]).await.expect("the rows");
        all.insert(table, rows.into_iter().map(|(row,)| row).collect());
    }
    assert!(all["database_identity"].len() == 1, "the rows are really there");
    all
}
