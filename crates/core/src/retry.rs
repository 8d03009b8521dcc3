//! What happens to a file whose stage failed: a retry later, or a dead letter.

use std::time::Duration;

use crate::failure::{Contact, Failure, Retry};
use crate::lifecycle::Stage;

/// The delay before the next attempt, and the number of attempts.
///
/// With the defaults a failed extraction runs again after 5 s, then after 10 s, then not again; chunking and
/// embedding after 3 s and 6 s. Each delay varies by up to 20 % in both directions, so that files that failed
/// together are not retried together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryPolicy {
    pub max_attempts: u32,
    /// For scan and extract.
    pub base_delay: Duration,
    /// For chunk and embed, which need no bytes from storage.
    pub late_base_delay: Duration,
    pub max_delay: Duration,
}

impl RetryPolicy {
    /// The delay before the attempt after `attempt`, or `None` if there is no further attempt. `waits` is how often
    /// the file waited for a service at no cost. `chance`, from 0 to 1, picks the jitter.
    pub fn delay(
        &self,
        stage: Stage,
        attempt: u32,
        waits: u32,
        failure: &Failure,
        chance: f64,
    ) -> Option<Duration> {
        let allowed = match failure.retry {
            Retry::Never => 1,
            Retry::Once => self.max_attempts.min(2),
            Retry::Always => self.max_attempts,
            Retry::Wait => u32::MAX,
        };
        if attempt >= allowed {
            return None;
        }
        let base = match stage {
            Stage::Scan | Stage::Extract => self.base_delay,
            Stage::Chunk | Stage::Embed => self.late_base_delay,
        };
        // `Retry::Wait` never raises `attempt`, so its delay does not grow.
        // A file that waits for a service that is not available does not either, and must not ask it for hours at the
        // first pace.
        let waits = if failure.contact == Contact::Unavailable { waits } else { 0 };
        let doublings = attempt.saturating_sub(1).saturating_add(waits).min(20);
        let delay = (base * 2_u32.pow(doublings)).min(self.max_delay).mul_f64(0.8 + 0.4 * chance);
        // A service that asks for a longer delay gets it.
        Some(failure.retry_after.map_or(delay, |asked| asked.max(delay)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Code;

    const POLICY: RetryPolicy = RetryPolicy {
        max_attempts: 3,
        base_delay: Duration::from_secs(5),
        late_base_delay: Duration::from_secs(3),
        max_delay: Duration::from_mins(1),
    };

    fn delay(stage: Stage, attempt: u32, code: Code, chance: f64) -> Option<Duration> {
        POLICY.delay(stage, attempt, 0, &Failure::new(code, "x"), chance)
    }

    #[test]
    fn the_delay_doubles_and_the_third_attempt_is_the_last() {
        let waits =
            |stage| [1, 2, 3].map(|attempt| delay(stage, attempt, Code::DbError, 0.5).map(|d| d.as_secs()));
        assert_eq!(waits(Stage::Extract), [Some(5), Some(10), None]);
        assert_eq!(waits(Stage::Embed), [Some(3), Some(6), None]);
    }

    #[test]
    fn jitter_changes_the_delay_by_up_to_a_fifth() {
        assert_eq!(delay(Stage::Extract, 1, Code::DbError, 0.0), Some(Duration::from_secs(4)));
        assert_eq!(delay(Stage::Extract, 1, Code::DbError, 1.0), Some(Duration::from_secs(6)));
    }

    #[test]
    fn the_delay_is_capped_before_the_jitter() {
        let patient = RetryPolicy { max_attempts: 50, ..POLICY };
        let failure = Failure::new(Code::DbError, "x");
        assert_eq!(patient.delay(Stage::Extract, 40, 0, &failure, 0.5), Some(Duration::from_mins(1)));
    }

    #[test]
    fn a_code_that_is_retried_once_has_two_attempts_and_a_permanent_one_has_one() {
        assert!(delay(Stage::Extract, 1, Code::IoError, 0.5).is_some());
        assert!(delay(Stage::Extract, 2, Code::IoError, 0.5).is_none());
        assert!(delay(Stage::Extract, 1, Code::ParseError, 0.5).is_none());
    }

    #[test]
    fn a_delay_that_the_service_asks_for_is_respected() {
        let failure =
            Failure { retry_after: Some(Duration::from_secs(30)), ..Failure::new(Code::EmbedError, "x") };
        assert_eq!(POLICY.delay(Stage::Embed, 1, 0, &failure, 0.5), Some(Duration::from_secs(30)));
    }

    #[test]
    fn the_delay_grows_while_a_service_is_not_available() {
        let unavailable = Failure::new(Code::GatewayUnavailable, "x").unavailable();
        let delay = |waits| POLICY.delay(Stage::Extract, 1, waits, &unavailable, 0.5).map(|d| d.as_secs());
        assert_eq!([0, 1, 2, 100].map(delay), [Some(5), Some(10), Some(20), Some(60)]);
    }
}
