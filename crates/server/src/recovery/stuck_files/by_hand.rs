//! A person does not want to wait for the sweep: one file, or all that are stuck.

use serde_json::json;
use uuid::Uuid;

use super::{Outcome, StuckFiles, make_due, requeue};
use crate::records::file::File;
use crate::records::files;
use crate::telemetry::traces;
use landfall_api::stuck::{RetriedAll, RetriedStuck, RetryError};
use landfall_core::actor::Actor;
use landfall_core::caller::{Caller, Reach};
use landfall_core::clock::Time;
use landfall_core::lifecycle::Status;
use landfall_core::refusal::{Refusal, RefusalCode};
use landfall_core::states::StuckReason;
use landfall_store::Error;
use landfall_store::{Tx, Write};

/// A person wants a file that does not move tried again at once, whether or not it counts as stuck. The worker that holds it finds
/// its claim gone and changes nothing.
pub struct RetryStuck {
    pub caller: Caller,
    pub file: Uuid,
    pub now: Time,
}

impl Write for RetryStuck {
    type Output = RetriedStuck;

    async fn apply(&self, tx: &mut Tx) -> Result<RetriedStuck, Error> {
        let mut file = File::lock_for(tx, &self.caller, self.file).await?;
        let previous_status = file.status;
        let actor = Actor::caller(&self.caller, &file.tenant_id, &file.user_id);
        match previous_status {
            Status::Deleted => return Err(Refusal::gone().into()),
            Status::Queued => {
                make_due(tx, &file, 1, &actor, "Moved to the front by hand, to be tried at once", self.now)
                    .await?;
                file.retry_count += 1;
            }
            status if status.is_running() => {
                let reason = format!("Put back into the queue by hand while it was {status}");
                requeue(tx, &mut file, None, &actor, &reason, self.now).await?;
            }
            status => return Err(not_on_its_way(status).into()),
        }
        if let Some(trace) = traces::current() {
            files::continue_trace(tx, file.id, &trace).await?;
        }
        Ok(RetriedStuck {
            success: true,
            file_id: file.id,
            previous_status,
            new_status: Status::Queued,
            retry_count: file.retry_count,
        })
    }
}

/// A file that is at rest has a retry of its own; one whose bytes are not here has nothing to retry.
fn not_on_its_way(status: Status) -> Refusal {
    let message = if status.is_terminal() {
        format!("This file is {status}, which is a terminal state")
    } else {
        format!("This file is {status}: it is not in the queue yet")
    };
    Refusal::new(RefusalCode::NotInProgress, message).details(json!({ "status": status }))
}

impl StuckFiles {
    /// Recovers what is stuck now, of these owners. Those that were recovered as often as they may be are left to
    /// the sweep.
    pub async fn retry_all(&self, caller: &Caller, reach: &Reach, now: Time) -> Result<RetriedAll, Error> {
        let mut answer = RetriedAll { success: true, ..RetriedAll::default() };
        let mut after = Some(Uuid::nil());
        while let Some(last) = after {
            let (stuck, next) = self.detection.scan(&mut self.db.read().await?, reach, last, now).await?;
            after = next;
            for stuck in &stuck {
                if stuck.reason == StuckReason::ClaimBroken && !self.detection.may_be_recovered(&stuck.file) {
                    answer.skipped_count += 1;
                    continue;
                }
                let actor = Actor::caller(caller, &stuck.file.tenant_id, &stuck.file.user_id);
                match self.recover(stuck, &actor, now).await {
                    Ok(Outcome::Requeued) => answer.retried_count += 1,
                    Ok(Outcome::Failed | Outcome::Spared) => answer.skipped_count += 1,
                    Err(error) => {
                        tracing::warn!(fileId = %stuck.file.id, %error, "a stuck file could not be retried");
                        let error = "It could not be retried because of an error of the server's".to_owned();
                        answer.errors.push(RetryError { file_id: stuck.file.id, error });
                    }
                }
            }
        }
        answer.success = answer.errors.is_empty();
        Ok(answer)
    }
}
