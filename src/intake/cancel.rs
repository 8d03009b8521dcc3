//! A person calls a file off, or wants one that failed or was called off tried again.

use uuid::Uuid;

use crate::clock::Time;
use crate::db::{Tx, Write, args};
use crate::error::{Error, Refusal};
use crate::failure::{Code, Failure};
use crate::file::{Caller, File, Shift};
use crate::lifecycle::{Status, Transition};

pub struct Cancel {
    pub caller: Caller,
    pub file: Uuid,
    pub now: Time,
}

impl Write for Cancel {
    type Answer = File;

    async fn apply(&self, tx: &mut Tx) -> Result<File, Error> {
        let mut file = File::lock_for(tx, &self.caller, self.file).await?;
        match file.status {
            Status::Deleted => return Err(Refusal::gone().into()),
            Status::Cancelled => return Ok(file),
            _ => {}
        }
        file.shift(tx, cancelled_by(&self.caller, &file, self.now)).await?;
        Ok(file)
    }
}

/// The move to `cancelled`, which takes the file out of the hands of a worker that holds it.
pub fn cancelled_by(caller: &Caller, file: &File, now: Time) -> Shift<'static> {
    let failure = Failure::new(Code::Cancelled, format!("Cancelled by {}", caller.user));
    Shift {
        transition: Transition::Cancel,
        now,
        set: "claim = NULL, claimed_by = NULL, claimed_at = NULL, run_after = NULL, is_due = FALSE,
              error_code = $5, error_message = $6, error_stage = $7, error_at = $4",
        args: args![failure.code, &failure.message, file.next_stage],
        failure: Some(failure),
    }
}

/// Queues a failed or cancelled file again, at the stage where it ended, with all its attempts before it.
pub struct Revive {
    pub caller: Caller,
    pub file: Uuid,
    pub now: Time,
}

impl Write for Revive {
    type Answer = File;

    async fn apply(&self, tx: &mut Tx) -> Result<File, Error> {
        let mut file = File::lock_for(tx, &self.caller, self.file).await?;
        if file.status == Status::Deleted {
            return Err(Refusal::gone().into());
        }
        if file.status == Status::Failed && file.code() == Some(Code::Infected) {
            let message =
                "The bytes of this file were removed, because the virus scanner found something in it";
            return Err(Refusal::new(404, "FILE_NOT_FOUND", message).into());
        }
        file.shift(
            tx,
            Shift {
                transition: Transition::Revive,
                now: self.now,
                set: "run_after = $4, is_due = TRUE, attempt = 0, lost_workers = 0, failed_at = NULL,
                      error_code = NULL, error_message = NULL, error_stage = NULL, error_at = NULL",
                args: args![],
                failure: None,
            },
        )
        .await?;
        Ok(file)
    }
}
