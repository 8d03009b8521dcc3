//! How fast the bytes of an upload come. One that trickles would keep its connection and its room for ever.

use std::time::Duration;

/// Counts the bytes of an upload against the time that the server waited for them. What the server itself takes to store
/// them does not count.
#[derive(Debug)]
pub struct Pace {
    window: Duration,
    /// The bytes that must come while the server waits for as long as the window.
    least: u64,
    waited: Duration,
    bytes: u64,
}

impl Pace {
    /// At least `rate` bytes a second, on the average of each window.
    pub fn new(rate: u64, window: Duration) -> Self {
        Self { window, least: rate.saturating_mul(window.as_secs().max(1)), waited: Duration::ZERO, bytes: 0 }
    }

    /// So many bytes came after the server had waited so long. Returns whether that is fast enough.
    pub fn keeps_up(&mut self, bytes: usize, waited: Duration) -> bool {
        self.bytes += bytes as u64;
        self.waited += waited;
        if self.waited < self.window {
            return true;
        }
        let keeps_up = self.bytes >= self.least;
        (self.bytes, self.waited) = (0, Duration::ZERO);
        keeps_up
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_slow_link_keeps_up_and_a_trickle_does_not() {
        let (mut slow, mut trickle) = (Pace::new(1_024, 60 * SECOND), Pace::new(1_024, 60 * SECOND));
        assert!(
            (0..3_600).all(|_| slow.keeps_up(1_100, SECOND)),
            "an hour at a little more than the minimum"
        );
        let ended_after = (1..1_000).find(|_| !trickle.keeps_up(900, SECOND));
        assert_eq!(ended_after, Some(60));
    }

    #[test]
    fn a_pause_is_made_good_by_what_comes_after_it() {
        let mut pace = Pace::new(1_024, 60 * SECOND);
        assert!(pace.keeps_up(10, 50 * SECOND), "nothing for most of a minute");
        assert!(pace.keeps_up(100_000, 10 * SECOND), "and then a lot");
    }
}
