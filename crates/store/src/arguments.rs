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
        }
        .map_err(|error| Error::Database(sqlx::Error::Encode(error)))?;
    }
    Ok(bound)
}

/// Rows of arguments for one bulk statement. Both databases call the columns of a `VALUES` list `column1`,
/// `column2` and so on, which is how a statement refers to them.
///
/// A list is padded with rows of NULLs to a power of two, so that there are few distinct statements to prepare. The
/// first column of a real row is never NULL, and a statement must skip the rows where it is.
#[derive(Debug, Default)]
pub struct Rows {
    args: Vec<Arg>,
    count: usize,
}

impl Rows {
    /// The maximum number of rows in one statement: both databases limit the number of arguments.
    pub const MAX: usize = 256;

    pub fn push(&mut self, row: Vec<Arg>) {
        debug_assert!(self.count == 0 || self.args.len().is_multiple_of(self.count));
        self.args.extend(row);
        self.count += 1;
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// `VALUES ($1, $2), ($3, $4)` for PostgreSQL, with its arguments. For SQLite `VALUES (?, ?), (?, ?)`: SQLite
    /// treats `$1` as a name and searches the names one by one, which for a thousand arguments takes longer than
    /// the rest of the statement.
    pub fn into_values(mut self, tx: &Tx) -> (String, Vec<Arg>) {
        let postgres = tx.is_postgres();
        let width = self.args.len() / self.count.max(1);
        let missing: Vec<Arg> = self.args[..width].iter().map(Arg::missing).collect();
        for _ in self.count..self.count.next_power_of_two() {
            self.args.extend_from_slice(&missing);
        }
        let mut sql = String::with_capacity(self.args.len() * 6 + 8);
        sql.push_str("VALUES ");
        for place in 0..self.args.len() {
            sql.push_str(match place % width {
                0 if place == 0 => "(",
                0 => "),(",
                _ => ",",
            });
            if postgres {
                write!(sql, "${}", place + 1).expect("writing to a string does not fail");
            } else {
                sql.push('?');
            }
        }
        sql.push(')');
        (sql, self.args)
    }

    /// The same as a part of a `WITH` clause that names the columns: `name(a, b) AS (VALUES …)`.
    pub fn named(self, name: &str, columns: &[&str], tx: &Tx) -> (String, Vec<Arg>) {
        debug_assert_eq!(self.args.len(), columns.len() * self.count, "a value for each column");
        let (values, args) = self.into_values(tx);
        (format!("{name}({}) AS ({values})", columns.join(", ")), args)
    }

    /// The same rows in parts, each small enough for one statement.
    pub fn batches(self) -> impl Iterator<Item = Self> {
        let width = self.args.len() / self.count.max(1);
        let mut args = self.args.into_iter();
        std::iter::from_fn(move || {
            let part: Vec<Arg> = args.by_ref().take(width * Self::MAX).collect();
            (!part.is_empty()).then(|| Self { count: part.len() / width, args: part })
        })
    }
}
