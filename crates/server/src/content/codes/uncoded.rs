//! Files that have vectors and no codes yet: those from before there were codes, and those whose codes were wrong. They
//! are coded in the background, a few in each transaction.

use std::collections::BTreeSet;
use std::time::Duration;

use uuid::Uuid;

use super::segments::rows_of;
use super::{Scope, changes, segments, vectors};
use landfall_core::clock::Clock;
use landfall_store::{Db, Error, Rows, Tx, Write, args};

/// Files that one transaction takes, and chunks after which it takes no further one.
const FILES_AT_ONCE: i64 = 64;
const CHUNKS_AT_ONCE: usize = 2_048;
/// How often a process looks for files that another one listed.
const INTERVAL: Duration = Duration::from_mins(1);

/// One transaction at a time codes files or lists them. Otherwise a file could be listed again while it is coded.
const SECTION: &str = "landfall uncoded files";

/// Codes files whenever there are any.
pub async fn run(db: Db) {
    loop {
        match code_all(&db).await {
            Ok(0) => {}
            Ok(files) => tracing::info!(files, "the vectors of files have got their codes"),
            Err(error) => tracing::warn!(%error, "the vectors of files could not get their codes"),
        }
        Clock::System.sleep(INTERVAL).await;
    }
}

/// Codes all files that are listed now. Returns how many.
pub async fn code_all(db: &Db) -> Result<usize, Error> {
    let mut files = 0;
    loop {
        let coded = db.write(CodeSome).await?;
        if coded == 0 {
            return Ok(files);
        }
        files += coded;
    }
}

/// Returns how many files it coded; those that another transaction holds are left to it.
struct CodeSome;

impl Write for CodeSome {
    type Output = usize;

    async fn apply(&self, tx: &mut Tx) -> Result<usize, Error> {
        tx.enter_section(SECTION).await?;
        let sql = format!("SELECT file_id FROM uncoded_files ORDER BY file_id LIMIT $1 {}", tx.skip_locked());
        let listed: Vec<(Uuid,)> = tx.rows(sql, args![FILES_AT_ONCE]).await?;
        let (mut coded, mut chunks) = (Vec::new(), 0);
        for (file,) in listed {
            if chunks >= CHUNKS_AT_ONCE {
                break;
            }
            chunks += code(tx, file).await?;
            coded.push(file);
        }
        remove(tx, &coded).await?;
        Ok(coded.len())
    }
}

/// Returns how many chunks the file has.
async fn code(tx: &mut Tx, file: Uuid) -> Result<usize, Error> {
    let (mut chunks, mut after) = (0, i64::MIN);
    loop {
        let page = vectors::of_file(tx, file, after, CHUNKS_AT_ONCE).await?;
        let Some(last) = page.last() else { return Ok(chunks) };
        after = last.chunk;
        chunks += page.len();
        for same in page.chunk_by(|a, b| a.scope == b.scope) {
            let vectors = same.iter().map(|one| (one.chunk, &one.vector[..]));
            changes::add(tx, file, same[0].scope.clone(), vectors)?;
        }
    }
}

/// Takes files from the list. Returns those that were in it.
pub(super) async fn remove(tx: &mut Tx, files: &[Uuid]) -> Result<Vec<Uuid>, Error> {
    let mut removed = Vec::new();
    for part in rows_of(files).batches() {
        let (values, args) = part.into_values(tx);
        let sql = format!(
            "DELETE FROM uncoded_files WHERE file_id IN (SELECT * FROM ({values}) AS v) RETURNING file_id"
        );
        removed.extend(tx.rows::<(Uuid,)>(sql, args).await?.into_iter().map(|(file,)| file));
    }
    Ok(removed)
}

/// Removes all codes of a scope, and lists its files so that they are coded again.
pub struct CodeAgain {
    pub scope: Scope,
}

impl Write for CodeAgain {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        tx.enter_section(SECTION).await?;
        segments::remove_scope(tx, &self.scope).await?;
        let files = vectors::files_of(tx, &self.scope).await?;
        // Another transaction may have added a file since, with its codes.
        let coded: BTreeSet<Uuid> =
            segments::of_files(tx, &files).await?.into_iter().map(|(file, _)| file).collect();
        let mut rows = Rows::default();
        for file in files.into_iter().filter(|file| !coded.contains(file)) {
            rows.push(args![file, &self.scope.tenant, &self.scope.user]);
        }
        tx.insert("uncoded_files (file_id, tenant_id, user_id)", rows, "ON CONFLICT (file_id) DO NOTHING")
            .await
    }
}
