//! The time that counts for this process: the database's.
//!
//! Whatever is stored, or compared with what another process stored, goes by it: claims, delays, deadlines, signed URLs,
//! schedules. So a machine whose own clock is wrong harms nothing. It is named all the same, because its log and its files
//! have the wrong time.

use std::fmt;
use std::time::Duration;

use chrono::TimeDelta;
use tokio::sync::watch;

use landfall_core::clock::{Clock, Reading, to_delta};
use landfall_store::{Db, Error};

/// A smaller difference is not worth a word.
const TOLERANCE: TimeDelta = TimeDelta::seconds(1);

/// By how much the clock of this machine is ahead of the database's, if that is too much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Skew(TimeDelta);

impl fmt::Display for Skew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let direction = if self.0 > TimeDelta::zero() { "ahead of" } else { "behind" };
        #[expect(clippy::cast_precision_loss, reason = "it is shown with one digit")]
        let seconds = self.0.abs().num_milliseconds() as f64 / 1_000.0;
        write!(f, "The clock of this machine is {seconds:.1} s {direction} the database's")
    }
}

pub struct DatabaseTime {
    db: Db,
    /// The clock of this machine.
    machine: Clock,
    /// The database's time; on SQLite the machine's.
    clock: Clock,
    /// By how much the machine was ahead when it was last compared, and what was said about it.
    ahead: watch::Sender<TimeDelta>,
    skew: watch::Sender<Option<Skew>>,
}

impl DatabaseTime {
    pub async fn start(db: Db, machine: Clock) -> Result<Self, Error> {
        let clock = db.clock(machine.clone()).await?;
        let (ahead, skew) = (watch::Sender::new(TimeDelta::zero()), watch::Sender::new(None));
        let time = Self { db, machine, clock, ahead, skew };
        time.read().await?;
        Ok(time)
    }

    pub fn clock(&self) -> Clock {
        self.clock.clone()
    }

    /// Whether the database has a clock of its own.
    pub fn is_shared(&self) -> bool {
        matches!(self.clock, Clock::Shared(_))
    }

    /// By how much the clock of this machine is ahead of the database's. Zero on SQLite, which has no other clock.
    pub fn ahead(&self) -> TimeDelta {
        *self.ahead.borrow()
    }

    /// The same if it is too much.
    pub fn skew(&self) -> Option<Skew> {
        *self.skew.borrow()
    }

    /// Follows the database's clock. If the database does not answer in time, the clock runs on as it was.
    pub async fn correct(&self, patience: Duration) {
        match tokio::time::timeout(patience, self.read()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "the database's clock could not be read"),
            Err(_) => tracing::debug!("the database's clock could not be read in time"),
        }
    }

    async fn read(&self) -> Result<(), Error> {
        let Clock::Shared(clock) = &self.clock else { return Ok(()) };
        let Some(reading) = self.db.read_clock().await? else { return Ok(()) };
        let here = self.machine.now();
        clock.correct(&reading);
        self.compare(here - reading.at_arrival(), &reading);
        Ok(())
    }

    fn compare(&self, ahead: TimeDelta, reading: &Reading) {
        self.ahead.send_replace(ahead);
        // The error of the reading may be in either direction.
        let tolerance = TOLERANCE + to_delta(reading.round_trip / 2);
        let skew = (ahead.abs() > tolerance).then_some(Skew(ahead));
        let changed = |old: &mut Option<Skew>| match (*old, skew) {
            (None, None) => false,
            // One that stays about the same is named once.
            (Some(old), Some(new)) if (old.0 - new.0).abs() <= tolerance => false,
            _ => {
                *old = skew;
                true
            }
        };
        if !self.skew.send_if_modified(changed) {
            return;
        }
        match skew {
            Some(skew) => tracing::warn!(
                "{skew}. Landfall goes by the database's time, so nothing is harmed, but this log has the machine's: \
                 synchronise the clock (NTP)"
            ),
            None => tracing::info!("the clock of this machine agrees with the database's again"),
        }
    }
}
