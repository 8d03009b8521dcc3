//! How well a chunk fits a question, from its words and its meaning: a number from 0 to 1 that means the same for every
//! question and every model.
//!
//! The numbers are those of a logistic regression over the questions of `bench/documents`: a score is about the share
//! of passages with that score that answer their question. Those of words and meaning together also put the relevant passages of
//! `bench/collections` first. What is less than the floor is no answer.

use landfall_api::search::SearchMode;

/// The cosines of a model: two models of the same quality have very different ones.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    /// That of a question and a passage that have nothing to do with each other.
    pub unrelated: f64,
    /// That of a question and a passage that answers it.
    pub related: f64,
}

/// A scale that is narrower is chance.
const MIN_WIDTH: f64 = 0.02;

impl Default for Scale {
    /// That of the built-in model.
    fn default() -> Self {
        Self { unrelated: 0.04, related: 0.48 }
    }
}

impl Scale {
    /// 0 for what is unrelated, 1 for an answer. `None`: the model cannot tell them apart, and its vectors say nothing.
    pub fn relative(self, similarity: f64) -> Option<f64> {
        let width = self.related - self.unrelated;
        (width >= MIN_WIDTH).then(|| (similarity - self.unrelated) / width)
    }
}

/// What is known about a chunk and a question.
#[derive(Debug, Clone, Copy, Default)]
pub struct Evidence {
    /// The rank by words: 0 without any term of the question.
    pub words: f64,
    /// The share of the question's terms that the chunk has, by their weights.
    pub coverage: f64,
    /// How close the meanings are, on the scale of the model. `None`: they cannot be compared.
    pub meaning: Option<f64>,
}

impl Evidence {
    pub fn score(self, mode: SearchMode) -> f64 {
        let sum = match (mode, self.meaning) {
            (SearchMode::Words, _) | (SearchMode::Hybrid, None) => {
                if self.words <= 0.0 {
                    return 0.0;
                }
                7.95 * self.words - 4.11
            }
            (SearchMode::Meaning, None) => return 0.0,
            (SearchMode::Meaning, Some(relative)) => 4.5 * relative - 5.0,
            (SearchMode::Hybrid, Some(relative)) => both(self.words.max(0.0), relative.max(0.0)),
        };
        1.0 / (1.0 + (-sum).exp())
    }
}

/// Words and meaning are more than the sum of the two: among passages that all have the words, the meaning decides, and among
/// those of a close meaning, the words do.
fn both(words: f64, meaning: f64) -> f64 {
    // Beyond these, more of the one is no better: the sum below has its maximum there.
    let words = words.min((2.8 + 2.4 * meaning) / 2.4);
    let meaning = meaning.min((5.8 + 2.4 * words) / 3.6);
    2.8 * words - 1.2 * words * words + 5.8 * meaning - 1.8 * meaning * meaning + 2.4 * words * meaning - 5.75
}

/// The lowest score of an answer. `has_known_words`: whether any word of the question is in the files that are searched. If
/// none is, the question is most likely about something else, or no question at all, and only a close meaning counts.
pub const fn floor(mode: SearchMode, has_known_words: bool) -> f64 {
    match (mode, has_known_words) {
        (SearchMode::Words, _) => 0.02,
        (SearchMode::Meaning, true) => 0.06,
        (SearchMode::Meaning, false) => 0.235,
        (SearchMode::Hybrid, true) => 0.034,
        (SearchMode::Hybrid, false) => 0.11,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODES: [SearchMode; 3] = [SearchMode::Words, SearchMode::Meaning, SearchMode::Hybrid];

    #[test]
    fn a_better_passage_has_a_higher_score_between_0_and_1() {
        let weak = Evidence { words: 0.1, coverage: 0.1, meaning: Some(0.4) };
        let words = Evidence { words: 0.8, ..weak };
        let meaning = Evidence { meaning: Some(1.1), ..weak };
        let both = Evidence { words: 0.8, coverage: 0.9, meaning: Some(1.1) };
        for mode in MODES {
            let scores = [weak, words, meaning, both].map(|evidence| evidence.score(mode));
            assert!(scores.iter().all(|score| (0.0..=1.0).contains(score)), "{scores:?}");
            assert!(scores[3] > scores[0] && scores[3] >= scores[1] && scores[3] >= scores[2], "{scores:?}");
        }
        assert!(both.score(SearchMode::Hybrid) > 0.5);
    }

    #[test]
    fn more_of_one_evidence_never_lowers_a_score() {
        let steps = || (0..=30).map(|step| f64::from(step) / 10.0);
        for fixed in steps() {
            let by_words = steps().map(|words| both(words, fixed));
            let by_meaning = steps().map(|meaning| both(fixed, meaning));
            assert!(by_words.is_sorted_by(|less, more| *less <= more + 1e-9), "meaning {fixed}");
            assert!(by_meaning.is_sorted_by(|less, more| *less <= more + 1e-9), "words {fixed}");
        }
    }

    #[test]
    fn among_passages_that_all_have_the_words_the_meaning_decides() {
        let (repeats, answers) = (both(1.4, 1.3), both(1.1, 1.7));
        assert!(answers > repeats, "{answers} {repeats}");
        // And the words, where both are as close.
        assert!(both(0.9, 1.2) > both(0.5, 1.3));
    }

    #[test]
    fn what_has_nothing_in_common_is_below_the_floor() {
        let nothing = Evidence { words: 0.0, coverage: 0.0, meaning: Some(0.3) };
        for mode in MODES {
            for has_known_words in [true, false] {
                assert!(nothing.score(mode) < floor(mode, has_known_words), "{mode:?}");
            }
        }
        // Nonsense is as close to some text as a question in other words can be.
        let close = Evidence { meaning: Some(0.7), ..nothing };
        for mode in [SearchMode::Meaning, SearchMode::Hybrid] {
            assert!(
                close.score(mode) > floor(mode, true) && close.score(mode) < floor(mode, false),
                "{mode:?}"
            );
        }
    }

    #[test]
    fn the_scale_of_a_model_makes_its_cosines_comparable() {
        let (narrow, wide) =
            (Scale { unrelated: 0.7, related: 0.85 }, Scale { unrelated: 0.0, related: 0.6 });
        let relative = |scale: Scale, similarity| scale.relative(similarity).unwrap();
        assert!((relative(narrow, 0.85) - relative(wide, 0.6)).abs() < 1e-9);
        assert!((relative(narrow, 0.7) - relative(wide, 0.0)).abs() < 1e-9);
        let blind = Scale { unrelated: 0.9, related: 0.9 };
        assert_eq!(blind.relative(0.95), None);
    }
}
