//! Checks over the live database and storage what must always be true, and says what is not.
//!
//! Each invariant is a query for its violations; all queries see the same moment. Blobs are listed before the rows
//! are asked about them, so that one that arrives in between is not taken for a stray.

mod blobs;
mod invariants;

use serde::Serialize;
use uuid::Uuid;

use crate::blobs::Blobs;
use crate::clock::Time;
use crate::db::{Db, Tx, args};
use crate::error::Error;
use invariants::Invariant;

/// Findings of one kind that are named one by one; the rest is counted.
const NAMED: usize = 20;

#[derive(Debug, Default, Serialize)]
pub struct Report {
    pub files: i64,
    pub blobs: usize,
    pub findings: Vec<Finding>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub invariant: &'static str,
    pub what: String,
}

impl Report {
    fn add(&mut self, invariant: &'static str, violations: Vec<String>) {
        let more = violations.len().saturating_sub(NAMED);
        self.findings.extend(violations.into_iter().take(NAMED).map(|what| Finding { invariant, what }));
        if more > 0 {
            self.findings.push(Finding { invariant, what: format!("and {more} more") });
        }
    }
}

/// `oldest_heartbeat`: a worker that gave no sign since then is not alive.
pub async fn audit(db: &Db, storage: &Blobs, oldest_heartbeat: Time) -> Result<Report, Error> {
    let mut report = Report::default();
    blobs::without_rows(db, storage, &mut report).await?;
    let mut tx = db.snapshot().await?;
    report.files = tx.number("SELECT COUNT(*) FROM files WHERE status <> 'deleted'", args![]).await?;
    for invariant in invariants::all(tx.is_postgres(), oldest_heartbeat) {
        report.add(invariant.name, violations(&mut tx, &invariant).await?);
    }
    drop(tx);
    blobs::missing(db, storage, &mut report).await?;
    Ok(report)
}

#[derive(sqlx::FromRow)]
struct Violation {
    id: Option<Uuid>,
    name: Option<String>,
    found: i64,
    expected: i64,
}

async fn violations(tx: &mut Tx, invariant: &Invariant) -> Result<Vec<String>, Error> {
    let violations: Vec<Violation> = tx.rows(invariant.sql.clone(), invariant.args.clone()).await?;
    Ok(violations
        .into_iter()
        .map(|violation| {
            let subject = violation.id.map(|id| id.to_string()).or(violation.name).unwrap_or_default();
            format!(
                "{} {subject}: {} is {}, should be {}",
                invariant.of, invariant.quantity, violation.found, violation.expected
            )
        })
        .collect())
}
