//! Finds the files that are stuck, by the definition above.

use std::time::Duration;

use chrono::TimeDelta;
use uuid::Uuid;

use crate::records::file::File;
use crate::records::files::stuck::{self, Suspect};
use crate::recovery::config::{HealingConfig, StuckConfig, Unconfirmed};
use landfall_api::stuck::StuckView;
use landfall_core::caller::Reach;
use landfall_core::clock::{Time, to_delta};
use landfall_core::lifecycle::Status;
use landfall_core::states::StuckReason;
use landfall_store::Error;
use landfall_store::Tx;

const PAGE: usize = 500;
/// Suspects are looked at up to here.
const MAX_COUNTED: i64 = 100_000;
/// The longest wait that a service can ask for, and some time to spare for clocks that differ.
const LONGEST_WAIT: Duration = Duration::from_hours(2);

/// What is stuck, as it was found.
#[derive(Debug, Clone)]
pub struct Stuck {
    pub file: File,
    pub reason: StuckReason,
}

impl Stuck {
    pub fn duration(&self, now: Time) -> TimeDelta {
        (now - self.file.updated_at).max(TimeDelta::zero())
    }
}

/// Looks for stuck files.
#[derive(Debug, Clone)]
pub struct Detection {
    config: StuckConfig,
    unconfirmed: Unconfirmed,
    longest_wait: Duration,
}

impl Detection {
    /// `longest_wait` is the longest that the queue itself makes a file wait.
    pub fn new(config: &HealingConfig, longest_wait: Duration) -> Self {
        Self {
            config: config.stuck.clone(),
            unconfirmed: config.unconfirmed,
            longest_wait: longest_wait.max(LONGEST_WAIT),
        }
    }

    /// A page of stuck files in the order of their ids, and where the next begins. Of these owners.
    pub async fn scan(
        &self,
        tx: &mut Tx,
        reach: &Reach,
        after: Uuid,
        now: Time,
    ) -> Result<(Vec<Stuck>, Option<Uuid>), Error> {
        let found = stuck::suspects(tx, reach, after, self.furthest(now), PAGE, now).await?;
        let next = found.last().filter(|_| found.len() == PAGE).map(|file| file.id);
        let stuck = found.into_iter().filter_map(|file| {
            let reason = self.reason(&file, false, now)?;
            Some(Stuck { file, reason })
        });
        Ok((stuck.collect(), next))
    }

    /// How many are stuck of these owners, as far as they are counted.
    pub async fn count(&self, tx: &mut Tx, reach: &Reach, now: Time) -> Result<i64, Error> {
        Ok(self.count_and_oldest(tx, reach, now).await?.0)
    }

    /// The same, and since when the first of them stands still.
    pub async fn count_and_oldest(
        &self,
        tx: &mut Tx,
        reach: &Reach,
        now: Time,
    ) -> Result<(i64, Option<Time>), Error> {
        let suspects = stuck::brief_suspects(tx, reach, self.furthest(now), MAX_COUNTED, now).await?;
        let is_stuck = |Suspect { status, retry_count, updated_at }: &&Suspect| {
            status.parse().is_ok_and(|status| self.judge(status, *retry_count, *updated_at, now).is_some())
        };
        let since: Vec<Time> = suspects.iter().filter(is_stuck).map(|suspect| suspect.updated_at).collect();
        Ok((i64::try_from(since.len()).unwrap_or(i64::MAX), since.into_iter().min()))
    }

    /// A file in the queue that is due later than this is stuck.
    pub fn furthest(&self, now: Time) -> Time {
        now + to_delta(self.longest_wait)
    }

    /// Whether it was recovered less often than a file may be.
    pub fn may_be_recovered(&self, file: &File) -> bool {
        file.retry_count < self.config.max_retries
    }

    pub fn max_retries(&self) -> i64 {
        self.config.max_retries
    }

    /// How long a file may stand still, in milliseconds.
    pub fn patience_ms(&self, file: &File) -> i64 {
        to_delta(self.config.patience(file.retry_count)).num_milliseconds()
    }

    /// Why a file is stuck, if it is. `is_held`: the process that it is claimed by is known.
    pub fn reason(&self, file: &File, is_held: bool, now: Time) -> Option<StuckReason> {
        let is_suspect = match file.status {
            Status::Queued => {
                !file.is_due && file.run_after.is_some_and(|at| at > now + to_delta(self.longest_wait))
            }
            Status::Uploaded => file.upload_until.is_some_and(|until| until <= now),
            status => status.is_running() && !is_held,
        };
        is_suspect.then(|| self.judge(file.status, file.retry_count, file.updated_at, now)).flatten()
    }

    /// Why one of the suspects is stuck, if it is.
    fn judge(&self, status: Status, retries: i64, updated_at: Time, now: Time) -> Option<StuckReason> {
        let reason = match status {
            Status::Queued => return Some(StuckReason::NotDue),
            Status::Uploaded if self.unconfirmed == Unconfirmed::Adopt => StuckReason::Unconfirmed,
            status if status.is_running() => StuckReason::ClaimBroken,
            _ => return None,
        };
        let patience = to_delta(self.config.patience(retries));
        let still = now - updated_at;
        (still >= patience || still < -to_delta(self.longest_wait)).then_some(reason)
    }
}

impl Stuck {
    pub fn view(self, now: Time) -> StuckView {
        let stuck_duration = self.duration(now).num_milliseconds();
        let Self { file, reason } = self;
        StuckView {
            id: file.id,
            file_name: file.file_name,
            status: file.status,
            stuck_duration,
            retry_count: file.retry_count,
            batch_id: file.batch_id,
            updated_at: file.updated_at,
            reason,
            message: reason.sentence().to_owned(),
        }
    }
}
