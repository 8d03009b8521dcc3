//! `landfall reindex`: embeds anew what was embedded with another model.
//!
//! It opens the database itself and works beside whatever servers there are; they need not be told.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use crate::{Outcome, logs, serve};
use landfall_core::clock::Clock;
use landfall_core::lifecycle::Stage;
use landfall_server::config::Config;
use landfall_server::content::index;
use landfall_server::stages::embed::Embedder;
use landfall_server::stages::reindex::{Reindex, Report};
use landfall_store::Db;

/// Where `WORKER_STAGES` leaves embedding to others, and with it how many of them.
const FILES_AT_ONCE: usize = 5;
/// Files between two lines, where there is no bar.
const BETWEEN_LINES: usize = 100;

pub async fn run(config: Config, as_json: bool) -> anyhow::Result<Outcome> {
    logs::start(&config);
    let stop = serve::stop_on_signal()?;
    let db = Db::open(&config.database_url, config.database_connections).await?;
    index::install(&db).await?;
    let embedder = Embedder::open(&config.embed).await?;
    // Whoever started it with other settings than the server's should see it at once.
    let model = embedder.name().to_owned();
    tracing::info!(model, "embedding anew what was embedded with another model");
    let stages = config.queue.stages.iter();
    let at_once = stages.filter(|stage| stage.stage == Stage::Embed).map(|stage| stage.concurrency).next();
    let reindex = Reindex::new(
        db.clone(),
        Clock::System,
        embedder,
        config.chunks,
        config.queue.retry,
        at_once.unwrap_or(FILES_AT_ONCE),
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
        println!("{}", in_words(&report, &model));
    }
    Ok(if report.remaining == 0 { Outcome::Good } else { Outcome::Bad })
}

fn show(bar: &ProgressBar, report: &Report) {
    let done = report.reindexed + report.left_alone + report.failed;
    bar.set_length(u64::try_from(report.stale).unwrap_or_default());
    bar.set_position(done as u64);
    if bar.is_hidden() && done.is_multiple_of(BETWEEN_LINES) {
        tracing::info!(done, of = report.stale, failed = report.failed, "embedding anew");
    }
}

fn in_words(report: &Report, model: &str) -> String {
    if report.stale == 0 {
        return format!("Every file was embedded with {model}.");
    }
    let mut words = format!("{} files were embedded anew with {model}", report.reindexed);
    if report.left_alone > 0 {
        words.push_str(&format!(", {} had no need of it any more", report.left_alone));
    }
    if report.failed > 0 {
        words.push_str(&format!(", {} failed", report.failed));
    }
    words.push('.');
    if let Some(failure) = &report.last_failure {
        words.push_str(&format!("\nThe last failure: {failure}."));
    }
    if report.remaining > 0 {
        words.push_str(&format!("\n{} files are still of another model; run it again.", report.remaining));
    }
    words
}
