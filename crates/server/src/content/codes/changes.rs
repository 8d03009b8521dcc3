//! Writes and removes codes, at the end of the transaction that writes or removes the vectors.
//!
//! New codes become a segment of their own, so that transactions of one owner do not wait for each other. Small segments
//! are merged step by step, also in these transactions. Codes of removed files are cut out of their segments.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use uuid::Uuid;

use super::packed::Packed;
use super::{Scope, segments, uncoded};
use landfall_store::{CommitHook, Error, Tx};

/// New codes are cut into segments of at most so many entries.
const MAX_NEW: usize = 2_048;
/// A segment with so many entries is not merged any more.
const FULL: usize = 1_024;
/// Small segments are merged when there are so many of about the same size. Their sizes differ by no more than this
/// factor, so an entry moves only as often as its segment grows by it.
const MERGED_AT: usize = 8;
/// A removal looks again for a file that another transaction moved in the meantime, at most so often.
const MAX_ROUNDS: usize = 4;

/// What a transaction changes. Written right before the commit: segments of an owner are then locked in one order, each
/// is written once, and other transactions wait for them for the shortest time.
#[derive(Debug, Default)]
pub struct Changes {
    added: BTreeMap<Uuid, Vec<(Scope, Packed)>>,
    /// The chunks that these files had.
    removed: BTreeMap<Uuid, Vec<i64>>,
}

/// The file has got these vectors.
pub fn add<'v>(
    tx: &mut Tx,
    file: Uuid,
    scope: Scope,
    vectors: impl IntoIterator<Item = (i64, &'v [f32])>,
) -> Result<(), Error> {
    let mut packed = Packed::default();
    for (chunk, vector) in vectors {
        packed.push(chunk, vector);
    }
    if !packed.is_even() {
        return Err(Error::Internal(format!("the vectors of file {file} have different dimensions")));
    }
    if !packed.is_empty() {
        tx.hook::<Changes>().added.entry(file).or_default().push((scope, packed));
    }
    Ok(())
}

/// The vectors of these chunks, which are all that the file had, were removed.
pub fn remove(tx: &mut Tx, file: Uuid, chunks: Vec<i64>) {
    if chunks.is_empty() {
        return;
    }
    let changes = tx.hook::<Changes>();
    changes.added.remove(&file);
    changes.removed.entry(file).or_default().extend(chunks);
}

impl CommitHook for Changes {
    fn before_commit<'t>(&'t mut self, tx: &'t mut Tx) -> BoxFuture<'t, Result<(), Error>> {
        std::mem::take(self).write(tx).boxed()
    }
}

impl Changes {
    async fn write(self, tx: &mut Tx) -> Result<(), Error> {
        let mut scopes = remove_codes(tx, self.removed).await?;
        let mut added: BTreeMap<Scope, Vec<(Uuid, Packed)>> = BTreeMap::new();
        for (file, parts) in self.added {
            for (scope, packed) in parts {
                added.entry(scope).or_default().push((file, packed));
            }
        }
        for (scope, files) in added {
            add_codes(tx, &scope, files).await?;
            scopes.insert(scope);
        }
        for scope in &scopes {
            merge(tx, scope).await?;
        }
        Ok(())
    }
}

/// The codes of all these files, in as few segments as possible.
async fn add_codes(tx: &mut Tx, scope: &Scope, files: Vec<(Uuid, Packed)>) -> Result<(), Error> {
    let mut segment = Packed::default();
    let mut of: Vec<(Uuid, usize)> = Vec::new();
    for (file, mut codes) in files {
        while !codes.is_empty() {
            let count = codes.len().min(MAX_NEW - segment.len());
            segment.append(codes.take(count))?;
            of.push((file, count));
            if segment.len() == MAX_NEW {
                add_segment(tx, scope, std::mem::take(&mut segment), std::mem::take(&mut of)).await?;
            }
        }
    }
    if segment.is_empty() { Ok(()) } else { add_segment(tx, scope, segment, of).await }
}

async fn add_segment(
    tx: &mut Tx,
    scope: &Scope,
    packed: Packed,
    files: Vec<(Uuid, usize)>,
) -> Result<(), Error> {
    let segment = segments::insert(tx, scope, packed).await?;
    segments::add_files(tx, segment, &files).await
}

/// Cuts the codes of these chunks out of their segments. Returns the scopes that were changed.
async fn remove_codes(tx: &mut Tx, mut removed: BTreeMap<Uuid, Vec<i64>>) -> Result<BTreeSet<Scope>, Error> {
    let mut scopes = BTreeSet::new();
    for _ in 0..MAX_ROUNDS {
        if removed.is_empty() {
            break;
        }
        let places = segments::of_files(tx, removed.keys()).await?;
        let coded: BTreeSet<Uuid> = places.iter().map(|(file, _)| *file).collect();
        let without: Vec<Uuid> = removed.keys().filter(|file| !coded.contains(file)).copied().collect();
        // Waits if another transaction codes one of them now. That is then not uncoded any more, and its codes are
        // found in the next round.
        for file in uncoded::remove(tx, &without).await? {
            removed.remove(&file);
        }
        if places.is_empty() {
            continue;
        }
        let ids: BTreeSet<i64> = places.iter().map(|(_, segment)| *segment).collect();
        let locked = segments::lock(tx, &ids.into_iter().collect::<Vec<_>>()).await?;
        // Another transaction may have merged some while this one waited; those are found in the next round.
        let places = if tx.is_only_writer() { places } else { segments::of_files(tx, coded.iter()).await? };
        let moved: BTreeSet<Uuid> =
            places.iter().filter(|(_, id)| !locked.contains_key(id)).map(|(file, _)| *file).collect();
        let done: Vec<Uuid> = coded.difference(&moved).copied().collect();
        let gone: HashSet<i64> = done.iter().filter_map(|file| removed.remove(file)).flatten().collect();
        let affected: BTreeSet<i64> =
            places.iter().filter(|(file, _)| !moved.contains(file)).map(|(_, id)| *id).collect();
        for id in affected {
            for (id, _, mut packed) in segments::load(tx, &[id]).await? {
                packed.retain(|chunk| !gone.contains(&chunk));
                segments::replace(tx, id, packed).await?;
            }
        }
        segments::remove_files(tx, &done).await?;
        scopes.extend(locked.into_values());
    }
    Ok(scopes)
}

/// Merges small segments of the scope if there are many of about the same size.
async fn merge(tx: &mut Tx, scope: &Scope) -> Result<(), Error> {
    let mut sizes: BTreeMap<u32, Vec<(i64, i64)>> = BTreeMap::new();
    for (id, entries) in segments::small(tx, scope, FULL).await? {
        let size = entries.max(1).ilog2() / MERGED_AT.ilog2();
        sizes.entry(size).or_default().push((id, entries));
    }
    let Some(same_size) = sizes.into_values().find(|segments| segments.len() >= MERGED_AT) else {
        return Ok(());
    };
    let mut ids = Vec::new();
    let mut total = 0;
    for (id, entries) in same_size {
        if total >= MAX_NEW {
            break;
        }
        ids.push(id);
        total += usize::try_from(entries).unwrap_or(usize::MAX);
    }
    // A transaction that holds one of them may wait for this one, so this one does not wait.
    let ids: Vec<i64> = segments::try_lock(tx, &ids).await?.into_keys().collect();
    if ids.len() < 2 {
        return Ok(());
    }
    let mut merged = Packed::default();
    for (_, _, packed) in segments::load(tx, &ids).await? {
        merged.append(packed)?;
    }
    let segment = segments::insert(tx, scope, merged).await?;
    segments::merge_into(tx, segment, &ids).await
}
