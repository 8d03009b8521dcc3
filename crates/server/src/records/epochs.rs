//! The epochs of the events.
//!
//! A restored backup lacks the events that were written after it, and clients may have seen them. So a database that was
//! restored begins a new epoch: its ids begin above all ids that the lost events can have had, and a client that resumes
//! from before is told.

use uuid::Uuid;

use landfall_core::clock::Time;
use landfall_store::Error;
use landfall_store::{Tx, Write, args};

/// Where no event of any lost state can be: ids are counted up by one, and time by a million each second.
fn first_id_at(now: Time, last: i64) -> i64 {
    now.timestamp_micros().max(last + 1) + 1
}

#[derive(Debug, Clone, PartialEq, Eq, landfall_store::FromRow)]
pub struct Epoch {
    pub epoch: Uuid,
    pub first_id: i64,
    /// The last id that had been taken when it began.
    pub last_id_before: i64,
    pub place: String,
    pub mark_generation: i64,
}

impl Epoch {
    /// Where a client begins that has seen events which this database may not have. `None` for a client of this epoch.
    pub fn resume_from(&self, position: i64) -> Option<i64> {
        let begins_after = self.first_id - 1;
        // One that begins at the beginning has seen nothing.
        if position == 0 || position >= begins_after {
            return None;
        }
        // Up to there the events are those that it knows.
        Some(if position <= self.last_id_before { position } else { begins_after })
    }
}

/// SQL for the epoch of an event.
pub const OF_EVENT: &str = "(SELECT p.epoch FROM event_epochs p WHERE p.first_id <= events.id
     ORDER BY p.first_id DESC LIMIT 1) AS epoch";

pub async fn current(tx: &mut Tx) -> Result<Option<Epoch>, Error> {
    tx.row(
        "SELECT epoch, first_id, last_id_before, place, mark_generation FROM event_epochs
         ORDER BY first_id DESC LIMIT 1",
        args![],
    )
    .await
}

/// Begins an epoch, unless another process did so since `after` was read. The first epoch of a database has all events that
/// are there already.
pub struct Begin {
    pub fresh: Uuid,
    pub after: Option<Epoch>,
    pub restored: bool,
    pub place: String,
    pub mark_generation: i64,
    pub now: Time,
}

impl Write for Begin {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        tx.enter_section("event epochs").await?;
        if current(tx).await? != self.after {
            return Ok(());
        }
        let (last, first, reason) = if self.restored {
            let last = tx.last_id("events").await?;
            let first = first_id_at(self.now, last);
            tx.skip_ids("events", first - 1).await?;
            (last, first, "restored")
        } else {
            (0, 0, "created")
        };
        tx.execute(
            "INSERT INTO event_epochs
                 (first_id, epoch, last_id_before, place, mark_generation, reason, began_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7)",
            args![first, self.fresh, last, &self.place, self.mark_generation, reason, self.now],
        )
        .await
        .map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_client_that_saw_an_earlier_epoch_is_told() {
        let epoch = Epoch {
            epoch: Uuid::nil(),
            first_id: 1_000,
            last_id_before: 70,
            place: String::new(),
            mark_generation: 0,
        };
        let told = |position| epoch.resume_from(position);
        assert_eq!(told(50), Some(50), "the backup has the events after it");
        assert_eq!(told(70), Some(70));
        assert_eq!(told(71), Some(999), "it saw an event that is lost");
        assert_eq!(told(998), Some(999));
        assert_eq!((told(999), told(1_000), told(5_000)), (None, None, None), "it is in this epoch");
        assert_eq!(told(0), None, "it saw nothing");
    }

    #[test]
    fn ids_of_an_epoch_are_above_all_that_can_have_been_lost() {
        let noon: Time = "2026-01-02T12:00:00Z".parse().expect("a time");
        let first = first_id_at(noon, 70);
        // Another restore a second later, of the same backup: a million events may have come in between.
        let second = first_id_at(noon + chrono::TimeDelta::seconds(1), 70);
        assert!(second - first >= 1_000_000);
        assert!(first_id_at(noon, second) > second, "also where the clock was wrong");
        assert!(second < (1 << 53), "a number of JavaScript has room for it");
    }
}
