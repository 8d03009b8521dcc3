//! `landfall reindex`: re-embeds the files that were embedded with another model.
//!
//! It opens the database itself. Servers may run at the same time and need no restart.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use crate::{Outcome, logs, serve};
use landfall_core::clock::Clock;
use landfall_server::config::Config;
use landfall_server::content::index;
use landfall_server::stages::embed::Embedder;
use landfall_server::stages::reindex::{Reindex, Report};
use landfall_store::Db;

/// Without a progress bar, a line is logged after this many files.
const FILES_PER_LINE: usize = 100;

pub async fn run(config: Config, as_json: bool) -> anyhow::Result<Outcome> {
    logs::start(&config);
    let stop = serve::stop_on_signal()?;
    let db = Db::open(&config.database_url, config.database_connections).await?;
    index::install(&db).await?;
    let embedder = Embedder::open(&config.embed).await?;
    // Logged first: an operator who uses other settings than the server's should notice it at once.
    let model = embedder.name().to_owned();
    tracing::info!(model, "re-embedding the files of another model");
    let concurrency = config.reindex_concurrency();
    let reindex = Reindex::new(
        db.clone(),
        db.clock(Clock::System).await?,
        embedder,
        config.chunks,
        config.queue.retry,
        concurrency,
    );
    let bar = if std::io::stderr().is_terminal() { ProgressBar::new(0) } else { ProgressBar::hidden() };
    if let Ok(style) = ProgressStyle::with_template("embedding {bar:30} {pos}/{len} files  {msg}") {
        bar.set_style(style.progress_chars("━╸─"));
    }
    let report = reindex.run(&stop, |report| show(&bar, report)).await?;
    bar.finish_and_clear();
    db.close().await;
    if as_json {
        println!("{}", json!(report));
    } else {
        println!("{}", describe(&report, &model));
    }
    Ok(if report.remaining == 0 { Outcome::Good } else { Outcome::Bad })
}

fn show(bar: &ProgressBar, report: &Report) {
    let done = report.reindexed + report.left_alone + report.failed;
    bar.set_length(u64::try_from(report.stale).unwrap_or_default());
    bar.set_position(done as u64);
    if bar.is_hidden() && done.is_multiple_of(FILES_PER_LINE) {
        tracing::info!(done, of = report.stale, failed = report.failed, "re-embedding");
    }
}

fn describe(report: &Report, model: &str) -> String {
    if report.stale == 0 {
        return format!("Every file was embedded with {model}.");
    }
    let mut text = format!("{} files were re-embedded with {model}", report.reindexed);
    if report.left_alone > 0 {
        text.push_str(&format!(", {} no longer needed it", report.left_alone));
    }
    if report.failed > 0 {
        text.push_str(&format!(", {} failed", report.failed));
    }
    text.push('.');
    if let Some(failure) = &report.last_failure {
        text.push_str(&format!("\nThe last failure: {failure}."));
    }
    if report.remaining > 0 {
        text.push_str(&format!(
            "\n{} files still have vectors of another model; run this again.",
            report.remaining
        ));
    }
    text
}
