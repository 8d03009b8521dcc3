//! How many files may start, how many may be registered, and how many requests may come in some time.

use landfall_core::lifecycle::Stage;

use super::declared::group;
use super::reader::Reader;
use crate::queue::limits::{RateLimit, RateLimits};

group! { "Rate limits" {
    SCAN_RATE_LIMIT = "": "How many files may start the scan stage, over all processes, as a number and a time: `100/60s`."
    EXTRACT_RATE_LIMIT = "": "How many files may start the extract stage, over all processes."
    CHUNK_RATE_LIMIT = "": "How many files may start the chunk stage, over all processes."
    EMBED_RATE_LIMIT = "": "How many files may start the embed stage, over all processes."
    USER_RATE_LIMIT = "": "How many files of one user may start processing, over all processes."
    REGISTRATIONS_PER_TENANT = "1000000/24h": "How many files and batches one tenant may register, over all processes, deleted ones included; each started KB of mapping and metadata counts as one more, and further requests get 429 with `Retry-After`."
    WRITES_PER_USER = "360000/1h": "How many requests that change something each process accepts from one user; further ones get 429 with `Retry-After`."
} }

pub(super) fn read(read: &mut Reader, first_stage: Stage) -> RateLimits {
    let stages = [
        (Stage::Scan, SCAN_RATE_LIMIT),
        (Stage::Extract, EXTRACT_RATE_LIMIT),
        (Stage::Chunk, CHUNK_RATE_LIMIT),
        (Stage::Embed, EMBED_RATE_LIMIT),
    ];
    RateLimits {
        stages: stages
            .into_iter()
            .filter_map(|(stage, setting)| Some((stage, read.optional(setting, str::parse::<RateLimit>)?)))
            .collect(),
        user: read.optional(USER_RATE_LIMIT, str::parse::<RateLimit>),
        first_stage: Some(first_stage),
    }
}

pub(super) fn read_registrations(read: &mut Reader) -> RateLimit {
    read.with(REGISTRATIONS_PER_TENANT, str::parse)
}

pub(super) fn read_writes(read: &mut Reader) -> RateLimit {
    read.with(WRITES_PER_USER, str::parse)
}
