//! `landfall audit-log`: what administrators and operators did, and what was refused.

use std::io::Write;

use chrono::{DateTime, Utc};

use crate::Outcome;
use crate::client::routes::collect;
use crate::client::{Client, Connection};
use crate::format::{printable, table, time};
use landfall_api::audit_log::{AuditEntry, AuditLogQuery};
use landfall_core::states::AuditOutcome;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only the actions of the user with this name.
    #[arg(long)]
    actor: Option<String>,
    /// Only this operation of the API, such as deleteFile.
    #[arg(long)]
    action: Option<String>,
    /// Only those that ended like this.
    #[arg(long, value_parser = outcome, value_name = "started|done|failed|refused")]
    outcome: Option<AuditOutcome>,
    /// Only requests from this address.
    #[arg(long)]
    address: Option<String>,
    /// From this time on (2026-01-31T12:00:00Z).
    #[arg(long)]
    since: Option<DateTime<Utc>>,
    /// Before this time.
    #[arg(long)]
    until: Option<DateTime<Utc>>,
    /// The maximum number of entries in the table. With --json all are printed, a line each.
    #[arg(long, value_name = "N", default_value = "50")]
    limit: usize,
    #[command(flatten)]
    connection: Connection,
}

fn outcome(text: &str) -> Result<AuditOutcome, String> {
    text.parse().map_err(|error| format!("{error}"))
}

pub async fn run(args: &Args, as_json: bool) -> anyhow::Result<Outcome> {
    let client = Client::connect(&args.connection)?;
    let query = AuditLogQuery {
        actor: args.actor.clone(),
        action: args.action.clone(),
        outcome: args.outcome,
        address: args.address.clone(),
        since: args.since,
        until: args.until,
        ..AuditLogQuery::default()
    };
    if as_json {
        let mut lines = client.export_audit_log(&query).await?;
        let mut out = std::io::stdout().lock();
        while let Some(part) = lines.chunk().await? {
            out.write_all(&part)?;
        }
        return Ok(Outcome::Good);
    }
    let fetch = async |limit, cursor| {
        client.audit_log(&AuditLogQuery { limit: Some(limit), cursor, ..query.clone() }).await
    };
    let entries = collect(&client, args.limit, fetch).await?;
    if entries.items.is_empty() {
        println!("There are no entries.");
        return Ok(Outcome::Good);
    }
    let mut rows = vec![["TIME", "WHO", "FROM", "ACTION", "OUTCOME", "PATH"].map(str::to_owned).to_vec()];
    rows.extend(entries.items.iter().map(row));
    print!("{}", table(&rows));
    Ok(Outcome::Good)
}

fn row(entry: &AuditEntry) -> Vec<String> {
    let who = match (&entry.actor_tenant_id, &entry.actor_user_id) {
        (Some(tenant), Some(user)) => printable(&format!("{tenant}/{user}")),
        _ => "unknown".to_owned(),
    };
    let outcome = match &entry.code {
        Some(code) => format!("{} {code}", entry.outcome),
        None => entry.outcome.to_string(),
    };
    vec![
        time(entry.at),
        who,
        entry.address.clone().unwrap_or_default(),
        printable(&entry.action),
        outcome,
        printable(&entry.path),
    ]
}
