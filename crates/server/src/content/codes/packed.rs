//! The codes of a segment as they are stored: the ids of the chunks, and the codes in the same order.

use landfall_models::bits::{self, Codes};
use landfall_store::Error;

/// An id takes eight bytes, the lowest first.
const ID_BYTES: usize = size_of::<i64>();

/// All codes have the same length.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Packed {
    pub chunks: Vec<i64>,
    pub codes: Vec<u8>,
}

impl Packed {
    /// Reads what [`Self::chunk_bytes`] and `codes` were stored as.
    pub fn read(segment: i64, chunks: &[u8], codes: Vec<u8>) -> Result<Self, Error> {
        let (ids, rest) = chunks.as_chunks::<ID_BYTES>();
        let chunks: Vec<i64> = ids.iter().map(|id| i64::from_le_bytes(*id)).collect();
        if chunks.is_empty() || !rest.is_empty() || !codes.len().is_multiple_of(chunks.len()) {
            return Err(Error::Internal(format!("the segment {segment} of the codes is damaged")));
        }
        Ok(Self { chunks, codes })
    }

    pub fn chunk_bytes(&self) -> Vec<u8> {
        self.chunks.iter().flat_map(|id| id.to_le_bytes()).collect()
    }

    pub fn len(&self) -> usize {
        self.chunks.len()
    }

    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    fn code_bytes(&self) -> usize {
        self.codes.len() / self.chunks.len().max(1)
    }

    pub fn push(&mut self, chunk: i64, vector: &[f32]) {
        self.chunks.push(chunk);
        self.codes.extend(bits::code(vector));
    }

    /// Whether every code has the length that the first one has.
    pub fn is_even(&self) -> bool {
        self.codes.len().is_multiple_of(self.chunks.len().max(1))
    }

    pub fn entries(&self) -> impl Iterator<Item = (i64, &[u8])> {
        self.chunks.iter().copied().zip(self.codes.chunks_exact(self.code_bytes().max(1)))
    }

    /// Removes these entries from the front.
    pub fn take(&mut self, count: usize) -> Self {
        let bytes = self.code_bytes() * count;
        Self { chunks: self.chunks.drain(..count).collect(), codes: self.codes.drain(..bytes).collect() }
    }

    /// Adds the entries of another. Their codes must have the same length.
    pub fn append(&mut self, mut other: Self) -> Result<(), Error> {
        if !self.is_empty() && self.code_bytes() != other.code_bytes() {
            return Err(Error::Internal("the codes of a model have different lengths".to_owned()));
        }
        self.chunks.append(&mut other.chunks);
        self.codes.append(&mut other.codes);
        Ok(())
    }

    /// Keeps only the entries whose chunk `keep` accepts.
    pub fn retain(&mut self, keep: impl Fn(i64) -> bool) {
        let mut kept = Self::default();
        for (chunk, code) in self.entries().filter(|(chunk, _)| keep(*chunk)) {
            kept.chunks.push(chunk);
            kept.codes.extend_from_slice(code);
        }
        *self = kept;
    }
}

/// A segment in memory, ready to be scanned.
#[derive(Debug)]
pub struct Segment {
    pub chunks: Vec<i64>,
    pub codes: Codes,
}

impl Segment {
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.chunks.len() * ID_BYTES + self.codes.bytes()
    }
}

impl From<Packed> for Segment {
    fn from(packed: Packed) -> Self {
        let codes = Codes::unpack(&packed.codes, packed.code_bytes());
        Self { chunks: packed.chunks, codes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(chunks: &[i64]) -> Packed {
        let mut packed = Packed::default();
        for (chunk, value) in chunks.iter().zip([1.0, -1.0, 2.0, -3.0]) {
            packed.push(*chunk, &[value; 9]);
        }
        packed
    }

    #[test]
    fn what_was_stored_is_read_again() {
        let stored = packed(&[7, i64::MAX, 3]);
        let read = Packed::read(1, &stored.chunk_bytes(), stored.codes.clone()).unwrap();
        assert_eq!(read, stored);
        assert!(Packed::read(1, &stored.chunk_bytes()[1..], stored.codes.clone()).is_err());
        assert!(Packed::read(1, &stored.chunk_bytes(), stored.codes[1..].to_vec()).is_err());
        assert!(Packed::read(1, &[], Vec::new()).is_err());
    }

    #[test]
    fn entries_keep_their_codes() {
        let all = packed(&[1, 2, 3, 4]);
        let mut some = all.clone();
        some.retain(|chunk| chunk % 2 == 0);
        let expected: Vec<(i64, &[u8])> = all.entries().filter(|(chunk, _)| chunk % 2 == 0).collect();
        assert_eq!(some.entries().collect::<Vec<_>>(), expected);
        let mut rest = all.clone();
        let mut joined = rest.take(3);
        assert_eq!((joined.len(), rest.len()), (3, 1));
        joined.append(rest).unwrap();
        assert_eq!(joined, all);
        let mut other = Packed::default();
        other.push(9, &[1.0; 100]);
        assert!(joined.append(other).is_err());
    }
}
