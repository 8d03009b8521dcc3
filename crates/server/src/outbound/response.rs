//! What responses of other services have in common: the size of their body is limited, and they may have a
//! `Retry-After`.

use std::time::Duration;

use chrono::TimeDelta;
use reqwest::Response;
use reqwest::header::{DATE, RETRY_AFTER};

use landfall_core::clock::{Clock, Time};

/// A service that asks for a longer delay is called again after this one.
const MAX_RETRY_AFTER: Duration = Duration::from_hours(1);

/// Up to `max_bytes` bytes of a body, and whether that was all of it.
pub async fn read(mut response: Response, max_bytes: usize) -> Result<(Vec<u8>, bool), reqwest::Error> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        let room = max_bytes - bytes.len();
        if chunk.len() > room {
            bytes.extend_from_slice(&chunk[..room]);
            return Ok((bytes, false));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok((bytes, true))
}

/// The delay that the service asks for: a number of seconds, or a date.
pub fn retry_after(response: &Response) -> Option<Duration> {
    let text = response.headers().get(RETRY_AFTER)?.to_str().ok()?.trim();
    let wait = match text.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let at = chrono::DateTime::<chrono::Utc>::from(httpdate::parse_http_date(text).ok()?);
            (at - sent_at(response)).max(TimeDelta::zero()).to_std().ok()?
        }
    };
    Some(wait.min(MAX_RETRY_AFTER))
}

/// By the clock of the service, where it says so: its date is not compared with the clock of this machine.
fn sent_at(response: &Response) -> Time {
    let date = response.headers().get(DATE).and_then(|date| date.to_str().ok());
    date.and_then(|date| httpdate::parse_http_date(date).ok()).map_or_else(|| Clock::System.now(), Time::from)
}
