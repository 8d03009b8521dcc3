//! The only module that makes random numbers. Other code asks here, so that a simulation can repeat a history exactly.
//!
//! The source is the system's, through the generator of `rand`. A simulation gives its thread a seed; from then on all that
//! is random on this thread follows from it.

use std::cell::RefCell;
use std::convert::Infallible;

use rand::distr::{Distribution, StandardUniform};
use rand::rngs::StdRng;
use rand::{Rng, RngExt, SeedableRng, TryRng};
use uuid::Uuid;

thread_local! {
    static SEEDED: RefCell<Option<Seeded>> = const { RefCell::new(None) };
}

/// The source of a thread that simulates.
struct Seeded {
    generator: StdRng,
    /// The millisecond and the counter of the last id that has a time in it.
    last_id: (u64, u16),
}

/// Where random numbers come from.
#[derive(Debug, Clone, Copy)]
pub struct Source;

impl TryRng for Source {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(with_source(|source| source.next_u32()))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(with_source(|source| source.next_u64()))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        with_source(|source| source.fill_bytes(bytes));
        Ok(())
    }
}

fn with_source<T>(take: impl FnOnce(&mut dyn Rng) -> T) -> T {
    SEEDED.with_borrow_mut(|seeded| match seeded {
        Some(seeded) => take(&mut seeded.generator),
        #[expect(clippy::disallowed_methods, reason = "this is where random numbers come from")]
        None => take(&mut rand::rng()),
    })
}

/// A random value: bytes, a number, or a fraction from 0 up to 1.
pub fn random<T>() -> T
where
    StandardUniform: Distribution<T>,
{
    Source.random()
}

/// An id that says nothing, not even when it was made.
pub fn new_uuid() -> Uuid {
    uuid::Builder::from_random_bytes(random()).into_uuid()
}

/// Gives this thread a seed, for a simulation. All keys and ids that it makes from now on can be foretold.
pub fn seed(seed: u64) {
    let generator = StdRng::seed_from_u64(seed);
    SEEDED.set(Some(Seeded { generator, last_id: (0, 0) }));
}

/// An id with this time in it, on a thread with a seed. Ids of one millisecond ascend.
pub(crate) fn seeded_id_at(milliseconds: u64) -> Option<Uuid> {
    SEEDED.with_borrow_mut(|seeded| {
        let seeded = seeded.as_mut()?;
        let (last, count) = seeded.last_id;
        let count = if last == milliseconds { count + 1 } else { 0 };
        seeded.last_id = (milliseconds, count);
        let mut bytes = [0; 10];
        seeded.generator.fill_bytes(&mut bytes);
        // The first twelve of these bits come right behind the time.
        bytes[..2].copy_from_slice(&count.to_be_bytes());
        Some(uuid::Builder::from_unix_timestamp_millis(milliseconds, &bytes).into_uuid())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::new_id_at;

    /// What a thread with this seed makes.
    fn made(of: u64) -> (u64, Uuid, [Uuid; 3]) {
        let made = move || {
            seed(of);
            let now = chrono::DateTime::from_timestamp_millis(1_000).expect("a time");
            (random(), new_uuid(), [new_id_at(now), new_id_at(now), new_id_at(now)])
        };
        std::thread::spawn(made).join().expect("it makes them")
    }

    #[test]
    fn a_seed_decides_all_that_is_random_on_its_thread() {
        assert_eq!(made(1), made(1));
        assert_ne!(made(1), made(2));
        assert_ne!(new_uuid(), new_uuid(), "other threads have no seed");
    }

    #[test]
    fn seeded_ids_of_one_millisecond_ascend() {
        let (_, _, ids) = made(1);
        assert!(ids.is_sorted(), "{ids:?}");
        assert!(ids.iter().all(|id| id.get_version_num() == 7));
    }
}
