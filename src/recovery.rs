//! What heals by itself: each sweep makes good what a crash left undone, and is safe to run at any time, twice, and
//! by two processes at once.

pub mod abandoned_uploads;
pub mod unfinished_deletions;
