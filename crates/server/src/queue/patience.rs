//! Ends the wait of files for a service that fails them for too long.
//!
//! While a service is down, files wait for it at no cost. A document that the service can never process looks the same
//! as an outage when no other file shows that the service works, so the wait has a limit: `OUTAGE_PATIENCE_MS`. Then the
//! file fails with the code of the service, and a retry begins a new wait.

use chrono::TimeDelta;
use landfall_core::failure::{Failure, Retry};

/// What the message of such a failure ends with.
pub const ADVICE: &str = "Retry it when the service works";

/// The failure of a file that has waited for too long.
pub fn exhausted(last: &Failure, waited: TimeDelta, calls: i64) -> Failure {
    let service = last.code.service().map_or("A service", |service| service.title());
    let times = match calls {
        0 => "was not tried, because the service was down for all files".to_owned(),
        1 => "was tried once".to_owned(),
        calls => format!("was tried {calls} times"),
    };
    let message = format!(
        "{} failed this file for {}, and it {times}. The last error: {}. {ADVICE}",
        capitalized(service),
        in_words(waited),
        last.message.trim_end_matches('.')
    );
    Failure { retry: Retry::Never, retry_after: None, ..Failure::new(last.code, message) }
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// A duration for people, in the largest unit that it fills.
fn in_words(duration: TimeDelta) -> String {
    let units =
        [(duration.num_days(), "day"), (duration.num_hours(), "hour"), (duration.num_minutes(), "minute")];
    let (count, unit) =
        units.into_iter().find(|(count, _)| *count >= 2).unwrap_or((duration.num_seconds().max(1), "second"));
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}
