//! The registrations of a batch live together: while its owner sends one file of it, the others wait for their turn.
//!
//! A sign of life of one file is noted in the row of its batch, and not in those of a thousand other files. A registration
//! whose own deadline is over takes over the batch's when the expiry looks at it.

use std::time::Duration;

use landfall_core::clock::{Time, to_delta};
use landfall_core::lifecycle::Status;
use landfall_store::{Error, Tx, args};
use uuid::Uuid;

use crate::records::file::File;
use crate::records::files::uploads;

/// Notes a sign of life. The transaction holds the file that it came from; the batch is written only where that moves its
/// deadline by a tenth of the window, so that uploads in parallel rarely wait for its row.
pub async fn extend(tx: &mut Tx, batch: Option<Uuid>, window: Duration, now: Time) -> Result<(), Error> {
    let Some(batch) = batch else { return Ok(()) };
    let until = now + to_delta(window);
    tx.execute(
        "UPDATE batches SET receiving_until = $2
         WHERE id = $1 AND status = 'active' AND (receiving_until IS NULL OR receiving_until < $3)",
        args![batch, until, until - to_delta(window / 10)],
    )
    .await
    .map(drop)
}

/// Whether a registration lives on with its batch. If it does, its deadline is moved. The transaction holds the file.
pub async fn spare(tx: &mut Tx, file: &File, now: Time) -> Result<bool, Error> {
    let (Status::Registered, Some(batch)) = (file.status, file.batch_id) else { return Ok(false) };
    let sql =
        "SELECT receiving_until FROM batches WHERE id = $1 AND status = 'active' AND receiving_until > $2";
    let until: Option<(Time,)> = tx.row(sql, args![batch, now]).await?;
    let Some((until,)) = until else { return Ok(false) };
    uploads::set_deadline(tx, file.id, until, now).await?;
    Ok(true)
}
