//! What the server says when it is asked how everything stands, and what was seen over the last looks.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::client::{Client, ClientError};
use landfall_core::clock::Time;

/// A server that takes longer than this for an answer counts as away until it answers.
const PATIENCE: Duration = Duration::from_secs(5);
/// Over how long the rate of the moment is taken.
const MOMENT: Duration = Duration::from_secs(10);
/// Files that are stuck and named.
const STUCK_NAMED: usize = 3;

/// Asks the server.
pub struct Observer {
    client: Client,
    all: bool,
    /// Until the server says that the caller is none.
    maybe_admin: bool,
}

impl Observer {
    pub fn new(client: Client, all: bool) -> Self {
        Self { client, all, maybe_admin: true }
    }

    pub fn server(&self) -> &str {
        self.client.server()
    }

    pub fn all(&self) -> bool {
        self.all
    }

    pub async fn look(&mut self) -> Result<Seen, ClientError> {
        match tokio::time::timeout(PATIENCE, self.ask()).await {
            Ok(seen) => seen,
            Err(_) => Err(self.client.broken_off(&format!("no answer within {} s", PATIENCE.as_secs()))),
        }
    }

    async fn ask(&mut self) -> Result<Seen, ClientError> {
        let scope: Vec<_> = self.all.then(|| ("scope", "all".to_owned())).into_iter().collect();
        let mut stuck_query = scope.clone();
        stuck_query.push(("limit", STUCK_NAMED.to_string()));
        let queues =
            async { if self.maybe_admin { self.client.queue_status().await.map(Some) } else { Ok(None) } };
        let (dashboard, stuck, queues) = tokio::join!(
            self.client.get::<Value>("/dashboard", &scope),
            self.client.get::<Value>("/stuck", &stuck_query),
            queues
        );
        let queues = match queues {
            Err(error) if error.is_status(403) => {
                self.maybe_admin = false;
                None
            }
            queues => queues?,
        };
        let raw = json!({ "dashboard": dashboard?, "stuck": stuck?, "queueStatus": queues });
        Seen::read(raw).map_err(|error| self.client.strange(error.to_string()))
    }
}

/// How everything stood at one look.
pub struct Seen {
    pub dashboard: Dashboard,
    pub stuck: Stuck,
    /// For administrators.
    pub queues: Option<QueueStatus>,
    raw: Value,
}

impl Seen {
    pub fn read(raw: Value) -> Result<Self, serde_json::Error> {
        Ok(Self {
            dashboard: Dashboard::deserialize(&raw["dashboard"])?,
            stuck: Stuck::deserialize(&raw["stuck"])?,
            queues: Option::deserialize(&raw["queueStatus"])?,
            raw,
        })
    }

    pub fn as_json(&self) -> &Value {
        &self.raw
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Dashboard {
    pub status_distribution: BTreeMap<String, i64>,
    pub active_batches: i64,
    pub dlq_depth: i64,
    pub stuck_files: i64,
    pub queue_depths: BTreeMap<String, i64>,
    pub recent_errors: Vec<RecentError>,
    pub metrics: Metrics,
    pub circuits: Vec<Circuit>,
    pub oldest_waiting_ms: i64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecentError {
    pub file_name: String,
    pub error: String,
    pub code: String,
    pub stage: String,
    pub timestamp: DateTime<Utc>,
}

#[derive(Debug, Deserialize)]
pub struct Metrics {
    #[serde(rename = "averageProcessingTime")]
    pub average_processing_ms: i64,
    #[serde(rename = "throughput24h")]
    pub completed: i64,
    #[serde(rename = "failureRate24h")]
    pub failure_rate: f64,
}

#[derive(Debug, Deserialize)]
pub struct Circuit {
    pub service: String,
    pub state: String,
    pub failures: i64,
    pub until: Option<DateTime<Utc>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Stuck {
    pub files: Vec<StuckFile>,
    pub total: i64,
    pub without_workers: BTreeMap<String, i64>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StuckFile {
    pub file_name: String,
    pub status: String,
    pub stuck_duration: i64,
    pub message: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueueStatus {
    pub recent_hours: Vec<Hour>,
    pub workers: Vec<Worker>,
    pub queues: BTreeMap<String, Queue>,
    pub schedules: Vec<Schedule>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hour {
    pub hour: DateTime<Utc>,
    pub completed: i64,
    pub failed: i64,
    pub p50_ms: Option<i64>,
    pub p95_ms: Option<i64>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Worker {
    pub name: String,
    pub stages: String,
    pub started_at: DateTime<Utc>,
    pub heartbeat_at: DateTime<Utc>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Queue {
    pub waiting: i64,
    pub retrying: i64,
    pub running: i64,
    pub paused: Option<Pause>,
    pub limited_until: Option<DateTime<Utc>>,
}

#[derive(Debug, Deserialize)]
pub struct Pause {
    pub at: DateTime<Utc>,
    pub by: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Schedule {
    pub name: String,
    pub next_run_at: Option<DateTime<Utc>>,
    pub running: bool,
    pub last_run: Option<Run>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    pub started_at: DateTime<Utc>,
    pub ended_at: Option<DateTime<Utc>>,
    pub errors: Vec<String>,
}

/// What the last looks saw.
pub struct Looks {
    pub server: String,
    pub all: bool,
    /// The last one that had an answer, and when.
    pub last: Option<(Time, Seen)>,
    /// Why the last one had none.
    pub trouble: Option<String>,
    /// How many were completed in a day, by then.
    completed: VecDeque<(Time, i64)>,
}

impl Looks {
    pub fn new(server: &str, all: bool) -> Self {
        Self { server: server.to_owned(), all, last: None, trouble: None, completed: VecDeque::new() }
    }

    pub fn take(&mut self, look: Result<Seen, ClientError>, now: Time) {
        match look {
            Ok(seen) => {
                self.count(seen.dashboard.metrics.completed, now);
                self.last = Some((now, seen));
                self.trouble = None;
            }
            Err(error) => {
                // What is completed while nobody looks is not the rate of the moment in which somebody looks again.
                self.completed.clear();
                self.trouble = Some(error.to_string());
            }
        }
    }

    fn count(&mut self, completed: i64, now: Time) {
        // The day moves on: what leaves it at its far end takes from the number.
        if self.completed.back().is_some_and(|(_, before)| *before > completed) {
            self.completed.clear();
        }
        self.completed.push_back((now, completed));
        // One that is older stays, so that there is a moment to speak of also where looks are far apart.
        while self.completed.get(1).is_some_and(|(at, _)| (now - at).to_std().unwrap_or_default() >= MOMENT) {
            self.completed.pop_front();
        }
    }

    /// Files that become ready in a second, of late.
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
    fn the_rate_is_that_of_the_last_moments() {
        let mut looks = Looks::new("http://127.0.0.1", false);
        assert_eq!(looks.rate(), None);
        for second in 0..=100 {
            looks.count(if second < 50 { 0 } else { (second - 50) * 3 }, at(second));
        }
        assert!((looks.rate().unwrap() - 3.0).abs() < 1e-9);
        assert!(looks.completed.len() < 20, "no more is kept than is needed");
        // The day moves on.
        looks.count(10, at(101));
        assert_eq!(looks.rate(), None);
        looks.count(12, at(102));
        assert!((looks.rate().unwrap() - 2.0).abs() < 1e-9);
    }

    #[test]
    fn looks_that_are_far_apart_have_a_rate_too() {
        let mut looks = Looks::new("http://127.0.0.1", false);
        looks.count(0, at(0));
        looks.count(60, at(60));
        looks.count(180, at(120));
        assert!((looks.rate().unwrap() - 2.0).abs() < 1e-9);
    }
}
