//! A user cancels a file.

use serde_json::json;
use uuid::Uuid;

use super::cancel_batch;
use crate::records::file::File;
use crate::records::moves::{self, Change, Move};
use landfall_core::actor::Actor;
use landfall_core::caller::{Caller, TenantUser};
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
fn cancellation(user: &str) -> Failure {
    Failure::new(Code::Cancelled, format!("Cancelled by {user}"))
}

/// Moves files that the transaction has locked to `cancelled`, and the files in those that are archives. Returns their new
/// rows. Workers that hold them lose their claims.
pub async fn cancel_all(
    tx: &mut Tx,
    files: &[File],
    by: &TenantUser,
    reason: &str,
    now: Time,
) -> Result<Vec<File>, Error> {
    let cancelled = move_all(tx, files, by, reason, now).await?;
    for batch in files.iter().filter_map(|file| file.archive_batch) {
        cancel_batch::cancel_files(tx, batch, by, "Its archive was cancelled", now).await?;
    }
    Ok(cancelled)
}

/// The same without the files in archives.
pub(super) async fn move_all(
    tx: &mut Tx,
    files: &[File],
    by: &TenantUser,
    reason: &str,
    now: Time,
) -> Result<Vec<File>, Error> {
    let failure = cancellation(&by.user);
    let moves = files.iter().map(|file| Move {
        file: file.id,
        from: file.status,
        passed: Vec::new(),
        transition: Transition::Cancel,
        change: Change::Cancel { failure: failure.clone() },
        worker: None,
        actor: Actor::user(by, &file.tenant_id, &file.user_id),
        data: Some(json!({ "reason": reason })),
    });
    let moved = moves::apply(tx, moves.collect(), now).await?;
    Ok(moved.into_iter().flatten().filter_map(|moved| moved.file).collect())
}

/// Moves a file to `cancelled`, and the files in it if it is an archive. A worker that holds it loses its claim.
pub async fn cancel(tx: &mut Tx, file: &mut File, caller: &Caller, now: Time) -> Result<(), Error> {
    let change = Change::Cancel { failure: cancellation(&caller.user) };
    let actor = Actor::caller(caller, &file.tenant_id, &file.user_id);
    moves::apply_to(tx, file, Transition::Cancel, change, actor, None, now).await?;
    if let Some(batch) = file.archive_batch {
        let by = caller.owner();
        cancel_batch::cancel_files(tx, batch, &by, "Its archive was cancelled", now).await?;
    }
    Ok(())
}
