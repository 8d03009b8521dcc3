//! Runs a sweep repeatedly and checks that only the first run changes something.

use std::collections::BTreeMap;

use landfall_server::app::App;
use landfall_store::args;

use super::offline_app::OfflineApp;

/// Tables that record runs and processes; they change with every sweep.
const VOLATILE_TABLES: [&str; 3] = ["job_runs", "job_schedules", "workers"];

/// How the first sweep runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstSweep {
    Once,
    TwiceAtOnce,
}

impl FirstSweep {
    pub const BOTH: [Self; 2] = [Self::Once, Self::TwiceAtOnce];
}

/// Sweeps once, or twice at once, and returns the results. Then sweeps again, and twice at once: every row and every
/// blob must stay as after the first.
pub async fn sweep_repeatedly<T>(rest: &OfflineApp, first: FirstSweep, sweep: impl AsyncFn() -> T) -> Vec<T> {
    let results = match first {
        FirstSweep::Once => vec![sweep().await],
        FirstSweep::TwiceAtOnce => {
            let (one, other) = tokio::join!(sweep(), sweep());
            vec![one, other]
        }
    };
    let repaired = (rows(&rest.app).await, rest.stored());
    sweep().await;
    assert_eq!(repaired, (rows(&rest.app).await, rest.stored()), "the second sweep changed something");
    tokio::join!(sweep(), sweep());
    assert_eq!(repaired, (rows(&rest.app).await, rest.stored()), "two sweeps at once changed something");
    results
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
    for (table,) in tables.into_iter().filter(|(table,)| !VOLATILE_TABLES.contains(&table.as_str())) {
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
    assert!(all["database_identity"].len() == 1, "the rows are read");
    all
}
