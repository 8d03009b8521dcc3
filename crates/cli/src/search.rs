//! `landfall search`: searches the text of the files.

use serde_json::json;
use uuid::Uuid;

use crate::Outcome;
use crate::client::{Client, Connection};
use crate::format::printable;
use landfall_api::search::{Hit, SearchRequest, SearchResponse};

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
    /// Only in this file.
    #[arg(long, value_name = "ID")]
    file: Option<Uuid>,
    #[command(flatten)]
    connection: Connection,
}

pub async fn run(args: &Args, as_json: bool) -> anyhow::Result<Outcome> {
    let client = Client::connect(&args.connection)?;
    let request = SearchRequest {
        query: args.query.join(" "),
        limit: usize::try_from(args.limit).ok(),
        batch_id: args.batch,
        file_id: args.file,
    };
    let response = client.search(&request).await?;
    if as_json {
        println!("{}", json!(response));
        return Ok(Outcome::Good);
    }
    let SearchResponse { hits, warning } = response;
    if let Some(warning) = warning {
        eprintln!("{}", printable(&warning));
    }
    if hits.is_empty() {
        println!("No hits. Only files that are ready can be searched: `landfall files` lists them.");
    }
    for (index, hit) in hits.iter().enumerate() {
        print(index + 1, hit);
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
    println!("    score {:.4}, file {}\n", hit.score, hit.file_id);
}
