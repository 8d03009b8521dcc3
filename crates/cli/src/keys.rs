//! `landfall keys`: creates, lists and revokes API keys.

use std::time::Duration;

use serde_json::json;
use uuid::Uuid;

use crate::client::routes::collect;
use crate::client::{Client, Connection};
use crate::format::{printable, table, time};
use crate::{Outcome, token};
use landfall_api::keys::{KeyQuery, KeyView, NewKey};
use landfall_core::caller::{KeyScope, Role};
use landfall_core::clock::{Clock, to_delta};
use landfall_core::states::Scope;

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Create a key, and print it. It cannot be shown again.
    Create(CreateArgs),
    /// List keys, newest first.
    List(ListArgs),
    /// Revoke a key. From then on it is refused.
    Revoke {
        /// The id of the key.
        id: Uuid,
        #[command(flatten)]
        connection: Connection,
    },
}

#[derive(Debug, clap::Args)]
struct CreateArgs {
    /// What it is for, for people.
    #[arg(long)]
    name: String,
    /// What it may be used for. Can be given several times.
    #[arg(long = "scope", required = true, value_parser = parse::<KeyScope>, value_name = "read|upload|manage|admin")]
    scopes: Vec<KeyScope>,
    /// How long it is valid: 30s, 15m, 1h, 90d [default: until it is revoked].
    #[arg(long, value_parser = token::duration, value_name = "TIME")]
    expires_in: Option<Duration>,
    /// The user that it acts for [default: you].
    #[arg(long)]
    user: Option<String>,
    /// The tenant of that user [default: yours].
    #[arg(long)]
    tenant: Option<String>,
    /// The role that it uses with the scope admin [default: member].
    #[arg(long, value_parser = parse::<Role>, value_name = "member|tenant_admin|operator")]
    role: Option<Role>,
    #[command(flatten)]
    connection: Connection,
}

#[derive(Debug, clap::Args)]
struct ListArgs {
    /// Whose keys: your own, those of your tenant, or all.
    #[arg(long, value_parser = parse::<Scope>, value_name = "own|tenant|all")]
    of: Option<Scope>,
    /// The maximum number of keys.
    #[arg(long, value_name = "N", default_value = "50")]
    limit: usize,
    #[command(flatten)]
    connection: Connection,
}

fn parse<T: std::str::FromStr<Err: std::fmt::Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

pub async fn run(args: &Args, as_json: bool) -> anyhow::Result<Outcome> {
    match &args.command {
        Command::Create(args) => create(args, as_json).await,
        Command::List(args) => list(args, as_json).await,
        Command::Revoke { id, connection } => {
            let client = Client::connect(connection)?;
            client.retry(async || client.revoke_key(*id).await).await?;
            if as_json {
                println!("{}", json!({ "keyId": id, "revoked": true }));
            } else {
                println!("Revoked.");
            }
            Ok(Outcome::Good)
        }
    }
}

async fn create(args: &CreateArgs, as_json: bool) -> anyhow::Result<Outcome> {
    let client = Client::connect(&args.connection)?;
    let wanted = NewKey {
        name: args.name.clone(),
        scopes: args.scopes.clone(),
        expires_at: args.expires_in.map(|time| Clock::System.now() + to_delta(time)),
        role: args.role,
        user_id: args.user.clone(),
        tenant_id: args.tenant.clone(),
    };
    // Not repeated if the answer is lost: the key in it would be, and a second one would be made.
    let created = client.create_key(&wanted).await?;
    if as_json {
        println!("{}", json!(created));
    } else {
        println!("{}", printable(&created.key));
        eprintln!("This key is not shown again. `landfall keys revoke {}` revokes it.", created.about.key_id);
    }
    Ok(Outcome::Good)
}

async fn list(args: &ListArgs, as_json: bool) -> anyhow::Result<Outcome> {
    let client = Client::connect(&args.connection)?;
    let fetch =
        async |limit, cursor| client.keys(&KeyQuery { limit: Some(limit), cursor, scope: args.of }).await;
    let keys = collect(&client, args.limit, fetch).await?;
    if as_json {
        println!("{}", json!(keys));
        return Ok(Outcome::Good);
    }
    if keys.items.is_empty() {
        println!("There are no keys.");
        return Ok(Outcome::Good);
    }
    let mut rows =
        vec![["NAME", "KEY", "USER", "SCOPES", "STATE", "LAST USED", "ID"].map(str::to_owned).to_vec()];
    rows.extend(keys.items.iter().map(row));
    print!("{}", table(&rows));
    Ok(Outcome::Good)
}

fn row(key: &KeyView) -> Vec<String> {
    let state = match (key.revoked_at, key.expires_at) {
        (Some(at), _) => format!("revoked {}", time(at)),
        (None, Some(at)) if at <= Clock::System.now() => format!("expired {}", time(at)),
        (None, Some(at)) => format!("until {}", time(at)),
        (None, None) => "valid".to_owned(),
    };
    let scopes: Vec<&str> = key.scopes.iter().map(|scope| scope.name()).collect();
    vec![
        printable(&key.name),
        printable(&key.hint),
        printable(&format!("{}/{}", key.tenant_id, key.user_id)),
        scopes.join(","),
        state,
        key.last_used_at.map_or_else(|| "never".to_owned(), time),
        key.key_id.to_string(),
    ]
}
