//! Checks the invariants of the live database and storage, and reports every violation.
//!
//! Each invariant is a query for its violations; all queries see the same snapshot. Blobs are listed before the
//! rows are read, so that a blob that arrives in between does not count as an orphan.

mod blobs;
mod invariants;
mod fix;

use std::collections::BTreeSet;

use serde::Serialize;

use crate::blobs::Blobs;
use crate::content::codes::{self, Scope};
use crate::records::files::counts;
pub use fix::{Fixed, fix};
use invariants::Invariant;
use landfall_core::clock::Time;
use landfall_store::Error;
use landfall_store::{Db, Tx};

/// The invariant of the codes, which no query can compare with the vectors.
const CODES: &str = "every vector has its code";
/// Violations of one invariant that are reported one by one; the rest is counted.
const MAX_LISTED: usize = 20;

#[derive(Debug, Default, Serialize)]
pub struct Report {
    pub files: i64,
    pub blobs: usize,
    pub findings: Vec<Finding>,
    /// What was wrong and has been fixed.
    pub fixed: Vec<Finding>,
    /// Why orphans were left that could have been removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_back: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub invariant: &'static str,
    pub what: String,
}

impl Report {
    fn add(&mut self, invariant: &'static str, violations: Violations) {
        self.findings.extend(violations.into_findings(invariant));
    }
}

/// The violations of one invariant. Only the first are kept, so that their number does not fill the memory.
#[derive(Default)]
struct Violations {
    named: Vec<String>,
    count: usize,
}

impl Violations {
    fn push(&mut self, what: String) {
        self.count += 1;
        if self.named.len() < MAX_LISTED {
            self.named.push(what);
        }
    }

    fn into_findings(self, invariant: &'static str) -> impl Iterator<Item = Finding> {
        let more = self.count - self.named.len();
        let rest = (more > 0).then(|| format!("and {more} more"));
        self.named.into_iter().chain(rest).map(move |what| Finding { invariant, what })
    }
}

/// `oldest_heartbeat`: a worker whose last heartbeat is older is dead.
pub async fn audit(db: &Db, storage: &Blobs, oldest_heartbeat: Time) -> Result<Report, Error> {
    let mut report = Report::default();
    blobs::belong(db, storage, &mut report).await?;
    blobs::without_rows(db, storage, &mut report).await?;
    let mut tx = db.snapshot().await?;
    tx.plan_anew().await?;
    report.files = counts::living(&mut tx).await?;
    for invariant in invariants::all(&tx, oldest_heartbeat) {
        report.add(invariant.name, violations(&mut tx, &invariant).await?);
    }
    report.add(CODES, wrong_codes(&mut tx).await?.1);
    drop(tx);
    blobs::missing(db, storage, &mut report).await?;
    blobs::resumables(db, storage, &mut report).await?;
    Ok(report)
}

/// The scopes whose codes are wrong, and what is wrong with them.
async fn wrong_codes(tx: &mut Tx) -> Result<(BTreeSet<Scope>, Violations), Error> {
    let (mut scopes, mut violations) = (BTreeSet::new(), Violations::default());
    codes::check::check(tx, |wrong| {
        scopes.insert(wrong.scope);
        violations.push(wrong.what);
    })
    .await?;
    Ok((scopes, violations))
}

async fn violations(tx: &mut Tx, invariant: &Invariant) -> Result<Violations, Error> {
    let found = invariant.violations(tx, MAX_LISTED, 0).await?;
    let named: Vec<String> = found.iter().map(|violation| violation.what(invariant)).collect();
    let count = if named.len() < MAX_LISTED { named.len() } else { invariant.count(tx).await? };
    Ok(Violations { named, count })
}
