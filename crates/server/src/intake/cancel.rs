//! A user cancels a file.

use uuid::Uuid;

use crate::records::file::File;
use crate::records::moves::{self, Change};
use landfall_core::actor::Actor;
use landfall_core::caller::Caller;
use landfall_core::clock::Time;
use landfall_core::failure::{Code, Failure};
use landfall_core::lifecycle::{Status, Transition};
use landfall_core::refusal::Refusal;
use landfall_store::Error;
use landfall_store::{Tx, Write};

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
        cancel(tx, &mut file, &self.caller, self.now).await?;
        Ok(file)
    }
}

/// The failure of a cancelled file.
pub fn cancellation(caller: &Caller) -> Failure {
    Failure::new(Code::Cancelled, format!("Cancelled by {}", caller.user))
}

/// Moves a file to `cancelled`. A worker that holds it loses its claim.
pub async fn cancel(tx: &mut Tx, file: &mut File, caller: &Caller, now: Time) -> Result<(), Error> {
    let change = Change::Cancel { failure: cancellation(caller) };
    let actor = Actor::caller(caller, &file.tenant_id, &file.user_id);
    moves::apply_to(tx, file, Transition::Cancel, change, actor, None, now).await
}
