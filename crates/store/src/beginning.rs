//! The rows that a database in memory began with, to which it can come back without a change of its schema.

use rusqlite::Connection;
use rusqlite::types::Value;

use crate::Error;

#[derive(Default)]
pub struct Beginning {
    /// Each before those that its rows refer to.
    tables: Vec<Table>,
    /// The last ids. Rows that are inserted change them.
    ids: Option<Table>,
}

struct Table {
    clear: String,
    insert: String,
    rows: Vec<Vec<Value>>,
}

impl Beginning {
    pub fn of(connection: &Connection) -> Result<Self, Error> {
        let mut left = names(
            connection,
            "SELECT name FROM pragma_table_list WHERE type = 'table' AND schema = 'main'
             AND name NOT IN ('sqlite_schema', 'sqlite_sequence')",
        )?;
        let mut tables = Vec::new();
        // A table of words keeps what it has in tables of its own, and knows how to clear them.
        for name in names(connection, "SELECT name FROM pragma_table_list WHERE type = 'virtual'")? {
            let clear = format!("INSERT INTO \"{name}\" (\"{name}\") VALUES ('delete-all')");
            tables.push(Table { clear, insert: String::new(), rows: Vec::new() });
        }
        while !left.is_empty() {
            let mut referred = Vec::new();
            for name in &left {
                let sql = format!(
                    "SELECT \"table\" FROM pragma_foreign_key_list('{name}') WHERE \"table\" <> '{name}'"
                );
                referred.extend(names(connection, &sql)?);
            }
            let first = left.iter().position(|name| !referred.contains(name)).unwrap_or(0);
            tables.push(Table::of(connection, &left.remove(first))?);
        }
        Ok(Self { tables, ids: Some(Table::of(connection, "sqlite_sequence")?) })
    }

    pub fn restore(&self, connection: &Connection) -> Result<(), Error> {
        connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        for table in &self.tables {
            table.clear(connection)?;
        }
        for table in self.tables.iter().rev() {
            table.fill(connection)?;
        }
        if let Some(ids) = &self.ids {
            ids.clear(connection)?;
            ids.fill(connection)?;
        }
        connection.prepare_cached("COMMIT")?.execute([])?;
        Ok(())
    }
}

impl Table {
    fn of(connection: &Connection, name: &str) -> Result<Self, Error> {
        // Without those that are computed.
        let columns = names(connection, &format!("SELECT name FROM pragma_table_info('{name}')"))?;
        let listed = columns.iter().map(|column| format!("\"{column}\"")).collect::<Vec<_>>().join(", ");
        let places = vec!["?"; columns.len()].join(", ");
        let mut statement = connection.prepare(&format!("SELECT {listed} FROM \"{name}\""))?;
        let rows = statement.query_map([], |row| (0..columns.len()).map(|place| row.get(place)).collect())?;
        Ok(Self {
            clear: format!("DELETE FROM \"{name}\""),
            insert: format!("INSERT INTO \"{name}\" ({listed}) VALUES ({places})"),
            rows: rows.collect::<Result<_, _>>()?,
        })
    }

    fn clear(&self, connection: &Connection) -> Result<(), Error> {
        connection.prepare_cached(&self.clear)?.execute([])?;
        Ok(())
    }

    fn fill(&self, connection: &Connection) -> Result<(), Error> {
        for row in &self.rows {
            connection.prepare_cached(&self.insert)?.execute(rusqlite::params_from_iter(row))?;
        }
        Ok(())
    }
}

fn names(connection: &Connection, sql: &str) -> Result<Vec<String>, Error> {
    let mut statement = connection.prepare(sql)?;
    let names = statement.query_map([], |row| row.get(0))?;
    Ok(names.collect::<Result<_, _>>()?)
}
