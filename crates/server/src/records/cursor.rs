//! A position in a list that has the newest first, as a client gets it and sends it back.

use std::fmt;
use std::str::FromStr;

use landfall_core::clock::Time;
use uuid::Uuid;

/// Behind an item: its time, and its id where several have the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    pub at: Time,
    pub id: Uuid,
}

impl Cursor {
    /// Before everything of `now` or earlier.
    pub const fn newest(now: Time) -> Self {
        Self { at: now, id: Uuid::max() }
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}", self.at.timestamp_micros(), self.id)
    }
}

/// The text is not a valid position.
#[derive(Debug)]
pub struct NoPlace;

impl FromStr for Cursor {
    type Err = NoPlace;

    fn from_str(text: &str) -> Result<Self, NoPlace> {
        let (at, id) = text.split_once('_').ok_or(NoPlace)?;
        let at = at.parse().ok().and_then(Time::from_timestamp_micros).ok_or(NoPlace)?;
        Ok(Self { at, id: Uuid::parse_str(id).map_err(|_| NoPlace)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_it_was_written() {
        let place = Cursor { at: "2026-01-02T03:04:05.000007Z".parse().unwrap(), id: Uuid::max() };
        assert_eq!(place.to_string().parse::<Cursor>().unwrap(), place);
        for nonsense in ["", "_", "1", "x_y", "99999999999999999999_x", "1_not-an-id"] {
            assert!(nonsense.parse::<Cursor>().is_err(), "{nonsense}");
        }
    }
}
