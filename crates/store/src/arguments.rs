//! The arguments of a statement, the same for both databases.

use std::borrow::Cow;
use std::fmt::Write as _;

use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use sqlx_core::arguments::Arguments;
use sqlx_core::types::Json;
use sqlx_postgres::PgArguments;
use uuid::Uuid;

use crate::{Error, Tx};
use landfall_core::clock::Time;

/// One argument. A missing value keeps its type, because PostgreSQL needs the type of a NULL.
#[derive(Debug, Clone)]
pub enum Arg {
    Int(Option<i64>),
    Bool(Option<bool>),
    Text(Option<Cow<'static, str>>),
    Uuid(Option<Uuid>),
    Time(Option<Time>),
    Json(Option<serde_json::Value>),
    Bytes(Option<Vec<u8>>),
    /// One column of a bulk statement on PostgreSQL.
    Column(Column),
}

macro_rules! arg_from {
    ($($type:ty => $variant:ident($value:ident) $convert:expr;)*) => {$(
        impl From<$type> for Arg {
            fn from($value: $type) -> Self {
                Self::$variant(Some($convert))
            }
        }

        impl From<Option<$type>> for Arg {
            fn from(value: Option<$type>) -> Self {
                Self::$variant(value.map(|$value| $convert))
            }
        }
    )*};
}

arg_from! {
    i64 => Int(value) value;
    bool => Bool(value) value;
    i32 => Int(value) i64::from(value);
    u32 => Int(value) i64::from(value);
    usize => Int(value) i64::try_from(value).expect("a count fits 63 bits");
    String => Text(value) Cow::Owned(value);
    &str => Text(value) Cow::Owned(value.to_owned());
    &String => Text(value) Cow::Owned(value.clone());
    landfall_core::lifecycle::Status => Text(value) Cow::Borrowed(value.name());
    landfall_core::lifecycle::Stage => Text(value) Cow::Borrowed(value.name());
    landfall_core::failure::Code => Text(value) Cow::Borrowed(value.name());
    landfall_core::event::EventKind => Text(value) Cow::Borrowed(value.name());
    landfall_core::states::BatchStatus => Text(value) Cow::Borrowed(value.name());
    landfall_core::states::AuditOutcome => Text(value) Cow::Borrowed(value.name());
    landfall_core::states::OperationStatus => Text(value) Cow::Borrowed(value.name());
    landfall_core::states::OperationAction => Text(value) Cow::Borrowed(value.name());
    landfall_core::states::DeliveryStatus => Text(value) Cow::Borrowed(value.name());
    landfall_core::states::Scope => Text(value) Cow::Borrowed(value.name());
    landfall_core::states::CircuitState => Text(value) Cow::Borrowed(value.name());
    landfall_core::states::NotificationKind => Text(value) Cow::Borrowed(value.name());
    Uuid => Uuid(value) value;
    Time => Time(value) value;
    serde_json::Value => Json(value) value;
    Vec<u8> => Bytes(value) value;
}

impl Arg {
    /// A missing value of the same type.
    fn missing(&self) -> Self {
        match self {
            Self::Int(_) => Self::Int(None),
            Self::Bool(_) => Self::Bool(None),
            Self::Text(_) => Self::Text(None),
            Self::Uuid(_) => Self::Uuid(None),
            Self::Time(_) => Self::Time(None),
            Self::Json(_) => Self::Json(None),
            Self::Bytes(_) => Self::Bytes(None),
            Self::Column(_) => unreachable!("a row has single values"),
        }
    }
}

/// The values of one column of many rows, for an array of PostgreSQL.
#[derive(Debug, Clone)]
pub enum Column {
    Ints(Vec<Option<i64>>),
    Bools(Vec<Option<bool>>),
    Texts(Vec<Option<Cow<'static, str>>>),
    Uuids(Vec<Option<Uuid>>),
    Times(Vec<Option<Time>>),
    Jsons(Vec<Option<Json<serde_json::Value>>>),
    Bytes(Vec<Option<Vec<u8>>>),
}

impl Column {
    /// A column for so many values of this one's type.
    fn like(value: &Arg, rows: usize) -> Self {
        match value {
            Arg::Int(_) => Self::Ints(Vec::with_capacity(rows)),
            Arg::Bool(_) => Self::Bools(Vec::with_capacity(rows)),
            Arg::Text(_) => Self::Texts(Vec::with_capacity(rows)),
            Arg::Uuid(_) => Self::Uuids(Vec::with_capacity(rows)),
            Arg::Time(_) => Self::Times(Vec::with_capacity(rows)),
            Arg::Json(_) => Self::Jsons(Vec::with_capacity(rows)),
            Arg::Bytes(_) => Self::Bytes(Vec::with_capacity(rows)),
            Arg::Column(_) => unreachable!("a row has single values"),
        }
    }

    fn push(&mut self, value: Arg) {
        match (self, value) {
            (Self::Ints(values), Arg::Int(value)) => values.push(value),
            (Self::Bools(values), Arg::Bool(value)) => values.push(value),
            (Self::Texts(values), Arg::Text(value)) => values.push(value),
            (Self::Uuids(values), Arg::Uuid(value)) => values.push(value),
            (Self::Times(values), Arg::Time(value)) => values.push(value),
            (Self::Jsons(values), Arg::Json(value)) => values.push(value.map(Json)),
            (Self::Bytes(values), Arg::Bytes(value)) => values.push(value),
            (column, value) => unreachable!("{value:?} in a column of another type: {column:?}"),
        }
    }
}

/// The arguments of one statement: `args![id, status, now]`.
#[macro_export]
macro_rules! args {
    ($($value:expr),* $(,)?) => {
        vec![$($crate::Arg::from($value)),*]
    };
}

impl rusqlite::ToSql for Arg {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        fn owned(value: impl Into<Value>) -> ToSqlOutput<'static> {
            ToSqlOutput::Owned(value.into())
        }
        let bound = match self {
            Self::Int(value) => value.map(owned),
            Self::Bool(value) => value.map(owned),
            Self::Text(value) => value.as_deref().map(|text| ToSqlOutput::Borrowed(ValueRef::from(text))),
            Self::Uuid(value) => {
                value.as_ref().map(|id| ToSqlOutput::Borrowed(ValueRef::Blob(id.as_bytes())))
            }
            // In microseconds, as PostgreSQL has them.
            Self::Time(value) => value.map(|time| owned(time.timestamp_micros())),
            Self::Json(value) => value.as_ref().map(|json| owned(json.to_string())),
            Self::Bytes(value) => value.as_ref().map(|bytes| ToSqlOutput::Borrowed(ValueRef::Blob(bytes))),
            Self::Column(_) => unreachable!("SQLite has no arrays"),
        };
        Ok(bound.unwrap_or(ToSqlOutput::Owned(Value::Null)))
    }
}

pub(crate) fn for_postgres(args: Vec<Arg>) -> Result<PgArguments, Error> {
    let mut bound = PgArguments::default();
    for arg in args {
        match arg {
            Arg::Int(value) => bound.add(value),
            Arg::Bool(value) => bound.add(value),
            Arg::Text(value) => bound.add(value),
            Arg::Uuid(value) => bound.add(value),
            Arg::Time(value) => bound.add(value),
            Arg::Json(value) => bound.add(value.map(Json)),
            Arg::Bytes(value) => bound.add(value),
            Arg::Column(Column::Ints(values)) => bound.add(values),
            Arg::Column(Column::Bools(values)) => bound.add(values),
            Arg::Column(Column::Texts(values)) => bound.add(values),
            Arg::Column(Column::Uuids(values)) => bound.add(values),
            Arg::Column(Column::Times(values)) => bound.add(values),
            Arg::Column(Column::Jsons(values)) => bound.add(values),
            Arg::Column(Column::Bytes(values)) => bound.add(values),
        }
        .map_err(|error| Error::Database(sqlx::Error::Encode(error)))?;
    }
    Ok(bound)
}

/// Adds values to the arguments of a statement, and returns their places for `IN (…)`: `$3, $4, $5, $5`. The last value is
/// repeated up to a power of two, so that there are few distinct statements. Each is kept prepared on each connection, and one
/// with hundreds of places takes hundreds of kilobytes there.
pub fn places(values: impl IntoIterator<Item = impl Into<Arg>>, arguments: &mut Vec<Arg>) -> String {
    let before = arguments.len();
    arguments.extend(values.into_iter().map(Into::into));
    let count = arguments.len() - before;
    if let Some(last) = arguments[before..].last().cloned() {
        arguments.resize(before + count.next_power_of_two(), last);
    }
    let mut places = String::with_capacity((arguments.len() - before) * 6);
    for place in before + 1..=arguments.len() {
        let comma = if place == before + 1 { "" } else { ", " };
        write!(places, "{comma}${place}").expect("writing to a string does not fail");
    }
    places
}

/// Rows of arguments for one bulk statement. A statement refers to their columns as `column1`, `column2` and so on.
///
/// For SQLite they are a `VALUES` list, padded with rows of NULLs to a power of two, so that there are few distinct
/// statements to prepare. The first column of a real row is never NULL, and a statement must skip the rows where it is. For
/// PostgreSQL each column is one array, so there is one statement for any number of rows: it is parsed and planned once on
/// each connection, and a row costs no argument of its own.
#[derive(Debug, Default)]
pub struct Rows {
    args: Vec<Arg>,
    count: usize,
}

impl Rows {
    /// The maximum number of rows in one statement: SQLite limits the number of arguments.
    pub const MAX: usize = 256;
    /// The same for an insertion on PostgreSQL, where it only limits how much is sent at once.
    pub(crate) const MAX_IN_ARRAYS: usize = 1_024;

    pub fn push(&mut self, row: Vec<Arg>) {
        debug_assert!(self.count == 0 || self.args.len().is_multiple_of(self.count));
        self.args.extend(row);
        self.count += 1;
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// What a statement takes the rows from, with its arguments.
    pub fn into_values(self, tx: &Tx) -> (String, Vec<Arg>) {
        if tx.is_postgres() { self.into_arrays() } else { self.into_list() }
    }

    /// `VALUES (?, ?), (?, ?)`. SQLite treats `$1` as a name and searches the names one by one, which for a thousand
    /// arguments takes longer than the rest of the statement.
    fn into_list(mut self) -> (String, Vec<Arg>) {
        let width = self.args.len() / self.count.max(1);
        let missing: Vec<Arg> = self.args[..width].iter().map(Arg::missing).collect();
        for _ in self.count..self.count.next_power_of_two() {
            self.args.extend_from_slice(&missing);
        }
        let mut sql = String::with_capacity(self.args.len() * 2 + self.count * 4 + 8);
        sql.push_str("VALUES ");
        for place in 0..self.args.len() {
            sql.push_str(match place % width {
                0 if place == 0 => "(?",
                0 => "),(?",
                _ => ",?",
            });
        }
        sql.push(')');
        (sql, self.args)
    }

    /// `SELECT * FROM UNNEST((SELECT $1), (SELECT $2)) AS given (column1, column2)`. Behind a `SELECT` the planner does not
    /// see how long an array is. It always plans for a few rows, which it finds by an index. For a hundred rows it would
    /// rather read all of a table that has ten thousand.
    fn into_arrays(self) -> (String, Vec<Arg>) {
        let width = self.args.len() / self.count.max(1);
        let mut columns: Vec<Column> =
            self.args[..width].iter().map(|value| Column::like(value, self.count)).collect();
        for (place, value) in self.args.into_iter().enumerate() {
            columns[place % width].push(value);
        }
        let (mut arrays, mut names) = (String::with_capacity(width * 16), String::with_capacity(width * 10));
        for number in 1..=width {
            let comma = if number == 1 { "" } else { ", " };
            write!(arrays, "{comma}(SELECT ${number})").expect("writing to a string does not fail");
            write!(names, "{comma}column{number}").expect("writing to a string does not fail");
        }
        let sql = format!("SELECT * FROM UNNEST({arrays}) AS given ({names})");
        (sql, columns.into_iter().map(Arg::Column).collect())
    }

    /// The same as a part of a `WITH` clause that names the columns: `name(a, b) AS (…)`.
    pub fn named(self, name: &str, columns: &[&str], tx: &Tx) -> (String, Vec<Arg>) {
        debug_assert_eq!(self.args.len(), columns.len() * self.count, "a value for each column");
        let (values, args) = self.into_values(tx);
        (format!("{name}({}) AS ({values})", columns.join(", ")), args)
    }

    /// The same rows in parts, each small enough for one statement.
    pub fn batches(self) -> impl Iterator<Item = Self> {
        self.parts(Self::MAX)
    }

    /// The same in parts of up to so many rows.
    pub(crate) fn parts(self, most: usize) -> impl Iterator<Item = Self> {
        let width = self.args.len() / self.count.max(1);
        let mut args = self.args.into_iter();
        std::iter::from_fn(move || {
            let part: Vec<Arg> = args.by_ref().take(width * most).collect();
            (!part.is_empty()).then(|| Self { count: part.len() / width, args: part })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(count: i64) -> (String, Vec<Arg>) {
        let mut arguments = vec![Arg::from("before")];
        (places(10..10 + count, &mut arguments), arguments)
    }

    #[test]
    fn a_list_of_places_repeats_its_last_value_up_to_a_power_of_two() {
        let (places, arguments) = placed(3);
        assert_eq!(places, "$2, $3, $4, $5");
        let expected = [Arg::from("before"), 10.into(), 11.into(), 12.into(), 12.into()];
        assert_eq!(format!("{arguments:?}"), format!("{expected:?}"));
        assert_eq!(placed(0).0, "");
    }

    #[test]
    fn lists_of_all_lengths_have_few_forms() {
        let forms: std::collections::BTreeSet<String> = (1..=1_000).map(|count| placed(count).0).collect();
        assert_eq!(forms.len(), 11);
    }
}
