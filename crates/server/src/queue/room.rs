//! How many files of a stage this process has in hand, and how many it should have.
//!
//! Work runs in slots, as many as the stage's concurrency allows. A stage that takes longer than `MOMENT` has no
//! more files in hand than slots: other due files wait in the queue, where any process can claim them. A faster
//! stage takes some files ahead, as many as its slots finish in that time, so that files are claimed and settled
//! many at a time and share their commits.

use std::sync::Arc;
use std::time::Duration;

use landfall_sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use landfall_sync::{OwnedSemaphorePermit, Semaphore};

use super::config::StageConfig;
use super::tenant_share::{Presence, TenantsAtStage};

/// How far ahead files are taken in hand.
const MOMENT: Duration = Duration::from_millis(10);
/// The most files that are claimed without a free slot, however fast their stage is.
const MAX_AHEAD: usize = 128;
/// The same for files that come from the previous stage. The limit is higher because these files would have to go
/// back to the queue, and the files of several claims may be on their way through the stages at once.
const MAX_CARRIED_AHEAD: usize = 2 * MAX_AHEAD;

pub struct Room {
    pub config: StageConfig,
    slots: Arc<Semaphore>,
    in_hand: AtomicUsize,
    pub tenants: Arc<TenantsAtStage>,
    /// As the last claim read it. A carried file must not enter a paused stage.
    paused: AtomicBool,
    /// About how many nanoseconds the work on a file takes here.
    pace: AtomicU64,
}

/// One of the files that a worker has in hand at a stage.
pub struct Place {
    room: Arc<Room>,
    _of_tenant: Presence,
}

impl Room {
    pub fn new(config: StageConfig) -> Arc<Self> {
        Arc::new(Self {
            slots: Arc::new(Semaphore::new(config.concurrency)),
            in_hand: AtomicUsize::new(0),
            tenants: Arc::default(),
            paused: AtomicBool::new(false),
            // Assume that the stage is slow until it is measured.
            pace: AtomicU64::new(nanoseconds(MOMENT)),
            config,
        })
    }

    /// How many files to claim now. 0 while there is enough work: one large claim costs less than many small ones.
    pub fn wanted(&self) -> usize {
        let (in_hand, most) = (self.in_hand.load(Ordering::Relaxed), self.most(MAX_AHEAD));
        if in_hand < self.config.concurrency || in_hand <= most / 2 {
            most.saturating_sub(in_hand)
        } else {
            0
        }
    }

    pub fn set_paused(&self, paused: bool) {
        self.paused.store(paused, Ordering::Relaxed);
    }

    pub fn is_paused(&self) -> bool {
        self.paused.load(Ordering::Relaxed)
    }

    /// Takes a claimed file in hand.
    pub fn enter(self: &Arc<Self>, tenant: &str) -> Place {
        self.in_hand.fetch_add(1, Ordering::Relaxed);
        self.place(tenant)
    }

    fn place(self: &Arc<Self>, tenant: &str) -> Place {
        Place { room: self.clone(), _of_tenant: self.tenants.take_in_hand(tenant) }
    }

    /// Takes a file from the previous stage in hand, if there is room for it.
    pub fn try_enter(self: &Arc<Self>, tenant: &str) -> Option<Place> {
        if self.is_paused() || !self.config.takes_carried_files() {
            return None;
        }
        let most = self.most(MAX_CARRIED_AHEAD);
        self.in_hand
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |in_hand| {
                (in_hand < most).then_some(in_hand + 1)
            })
            .is_ok()
            .then(|| self.place(tenant))
    }

    /// Resolves when there is a slot for the work on a file.
    pub async fn slot(&self) -> OwnedSemaphorePermit {
        self.slots.clone().acquire_owned().await.expect("the slots are never closed")
    }

    /// Updates the pace with how long the work on a file took.
    pub fn took(&self, duration: Duration) {
        let (last, pace) = (nanoseconds(duration), self.pace.load(Ordering::Relaxed));
        // Slow down at once, speed up gradually.
        let next = if last > pace { pace.midpoint(last) } else { pace - (pace - last) / 8 };
        self.pace.store(next, Ordering::Relaxed);
    }

    fn most(&self, ahead_at_most: usize) -> usize {
        let pace = self.pace.load(Ordering::Relaxed).max(1);
        let rounds = usize::try_from(nanoseconds(MOMENT) / pace).unwrap_or(usize::MAX);
        // The first round is the one in the slots.
        let ahead = self.config.concurrency.saturating_mul(rounds.saturating_sub(1));
        // Files in hand still call the service after it goes down, so none are taken ahead of the slots.
        let ahead = if self.config.calls_out() { 0 } else { ahead };
        self.config.concurrency + ahead.min(ahead_at_most)
    }
}

impl Place {
    pub fn room(&self) -> &Arc<Room> {
        &self.room
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.room.in_hand.fetch_sub(1, Ordering::Relaxed);
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_core::lifecycle::Stage;

    fn room(concurrency: usize) -> Arc<Room> {
        Room::new(StageConfig {
            stage: Stage::Extract,
            concurrency,
            timeout: Duration::from_mins(1),
            services: &[],
            is_limited: false,
        })
    }

    #[test]
    fn a_slow_stage_has_no_more_in_hand_than_it_works_on() {
        let room = room(8);
        assert_eq!(room.wanted(), 8);
        room.took(Duration::from_secs(2));
        let places: Vec<Place> = (0..8).map(|_| room.try_enter("acme").unwrap()).collect();
        assert!(room.try_enter("acme").is_none());
        assert_eq!(room.wanted(), 0);
        drop(places);
        assert_eq!(room.wanted(), 8);
    }

    #[test]
    fn a_free_slot_of_a_slow_stage_is_filled_at_once() {
        let room = room(8);
        let mut places: Vec<Place> = (0..8).map(|_| room.enter("acme")).collect();
        places.pop();
        assert_eq!(room.wanted(), 1);
    }

    #[test]
    fn a_fast_stage_takes_many_at_a_time_and_not_one_by_one() {
        let room = room(8);
        (0..200).for_each(|_| room.took(Duration::from_micros(5)));
        assert_eq!(room.wanted(), 8 + MAX_AHEAD);
        let most = 8 + MAX_AHEAD;
        let mut places: Vec<Place> = (0..most).map(|_| room.enter("acme")).collect();
        places.truncate(most - 10);
        assert_eq!(room.wanted(), 0);
        places.truncate(most / 2);
        assert_eq!(room.wanted(), most / 2);
    }

    #[test]
    fn one_slow_file_is_enough_to_stop_taking_files_ahead() {
        let room = room(8);
        (0..200).for_each(|_| room.took(Duration::from_micros(5)));
        room.took(Duration::from_secs(1));
        assert_eq!(room.wanted(), 8);
    }
}
