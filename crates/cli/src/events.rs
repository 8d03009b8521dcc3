//! `landfall events`: prints events, past ones and new ones.

mod frames;

use std::time::Duration;

use anyhow::Context;
use serde_json::Value;
use uuid::Uuid;

use crate::Outcome;
use crate::client::{Client, Connection};
use crate::format::{printable, time};
use frames::{Frame, Frames};
use landfall_api::events::StreamQuery;
use landfall_core::clock::{Clock, Time};
use landfall_core::states::Scope;

/// The server sends a heartbeat every 15 s. After this long without one, the connection is given up.
const TIMEOUT: Duration = Duration::from_mins(1);
/// How long to wait before the next attempt to reconnect.
const RECONNECT_INTERVAL: Duration = Duration::from_secs(2);

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Keep printing new events until stopped.
    #[arg(long, short)]
    follow: bool,
    /// Start after this event [default: now with `--follow`, otherwise the oldest event].
    #[arg(long, value_name = "ID")]
    after: Option<i64>,
    /// Only events of these types.
    #[arg(long = "type", value_name = "TYPE", value_delimiter = ',')]
    types: Vec<String>,
    /// Only events of this batch.
    #[arg(long, value_name = "ID")]
    batch: Option<Uuid>,
    /// Events of all users and of the system, for administrators.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    connection: Connection,
}

pub async fn run(args: &Args, as_json: bool) -> anyhow::Result<Outcome> {
    let client = Client::connect(&args.connection)?;
    let mut after = args.after.or((!args.follow).then_some(0));
    // The first attempt fails like any other command. Later the command waits until the server is back.
    let mut response = client.retry(async || client.events(&query(args, after)).await).await?;
    loop {
        match print_all(&client, response, &mut after, as_json).await {
            Ok(End::CaughtUp) => return Ok(Outcome::Good),
            Ok(End::Interrupted) => {}
            Err(error) => eprintln!("landfall: {error}; reconnecting after the last event"),
        }
        response = loop {
            match client.events(&query(args, after)).await {
                Ok(response) => break response,
                Err(error) if error.is_transient() => Clock::System.sleep(RECONNECT_INTERVAL).await,
                Err(error) => return Err(error.into()),
            }
        };
    }
}

fn query(args: &Args, after: Option<i64>) -> StreamQuery {
    StreamQuery {
        after: after.map(|id| id.to_string()),
        types: (!args.types.is_empty()).then(|| args.types.join(",")),
        batch_id: args.batch.map(|id| id.to_string()),
        scope: args.all.then_some(Scope::All),
        ticket: None,
        follow: Some(args.follow),
    }
}

enum End {
    CaughtUp,
    /// The server stopped, the token expired, or the connection was lost.
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
        let bytes = tokio::time::timeout(TIMEOUT, response.chunk())
            .await
            .map_err(|_| client.interrupted("the server sends nothing any more"))?
            .map_err(|error| client.failed(&error))?;
        let Some(bytes) = bytes else { return Ok(End::Interrupted) };
        for frame in frames.push(&bytes).context("this is not an event stream")? {
            let event: Value =
                serde_json::from_str(&frame.data).map_err(|error| client.unexpected(error.to_string()))?;
            match frame.event.as_str() {
                "stream:end" if event["data"]["code"] == "CAUGHT_UP" => return Ok(End::CaughtUp),
                "stream:end" => return Ok(End::Interrupted),
                "stream:open" => {}
                "stream:gap" => warn_of_gap(&event),
                "stream:reset" => warn_of_reset(&event),
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
    eprintln!("landfall: events between {} and {} were removed", data["after"], data["resumesAfter"]);
}

fn warn_of_reset(event: &Value) {
    let data = &event["data"];
    eprintln!(
        "landfall: the server's database was restored from a backup: events up to {} may not have happened any more; \
         continuing after {}",
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
    println!("{}  {at}  {:<24}  {}", printable(id), printable(&frame.event), describe(&event["data"]));
}

/// The data of an event on one line.
fn describe(data: &Value) -> String {
    let text = |name: &str| data[name].as_str().map(printable);
    let mut parts: Vec<String> = Vec::new();
    parts.extend(text("fileId").or_else(|| text("batchId")));
    match (text("from"), text("to")) {
        (Some(from), Some(to)) => parts.push(format!("{from} → {to}")),
        (None, Some(to)) => parts.push(to),
        _ => {}
    }
    if let (Some(code), Some(message)) = (data["error"]["code"].as_str(), data["error"]["message"].as_str()) {
        parts.push(format!("{}: {}", printable(code), printable(message)));
    }
    let shown = ["fileId", "batchId", "from", "to", "error", "stage", "attempt"];
    for (name, value) in data.as_object().into_iter().flatten() {
        if !shown.contains(&name.as_str()) {
            let value = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
            parts.push(format!("{} {}", printable(name), printable(&value)));
        }
    }
    parts.join("  ")
}
