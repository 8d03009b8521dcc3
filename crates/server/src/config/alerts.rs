//! Where alerts are sent, and when one is raised.

use super::declared::group;
use super::reader::Reader;
use crate::reports::alerts::AlertConfig;

group! { "Alerts" {
    ALERT_WEBHOOK_URL = "": "Where alerts are sent, in the format of Slack's incoming webhooks; Landfall never shows this URL."
    ALERT_DEAD_LETTERS = "100": "How many files may fail within an hour before an alert is raised."
} }

pub(super) fn read(read: &mut Reader) -> AlertConfig {
    let address = read.secret(ALERT_WEBHOOK_URL);
    let webhook = address.as_deref().and_then(|address| {
        url::Url::parse(address).ok().filter(|url| ["http", "https"].contains(&url.scheme()))
    });
    if address.is_some() && webhook.is_none() {
        read.complain(ALERT_WEBHOOK_URL, "a URL that begins with http:// or https://");
    }
    AlertConfig { webhook, dead_letters: read.between(ALERT_DEAD_LETTERS, 1, 1_000_000) }
}
