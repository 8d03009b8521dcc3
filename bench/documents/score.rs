//! How good a result is: the rank of the right file and of its right page.

use super::questions::Question;

/// Where a hit is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    pub file: String,
    pub page: Option<i64>,
}

/// The result for one question. Ranks count from one.
pub struct SearchResult {
    pub file_rank: Option<usize>,
    pub page_rank: Option<usize>,
    pub first: Option<Location>,
}

impl SearchResult {
    pub fn judge(question: &Question, hits: Vec<Location>) -> Self {
        let rank = |right: &dyn Fn(&Location) -> bool| hits.iter().position(right).map(|index| index + 1);
        let right_file = |hit: &Location| question.files.contains(&hit.file);
        let right_page =
            |hit: &Location| right_file(hit) && hit.page.is_some_and(|page| question.pages.contains(&page));
        Self { file_rank: rank(&right_file), page_rank: rank(&right_page), first: hits.into_iter().next() }
    }
}

/// The share of ranks that are at most `max_rank`.
pub fn hit_at(max_rank: usize, ranks: &[Option<usize>]) -> f64 {
    share(ranks.iter().filter(|rank| rank.is_some_and(|rank| rank <= max_rank)).count() as f64, ranks)
}

/// One for a right result at rank one, a half at rank two, nothing for none; on average.
pub fn mean_reciprocal_rank(ranks: &[Option<usize>]) -> f64 {
    share(ranks.iter().flatten().fold(0.0, |sum, rank| sum + 1.0 / *rank as f64), ranks)
}

fn share(of: f64, ranks: &[Option<usize>]) -> f64 {
    if ranks.is_empty() { 0.0 } else { of / ranks.len() as f64 }
}
