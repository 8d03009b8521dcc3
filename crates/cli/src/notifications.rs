//! `landfall notifications`: lists what the server told the caller of, and marks it as read.

use serde_json::json;
use uuid::Uuid;

use crate::Outcome;
use crate::client::{Client, Connection};
use crate::format::{count, number, printable, table, time};
use landfall_api::notifications::{NotificationQuery, NotificationView};

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    list: ListArgs,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List notifications, newest first. This is the default.
    List(ListArgs),
    /// Mark one as read.
    Read {
        /// The id of the notification.
        id: Uuid,
        #[command(flatten)]
        connection: Connection,
    },
    /// Mark all as read.
    ReadAll {
        #[command(flatten)]
        connection: Connection,
    },
}

#[derive(Debug, clap::Args)]
struct ListArgs {
    /// Only those that were not read yet.
    #[arg(long)]
    unread: bool,
    /// The maximum number of notifications.
    #[arg(long, value_name = "N", default_value = "50", value_parser = clap::value_parser!(i64).range(1..=200))]
    limit: i64,
    #[command(flatten)]
    connection: Connection,
}

pub async fn run(args: &Args, as_json: bool) -> anyhow::Result<Outcome> {
    match &args.command {
        None => list(&args.list, as_json).await,
        Some(Command::List(args)) => list(args, as_json).await,
        Some(Command::Read { id, connection }) => {
            let client = Client::connect(connection)?;
            let read = client.retry(async || client.read_notification(*id).await).await?;
            if as_json {
                println!("{}", json!(read));
            } else {
                println!("Marked as read.");
            }
            Ok(Outcome::Good)
        }
        Some(Command::ReadAll { connection }) => {
            let client = Client::connect(connection)?;
            let marked = client.retry(async || client.read_notifications().await).await?;
            if as_json {
                println!("{}", json!(marked));
            } else {
                let marked = usize::try_from(marked.marked_count).unwrap_or(usize::MAX);
                println!("Marked {} as read.", count(marked, "notification"));
            }
            Ok(Outcome::Good)
        }
    }
}

async fn list(args: &ListArgs, as_json: bool) -> anyhow::Result<Outcome> {
    let client = Client::connect(&args.connection)?;
    let query =
        NotificationQuery { limit: Some(args.limit), cursor: None, unread: args.unread.then_some(true) };
    let list = client.retry(async || client.notifications(&query).await).await?;
    if as_json {
        println!("{}", json!(list));
        return Ok(Outcome::Good);
    }
    if list.page.items.is_empty() {
        println!("There are no notifications.");
        return Ok(Outcome::Good);
    }
    let mut rows = vec![["TIME", "STATE", "MESSAGE", "ID"].map(str::to_owned).to_vec()];
    rows.extend(list.page.items.iter().map(row));
    print!("{}", table(&rows));
    println!("{} unread. `landfall notifications read ID` marks one as read.", number(list.unread_count));
    Ok(Outcome::Good)
}

fn row(one: &NotificationView) -> Vec<String> {
    let state = match (one.resolved_at, one.read_at) {
        (Some(_), _) => "resolved",
        (None, Some(_)) => "read",
        (None, None) => "unread",
    };
    vec![time(one.created_at), state.to_owned(), printable(&one.message), one.notification_id.to_string()]
}
