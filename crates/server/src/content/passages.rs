//! Neighbouring chunks of a file that were found together are one passage.

use std::collections::HashMap;

use uuid::Uuid;

/// The maximum number of chunks in a passage: more are too much to read at once.
const MAX_CHUNKS: i64 = 4;

/// A chunk, or several neighbours, with what belongs to the best of them.
#[derive(Debug, PartialEq)]
pub struct Passage<T> {
    pub file: Uuid,
    /// The first and the last chunk.
    pub ordinals: (i64, i64),
    pub characters: (i64, i64),
    pub content: T,
}

impl<T> Passage<T> {
    pub const fn new(file: Uuid, ordinal: i64, characters: (i64, i64), content: T) -> Self {
        Self { file, ordinals: (ordinal, ordinal), characters, content }
    }
}

/// Joins each chunk with a better one that it stands next to. The chunks are in the order of how good they are, and so
/// are the passages.
pub fn merge_neighbours<T>(chunks: Vec<Passage<T>>) -> Vec<Passage<T>> {
    let mut passages: Vec<Passage<T>> = Vec::with_capacity(chunks.len());
    // The passage that a chunk is in.
    let mut places: HashMap<(Uuid, i64), usize> = HashMap::new();
    for chunk in chunks {
        let (file, ordinal) = (chunk.file, chunk.ordinals.0);
        let beside = [ordinal - 1, ordinal + 1].map(|neighbour| places.get(&(file, neighbour)).copied());
        // A chunk between two passages goes to the better one.
        let place = beside.into_iter().flatten().filter(|place| {
            let (first, last) = passages[*place].ordinals;
            last - first + 1 < MAX_CHUNKS
        });
        let place = match place.min() {
            Some(place) => {
                let passage = &mut passages[place];
                passage.ordinals = (passage.ordinals.0.min(ordinal), passage.ordinals.1.max(ordinal));
                passage.characters = (
                    passage.characters.0.min(chunk.characters.0),
                    passage.characters.1.max(chunk.characters.1),
                );
                place
            }
            None => {
                passages.push(chunk);
                passages.len() - 1
            }
        };
        places.insert((file, ordinal), place);
    }
    passages
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The chunks, the characters, and the best chunk.
    type Merged = ((i64, i64), (i64, i64), i64);

    fn merged(ordinals: &[i64]) -> Vec<Merged> {
        let chunk = |ordinal: &i64| {
            Passage::new(Uuid::nil(), *ordinal, (ordinal * 100, ordinal * 100 + 120), *ordinal)
        };
        let passages = merge_neighbours(ordinals.iter().map(chunk).collect());
        passages.into_iter().map(|passage| (passage.ordinals, passage.characters, passage.content)).collect()
    }

    #[test]
    fn neighbours_are_one_passage_with_the_content_of_the_best() {
        assert_eq!(merged(&[5, 9, 4, 6]), [((4, 6), (400, 720), 5), ((9, 9), (900, 1020), 9)]);
    }

    #[test]
    fn a_chunk_between_two_goes_to_the_better_one() {
        assert_eq!(merged(&[5, 7, 6]), [((5, 6), (500, 720), 5), ((7, 7), (700, 820), 7)]);
    }

    #[test]
    fn a_passage_does_not_grow_without_end() {
        let long = merged(&[1, 2, 3, 4, 5, 6]);
        assert_eq!(long.iter().map(|(ordinals, ..)| *ordinals).collect::<Vec<_>>(), [(1, 4), (5, 6)]);
    }

    #[test]
    fn chunks_of_different_files_stay_apart() {
        let chunk = |file, ordinal| Passage::new(Uuid::from_u128(file), ordinal, (0, 1), ());
        assert_eq!(merge_neighbours(vec![chunk(1, 1), chunk(2, 2)]).len(), 2);
    }
}
