//! Vectors of chunks that were computed before, for chunks with the same text.
//!
//! It belongs to one model. A key contains the tenant: how fast a file is embedded must not tell one tenant what
//! another has.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use sha2::{Digest, Sha256};

/// What an entry needs beside its vector, roughly: the key twice, and the nodes of both maps.
const BYTES_PER_ENTRY: usize = 200;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key([u8; 32]);

impl Key {
    pub fn new(tenant: &str, text: &str) -> Self {
        let mut hash = Sha256::new();
        // With the length, no two pairs of tenant and text are the same bytes.
        hash.update(tenant.len().to_le_bytes());
        hash.update(tenant);
        hash.update(text);
        Self(hash.finalize().into())
    }
}

pub struct VectorCache {
    max_bytes: usize,
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    by_key: HashMap<Key, Entry>,
    /// The least recently used first.
    by_use: BTreeMap<u64, Key>,
    uses: u64,
    bytes: usize,
}

struct Entry {
    vector: Vec<f32>,
    used: u64,
}

impl VectorCache {
    /// Keeps nothing if `max_bytes` is less than one entry needs.
    pub fn new(max_bytes: usize) -> Self {
        Self { max_bytes, entries: Mutex::default() }
    }

    pub fn get(&self, key: &Key) -> Option<Vec<f32>> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let Entries { by_key, by_use, uses, .. } = &mut *entries;
        let entry = by_key.get_mut(key)?;
        by_use.remove(&entry.used);
        *uses += 1;
        entry.used = *uses;
        by_use.insert(entry.used, *key);
        Some(entry.vector.clone())
    }

    pub fn insert(&self, key: Key, vector: &[f32]) {
        let size = BYTES_PER_ENTRY + size_of_val(vector);
        if size > self.max_bytes {
            return;
        }
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.remove(&key);
        while entries.bytes + size > self.max_bytes {
            let Some((_, oldest)) = entries.by_use.first_key_value() else { break };
            let oldest = *oldest;
            entries.remove(&oldest);
        }
        entries.uses += 1;
        let used = entries.uses;
        entries.by_use.insert(used, key);
        entries.by_key.insert(key, Entry { vector: vector.to_vec(), used });
        entries.bytes += size;
    }
}

impl Entries {
    fn remove(&mut self, key: &Key) {
        if let Some(entry) = self.by_key.remove(key) {
            self.by_use.remove(&entry.used);
            self.bytes -= BYTES_PER_ENTRY + size_of_val(entry.vector.as_slice());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: usize = BYTES_PER_ENTRY + 8;

    fn key(text: &str) -> Key {
        Key::new("acme", text)
    }

    #[test]
    fn the_least_recently_used_vector_is_dropped_first() {
        let cache = VectorCache::new(2 * ENTRY);
        cache.insert(key("a"), &[1.0, 0.0]);
        cache.insert(key("b"), &[0.0, 1.0]);
        assert_eq!(cache.get(&key("a")), Some(vec![1.0, 0.0]));
        cache.insert(key("c"), &[0.6, 0.8]);
        assert_eq!(cache.get(&key("b")), None);
        assert_eq!(cache.get(&key("a")), Some(vec![1.0, 0.0]));
        assert_eq!(cache.get(&key("c")), Some(vec![0.6, 0.8]));
    }

    #[test]
    fn it_stays_within_its_size() {
        let cache = VectorCache::new(10 * ENTRY + ENTRY / 2);
        for round in 0..3 {
            for number in 0..50 {
                cache.insert(key(&format!("{}", number % 17 * (round + 1))), &[1.0, 0.0]);
                cache.get(&key(&format!("{}", number / 2)));
            }
        }
        let entries = cache.entries.lock().unwrap();
        assert_eq!((entries.by_key.len(), entries.by_use.len(), entries.bytes), (10, 10, 10 * ENTRY));
    }

    #[test]
    fn a_cache_without_room_keeps_nothing() {
        for max_bytes in [0, ENTRY - 1] {
            let cache = VectorCache::new(max_bytes);
            cache.insert(key("a"), &[1.0, 0.0]);
            assert_eq!(cache.get(&key("a")), None);
        }
    }

    #[test]
    fn tenants_share_nothing() {
        assert_ne!(Key::new("acme", "text"), Key::new("other", "text"));
        assert_ne!(Key::new("ab", "c"), Key::new("a", "bc"));
        assert_eq!(key("text"), key("text"));
    }
}
