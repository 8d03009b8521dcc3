//! Sends alerts in the form of Slack's incoming webhooks.
//!
//! An alert is marked as delivered before it is sent, and the mark is removed if it surely did not arrive: whatever
//! happens in between, it arrives at most once. One that did not arrive is sent again at the next checks, a few
//! times.

use std::time::Duration;

use chrono::TimeDelta;
use serde_json::json;

use landfall_core::clock::Time;
use landfall_store::Error;
use landfall_store::{Db, Tx, Write, args};

const MAX_ATTEMPTS: i64 = 5;
/// An alert that could not be sent for this long is dropped.
const MAX_AGE: TimeDelta = TimeDelta::hours(1);
const BATCH_SIZE: i64 = 20;
const TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum number of characters that a channel shows.
const MAX_LENGTH: usize = 2_000;

pub async fn send_all(db: &Db, http: &reqwest::Client, address: &url::Url, now: Time) -> Result<(), Error> {
    let waiting: Vec<(String, String, Time, i64)> = db
        .read()
        .await?
        .rows(
            "SELECT name, message, raised_at, attempts FROM alerts
             WHERE delivered_at IS NULL AND attempts < $1 AND raised_at > $2 ORDER BY raised_at LIMIT $3",
            args![MAX_ATTEMPTS, now - MAX_AGE, BATCH_SIZE],
        )
        .await?;
    for (name, message, raised_at, attempts) in waiting {
        let attempt = Attempt { name: name.clone(), raised_at, attempts, now };
        if !db.write(attempt).await? {
            // Another process sends it.
            continue;
        }
        if !arrived(http, address, &message).await {
            tracing::warn!(alert = name, "an alert could not be delivered");
            db.write(NotDelivered { name, raised_at }).await?;
        }
    }
    Ok(())
}

/// Whether it arrived, as far as that is known. If the response was lost, it may have arrived.
async fn arrived(http: &reqwest::Client, address: &url::Url, message: &str) -> bool {
    let body = json!({ "text": slack_text(message) });
    match http.post(address.clone()).timeout(TIMEOUT).json(&body).send().await {
        Ok(response) => response.status().is_success(),
        Err(error) => !(error.is_connect() || error.is_builder()),
    }
}

/// Slack interprets three characters as markup.
fn slack_text(message: &str) -> String {
    let end = message.floor_char_boundary(MAX_LENGTH);
    let escaped = message[..end].replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    format!(":rotating_light: Landfall: {escaped}")
}

/// Reserves the sending of an alert for this process. Returns whether no other process had.
struct Attempt {
    name: String,
    raised_at: Time,
    attempts: i64,
    now: Time,
}

impl Write for Attempt {
    type Output = bool;

    async fn apply(&self, tx: &mut Tx) -> Result<bool, Error> {
        let taken = tx
            .execute(
                "UPDATE alerts SET attempts = attempts + 1, delivered_at = $4
                 WHERE name = $1 AND raised_at = $2 AND attempts = $3 AND delivered_at IS NULL",
                args![&self.name, self.raised_at, self.attempts, self.now],
            )
            .await?;
        Ok(taken == 1)
    }
}

struct NotDelivered {
    name: String,
    raised_at: Time,
}

impl Write for NotDelivered {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        tx.execute(
            "UPDATE alerts SET delivered_at = NULL WHERE name = $1 AND raised_at = $2",
            args![&self.name, self.raised_at],
        )
        .await
        .map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slack_markup_is_escaped() {
        assert_eq!(slack_text("a <!channel> & b"), ":rotating_light: Landfall: a &lt;!channel&gt; &amp; b");
    }

    #[test]
    fn a_long_message_is_cut_between_two_characters() {
        assert!(slack_text(&"ä".repeat(5_000)).chars().count() < 1_100);
    }
}
