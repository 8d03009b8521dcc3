//! Events go when their time is over, or with the file whose history they are.

use landfall_core::clock::Time;
use landfall_store::{Error, Rows, Tx, args};
use uuid::Uuid;

/// Removes up to `limit` events from before a time that are no step in a file's history. Returns how many.
pub async fn remove_old(tx: &mut Tx, before: Time, limit: i64) -> Result<usize, Error> {
    let gone: Vec<(i64,)> = tx
        .rows(
            "DELETE FROM events WHERE id IN
                 (SELECT id FROM events WHERE at < $1 AND kind <> 'file:status-changed' LIMIT $2) RETURNING id",
            args![before, limit],
        )
        .await?;
    note_removal(tx, &gone).await?;
    Ok(gone.len())
}

/// Removes the events of files.
pub async fn remove_of(tx: &mut Tx, files: &[Uuid]) -> Result<(), Error> {
    for batch in files.chunks(Rows::MAX) {
        let mut ids = Rows::default();
        for id in batch {
            ids.push(args![*id]);
        }
        let (values, arguments) = ids.into_values(tx);
        let sql = format!("DELETE FROM events WHERE file_id IN (SELECT * FROM ({values}) AS v) RETURNING id");
        let events: Vec<(i64,)> = tx.rows(sql, arguments).await?;
        note_removal(tx, &events).await?;
    }
    Ok(())
}

/// Records that these events are gone, so that a client which resumes from before them is told of the gap.
async fn note_removal(tx: &mut Tx, gone: &[(i64,)]) -> Result<(), Error> {
    let Some((last,)) = gone.iter().max() else { return Ok(()) };
    tx.execute(
        "INSERT INTO removed_events (one, up_to) VALUES (1, $1)
         ON CONFLICT (one) DO UPDATE SET up_to = excluded.up_to WHERE removed_events.up_to < excluded.up_to",
        args![*last],
    )
    .await
    .map(drop)
}

/// The highest id of an event that was removed, or 0.
pub async fn removed_up_to(tx: &mut Tx) -> Result<i64, Error> {
    tx.number("SELECT COALESCE(MAX(up_to), 0) FROM removed_events", args![]).await
}
