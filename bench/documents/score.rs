//! How good an answer is: at which place of the list the right file, and the right page of it, came.

use super::questions::Question;

/// Where a hit is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub file: String,
    pub page: Option<i64>,
}

/// What came back for one question. Ranks count from one.
pub struct Answer {
    pub file_rank: Option<usize>,
    pub page_rank: Option<usize>,
    pub first: Option<Place>,
}

impl Answer {
    pub fn judge(question: &Question, hits: Vec<Place>) -> Self {
        let rank = |right: &dyn Fn(&Place) -> bool| hits.iter().position(right).map(|index| index + 1);
        let right_file = |hit: &Place| question.files.contains(&hit.file);
        let right_page =
            |hit: &Place| right_file(hit) && hit.page.is_some_and(|page| question.pages.contains(&page));
        Self { file_rank: rank(&right_file), page_rank: rank(&right_page), first: hits.into_iter().next() }
    }
}

/// The share of ranks that are among the first so many.
pub fn hit_at(most: usize, ranks: &[Option<usize>]) -> f64 {
    share(ranks.iter().filter(|rank| rank.is_some_and(|rank| rank <= most)).count() as f64, ranks)
}

/// One for a right answer in the first place, a half for one in the second, nothing for none; on average.
pub fn mean_reciprocal_rank(ranks: &[Option<usize>]) -> f64 {
    share(ranks.iter().flatten().fold(0.0, |sum, rank| sum + 1.0 / *rank as f64), ranks)
}

fn share(of: f64, ranks: &[Option<usize>]) -> f64 {
    if ranks.is_empty() { 0.0 } else { of / ranks.len() as f64 }
}
