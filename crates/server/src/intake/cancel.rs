//! A person calls a file off.

use uuid::Uuid;

use crate::records::file::{File, Shift};
use landfall_core::caller::Caller;
use landfall_core::clock::Time;
use landfall_core::failure::{Code, Failure};
use landfall_core::lifecycle::{Status, Transition};
use landfall_core::refusal::Refusal;
use landfall_store::Error;
use landfall_store::{Tx, Write, args};

pub struct Cancel {
    pub caller: Caller,
    pub file: Uuid,
    pub now: Time,
}

impl Write for Cancel {
    type Output = File;

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

/// Why a cancelled file did not arrive.
pub fn cancellation(caller: &Caller) -> Failure {
    Failure::new(Code::Cancelled, format!("Cancelled by {}", caller.user))
}

/// The move to `cancelled`, which takes the file out of the hands of a worker that holds it.
pub fn cancelled_by(caller: &Caller, file: &File, now: Time) -> Shift<'static> {
    let failure = cancellation(caller);
    Shift {
        transition: Transition::Cancel,
        now,
        set: "claim = NULL, claimed_by = NULL, claimed_at = NULL, run_after = NULL, is_due = FALSE,
              error_code = $5, error_message = $6, error_stage = $7, error_at = $4",
        args: args![failure.code, &failure.message, file.next_stage],
        failure: Some(failure),
    }
}
