//! The nearest chunks of a scope.

use std::collections::HashSet;
use std::sync::Arc;

use super::cache::Listed;
use super::packed::Segment;
use super::scan::Best;
use super::vectors::{Compared, compare_all, count_narrowed, distances};
use super::{Cache, Scope, segments};
use landfall_models::bits::Query;
use landfall_store::{Error, Tx};

pub use super::vectors::Narrow;

/// How many of the best codes are compared by their vectors, at least. `bench/vectors.rs` measures what this finds.
pub const RESCORED: usize = 512;
/// In a large scope more codes come before the nearest chunk by chance: one in so many is compared, up to a multiple.
const RESCORED_OF_SCOPE: usize = 800;
const MAX_RESCORED: usize = 4;
/// With conditions, so many times as many codes may be compared until enough fulfil them.
const MAX_DEPTH: usize = 32;
/// With conditions, more than are wanted must fulfil them: the best codes are not exactly the nearest.
const SPARE: usize = 4;
/// If conditions leave so many times as many chunks or fewer, all of these are compared.
const FEW: usize = 8;
/// The same as a part of the scope. Fewer than this would seldom be among the best codes.
const FEW_OF_SCOPE: usize = 64;
/// Segments that are read at once if they are not in memory.
const SEGMENTS_AT_ONCE: usize = 32;
/// More codes than this are scanned on a thread that may block.
const MAX_SCANNED_INLINE: usize = 8_192;
/// Segments may be merged between the statements of a search; then it begins again, at most so often.
const MAX_TRIES: usize = 4;

/// The chunks of the scope with the nearest vectors and their distances, the nearest first. `narrow` adds conditions on
/// the files `f`.
pub async fn nearest(
    tx: &mut Tx,
    cache: &Cache,
    scope: &Scope,
    vector: &[f32],
    narrow: Option<Narrow<'_>>,
    how_many: usize,
) -> Result<Vec<(i64, f64)>, Error> {
    for _ in 0..MAX_TRIES {
        let (listed, uncoded) = segments::list(tx, scope).await?;
        let total = usize::try_from(listed.iter().map(|one| one.entries).sum::<i64>()).unwrap_or(usize::MAX);
        let rescored = (total / RESCORED_OF_SCOPE).clamp(cache.rescored, cache.rescored * MAX_RESCORED);
        let mut depth = rescored;
        if let Some(narrow) = narrow {
            let few = (cache.rescored * FEW).max(total / FEW_OF_SCOPE);
            // Every file has a chunk, so more files than `few` have more chunks.
            let narrowed = count_narrowed(tx, scope, narrow, few + 1).await?;
            if usize::try_from(narrowed).unwrap_or(usize::MAX) <= few {
                return compare_all(tx, scope, vector, Compared::All, Some(narrow), how_many).await;
            }
            depth *= MAX_DEPTH;
        }
        let Some(candidates) = candidates(tx, cache, scope, &listed, vector, depth).await? else { continue };
        let mut found = rescore(tx, scope, vector, &candidates, rescored, narrow, how_many).await?;
        if narrow.is_some() && found.len() < how_many && candidates.len() < total {
            return compare_all(tx, scope, vector, Compared::All, narrow, how_many).await;
        }
        if uncoded > 0 {
            found.extend(compare_all(tx, scope, vector, Compared::Uncoded, narrow, how_many).await?);
        }
        found.sort_unstable_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
        // A file may have got its codes between two statements.
        let mut seen = HashSet::new();
        found.retain(|(chunk, _)| seen.insert(*chunk));
        found.truncate(how_many);
        return Ok(found);
    }
    compare_all(tx, scope, vector, Compared::All, narrow, how_many).await
}

/// Compares candidates by their vectors: a fixed number, or with conditions until enough fulfil them.
async fn rescore(
    tx: &mut Tx,
    scope: &Scope,
    vector: &[f32],
    candidates: &[i64],
    rescored: usize,
    narrow: Option<Narrow<'_>>,
    how_many: usize,
) -> Result<Vec<(i64, f64)>, Error> {
    let (mut found, mut rest, mut step) = (Vec::new(), candidates, rescored);
    let enough = (how_many * SPARE).max(rescored / 2);
    while !rest.is_empty() && found.len() < enough {
        let (now, later) = rest.split_at(step.min(rest.len()));
        found.extend(distances(tx, scope, vector, now, narrow).await?);
        (rest, step) = (later, step * 2);
    }
    Ok(found)
}

/// The chunks with the best codes, or nothing if segments were replaced in the meantime.
async fn candidates(
    tx: &mut Tx,
    cache: &Cache,
    scope: &Scope,
    listed: &[Listed],
    vector: &[f32],
    depth: usize,
) -> Result<Option<Vec<i64>>, Error> {
    let query = Arc::new(Query::new(vector));
    let cached = cache.get(scope, listed);
    let missing: Vec<i64> =
        listed.iter().zip(&cached).filter(|(_, held)| held.is_none()).map(|(one, _)| one.id).collect();
    let mut best = scan(Best::new(depth), cached.into_iter().flatten().collect(), &query).await?;
    for page in missing.chunks(SEGMENTS_AT_ONCE) {
        let loaded = segments::load(tx, page).await?;
        if loaded.len() < page.len() {
            return Ok(None);
        }
        let loaded: Vec<(i64, i64, Arc<Segment>)> =
            loaded.into_iter().map(|(id, stamp, packed)| (id, stamp, Arc::new(packed.into()))).collect();
        let segments = loaded.iter().map(|(_, _, segment)| segment.clone()).collect();
        cache.keep(scope, loaded);
        best = scan(best, segments, &query).await?;
    }
    Ok(Some(best.into_chunks()))
}

async fn scan(mut best: Best, segments: Vec<Arc<Segment>>, query: &Arc<Query>) -> Result<Best, Error> {
    let entries: usize = segments.iter().map(|segment| segment.chunks.len()).sum();
    if entries <= MAX_SCANNED_INLINE {
        for segment in &segments {
            best.scan(segment, query);
        }
        return Ok(best);
    }
    let query = query.clone();
    let scanned = landfall_core::blocking::run(move || {
        for segment in &segments {
            best.scan(segment, &query);
        }
        best
    });
    scanned.await.map_err(|error| Error::Internal(format!("the codes could not be scanned: {error}")))
}
