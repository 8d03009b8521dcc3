//! The chunks whose codes agree best with a question.

use super::packed::Segment;
use landfall_models::bits::Query;

/// Collects the best of all codes that were scanned so far.
#[derive(Debug)]
pub struct Best {
    most: usize,
    /// Up to twice as many as are wanted; then the worse half goes.
    found: Vec<(u64, i64)>,
    /// A score that is not above this one is not among the best.
    floor: Option<u64>,
}

impl Best {
    /// `most`: how many are kept.
    pub fn new(most: usize) -> Self {
        Self { most, found: Vec::with_capacity(most * 2), floor: None }
    }

    pub fn scan(&mut self, segment: &Segment, query: &Query) {
        segment.codes.score(query, |number, score| {
            if self.floor.is_none_or(|floor| score > floor) {
                self.found.push((score, segment.chunks[number]));
                if self.found.len() == self.most * 2 {
                    self.drop_worse_half();
                }
            }
        });
    }

    fn drop_worse_half(&mut self) {
        let last = self.most - 1;
        self.found.select_nth_unstable_by(last, |a, b| b.cmp(a));
        self.floor = Some(self.found[last].0);
        self.found.truncate(self.most);
    }

    /// The chunks, the best first.
    pub fn into_chunks(mut self) -> Vec<i64> {
        self.found.sort_unstable_by(|a, b| b.cmp(a));
        self.found.truncate(self.most);
        self.found.into_iter().map(|(_, chunk)| chunk).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::packed::Packed;
    use super::*;

    #[test]
    fn the_best_come_first_wherever_they_are() {
        // The more dimensions are positive, the better.
        let vector = |positive: i64| -> Vec<f32> {
            (0..64).map(|number| if number < positive { 1.0 } else { -1.0 }).collect()
        };
        let question = vector(64);
        let segments: Vec<Segment> = (0..8)
            .map(|segment| {
                let mut packed = Packed::default();
                for number in 0..8 {
                    // A permutation of 0 to 63.
                    let chunk = (segment * 8 + number) * 37 % 64;
                    packed.push(chunk, &vector(chunk));
                }
                packed.into()
            })
            .collect();
        let mut best = Best::new(10);
        for segment in &segments {
            best.scan(segment, &Query::new(&question));
        }
        let chunks = best.into_chunks();
        assert_eq!(chunks.len(), 10);
        // The codes are of the rotated vectors, so the order is nearly that of the products.
        assert!(chunks[..5].iter().all(|chunk| *chunk > 45), "{chunks:?}");
        let mut all = Best::new(100);
        for segment in &segments {
            all.scan(segment, &Query::new(&question));
        }
        assert_eq!(all.into_chunks()[..10], chunks, "a smaller number finds the first of a larger one");
    }
}
