//! `landfall search`: finds what was said in the files.

use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use crate::Outcome;
use crate::client::{Client, Connection};
use crate::words::printable;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to look for: words, or a question.
    #[arg(required = true, value_name = "QUERY")]
    query: Vec<String>,
    /// How many places to show.
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

#[derive(Deserialize)]
struct Answer {
    hits: Vec<Hit>,
    /// What the answer lacks.
    warning: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Hit {
    file_id: Uuid,
    file_name: String,
    page: Option<i64>,
    heading: Option<String>,
    snippet: String,
    score: f64,
}

pub async fn run(args: &Args, as_json: bool) -> anyhow::Result<Outcome> {
    let client = Client::connect(&args.connection)?;
    let mut question = json!({ "query": args.query.join(" "), "limit": args.limit });
    for (name, id) in [("batchId", args.batch), ("fileId", args.file)] {
        if let Some(id) = id {
            question[name] = json!(id);
        }
    }
    let answer = client.search(&question).await?;
    if as_json {
        println!("{answer}");
        return Ok(Outcome::Good);
    }
    let Answer { hits, warning } =
        Answer::deserialize(&answer).map_err(|error| client.strange(error.to_string()))?;
    if let Some(warning) = warning {
        eprintln!("{}", printable(&warning));
    }
    if hits.is_empty() {
        println!(
            "Nothing was found. Only files that are ready can be searched: `landfall files` lists them."
        );
    }
    for (number, hit) in hits.iter().enumerate() {
        let page = hit.page.map(|page| format!("page {page}"));
        let place: Vec<String> =
            [Some(printable(&hit.file_name)), page, hit.heading.as_deref().map(printable)]
                .into_iter()
                .flatten()
                .filter(|part| !part.is_empty())
                .collect();
        println!("{:>2}. {}", number + 1, place.join(" · "));
        println!("    {}", printable(&hit.snippet));
        println!("    score {:.4}, file {}\n", hit.score, hit.file_id);
    }
    Ok(Outcome::Good)
}
