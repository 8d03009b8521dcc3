//! Polls the server for a snapshot of its state, and keeps what is needed from the last polls.

use std::collections::VecDeque;
use std::time::Duration;

use serde::Serialize;

use crate::client::{Client, ClientError};
use landfall_api::dashboard::{Dashboard, DashboardQuery};
use landfall_api::queues::QueueStatus;
use landfall_api::stuck::{StuckList, StuckQuery};
use landfall_core::clock::Time;
use landfall_core::states::Scope;

/// How long a poll may take.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The time over which the current rate is computed.
const RATE_WINDOW: Duration = Duration::from_secs(10);
/// How many stuck files are listed by name.
const MAX_STUCK: usize = 3;

/// Polls the server.
pub struct Poller {
    client: Client,
    all: bool,
    /// Until the server says that the caller is no administrator.
    maybe_admin: bool,
}

impl Poller {
    pub fn new(client: Client, all: bool) -> Self {
        Self { client, all, maybe_admin: true }
    }

    pub fn server(&self) -> &str {
        self.client.server()
    }

    pub fn all(&self) -> bool {
        self.all
    }

    pub async fn poll(&mut self) -> Result<Snapshot, ClientError> {
        match tokio::time::timeout(TIMEOUT, self.load()).await {
            Ok(snapshot) => snapshot,
            Err(_) => Err(self.client.interrupted(&format!("no response within {} s", TIMEOUT.as_secs()))),
        }
    }

    async fn load(&mut self) -> Result<Snapshot, ClientError> {
        let scope = self.all.then_some(Scope::All);
        let (dashboard, stuck) = (DashboardQuery { scope }, StuckQuery { limit: Some(MAX_STUCK), scope });
        let queue_status =
            async { if self.maybe_admin { self.client.queue_status().await.map(Some) } else { Ok(None) } };
        let (dashboard, stuck, queue_status) =
            tokio::join!(self.client.dashboard(&dashboard), self.client.stuck_files(&stuck), queue_status);
        let queue_status = match queue_status {
            Err(error) if error.is_status(403) => {
                self.maybe_admin = false;
                None
            }
            loaded => loaded?,
        };
        Ok(Snapshot { dashboard: dashboard?, stuck: stuck?, queue_status })
    }
}

/// The state of the server at one moment.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(serde::Deserialize))]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    pub dashboard: Dashboard,
    pub stuck: StuckList,
    /// For administrators.
    pub queue_status: Option<QueueStatus>,
}

/// What the last polls returned.
pub struct Recent {
    pub server: String,
    pub all: bool,
    /// The last snapshot, and when it was taken.
    pub last: Option<(Time, Snapshot)>,
    /// Why the last poll failed, if it did.
    pub error: Option<String>,
    /// The number of files completed within a day, at each of the last polls.
    completed: VecDeque<(Time, i64)>,
}

impl Recent {
    pub fn new(server: &str, all: bool) -> Self {
        Self { server: server.to_owned(), all, last: None, error: None, completed: VecDeque::new() }
    }

    pub fn add(&mut self, polled: Result<Snapshot, ClientError>, now: Time) {
        match polled {
            Ok(snapshot) => {
                self.count(snapshot.dashboard.metrics.throughput, now);
                self.last = Some((now, snapshot));
                self.error = None;
            }
            Err(error) => {
                // Files that were completed during an outage must not count in the rate afterwards.
                self.completed.clear();
                self.error = Some(error.to_string());
            }
        }
    }

    fn count(&mut self, completed: i64, now: Time) {
        // The number covers the last day, so it can also fall.
        if self.completed.back().is_some_and(|(_, before)| *before > completed) {
            self.completed.clear();
        }
        self.completed.push_back((now, completed));
        // One older value is kept, so that there is a rate even if the polls are far apart.
        while self
            .completed
            .get(1)
            .is_some_and(|(at, _)| (now - at).to_std().unwrap_or_default() >= RATE_WINDOW)
        {
            self.completed.pop_front();
        }
    }

    /// Files that became ready per second, over the last seconds.
    pub fn rate(&self) -> Option<f64> {
        let ((from, before), (to, after)) = (self.completed.front()?, self.completed.back()?);
        let seconds = (*to - *from).to_std().ok().filter(|span| !span.is_zero())?.as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "one digit after the point is shown")]
        let completed = (after - before) as f64;
        Some(completed / seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Time {
        Time::from_timestamp(1_000_000_000 + seconds, 0).unwrap()
    }

    #[test]
    fn the_rate_covers_the_last_seconds() {
        let mut recent = Recent::new("http://127.0.0.1", false);
        assert_eq!(recent.rate(), None);
        for second in 0..=100 {
            recent.count(if second < 50 { 0 } else { (second - 50) * 3 }, at(second));
        }
        assert!((recent.rate().unwrap() - 3.0).abs() < 1e-9);
        assert!(recent.completed.len() < 20, "no more is kept than is needed");
        // The number fell.
        recent.count(10, at(101));
        assert_eq!(recent.rate(), None);
        recent.count(12, at(102));
        assert!((recent.rate().unwrap() - 2.0).abs() < 1e-9);
    }

    #[test]
    fn polls_that_are_far_apart_have_a_rate_too() {
        let mut recent = Recent::new("http://127.0.0.1", false);
        recent.count(0, at(0));
        recent.count(60, at(60));
        recent.count(180, at(120));
        assert!((recent.rate().unwrap() - 2.0).abs() < 1e-9);
    }
}
