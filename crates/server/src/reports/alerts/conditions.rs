//! The conditions for alerts, read from the rows. Each query has a bounded cost.

use chrono::TimeDelta;

use super::Alert;
use crate::process::workers;
use crate::queue::{circuits, pause};
use crate::records::files::{dead_letters, queue};
use crate::recovery::runs;
use landfall_core::clock::Time;
use landfall_core::lifecycle::Stage;
use landfall_core::service::Service;
use landfall_store::Error;
use landfall_store::Tx;

/// Files must wait this long without a worker for an alert: a restarted process is back sooner.
const MIN_WAIT: TimeDelta = TimeDelta::minutes(1);
const HOUR: TimeDelta = TimeDelta::hours(1);
/// The maximum number of jobs in one check.
const MAX_JOBS: i64 = 20;

pub async fn check(tx: &mut Tx, dead_letters: i64, now: Time) -> Result<Vec<Alert>, Error> {
    let mut found = recovery_errors(tx, now).await?;
    found.extend(open_circuits(tx).await?);
    found.extend(no_workers(tx, now).await?);
    found.extend(dead_letter_growth(tx, dead_letters, now).await?);
    Ok(found)
}

/// Jobs whose last run within the hour had errors.
async fn recovery_errors(tx: &mut Tx, now: Time) -> Result<Vec<Alert>, Error> {
    let runs = runs::ended_since(tx, now - HOUR, MAX_JOBS).await?;
    let with_errors = runs.into_iter().filter_map(|(job, errors)| {
        let errors = errors.as_array().filter(|errors| !errors.is_empty())?;
        let first = errors[0].as_str().unwrap_or_default();
        Some(Alert {
            name: format!("recovery-errors:{job}"),
            message: format!("The job {job} had {} errors; the first: {first}", errors.len()),
        })
    });
    Ok(with_errors.collect())
}

async fn open_circuits(tx: &mut Tx) -> Result<Vec<Alert>, Error> {
    let open = circuits::open(tx).await?;
    let of_known = Service::ALL.into_iter().filter_map(|service| {
        let (_, failures) = open.iter().find(|(name, _)| name == service.name())?;
        Some(Alert {
            name: format!("circuit-open:{}", service.name()),
            message: format!(
                "The circuit of {} is open after {failures} failures in a row. Files that need it wait",
                service.title()
            ),
        })
    });
    Ok(of_known.collect())
}

/// Stages that files wait for and that no process runs, except those that an administrator paused.
async fn no_workers(tx: &mut Tx, now: Time) -> Result<Vec<Alert>, Error> {
    let workers = workers::stages(tx).await?;
    let paused = pause::stages(tx).await?;
    let mut found = Vec::new();
    for stage in Stage::ALL {
        let name = stage.name();
        let works = workers.iter().any(|stages| stages.split(',').any(|one| one == name));
        if works || paused.contains(&stage) {
            continue;
        }
        if queue::any_waits_since(tx, stage, now - MIN_WAIT).await? {
            found.push(Alert {
                name: format!("no-workers:{stage}"),
                message: format!("Files wait for the {stage} stage, and no process is running that does it"),
            });
        }
    }
    Ok(found)
}

async fn dead_letter_growth(tx: &mut Tx, threshold: i64, now: Time) -> Result<Option<Alert>, Error> {
    let failed = dead_letters::count_since(tx, now - HOUR, threshold).await?;
    Ok((failed >= threshold).then(|| Alert {
        name: "dead-letter-growth".to_owned(),
        message: format!("At least {threshold} files failed within the last hour"),
    }))
}
