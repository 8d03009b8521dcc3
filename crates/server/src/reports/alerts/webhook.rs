//! Sends alerts in the form of Slack's incoming webhooks.
//!
//! An alert is noted as delivered before it is sent, and no longer so when it surely did not arrive: whatever happens in
//! between, it arrives once at most. One that did not arrive is sent again with the next looks, a few times.

use std::time::Duration;

use chrono::TimeDelta;
use serde_json::json;

use landfall_core::clock::Time;
use landfall_store::Error;
use landfall_store::{Db, Tx, Write, args};

const ATTEMPTS: i64 = 5;
/// An alert that could not be sent for so long is old news.
const OLD: TimeDelta = TimeDelta::hours(1);
const AT_ONCE: i64 = 20;
const TIMEOUT: Duration = Duration::from_secs(10);
/// Characters that a channel would still show.
const LONGEST: usize = 2_000;

pub async fn send_all(db: &Db, http: &reqwest::Client, address: &url::Url, now: Time) -> Result<(), Error> {
    let waiting: Vec<(String, String, Time, i64)> = db
        .read()
        .await?
        .rows(
            "SELECT name, message, raised_at, attempts FROM alerts
             WHERE delivered_at IS NULL AND attempts < $1 AND raised_at > $2 ORDER BY raised_at LIMIT $3",
            args![ATTEMPTS, now - OLD, AT_ONCE],
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

/// Whether it arrived, as far as that is known. An answer that was lost may have been a good one.
async fn arrived(http: &reqwest::Client, address: &url::Url, message: &str) -> bool {
    let body = json!({ "text": slack_text(message) });
    match http.post(address.clone()).timeout(TIMEOUT).json(&body).send().await {
        Ok(response) => response.status().is_success(),
        Err(error) => !(error.is_connect() || error.is_builder()),
    }
}

/// Slack reads three characters as markup.
fn slack_text(message: &str) -> String {
    let end = message.floor_char_boundary(LONGEST);
    let escaped = message[..end].replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    format!(":rotating_light: Landfall: {escaped}")
}

/// Takes the sending of an alert upon itself. Answers whether nobody else had.
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
    fn what_slack_would_take_for_markup_is_text() {
        assert_eq!(slack_text("a <!channel> & b"), ":rotating_light: Landfall: a &lt;!channel&gt; &amp; b");
    }

    #[test]
    fn a_long_message_is_cut_between_two_characters() {
        assert!(slack_text(&"ä".repeat(5_000)).chars().count() < 1_100);
    }
}
