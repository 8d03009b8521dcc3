//! `orphan-cleanup`: what is left over, in four scopes. Each has its exact definition at the top of its file; one that
//! fails does not keep the others.

pub mod abandoned_parts;
pub mod abandoned_registrations;
pub mod old_failures;
pub mod orphan_blobs;
pub mod scan;

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::json;
use uuid::Uuid;

use super::config::CleaningConfig;
use super::ownership::Ownership;
use super::{Sweep, SweepReport};
use crate::blobs::Blobs;
use crate::records::cleanup_failures::{Leftovers, Uncleaned};
use crate::telemetry::metrics;
use landfall_core::clock::{Stopwatch, Time};
use landfall_store::Db;
use landfall_store::Error;

/// Errors that are named one by one; the rest is counted.
const NAMED: usize = 20;

/// The name of the job.
pub const NAME: &str = "orphan-cleanup";

#[derive(Clone)]
pub struct OrphanCleanup {
    pub db: Db,
    pub blobs: Blobs,
    pub ownership: Ownership,
    pub config: CleaningConfig,
    /// Whether a person wants orphans removed however many they are.
    pub force: bool,
}

impl Sweep for OrphanCleanup {
    fn name(&self) -> &'static str {
        NAME
    }

    fn sweep_once(&self, now: Time) -> BoxFuture<'_, Result<SweepReport, Error>> {
        async move {
            let stopwatch = Stopwatch::start();
            let mut errors = Errors::default();
            let orphans = orphan_blobs::clean(self, now, &mut errors).await;
            let orphans = errors.scope("orphan blobs", orphans);
            let parts = abandoned_parts::clean(self, now, &mut errors).await;
            let parts = errors.scope("abandoned parts", parts);
            let abandoned = abandoned_registrations::clean(self, now, &mut errors).await;
            let abandoned = errors.scope("abandoned uploads", abandoned);
            let failures = old_failures::clean(self, now, &mut errors).await;
            let failures = errors.scope("old failures", failures);
            errors.leftovers(now).keep(&self.db).await?;
            let elapsed = u64::try_from(stopwatch.elapsed().as_millis()).unwrap_or(u64::MAX);
            let mut report = SweepReport { errors: errors.finish(), ..SweepReport::default() };
            for (name, value) in [
                ("orphanBlobs", json!(orphans)),
                ("abandonedParts", json!(parts)),
                ("abandonedUploads", json!(abandoned)),
                ("oldFailures", json!(failures)),
                ("executionTime", json!(elapsed)),
            ] {
                report.metrics.insert(name.to_owned(), value);
            }
            Ok(report)
        }
        .boxed()
    }

    fn forced(&self) -> Option<Arc<dyn Sweep>> {
        Some(Arc::new(Self { force: true, ..self.clone() }))
    }
}

/// What went wrong, as far as a person would read it.
#[derive(Default)]
pub struct Errors {
    named: Vec<String>,
    count: usize,
    /// The items that could not be cleaned.
    left: Vec<Uncleaned>,
    /// Whether a scope did not try all that there was.
    is_incomplete: bool,
}

impl Errors {
    /// Notes what went wrong with one item. It is left for the next run.
    pub fn add(&mut self, what: &str, error: &Error) {
        self.add_about(what.to_owned(), None, error);
    }

    /// The same for a file.
    pub fn add_file(&mut self, what: &str, file: Uuid, error: &Error) {
        self.add_about(format!("{what} {file}"), Some(file), error);
    }

    fn add_about(&mut self, subject: String, file: Option<Uuid>, error: &Error) {
        metrics::cleanup_failed(error);
        self.say(format!("{subject}: {error}"));
        self.left.push(Uncleaned { subject, file, error: error.to_string() });
    }

    /// Notes what a person should know that is no error of ours.
    pub fn note(&mut self, what: String) {
        self.is_incomplete = true;
        self.say(what);
    }

    fn say(&mut self, what: String) {
        tracing::warn!(job = "orphan-cleanup", "{what}");
        self.count += 1;
        if self.named.len() < NAMED {
            self.named.push(what);
        }
    }

    /// What a scope answered; nothing where it could not go on.
    fn scope<T: Default>(&mut self, name: &str, answer: Result<T, Error>) -> T {
        answer.unwrap_or_else(|error| {
            self.is_incomplete = true;
            self.add(name, &error);
            T::default()
        })
    }

    fn leftovers(&mut self, now: Time) -> Leftovers {
        let failures = std::mem::take(&mut self.left);
        Leftovers { scope: NAME, failures, is_complete: !self.is_incomplete, now }
    }

    fn finish(mut self) -> Vec<String> {
        let more = self.count - self.named.len();
        if more > 0 {
            self.named.push(format!("and {more} more"));
        }
        self.named
    }
}
