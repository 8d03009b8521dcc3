//! `landfall open`: prints a link that signs a person in on the page, once.

use std::io::IsTerminal;

use anyhow::bail;

use crate::client::{Client, Connection};
use crate::{Outcome, format::printable};
use landfall_api::sessions::IssueLink;
use landfall_core::caller::Role;

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    connection: Connection,
    /// The user whom the link signs in.
    #[arg(long, default_value = "admin")]
    user: String,
    /// The tenant of the user [default: one of the same name as the user].
    #[arg(long)]
    tenant: Option<String>,
    /// What the person may do beyond the user's own files [default: everything for the user admin, else nothing].
    #[arg(long, value_parser = role, value_name = "member|tenant_admin|operator")]
    role: Option<Role>,
}

pub async fn run(args: &Args, as_json: bool) -> anyhow::Result<Outcome> {
    // What is not a terminal is often a log, which others can read.
    if !std::io::stdout().is_terminal() {
        bail!("the link signs in the first person who opens it, so it is printed on a terminal only");
    }
    let client = Client::connect(&args.connection)?;
    let by_default = if args.user == "admin" { Role::Operator } else { Role::Member };
    let wanted = IssueLink {
        tenant_id: args.tenant.clone().unwrap_or_else(|| args.user.clone()),
        user_id: args.user.clone(),
        role: args.role.unwrap_or(by_default),
    };
    let link = client.issue_link(&wanted).await?;
    if as_json {
        println!("{}", serde_json::to_string(&link)?);
    } else {
        println!(
            "\n  Open this in your browser within five minutes. It works once.\n\n    {}\n",
            printable(&link.url)
        );
    }
    Ok(Outcome::Good)
}

fn role(text: &str) -> Result<Role, String> {
    text.parse().map_err(|error| format!("{error}"))
}
