//! A row of either database, and what it is read into.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use chrono::DateTime;
use landfall_core::clock::Time;
use rusqlite::types::ValueRef;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sqlx_core::column::Column;
use sqlx_core::row::Row as _;
use sqlx_core::value::ValueRef as _;
use sqlx_postgres::PgRow;
use uuid::Uuid;

use crate::Error;

/// A type that a row is read into.
pub trait FromRow: Sized + Send + 'static {
    fn from_row(row: &Row<'_>) -> Result<Self, Error>;
}

/// A type that a column is read into.
pub trait FromColumn: Sized {
    fn from_sqlite(value: ValueRef<'_>) -> Result<Self, Unreadable>;

    fn from_postgres(row: &PgRow, column: usize) -> Result<Self, Unreadable>;
}

/// What the databases return.
pub type SqliteValue<'v> = ValueRef<'v>;
pub type PostgresRow = PgRow;

/// Why the value of a column is not what was expected.
pub type Unreadable = Box<dyn std::error::Error + Send + Sync>;

pub struct Row<'r> {
    source: Source<'r>,
    columns: &'r Columns,
    /// How many columns were read by their names.
    reads: Cell<usize>,
}

enum Source<'r> {
    Sqlite(&'r rusqlite::Row<'r>),
    Postgres(&'r PgRow),
}

/// Of how many statements a thread keeps the places of their columns.
const KEPT_STATEMENTS: usize = 128;

thread_local! {
    /// By the hash of the statement. What is kept is only a guess, so two statements may share one.
    static KEPT: RefCell<HashMap<u64, Vec<(&'static str, usize)>>> = RefCell::default();
}

/// Where the columns of a result are. All its rows are read by the same code, so a name is looked up in the first row only; and
/// there, the place that it had in the last result of the statement is tried first.
pub struct Columns {
    statement: u64,
    places: RefCell<Vec<(&'static str, usize)>>,
    /// How many of the places were compared with the names of this result.
    checked: Cell<usize>,
}

impl Columns {
    pub(crate) fn of(statement: u64) -> Self {
        let places = KEPT.with_borrow_mut(|kept| kept.remove(&statement)).unwrap_or_default();
        Self { statement, places: RefCell::new(places), checked: Cell::new(0) }
    }
}

/// Tells statements apart, mostly.
pub(crate) fn hash_of(sql: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    sql.hash(&mut hasher);
    hasher.finish()
}

impl Drop for Columns {
    fn drop(&mut self) {
        let places = self.places.take();
        if places.is_empty() {
            return;
        }
        KEPT.with_borrow_mut(|kept| {
            if kept.len() >= KEPT_STATEMENTS {
                kept.clear();
            }
            kept.insert(self.statement, places);
        });
    }
}

impl<'r> Row<'r> {
    pub(crate) fn of_sqlite(row: &'r rusqlite::Row<'r>, columns: &'r Columns) -> Self {
        Self { source: Source::Sqlite(row), columns, reads: Cell::new(0) }
    }

    pub(crate) fn of_postgres(row: &'r PgRow, columns: &'r Columns) -> Self {
        Self { source: Source::Postgres(row), columns, reads: Cell::new(0) }
    }

    /// The value of the column with this name.
    pub fn get<T: FromColumn>(&self, name: &'static str) -> Result<T, Error> {
        self.read(self.place(name)?).map_err(|cause| Error::Unreadable { column: name.to_owned(), cause })
    }

    /// The same for a value that is stored as another type.
    pub fn converted<S, T>(&self, name: &'static str) -> Result<T, Error>
    where
        S: FromColumn,
        T: TryFrom<S>,
        T::Error: Into<Unreadable>,
    {
        T::try_from(self.get(name)?)
            .map_err(|cause| Error::Unreadable { column: name.to_owned(), cause: cause.into() })
    }

    /// The value of the column at this place, counted from zero.
    pub fn at<T: FromColumn>(&self, place: usize) -> Result<T, Error> {
        self.read(place).map_err(|cause| Error::Unreadable { column: format!("number {}", place + 1), cause })
    }

    fn read<T: FromColumn>(&self, place: usize) -> Result<T, Unreadable> {
        match self.source {
            Source::Sqlite(row) => T::from_sqlite(row.get_ref(place)?),
            Source::Postgres(row) => T::from_postgres(row, place),
        }
    }

    fn place(&self, name: &'static str) -> Result<usize, Error> {
        let read = self.reads.replace(self.reads.get() + 1);
        let known = self.columns.places.borrow().get(read).copied();
        match known {
            // The address is enough, and where two texts share one they are the same.
            Some((known, place))
                if std::ptr::eq(known, name)
                    && (read < self.columns.checked.get() || self.name_at(place) == Some(name)) =>
            {
                self.columns.checked.set(self.columns.checked.get().max(read + 1));
                Ok(place)
            }
            _ => self.look_up(read, name),
        }
    }

    fn look_up(&self, read: usize, name: &'static str) -> Result<usize, Error> {
        let count = match self.source {
            Source::Sqlite(row) => row.as_ref().column_count(),
            Source::Postgres(row) => row.len(),
        };
        // Fields mostly stand in the order of the columns.
        let from = read.min(count);
        let place = (from..count).chain(0..from).find(|&place| self.name_at(place) == Some(name));
        let place = place.ok_or_else(|| Error::Unreadable {
            column: name.to_owned(),
            cause: "the statement returns no such column".into(),
        })?;
        let mut places = self.columns.places.borrow_mut();
        // What is known of later columns belongs to other reads.
        places.truncate(read);
        if places.len() == read {
            places.push((name, place));
            self.columns.checked.set(read + 1);
        }
        Ok(place)
    }

    fn name_at(&self, place: usize) -> Option<&str> {
        match self.source {
            Source::Sqlite(row) => row.as_ref().column_name(place).ok(),
            Source::Postgres(row) => row.columns().get(place).map(Column::name),
        }
    }
}

macro_rules! from_column {
    ($($type:ty: $pattern:pat => $value:expr;)*) => {$(
        impl FromColumn for $type {
            fn from_sqlite(value: ValueRef<'_>) -> Result<Self, Unreadable> {
                match value {
                    $pattern => Ok($value),
                    other => Err(unexpected(other, stringify!($type))),
                }
            }

            fn from_postgres(row: &PgRow, column: usize) -> Result<Self, Unreadable> {
                Ok(row.try_get(column)?)
            }
        }
    )*};
}

from_column! {
    i64: ValueRef::Integer(number) => number;
    bool: ValueRef::Integer(number) => number != 0;
    String: ValueRef::Text(text) => std::str::from_utf8(text)?.to_owned();
    Vec<u8>: ValueRef::Blob(bytes) => bytes.to_vec();
    Uuid: ValueRef::Blob(bytes) => Uuid::from_slice(bytes)?;
    Value: ValueRef::Text(text) => serde_json::from_slice(text)?;
}

impl FromColumn for f64 {
    fn from_sqlite(value: ValueRef<'_>) -> Result<Self, Unreadable> {
        match value {
            ValueRef::Real(number) => Ok(number),
            // SQLite stores a whole number of a REAL column as an integer, and may return it so from an expression.
            #[expect(clippy::cast_precision_loss, reason = "it was a float before")]
            ValueRef::Integer(number) => Ok(number as Self),
            other => Err(unexpected(other, "f64")),
        }
    }

    fn from_postgres(row: &PgRow, column: usize) -> Result<Self, Unreadable> {
        Ok(row.try_get(column)?)
    }
}

impl FromColumn for Time {
    fn from_sqlite(value: ValueRef<'_>) -> Result<Self, Unreadable> {
        match value {
            ValueRef::Integer(microseconds) => DateTime::from_timestamp_micros(microseconds)
                .ok_or_else(|| format!("{microseconds} is no time").into()),
            ValueRef::Text(text) => Ok(DateTime::parse_from_rfc3339(std::str::from_utf8(text)?)?.to_utc()),
            other => Err(unexpected(other, "a time")),
        }
    }

    fn from_postgres(row: &PgRow, column: usize) -> Result<Self, Unreadable> {
        Ok(row.try_get(column)?)
    }
}

impl<T: FromColumn> FromColumn for Option<T> {
    fn from_sqlite(value: ValueRef<'_>) -> Result<Self, Unreadable> {
        match value {
            ValueRef::Null => Ok(None),
            value => T::from_sqlite(value).map(Some),
        }
    }

    fn from_postgres(row: &PgRow, column: usize) -> Result<Self, Unreadable> {
        if row.try_get_raw(column)?.is_null() { Ok(None) } else { T::from_postgres(row, column).map(Some) }
    }
}

/// A column of JSON that is read as a type of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Json<T>(pub T);

impl<T> std::ops::Deref for Json<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> std::ops::DerefMut for Json<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T: DeserializeOwned> FromColumn for Json<T> {
    fn from_sqlite(value: ValueRef<'_>) -> Result<Self, Unreadable> {
        match value {
            ValueRef::Text(text) => Ok(Self(serde_json::from_slice(text)?)),
            other => Err(unexpected(other, "JSON")),
        }
    }

    fn from_postgres(row: &PgRow, column: usize) -> Result<Self, Unreadable> {
        Ok(Self(serde_json::from_value(row.try_get(column)?)?))
    }
}

fn unexpected(found: ValueRef<'_>, expected: &str) -> Unreadable {
    format!("it holds {} and not {expected}", found.data_type()).into()
}

macro_rules! tuples {
    ($($($name:ident $place:tt),+;)*) => {$(
        impl<$($name: FromColumn + Send + 'static),+> FromRow for ($($name,)+) {
            fn from_row(row: &Row<'_>) -> Result<Self, Error> {
                Ok(($(row.at::<$name>($place)?,)+))
            }
        }
    )*};
}

tuples! {
    A 0;
    A 0, B 1;
    A 0, B 1, C 2;
    A 0, B 1, C 2, D 3;
    A 0, B 1, C 2, D 3, E 4;
    A 0, B 1, C 2, D 3, E 4, F 5;
    A 0, B 1, C 2, D 3, E 4, F 5, G 6;
    A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7;
    A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Db, FromRow, args};

    #[derive(Debug, PartialEq, FromRow)]
    struct Ship {
        name: String,
        #[row(rename = "tonnes")]
        weight: i64,
        #[row(try_from = "String")]
        port: Port,
        #[row(flatten)]
        voyage: Voyage,
    }

    #[derive(Debug, PartialEq, FromRow)]
    struct Voyage {
        begun_at: Time,
        ended_at: Option<Time>,
        stops: Json<Vec<i64>>,
    }

    #[derive(Debug, PartialEq)]
    struct Port(String);

    impl TryFrom<String> for Port {
        type Error = String;

        fn try_from(name: String) -> Result<Self, String> {
            if name.is_empty() { Err("a port has a name".to_owned()) } else { Ok(Self(name)) }
        }
    }

    async fn databases() -> (tempfile::TempDir, Vec<Db>) {
        let folder = tempfile::tempdir().expect("a folder");
        let url = format!("sqlite://{}/a.db", folder.path().display());
        let mut all = vec![Db::open(&url, 2).await.expect("it opens")];
        if let Ok(server) = std::env::var("LANDFALL_TEST_DATABASE_URL") {
            all.push(Db::open(&server, 2).await.expect("PostgreSQL answers"));
        }
        (folder, all)
    }

    #[tokio::test]
    async fn a_struct_is_read_by_the_names_of_the_columns_in_any_order() {
        let (_folder, databases) = databases().await;
        let at: Time = "2026-01-02T03:04:05.000007Z".parse().expect("a time");
        for db in databases {
            let json = if db.is_postgres() { "CAST($4 AS JSONB)" } else { "$4" };
            let sql = |port: &str| {
                format!(
                    "SELECT {json} AS stops, $2 AS tonnes, '{port}' AS port, CAST(NULL AS TEXT) AS unused,
                            $1 AS name, $3 AS begun_at, $5 AS ended_at"
                )
            };
            let args = || args!["Elida", 7, at, serde_json::json!([1, 2]), None::<Time>];
            let mut tx = db.read().await.expect("a connection");
            let both = format!("{} UNION ALL {}", sql("Bergen"), sql("Oslo"));
            let ships: Vec<Ship> = tx.rows(both, args()).await.expect("two ships");
            let ship = |port: &str| Ship {
                name: "Elida".to_owned(),
                weight: 7,
                port: Port(port.to_owned()),
                voyage: Voyage { begun_at: at, ended_at: None, stops: Json(vec![1, 2]) },
            };
            assert_eq!(ships, [ship("Bergen"), ship("Oslo")]);
            let nameless = tx.row::<Ship>(sql(""), args()).await.expect_err("it is refused").to_string();
            assert!(nameless.contains("port") && nameless.contains("a port has a name"), "{nameless}");
        }
    }

    #[derive(Debug, PartialEq, FromRow)]
    struct Name {
        first: String,
        last: String,
    }

    #[derive(Debug, PartialEq, FromRow)]
    struct LastName {
        last: String,
    }

    /// Reads the rows with what was kept of that statement.
    fn read<T: FromRow>(statement: u64, sql: &str) -> Vec<T> {
        let connection = rusqlite::Connection::open_in_memory().expect("it opens");
        let mut prepared = connection.prepare(sql).expect("a statement");
        let columns = Columns::of(statement);
        let mut rows = prepared.raw_query();
        let mut all = Vec::new();
        while let Some(row) = rows.next().expect("a row or none") {
            all.push(T::from_row(&Row::of_sqlite(row, &columns)).expect("the columns are there"));
        }
        all
    }

    #[test]
    fn what_is_kept_of_a_statement_is_not_trusted() {
        let name = || Name { first: "Anna".to_owned(), last: "Berg".to_owned() };
        let ordered = "SELECT 'Anna' AS first, 'Berg' AS last";
        for sql in [ordered, "SELECT 'Berg' AS last, 1 AS other, 'Anna' AS first", ordered] {
            assert_eq!(read::<Name>(7, &format!("{sql} UNION ALL {sql}")), [name(), name()], "{sql}");
            assert_eq!(read::<LastName>(7, sql), [LastName { last: "Berg".to_owned() }], "{sql}");
            assert_eq!(read::<Name>(7, sql), [name()], "{sql}");
        }
    }

    #[tokio::test]
    async fn a_column_that_is_missing_or_holds_something_else_is_an_error_that_names_it() {
        let (_folder, databases) = databases().await;
        for db in databases {
            let mut tx = db.read().await.expect("a connection");
            for sql in ["SELECT 1 AS other", "SELECT 'ten' AS tonnes, 'a' AS name", "SELECT NULL AS name"] {
                let error = tx.row::<Ship>(sql, args![]).await.expect_err("it is refused").to_string();
                assert!(error.contains("name") || error.contains("tonnes"), "{sql}: {error}");
            }
        }
    }
}
