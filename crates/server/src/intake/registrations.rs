//! How many files and batches a tenant may register in some time, over all processes.
//!
//! A quota limits what a tenant has. A file that is registered and deleted again costs no quota, but its row and its
//! history stay for a while, and so does the row of a batch that is cancelled. This limits how fast such rows come.

use serde_json::Value;

use crate::queue::limits::{self, Buckets, RateLimit};
use landfall_core::clock::Time;
use landfall_core::refusal::{Refusal, RefusalCode};
use landfall_store::{Error, Tx};

/// What a client stores with a row counts as one more row for each started part of this size.
const BYTES_OF_A_ROW: usize = 1_024;

/// As how many rows metadata or a mapping counts.
pub fn rows_of(json: Option<&Value>) -> usize {
    json.map_or(0, |json| json.to_string().len().div_ceil(BYTES_OF_A_ROW))
}

/// Counts `rows` new rows of a tenant, or refuses all of them. No other transaction registers something for the tenant
/// until this one ends.
pub async fn take(tx: &mut Tx, tenant: &str, rows: usize, limit: RateLimit, now: Time) -> Result<(), Error> {
    let bucket = limits::bucket_of_registrations(tenant);
    // The first registration of a tenant finds no row that it could lock.
    tx.enter_section(&bucket).await?;
    let mut buckets = Buckets::default();
    buckets.hold(tx, vec![bucket.clone()]).await?;
    if buckets.allows(limit, &bucket, now) >= rows {
        buckets.take(limit, &bucket, rows, now);
        return buckets.write(tx).await;
    }
    let refusal = |message: String| Refusal::new(RefusalCode::TooManyRegistrations, message);
    Err(match buckets.wait_for(limit, &bucket, rows, now) {
        Some(wait) => refusal(format!(
            "This tenant may register {limit} files and batches, deleted ones included, and has reached that: try again \
             in {} s",
            wait.as_secs() + 1
        ))
        .retry_after(wait),
        None => refusal(format!(
            "This tenant may register {limit} files and batches, and this request counts as {rows}: send fewer at once"
        )),
    }
    .into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_with_a_row_counts_by_its_size() {
        let text = |bytes: usize| Value::String("x".repeat(bytes - 2));
        assert_eq!(rows_of(None), 0);
        assert_eq!(rows_of(Some(&text(10))), 1);
        assert_eq!(rows_of(Some(&text(1_024))), 1);
        assert_eq!(rows_of(Some(&text(1_025))), 2);
    }
}
