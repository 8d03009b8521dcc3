//! How long to wait before a request is repeated.

use std::time::Duration;

use super::ClientError;

const FIRST_DELAY: Duration = Duration::from_millis(250);
/// The shortest and the longest of the last delays.
const LAST_DELAY: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(30));
/// The longest that a request waits because the server limits how many there may be, all times together.
const MAX_LIMIT_WAIT: Duration = Duration::from_mins(10);

#[derive(Debug)]
pub struct Backoff {
    patience: Duration,
    delay: Duration,
    left: Duration,
    left_for_limits: Duration,
}

impl Backoff {
    pub fn new(patience: Duration) -> Self {
        Self { patience, delay: FIRST_DELAY, left: patience, left_for_limits: MAX_LIMIT_WAIT }
    }

    /// Begins again, because something succeeded in between.
    pub fn reset(&mut self) {
        *self = Self::new(self.patience);
    }

    /// The next delay, or `None` if the request was repeated for long enough. A server that asks for more time than is left
    /// is not waited for.
    pub fn next(&mut self, error: &ClientError) -> Option<Duration> {
        // Jitter: clients that failed together should not come back together.
        if error.is_limit()
            && let Some(asked) = error.asked_wait()
        {
            let wait = asked.mul_f64(1.0 + 0.2 * rand::random::<f64>());
            self.left_for_limits = self.left_for_limits.checked_sub(wait)?;
            return Some(wait);
        }
        let own = self.delay.mul_f64(0.8 + 0.4 * rand::random::<f64>());
        let wait = error.asked_wait().map_or(own, |asked| own.max(asked));
        self.left = self.left.checked_sub(self.delay.max(wait.saturating_sub(own)))?;
        self.delay = (self.delay * 2).min((self.patience / 20).clamp(LAST_DELAY.0, LAST_DELAY.1));
        Some(wait)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn refused(status: u16, asked: Option<u64>) -> ClientError {
        ClientError::Refused {
            status,
            code: "X".to_owned(),
            message: String::new(),
            retryable: true,
            retry_after: asked.map(Duration::from_secs),
            details: Value::Null,
            hint: "",
        }
    }

    fn delays(backoff: &mut Backoff, error: &ClientError) -> Vec<Duration> {
        std::iter::from_fn(|| backoff.next(error)).take(1_000).collect()
    }

    #[test]
    fn delays_grow_and_end() {
        let mut backoff = Backoff::new(Duration::from_secs(13));
        let waited = delays(&mut backoff, &refused(503, None));
        assert_eq!(waited.len(), 6, "{waited:?}");
        assert!(waited[0] < waited[3] && waited.iter().all(|delay| *delay <= Duration::from_secs(6)));
        assert_eq!(backoff.next(&refused(503, None)), None);
        backoff.reset();
        assert_eq!(delays(&mut backoff, &refused(503, None)).len(), 6);
        let long: Duration =
            delays(&mut Backoff::new(Duration::from_mins(5)), &refused(503, None)).iter().sum();
        assert!(long > Duration::from_mins(3) && long < Duration::from_mins(7), "{long:?}");
    }

    #[test]
    fn a_request_waits_for_as_long_as_it_is_asked_to() {
        let mut backoff = Backoff::new(Duration::from_secs(13));
        assert!(backoff.next(&refused(503, Some(3))).unwrap() >= Duration::from_secs(3));
        assert_eq!(backoff.next(&refused(503, Some(60))), None, "that is longer than it waits at all");
    }

    #[test]
    fn a_limit_is_waited_for_longer_than_a_server_that_is_away() {
        let mut backoff = Backoff::new(Duration::from_secs(13));
        let waited: Duration = delays(&mut backoff, &refused(429, Some(60))).iter().sum();
        assert!(waited > Duration::from_mins(8) && waited <= Duration::from_mins(10), "{waited:?}");
        assert!(backoff.next(&refused(503, None)).is_some(), "that has its own time");
    }
}
