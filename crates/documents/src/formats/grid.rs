//! Columns of a table whose rows say only where their cells end.

/// Edges that are nearer to one another are the same, in twentieths of a point.
const TOLERANCE: i32 = 40;
/// A table with more edges has no columns that a reader would see.
const MAX_EDGES: usize = 64;

/// How many columns each cell of each row covers. `rows` are the edges of each row, from the left of its first cell to
/// the right of its last.
pub fn spans(rows: &[Vec<i32>]) -> Vec<Vec<usize>> {
    let mut all: Vec<i32> = rows.iter().flatten().copied().collect();
    all.sort_unstable();
    let mut edges: Vec<i32> = Vec::new();
    for edge in all {
        if edges.last().is_none_or(|last| edge.saturating_sub(*last) > TOLERANCE) {
            edges.push(edge);
        }
    }
    let number = |edge: i32| edges.partition_point(|known| *known <= edge);
    let span = |pair: &[i32]| match number(pair[1]).checked_sub(number(pair[0])) {
        Some(span) if edges.len() <= MAX_EDGES => span.max(1),
        _ => 1,
    };
    rows.iter().map(|row| row.windows(2).map(span).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_covers_the_columns_of_other_rows() {
        let rows = [vec![0, 1_000, 2_000, 3_000], vec![5, 2_010, 3_000], vec![0, 3_000], vec![]];
        assert_eq!(spans(&rows), [vec![1, 1, 1], vec![2, 1], vec![3], vec![]]);
    }

    #[test]
    fn edges_without_any_order_cover_one_column_each() {
        assert_eq!(spans(&[vec![2_000, 0, 1_000]]), [[1, 1]]);
        let chaos: Vec<Vec<i32>> = (0..200).map(|row| vec![0, 100 * row + 100, 100_000]).collect();
        assert!(spans(&chaos).iter().flatten().all(|span| *span == 1));
    }
}
