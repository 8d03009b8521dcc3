//! The segments that searches used last, in memory.
//!
//! A search reads from the database which segments there are, each with its stamp. A segment in memory with the same
//! stamp has the same content, so nothing has to be announced when codes change.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Scope;
use super::packed::Segment;

/// The part of the memory that one scope may take, so that a single owner does not displace all others.
const SHARE_OF_SCOPE: usize = 2;

/// Shared by all searches of a process.
#[derive(Debug, Clone)]
pub struct Cache {
    max_bytes: usize,
    /// Candidates that a search ranks exactly, before any filter.
    pub(super) rescored: usize,
    held: Arc<Mutex<Held>>,
}

#[derive(Debug, Default)]
struct Held {
    scopes: HashMap<Scope, HeldScope>,
    /// The scopes by the number of their last use, the oldest first.
    by_use: BTreeMap<u64, Scope>,
    uses: u64,
    bytes: usize,
}

#[derive(Debug, Default)]
struct HeldScope {
    segments: HashMap<i64, HeldSegment>,
    bytes: usize,
    last_use: u64,
}

#[derive(Debug, Clone)]
struct HeldSegment {
    stamp: i64,
    segment: Arc<Segment>,
}

/// A segment as a search found it in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, landfall_store::FromRow)]
pub struct Listed {
    pub id: i64,
    pub stamp: i64,
    pub entries: i64,
}

impl Cache {
    pub fn new(max_bytes: usize) -> Self {
        Self { max_bytes, rescored: super::nearest::RESCORED, held: Arc::default() }
    }

    /// The same with fewer candidates, for tests with few chunks.
    #[must_use]
    pub fn rescoring(self, rescored: usize) -> Self {
        Self { rescored, ..self }
    }

    /// How much memory the segments take.
    pub fn bytes(&self) -> usize {
        self.held().bytes
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The segments of this list that are in memory, in the order of the list. The scope was used now. Segments of the
    /// scope that are not in the list are dropped.
    pub(super) fn get(&self, scope: &Scope, listed: &[Listed]) -> Vec<Option<Arc<Segment>>> {
        let mut held = self.held();
        let Some(mut entry) = held.take(scope) else { return vec![None; listed.len()] };
        let found: Vec<_> = listed
            .iter()
            .map(|one| entry.segments.remove(&one.id).filter(|segment| segment.stamp == one.stamp))
            .collect();
        entry.segments.clear();
        entry.bytes = 0;
        for (one, segment) in listed.iter().zip(&found) {
            if let Some(segment) = segment {
                entry.bytes += segment.segment.bytes();
                entry.segments.insert(one.id, segment.clone());
            }
        }
        held.put(scope, entry);
        found.into_iter().map(|segment| segment.map(|segment| segment.segment)).collect()
    }

    /// Keeps segments, if there is room: for that, the scopes go that were not used for the longest time.
    pub(super) fn keep(&self, scope: &Scope, loaded: impl IntoIterator<Item = (i64, i64, Arc<Segment>)>) {
        let mut held = self.held();
        let mut entry = held.take(scope).unwrap_or_default();
        for (id, stamp, segment) in loaded {
            let bytes = segment.bytes();
            if entry.bytes + bytes > self.max_bytes / SHARE_OF_SCOPE {
                break;
            }
            while held.bytes + entry.bytes + bytes > self.max_bytes && held.drop_oldest() {}
            entry.bytes += bytes;
            if let Some(old) = entry.segments.insert(id, HeldSegment { stamp, segment }) {
                entry.bytes -= old.segment.bytes();
            }
        }
        held.put(scope, entry);
    }
}

impl Held {
    fn take(&mut self, scope: &Scope) -> Option<HeldScope> {
        let entry = self.scopes.remove(scope)?;
        self.by_use.remove(&entry.last_use);
        self.bytes -= entry.bytes;
        Some(entry)
    }

    fn put(&mut self, scope: &Scope, mut entry: HeldScope) {
        if entry.segments.is_empty() {
            return;
        }
        self.uses += 1;
        entry.last_use = self.uses;
        self.bytes += entry.bytes;
        self.by_use.insert(entry.last_use, scope.clone());
        self.scopes.insert(scope.clone(), entry);
    }

    fn drop_oldest(&mut self) -> bool {
        let Some((_, scope)) = self.by_use.pop_first() else { return false };
        if let Some(entry) = self.scopes.remove(&scope) {
            self.bytes -= entry.bytes;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::packed::Packed;
    use super::*;

    fn segment(chunks: i64) -> Arc<Segment> {
        let mut packed = Packed::default();
        for chunk in 0..chunks {
            packed.push(chunk, &[1.0; 64]);
        }
        Arc::new(packed.into())
    }

    fn scope(user: &str) -> Scope {
        Scope { tenant: "acme".into(), user: user.into(), model: "m/64".into() }
    }

    fn listed(id: i64, stamp: i64) -> Listed {
        Listed { id, stamp, entries: 10 }
    }

    fn is_held(cache: &Cache, user: &str, id: i64, stamp: i64) -> bool {
        cache.get(&scope(user), &[listed(id, stamp)])[0].is_some()
    }

    #[test]
    fn a_segment_is_used_only_with_its_stamp() {
        let cache = Cache::new(1 << 20);
        cache.keep(&scope("alice"), [(1, 77, segment(10))]);
        assert!(is_held(&cache, "alice", 1, 77));
        assert!(!is_held(&cache, "bob", 1, 77));
        assert!(!is_held(&cache, "alice", 1, 78));
        assert_eq!(cache.bytes(), 0, "what was changed in the database is dropped");
    }

    #[test]
    fn the_memory_is_bounded_and_the_last_used_stay() {
        let one = segment(10).bytes();
        let cache = Cache::new(one * 4);
        for user in ["alice", "bob", "carol"] {
            cache.keep(&scope(user), [(1, 1, segment(10))]);
        }
        assert!(is_held(&cache, "alice", 1, 1));
        cache.keep(&scope("dave"), [(1, 1, segment(10)), (2, 1, segment(10)), (3, 1, segment(10))]);
        assert!(cache.bytes() <= one * 4);
        assert!(is_held(&cache, "alice", 1, 1) && !is_held(&cache, "bob", 1, 1));
        let found = cache.get(&scope("dave"), &[listed(1, 1), listed(2, 1), listed(3, 1)]);
        assert_eq!(found.iter().flatten().count(), 2, "a scope takes at most half");
    }

    #[test]
    fn segments_that_are_gone_from_the_database_are_dropped() {
        let cache = Cache::new(1 << 20);
        cache.keep(&scope("alice"), [(1, 1, segment(10)), (2, 1, segment(10))]);
        cache.keep(&scope("alice"), [(2, 1, segment(10))]);
        assert_eq!(cache.bytes(), segment(10).bytes() * 2, "the same segment counts once");
        assert!(is_held(&cache, "alice", 2, 1));
        assert_eq!(cache.bytes(), segment(10).bytes());
    }
}
