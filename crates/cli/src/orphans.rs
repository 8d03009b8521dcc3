//! `landfall orphans`: what is left over in the storage and in the books.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::Value;

use crate::Outcome;
use crate::client::{Client, Connection};
use crate::words::{count, printable, size, span, time};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Look at the storage now, for administrators. Otherwise a look is good for an hour.
    #[arg(long)]
    refresh: bool,
    #[command(flatten)]
    connection: Connection,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    last_scan_time: Option<DateTime<Utc>>,
    orphan_blobs: OrphanBlobs,
    abandoned_uploads: AbandonedUploads,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OrphanBlobs {
    count: usize,
    total_size: u64,
    samples: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AbandonedUploads {
    count: usize,
    oldest_age: i64,
}

pub async fn run(args: &Args, as_json: bool) -> anyhow::Result<Outcome> {
    let client = Client::connect(&args.connection)?;
    let query: Vec<_> = args.refresh.then(|| ("refresh", "true".to_owned())).into_iter().collect();
    let answer: Value = client.persist(async || client.get("/orphans", &query).await).await?;
    if as_json {
        println!("{answer}");
        return Ok(Outcome::Good);
    }
    let report = Report::deserialize(&answer).map_err(|error| client.strange(error.to_string()))?;
    print!("{}", in_words(&report));
    Ok(Outcome::Good)
}

fn in_words(report: &Report) -> String {
    let Report { last_scan_time, orphan_blobs: blobs, abandoned_uploads: uploads } = report;
    let mut words = match last_scan_time {
        Some(at) => format!("The storage was looked at {}.\n", time(*at)),
        None => "The storage is being looked at; ask again in a moment.\n".to_owned(),
    };
    match blobs.count {
        0 => words.push_str("Every blob belongs to a file.\n"),
        number => {
            let (blobs_are, bytes) = (count(number, "blob"), size(blobs.total_size));
            words.push_str(&format!("No file knows {blobs_are} ({bytes}), such as:\n"));
            words.extend(blobs.samples.iter().map(|key| format!("  {}\n", printable(key))));
        }
    }
    match uploads.count {
        0 => words.push_str("No upload was abandoned.\n"),
        number => words.push_str(&format!(
            "The bytes of {} never came, the first registered {} ago.\n",
            count(number, "file"),
            span(uploads.oldest_age)
        )),
    }
    if blobs.count + uploads.count > 0 {
        words.push_str("`landfall jobs run orphan-cleanup` removes them; it also runs every night.\n");
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn words(report: Value) -> String {
        in_words(&Report::deserialize(report).unwrap())
    }

    #[test]
    fn what_is_left_over_is_counted_and_named() {
        let said = words(json!({
            "lastScanTime": "2026-01-02T03:04:05Z",
            "orphanBlobs": { "count": 2, "totalSize": 2048, "samples": ["ff/one", "ff/two\u{1b}"] },
            "abandonedUploads": { "count": 1, "oldestAge": 90_000_000 },
        }));
        for part in ["03:04:05 UTC", "2 blobs (2.0 KB)", "  ff/one\n", "\\u{1b}", "1 file", "1 d 1 h ago"] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }

    #[test]
    fn nothing_left_over_is_said_as_well() {
        let said = words(json!({
            "lastScanTime": null,
            "orphanBlobs": { "count": 0, "totalSize": 0, "samples": [] },
            "abandonedUploads": { "count": 0, "oldestAge": 0 },
        }));
        assert!(said.contains("Every blob belongs") && !said.contains("landfall jobs run"), "{said}");
    }
}
