//! The time of the database.
//!
//! Processes on several machines share a PostgreSQL database, so its clock is the one that counts. SQLite is on one
//! machine, whose clock all its processes read anyway.

use std::time::Duration;

use landfall_core::clock::{Clock, Reading, SharedClock, Stopwatch, Time};

use crate::{Db, Error};

impl Db {
    /// What the database's clock shows. `None` on SQLite.
    pub async fn read_clock(&self) -> Result<Option<Reading>, Error> {
        if let Some(process) = self.simulated_process() {
            let time = Clock::System.now() - process.ahead();
            return Ok(Some(Reading { time, round_trip: Duration::ZERO }));
        }
        let Some(pool) = self.postgres() else { return Ok(None) };
        // A connection first: how long that takes says nothing about the way to the server and back.
        let mut connection = pool.acquire().await?;
        let asked = Stopwatch::start();
        let time: Time = sqlx::query_scalar("SELECT clock_timestamp()").fetch_one(&mut *connection).await?;
        Ok(Some(Reading { time, round_trip: asked.elapsed() }))
    }

    /// A clock that shows the database's time, or `machine` on SQLite. It is corrected by [`SharedClock::correct`].
    pub async fn clock(&self, machine: Clock) -> Result<Clock, Error> {
        let reading = self.read_clock().await?;
        Ok(reading.map_or(machine, |reading| Clock::Shared(SharedClock::starting_at(&reading))))
    }
}
