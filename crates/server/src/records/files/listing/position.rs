//! A position in a list of files, for each order that a list can have.

use std::fmt;
use std::str::FromStr;

use landfall_core::states::{FileSort, SortOrder};
use landfall_store::Arg;
use uuid::Uuid;

use crate::records::file::File;

/// The order of a list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sorting {
    pub by: FileSort,
    pub order: SortOrder,
}

impl Sorting {
    /// What follows `ORDER BY`, in the exact terms of the indexes. `table` is empty, or ends with a point.
    pub(super) fn sql(self, table: &str) -> String {
        let direction = if self.order == SortOrder::Asc { "ASC" } else { "DESC" };
        let key = match self.by {
            FileSort::CreatedAt => String::new(),
            FileSort::FileName => format!("LOWER({table}file_name) {direction}, "),
            FileSort::Size => format!("{table}size_bytes {direction}, "),
        };
        format!("{key}{table}id {direction}")
    }

    /// What a list has as one more column if it is sorted by an expression. Without it PostgreSQL does not know of the rows of
    /// a subquery that they are sorted, and reads all of them before it returns the first.
    pub(super) const fn key(self) -> &'static str {
        match self.by {
            FileSort::FileName => ", LOWER(file_name) AS name_key",
            FileSort::CreatedAt | FileSort::Size => "",
        }
    }

    /// What follows `ORDER BY` for rows that have that column.
    pub(super) fn walked(self) -> String {
        self.sql("").replace("LOWER(file_name)", "name_key")
    }

    /// The condition that a row comes after a position.
    pub(super) fn after(self, position: &Position, arguments: &mut Vec<Arg>) -> After {
        let mut place = |value: Arg| {
            arguments.push(value);
            format!("${}", arguments.len())
        };
        let sign = if self.order == SortOrder::Asc { ">" } else { "<" };
        match &position.key {
            Key::Created => After::One(format!("id {sign} {}", place(position.id.into()))),
            Key::Name(name) => {
                let (name, id) = (place(name.into()), place(position.id.into()));
                After::Either(
                    format!("LOWER(file_name) = LOWER({name}) AND id {sign} {id}"),
                    format!("LOWER(file_name) {sign} LOWER({name})"),
                )
            }
            Key::Size(size) => {
                let (size, id) = (place((*size).into()), place(position.id.into()));
                After::One(format!("(size_bytes, id) {sign} ({size}, {id})"))
            }
        }
    }

    /// Where a file is in the list.
    pub fn position(self, file: &File) -> Position {
        self.position_of(file.id, &file.file_name, file.size_bytes)
    }

    pub(super) fn position_of(self, id: Uuid, name: &str, size: i64) -> Position {
        let key = match self.by {
            FileSort::CreatedAt => Key::Created,
            FileSort::FileName => Key::Name(name.to_owned()),
            FileSort::Size => Key::Size(size),
        };
        Position { key, id }
    }
}

/// The condition that a row comes after a position.
pub(super) enum After {
    One(String),
    /// One of the two. SQLite compares several values with an index at once, but no expression among them.
    Either(String, String),
}

/// Where a list continues: behind a file that may be gone by then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    key: Key,
    id: Uuid,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Key {
    Created,
    Name(String),
    Size(i64),
}

impl Position {
    /// In the order of registration.
    pub const fn at(id: Uuid) -> Self {
        Self { key: Key::Created, id }
    }

    pub const fn id(&self) -> Uuid {
        self.id
    }

    /// Whether it is one of a list that is sorted like that.
    pub const fn is_sorted_by(&self, by: FileSort) -> bool {
        matches!(
            (&self.key, by),
            (Key::Created, FileSort::CreatedAt)
                | (Key::Name(_), FileSort::FileName)
                | (Key::Size(_), FileSort::Size)
        )
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.key {
            Key::Created => write!(f, "{}", self.id),
            Key::Name(name) => write!(f, "n{}_{}", hex::encode(name), self.id),
            Key::Size(size) => write!(f, "s{size}_{}", self.id),
        }
    }
}

/// The text is not a position.
#[derive(Debug)]
pub struct NoPosition;

impl FromStr for Position {
    type Err = NoPosition;

    fn from_str(text: &str) -> Result<Self, NoPosition> {
        let (key, id) = match text.split_once('_') {
            None => (Key::Created, text),
            Some((key, id)) => {
                let name = |name: &str| String::from_utf8(hex::decode(name).ok()?).ok().map(Key::Name);
                let size = |size: &str| size.parse().ok().map(Key::Size);
                let read = key.strip_prefix('n').and_then(name).or(key.strip_prefix('s').and_then(size));
                (read.ok_or(NoPosition)?, id)
            }
        };
        // PostgreSQL takes no NUL in a text.
        if matches!(&key, Key::Name(name) if name.contains('\0')) {
            return Err(NoPosition);
        }
        Ok(Self { key, id: Uuid::parse_str(id).map_err(|_| NoPosition)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_read_as_it_was_written() {
        let id = Uuid::max();
        for key in
            [Key::Created, Key::Name("Ä_report.PDF".to_owned()), Key::Name(String::new()), Key::Size(7)]
        {
            let position = Position { key, id };
            assert_eq!(position.to_string().parse::<Position>().expect("a position"), position);
        }
        for nonsense in
            ["", "0", "_", "s_", "n", "sx_", "n0_x", "n00_ffffffff-ffff-ffff-ffff-ffffffffffff", "x1_y"]
        {
            assert!(nonsense.parse::<Position>().is_err(), "{nonsense}");
        }
    }
}
