//! The places of a stage.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use landfall_core::clock::Time;
use landfall_core::lifecycle::Stage;
use landfall_schedules::queue::config::StageConfig;
use landfall_schedules::queue::room::Room;
use landfall_schedules::world;
use shuttle::future::{block_on, spawn};

const PLACES: usize = 2;

/// How many there are of something, and never more than there may be.
#[derive(Clone)]
struct Gauge(Arc<AtomicUsize>, usize);

impl Gauge {
    fn of(most: usize) -> Self {
        Self(Arc::default(), most)
    }

    fn enter(&self) {
        let now = self.0.fetch_add(1, Ordering::Relaxed) + 1;
        assert!(now <= self.1, "{now} at once where {} may be", self.1);
    }

    fn leave(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[test]
fn a_room_gives_out_no_more_places_than_it_has_and_forgets_none() {
    static REFUSED: AtomicUsize = AtomicUsize::new(0);
    world::check(1_000, || {
        let room = Room::new(StageConfig {
            stage: Stage::Extract,
            concurrency: PLACES,
            timeout: Duration::from_mins(1),
            services: &[],
            is_limited: false,
        });
        let (places, slots) = (Gauge::of(PLACES), Gauge::of(PLACES));
        block_on(async {
            let files = (0..4).map(|file| {
                let (room, places, slots) = (room.clone(), places.clone(), slots.clone());
                spawn(async move {
                    let tenant = ["acme", "globex"][file % 2];
                    for _ in 0..2 {
                        let Some(place) = room.try_enter(tenant) else {
                            REFUSED.fetch_add(1, Ordering::Relaxed);
                            continue;
                        };
                        places.enter();
                        let slot = room.slot().await;
                        slots.enter();
                        // A slow stage takes no files ahead of its slots.
                        room.took(Duration::from_secs(1));
                        slots.leave();
                        drop(slot);
                        places.leave();
                        drop(place);
                    }
                })
            });
            for file in files.collect::<Vec<_>>() {
                file.await.expect("the file ends");
            }
        });
        assert_eq!(room.wanted(), PLACES, "all places are free again");
        let held = room.tenants.held(0, Time::UNIX_EPOCH);
        assert!(held.by_tenant.is_empty() && held.capacity == 0, "no tenant holds one: {held:?}");
    });
    assert!(REFUSED.load(Ordering::Relaxed) > 0, "in some schedules there was no place");
}
