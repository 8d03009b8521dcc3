//! `landfall files`: lists files.

use chrono::{DateTime, Utc};
use serde_json::json;
use uuid::Uuid;

use crate::Outcome;
use crate::client::routes::collect;
use crate::client::{Client, ClientError, Connection};
use crate::format::{count, printable, size, table};
use landfall_api::comma_list::CommaList;
use landfall_api::file_queries::FileQuery;
use landfall_api::files::{FileList, FileView};
use landfall_core::lifecycle::Status;
use landfall_core::states::{FileSort, Scope, SortOrder};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only files in this state, or in one of several separated by commas: registered, uploaded, queued, extracting, chunking, embedding, ready, failed, …
    #[arg(long)]
    status: Option<CommaList<Status>>,
    /// Only files with this error code, or with one of several separated by commas.
    #[arg(long)]
    code: Option<CommaList<String>>,
    /// Only files of this batch.
    #[arg(long, value_name = "ID")]
    batch: Option<Uuid>,
    /// Only files whose names contain this text.
    #[arg(long, value_name = "PART")]
    name: Option<String>,
    /// Only files with warnings.
    #[arg(long)]
    warnings: bool,
    /// Only files that were registered at this time or later: 2026-01-31, or 2026-01-31T12:00:00Z.
    #[arg(long, value_name = "TIME", value_parser = time)]
    created_after: Option<DateTime<Utc>>,
    /// Only files that were registered before this time.
    #[arg(long, value_name = "TIME", value_parser = time)]
    created_before: Option<DateTime<Utc>>,
    /// Whose files: own, tenant (for its administrators) or all (for operators).
    #[arg(long)]
    scope: Option<Scope>,
    /// Only files of this user. Without --scope, of the caller's tenant.
    #[arg(long, value_name = "USER")]
    owner: Option<String>,
    /// Only files of this tenant, for operators.
    #[arg(long, value_name = "TENANT")]
    tenant: Option<String>,
    /// Sort by createdAt, fileName or size.
    #[arg(long, value_name = "KEY", default_value = "createdAt")]
    sort: FileSort,
    /// desc or asc.
    #[arg(long, default_value = "desc")]
    order: SortOrder,
    /// The maximum number of files.
    #[arg(long, value_name = "N", default_value = "50")]
    limit: usize,
    #[command(flatten)]
    connection: Connection,
}

pub async fn run(args: &Args, as_json: bool) -> anyhow::Result<Outcome> {
    let client = Client::connect(&args.connection)?;
    let query = FileQuery {
        status: args.status.clone(),
        code: args.code.clone(),
        batch_id: args.batch.map(|batch| batch.to_string()),
        q: args.name.clone(),
        owner: args.owner.clone(),
        tenant_id: args.tenant.clone(),
        created_after: args.created_after,
        created_before: args.created_before,
        warnings: args.warnings.then_some(true),
        scope: args.scope(),
        // An older server knows only the default.
        sort: Some(args.sort).filter(|sort| *sort != FileSort::default()),
        order: Some(args.order).filter(|order| *order != SortOrder::default()),
        ..FileQuery::default()
    };
    let page = list(&client, &query, args.limit).await?;
    if as_json {
        println!("{}", json!(page));
        return Ok(Outcome::Good);
    }
    if page.items.is_empty() {
        println!("No files match. `landfall upload PATHS…` uploads some.");
        return Ok(Outcome::Good);
    }
    let mut rows = vec![["STATUS", "SIZE", "NAME", "ID", "NOTES"].map(str::to_owned).to_vec()];
    rows.extend(page.items.iter().map(row));
    print!("{}", table(&rows));
    if page.next_cursor.is_some() {
        let first = if (args.sort, args.order) == Default::default() { "The newest" } else { "The first" };
        println!("{first} {} are shown; --limit shows more.", count(page.items.len(), "file"));
    }
    Ok(Outcome::Good)
}

impl Args {
    /// A user or a tenant is named only by those who may see more than their own.
    fn scope(&self) -> Option<Scope> {
        let needed = match (&self.tenant, &self.owner) {
            (Some(_), _) => Some(Scope::All),
            (None, Some(_)) => Some(Scope::Tenant),
            (None, None) => None,
        };
        self.scope.or(needed)
    }
}

/// A time, or the beginning of a day, in UTC.
fn time(text: &str) -> Result<DateTime<Utc>, chrono::ParseError> {
    text.parse().or_else(|_| format!("{text}T00:00:00Z").parse())
}

fn row(file: &FileView) -> Vec<String> {
    vec![
        file.status.to_string(),
        size(file.size.unsigned_abs()),
        printable(&file.file_name),
        file.file_id.to_string(),
        notes(file),
    ]
}

/// What is wrong with a file: its error, the attempts so far, and whether it makes no progress.
fn notes(file: &FileView) -> String {
    let attempt = attempt(file).map(|attempt| format!("attempt {attempt}"));
    let stale = file.staleness.message.as_deref().map(printable);
    let notes = [Some(problem(file)).filter(|problem| !problem.is_empty()), attempt, stale];
    notes.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// "2 of 3 at extract": the attempt of a file that runs, waits after a failure, or failed.
pub fn attempt(file: &FileView) -> Option<String> {
    let stage = file.next_stage.filter(|_| file.attempt > 0 && file.status != Status::Ready)?;
    Some(format!("{} of {} at {stage}", file.attempt, file.max_attempts))
}

/// The error of a file, or the number of its warnings, which `landfall status` shows.
fn problem(file: &FileView) -> String {
    match usize::try_from(file.warning_count) {
        Ok(warnings) if warnings > 0 && file.error.is_none() => count(warnings, "warning"),
        _ => error(file),
    }
}

/// The code and the message of a file's error; empty if it has none.
pub fn error(file: &FileView) -> String {
    let error = file.error.as_ref();
    error.map_or_else(String::new, |error| {
        format!("{}: {}", printable(&error.code), printable(&error.message))
    })
}

/// Up to `limit` files that match, in their order.
pub async fn list(client: &Client, query: &FileQuery, limit: usize) -> Result<FileList, ClientError> {
    collect(client, limit, async |limit, cursor| {
        client.files(&FileQuery { limit: Some(limit), cursor, ..query.clone() }).await
    })
    .await
}
