//! `landfall events`: what happened, and what happens.

mod frames;

use std::time::Duration;

use anyhow::Context;
use serde_json::Value;
use uuid::Uuid;

use crate::Outcome;
use crate::client::{Client, Connection};
use crate::words::{printable, time};
use frames::{Frame, Frames};
use landfall_core::clock::{Clock, Time};

/// A server says something at least every quarter of a minute; one that does not for so long is not there any more.
const SILENCE: Duration = Duration::from_mins(1);
/// How long to wait before the next attempt to reach a server that went away.
const BETWEEN_ATTEMPTS: Duration = Duration::from_secs(2);

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Go on with what happens from now on, until stopped.
    #[arg(long, short)]
    follow: bool,
    /// Begin after this event; without it, `--follow` begins now, and all else at the beginning.
    #[arg(long, value_name = "ID")]
    after: Option<i64>,
    /// Only events of these types.
    #[arg(long = "type", value_name = "TYPE", value_delimiter = ',')]
    types: Vec<String>,
    /// Only events of this batch.
    #[arg(long, value_name = "ID")]
    batch: Option<Uuid>,
    /// Everybody's and the system's own, for administrators.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    connection: Connection,
}

pub async fn run(args: &Args, as_json: bool) -> anyhow::Result<Outcome> {
    let client = Client::connect(&args.connection)?;
    let mut after = args.after.or((!args.follow).then_some(0));
    // The first attempt fails like any other command; once it has been there, a server is waited for.
    let mut response = client.persist(async || client.events(&query(args, after)).await).await?;
    loop {
        match print_all(&client, response, &mut after, as_json).await {
            Ok(End::CaughtUp) => return Ok(Outcome::Good),
            Ok(End::Interrupted) => {}
            Err(error) => eprintln!("landfall: {error}; going on after the last event"),
        }
        response = loop {
            match client.events(&query(args, after)).await {
                Ok(response) => break response,
                Err(error) if error.may_pass() => Clock::System.sleep(BETWEEN_ATTEMPTS).await,
                Err(error) => return Err(error.into()),
            }
        };
    }
}

fn query(args: &Args, after: Option<i64>) -> Vec<(&'static str, String)> {
    let mut query = vec![("follow", args.follow.to_string())];
    query.extend(after.map(|id| ("after", id.to_string())));
    query.extend((!args.types.is_empty()).then(|| ("types", args.types.join(","))));
    query.extend(args.batch.map(|id| ("batchId", id.to_string())));
    query.extend(args.all.then(|| ("scope", "all".to_owned())));
    query
}

enum End {
    CaughtUp,
    /// The server stops, the token is over, the connection broke.
    Interrupted,
}

async fn print_all(
    client: &Client,
    mut response: reqwest::Response,
    after: &mut Option<i64>,
    as_json: bool,
) -> anyhow::Result<End> {
    let mut frames = Frames::default();
    loop {
        let bytes = tokio::time::timeout(SILENCE, response.chunk())
            .await
            .map_err(|_| client.broken_off("the server fell silent"))?
            .map_err(|error| client.broken(&error))?;
        let Some(bytes) = bytes else { return Ok(End::Interrupted) };
        for frame in frames.take(&bytes).context("the server sends no events")? {
            let event: Value =
                serde_json::from_str(&frame.data).map_err(|error| client.strange(error.to_string()))?;
            match frame.event.as_str() {
                "stream:end" if event["data"]["code"] == "CAUGHT_UP" => return Ok(End::CaughtUp),
                "stream:end" => return Ok(End::Interrupted),
                "stream:open" => {}
                "stream:gap" => warn_of_gap(&event),
                _ => print(&frame, &event, as_json),
            }
            if let Some(id) = event["id"].as_i64() {
                *after = Some(id);
            }
        }
    }
}

fn warn_of_gap(event: &Value) {
    let data = &event["data"];
    eprintln!(
        "landfall: events between {} and {} are not kept any more",
        data["after"], data["resumesAfter"]
    );
}

fn print(frame: &Frame, event: &Value, as_json: bool) {
    if as_json {
        println!("{}", frame.data);
        return;
    }
    let at = event["at"].as_str().and_then(|at| at.parse::<Time>().ok()).map_or_else(String::new, time);
    let id = frame.id.as_deref().unwrap_or_default();
    println!("{}  {at}  {:<24}  {}", printable(id), printable(&frame.event), in_words(&event["data"]));
}

/// What an event says, on one line.
fn in_words(data: &Value) -> String {
    let text = |name: &str| data[name].as_str().map(printable);
    let mut words: Vec<String> = Vec::new();
    words.extend(text("fileId").or_else(|| text("batchId")));
    match (text("from"), text("to")) {
        (Some(from), Some(to)) => words.push(format!("{from} → {to}")),
        (None, Some(to)) => words.push(to),
        _ => {}
    }
    if let (Some(code), Some(message)) = (data["error"]["code"].as_str(), data["error"]["message"].as_str()) {
        words.push(format!("{}: {}", printable(code), printable(message)));
    }
    let known = ["fileId", "batchId", "from", "to", "error", "stage", "attempt"];
    for (name, value) in data.as_object().into_iter().flatten() {
        if !known.contains(&name.as_str()) {
            let value = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
            words.push(format!("{} {}", printable(name), printable(&value)));
        }
    }
    words.join("  ")
}
