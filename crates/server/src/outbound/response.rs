//! What the answers of other services have in common: they are read no further than they may be long, and they may say
//! when we are welcome again.

use std::time::Duration;

use chrono::TimeDelta;
use reqwest::Response;
use reqwest::header::RETRY_AFTER;

use landfall_core::clock::Clock;

/// A service that asks for more is asked again after this all the same.
const LONGEST_RETRY_AFTER: Duration = Duration::from_hours(1);

/// Up to `most` bytes of a body, and whether that was all of it.
pub async fn read(mut response: Response, most: usize) -> Result<(Vec<u8>, bool), reqwest::Error> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        let room = most - bytes.len();
        if chunk.len() > room {
            bytes.extend_from_slice(&chunk[..room]);
            return Ok((bytes, false));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok((bytes, true))
}

/// When the service wants to hear from us again: a number of seconds, or a date.
pub fn retry_after(response: &Response) -> Option<Duration> {
    let text = response.headers().get(RETRY_AFTER)?.to_str().ok()?.trim();
    let wait = match text.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let at = chrono::DateTime::<chrono::Utc>::from(httpdate::parse_http_date(text).ok()?);
            (at - Clock::System.now()).max(TimeDelta::zero()).to_std().ok()?
        }
    };
    Some(wait.min(LONGEST_RETRY_AFTER))
}
