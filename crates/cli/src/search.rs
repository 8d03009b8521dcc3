//! `landfall search`: searches the text of the files.

use chrono::{DateTime, Utc};
use serde_json::json;
use uuid::Uuid;

use crate::Outcome;
use crate::client::{Client, Connection};
use crate::format::{name_and_value, printable};
use landfall_api::search::{ExplainedTerm, Explanation, Hit, SearchMode, SearchRequest, SearchResponse};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to search for: words, or a question.
    #[arg(required = true, value_name = "QUERY")]
    query: Vec<String>,
    /// The maximum number of hits.
    #[arg(long, value_name = "N", default_value = "10", value_parser = clap::value_parser!(u64).range(1..=50))]
    limit: u64,
    /// Only in files of this batch.
    #[arg(long, value_name = "ID")]
    batch: Option<Uuid>,
    /// Only in this file. May be repeated.
    #[arg(long, value_name = "ID")]
    file: Vec<Uuid>,
    /// Only in files with this in their name.
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,
    /// Only in files of this content type; `image/` stands for all images. May be repeated.
    #[arg(long = "type", value_name = "TYPE")]
    types: Vec<String>,
    /// Only in files that were registered at this time or later (RFC 3339).
    #[arg(long, value_name = "TIME")]
    after: Option<DateTime<Utc>>,
    /// Only in files that were registered before this time (RFC 3339).
    #[arg(long, value_name = "TIME")]
    before: Option<DateTime<Utc>>,
    /// Only in files with this attribute. May be repeated.
    #[arg(long = "attribute", value_name = "NAME=VALUE", value_parser = name_and_value)]
    attributes: Vec<(String, String)>,
    /// What is compared: the words, the meaning, or both.
    #[arg(long, value_name = "MODE")]
    mode: Option<Mode>,
    /// Skip this many of the best hits.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(0..=150))]
    offset: Option<u64>,
    /// Say why each hit was found.
    #[arg(long)]
    explain: bool,
    #[command(flatten)]
    connection: Connection,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Mode {
    Words,
    Meaning,
    Hybrid,
}

impl Mode {
    const fn asked(self) -> SearchMode {
        match self {
            Self::Words => SearchMode::Words,
            Self::Meaning => SearchMode::Meaning,
            Self::Hybrid => SearchMode::Hybrid,
        }
    }
}

pub async fn run(args: &Args, as_json: bool) -> anyhow::Result<Outcome> {
    let client = Client::connect(&args.connection)?;
    let request = SearchRequest {
        query: args.query.join(" "),
        limit: usize::try_from(args.limit).ok(),
        offset: args.offset.and_then(|offset| usize::try_from(offset).ok()),
        mode: args.mode.map(Mode::asked),
        explain: args.explain.then_some(true),
        batch_id: args.batch,
        file_ids: (!args.file.is_empty()).then(|| args.file.clone()),
        name: args.name.clone(),
        types: (!args.types.is_empty()).then(|| args.types.clone()),
        created_after: args.after,
        created_before: args.before,
        attributes: (!args.attributes.is_empty())
            .then(|| args.attributes.iter().map(|(name, value)| (name.clone(), json!(value))).collect()),
        ..SearchRequest::default()
    };
    let response = client.search(&request).await?;
    if as_json {
        println!("{}", json!(response));
        return Ok(Outcome::Good);
    }
    let SearchResponse { hits, has_more, warning, explanation } = response;
    if let Some(warning) = warning {
        eprintln!("{}", printable(&warning));
    }
    if hits.is_empty() {
        println!("No hits. Only files that are ready can be searched: `landfall files` lists them.");
    }
    if let Some(explanation) = explanation {
        print_terms(&explanation);
    }
    for (index, hit) in hits.iter().enumerate() {
        print(usize::try_from(args.offset.unwrap_or(0)).unwrap_or(0) + index + 1, hit);
    }
    if has_more {
        println!("There are more: --limit and --offset show them.");
    }
    Ok(Outcome::Good)
}

fn print(number: usize, hit: &Hit) {
    let page = hit.page.map(|page| format!("page {page}"));
    let place: Vec<String> = [Some(printable(&hit.file_name)), page, hit.heading.as_deref().map(printable)]
        .into_iter()
        .flatten()
        .filter(|part| !part.is_empty())
        .collect();
    println!("{number:>2}. {}", place.join(" · "));
    println!("    {}", printable(&hit.snippet));
    println!("    score {:.2}, file {}", hit.score, hit.file_id);
    if let Some(why) = &hit.explanation {
        let similarity = why.similarity.map_or("none".to_owned(), |similarity| format!("{similarity:.3}"));
        let terms = why.terms.iter().map(|term| printable(term)).collect::<Vec<_>>().join(" ");
        println!(
            "    words {:.2} ({:.0} %: {terms}), similarity {similarity}",
            why.words,
            why.coverage * 100.0
        );
    }
    println!();
}

fn print_terms(explanation: &Explanation) {
    let shown = |term: &ExplainedTerm| format!("{} ({:.0})", printable(&term.term), term.chunks);
    let terms: Vec<String> = explanation.terms.iter().map(shown).collect();
    if !terms.is_empty() {
        println!("Searched for {}. In brackets: in how many chunks a word is.\n", terms.join(", "));
    }
}
