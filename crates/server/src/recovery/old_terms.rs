//! Makes the terms of files again that an earlier version indexed. Until then, searches find these files by their
//! meaning only.
//!
//! Each file is one transaction, which changes something only if the file is still in the index with old terms. So any
//! number of processes may do this at once, and be killed at any moment.

use std::time::Duration;

use uuid::Uuid;

use crate::content::{index, indexed_files};
use crate::records::file::File;
use landfall_core::clock::Clock;
use landfall_store::{Db, Error, Tx, Write};

/// How often it looks, after the start: a repair of the database may ask for terms as well.
const INTERVAL: Duration = Duration::from_mins(10);
const PAGE: i64 = 100;

pub async fn run(db: Db, clock: Clock) {
    loop {
        match sweep(&db).await {
            Ok(0) => {}
            Ok(files) => tracing::info!(files, "indexed the words of files again"),
            Err(error) => tracing::warn!(%error, "could not index the words of files again"),
        }
        clock.sleep(INTERVAL).await;
    }
}

/// Makes all old terms again. Returns for how many files it did.
pub async fn sweep(db: &Db) -> Result<usize, Error> {
    let (mut made, mut after) = (0, Uuid::nil());
    loop {
        let page = indexed_files::with_old_terms(&mut db.read().await?, after, PAGE).await?;
        let Some(last) = page.last() else { return Ok(made) };
        after = *last;
        for file in page {
            made += usize::from(db.write(MakeAgain { file }).await?);
        }
    }
}

struct MakeAgain {
    file: Uuid,
}

impl Write for MakeAgain {
    type Output = bool;

    async fn apply(&self, tx: &mut Tx) -> Result<bool, Error> {
        // Held until the end: a deletion or a worker comes before or after all of this.
        let Some(file) = File::lock(tx, self.file).await? else { return Ok(false) };
        index::refresh_terms(tx, self.file, &file.tenant_user()).await
    }
}
