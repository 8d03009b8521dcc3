//! The files of a deleted archive are deleted, a few in each transaction. The mark in the row of their batch is the note of
//! what is still to do: it is set with the deletion of the archive, and cleared with that of its last file.

use landfall_core::actor::Actor;
use landfall_core::clock::Time;
use landfall_core::lifecycle::Transition;
use landfall_store::{Db, Error, Tx, Write};
use uuid::Uuid;

use crate::intake::cancel::move_all;
use crate::intake::delete::{self, Cause};
use crate::records::batch::archives;
use crate::records::file::File;
use crate::records::files::archives as members;

const PAGE: usize = 100;
const REASON: &str = "Its archive was deleted";

/// Deletes the files of all deleted archives. Their blobs are removed after them, as those of all deleted files are. If that
/// fails for one archive, it goes on with the others, and returns the error at the end.
pub async fn delete_all(db: &Db, now: Time) -> Result<(), Error> {
    let (mut last, mut outcome) = (Uuid::nil(), Ok(()));
    loop {
        let batches = archives::deleting_files(&mut db.read().await?, last, PAGE).await?;
        let Some(behind) = batches.last().copied() else { return outcome };
        last = behind;
        for batch in batches {
            if let Err(error) = delete_files(db, batch, now).await {
                tracing::warn!(batchId = %batch, %error, "the files of a deleted archive could not be deleted");
                outcome = Err(error);
            }
        }
    }
}

async fn delete_files(db: &Db, batch: Uuid, now: Time) -> Result<(), Error> {
    while db.write(DeleteSome { batch, now }).await? > 0 {}
    Ok(())
}

/// Deletes up to a page of the files of a deleted archive. Returns how many.
struct DeleteSome {
    batch: Uuid,
    now: Time,
}

impl Write for DeleteSome {
    type Output = usize;

    async fn apply(&self, tx: &mut Tx) -> Result<usize, Error> {
        let files = members::lock_members(tx, self.batch, PAGE).await?;
        let Some(first) = files.first() else {
            archives::files_deleted(tx, self.batch).await?;
            return Ok(0);
        };
        let count = files.len();
        let owner = first.tenant_user();
        let is_open = |file: &File| Transition::Cancel.from().contains(&file.status);
        let (open, mut rest): (Vec<File>, Vec<File>) = files.into_iter().partition(is_open);
        // Workers that hold them find their claims gone and change nothing.
        rest.extend(move_all(tx, &open, &owner, REASON, self.now).await?);
        let actor = Actor::user(&owner, &owner.tenant, &owner.user);
        let cause = Cause { name: None, reason: Some(REASON) };
        delete::bury(tx, rest, &actor, Some(cause), self.now).await?;
        Ok(count)
    }
}
