//! `landfall orphans`: reports blobs without a file and files whose bytes never arrived.

use serde_json::json;

use crate::Outcome;
use crate::client::{Client, Connection};
use crate::format::{count, printable, size, span, time};
use landfall_api::orphans::{OrphanQuery, OrphanReport};
use landfall_core::states::Scope;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Scan the storage now, for administrators. Without it, a scan of the last hour is used.
    #[arg(long)]
    refresh: bool,
    /// Those of all users, for administrators.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    connection: Connection,
}

pub async fn run(args: &Args, as_json: bool) -> anyhow::Result<Outcome> {
    let client = Client::connect(&args.connection)?;
    let query = OrphanQuery { refresh: args.refresh.then_some(true), scope: args.all.then_some(Scope::All) };
    let report = client.retry(async || client.orphans(&query).await).await?;
    if as_json {
        println!("{}", json!(report));
    } else {
        print!("{}", describe(&report));
    }
    Ok(Outcome::Good)
}

fn describe(report: &OrphanReport) -> String {
    let OrphanReport { last_scan_time, orphan_blobs: blobs, abandoned_uploads: uploads } = report;
    let mut text = match last_scan_time {
        Some(at) => format!("The storage was scanned at {}.\n", time(*at)),
        None => "The storage is being scanned; run this again in a moment.\n".to_owned(),
    };
    match usize::try_from(blobs.count).unwrap_or_default() {
        0 => text.push_str("Every blob belongs to a file.\n"),
        number => {
            let (blobs_are, bytes) = (count(number, "blob"), size(blobs.total_size.unsigned_abs()));
            let verb = if number == 1 { "belongs" } else { "belong" };
            text.push_str(&format!("{blobs_are} ({bytes}) {verb} to no file, such as:\n"));
            text.extend(blobs.samples.iter().map(|key| format!("  {}\n", printable(key))));
        }
    }
    match usize::try_from(uploads.count).unwrap_or_default() {
        0 => text.push_str("No upload was abandoned.\n"),
        number => text.push_str(&format!(
            "The bytes of {} never arrived; the oldest was registered {} ago.\n",
            count(number, "file"),
            span(uploads.oldest_age)
        )),
    }
    if blobs.count + uploads.count > 0 {
        text.push_str("`landfall jobs run orphan-cleanup` removes them; it also runs every night.\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn described(report: Value) -> String {
        describe(&serde_json::from_value(report).unwrap())
    }

    #[test]
    fn orphans_are_counted_and_named() {
        let text = described(json!({
            "lastScanTime": "2026-01-02T03:04:05Z",
            "orphanBlobs": { "count": 2, "totalSize": 2048, "samples": ["ff/one", "ff/two\u{1b}"] },
            "abandonedUploads": { "count": 1, "oldestAge": 90_000_000 },
        }));
        for part in ["03:04:05 UTC", "2 blobs (2.0 KB)", "  ff/one\n", "\\u{1b}", "1 file", "1 d 1 h ago"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn a_report_without_orphans_says_so() {
        let text = described(json!({
            "lastScanTime": null,
            "orphanBlobs": { "count": 0, "totalSize": 0, "samples": [] },
            "abandonedUploads": { "count": 0, "oldestAge": 0 },
        }));
        assert!(text.contains("Every blob belongs") && !text.contains("landfall jobs run"), "{text}");
    }
}
