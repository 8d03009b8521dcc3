//! Takes due files out of the queue, many at once, each with a token that only its new holder knows.

use std::fmt::Write as _;

use uuid::Uuid;

use super::liveness;
use crate::clock::Time;
use crate::db::{Arg, Durability, Tx, Write, args};
use crate::error::Error;
use crate::events::{self, Event};
use crate::file::{File, Priority};
use crate::lifecycle::{Stage, Status, Transition};

/// Claims up to so many files for each stage: by priority, then the longest due first.
pub struct ClaimDue {
    pub worker: Uuid,
    pub worker_name: String,
    pub wants: Vec<(Stage, usize)>,
    /// Fresh for each claim, so that no two attempts at a file ever share one.
    pub token: Uuid,
    pub now: Time,
}

#[derive(Debug)]
pub enum Claims {
    Taken(Vec<File>),
    /// This worker was declared dead. It may claim nothing more under its name.
    WorkerGone,
}

impl Write for ClaimDue {
    type Answer = Claims;

    fn durability(&self) -> Durability {
        // A power cut that takes the claim away takes the claimant as well.
        Durability::Unsynced
    }

    async fn apply(&self, tx: &mut Tx) -> Result<Claims, Error> {
        if !liveness::hold(tx, self.worker).await? {
            return Ok(Claims::WorkerGone);
        }
        let mut arguments = args![self.now, self.token, self.worker];
        arguments.extend(self.wants.iter().map(|(_, room)| Arg::from(*room)));
        let files: Vec<File> = tx.rows(self.sql(tx.is_postgres()), arguments).await?;
        let events = files
            .iter()
            .map(|file| Event {
                from: Some(Status::Queued),
                to: Some(Transition::Claim(file.next_stage).to()),
                stage: Some(file.next_stage),
                worker: Some(self.worker_name.clone()),
                ..Event::of_file(file, self.now)
            })
            .collect();
        events::record(tx, events).await?;
        Ok(Claims::Taken(files))
    }
}

impl ClaimDue {
    /// One statement for all stages. Each pair of stage and priority is one short walk along the index of the queue;
    /// a walk that fills the stage's share leaves the lower priorities unvisited.
    fn sql(&self, postgres: bool) -> String {
        let skip_locked = if postgres { "FOR UPDATE SKIP LOCKED" } else { "" };
        let mut due = String::new();
        for (number, (stage, _)) in self.wants.iter().enumerate() {
            // How much room there is comes as an argument, so that the statement stays prepared.
            let room = format!("${}", number + 4);
            let separator = if due.is_empty() { "" } else { " UNION ALL " };
            let walks = [Priority::High, Priority::Normal, Priority::Low]
                .map(|priority| {
                    let rank = priority.rank();
                    format!(
                        "SELECT id FROM (SELECT id FROM files
                             WHERE status = 'queued' AND next_stage = '{stage}' AND priority = {rank}
                               AND run_after <= $1
                             ORDER BY run_after LIMIT {room} {skip_locked}) AS {stage}_{rank}"
                    )
                })
                .join(" UNION ALL ");
            write!(
                due,
                "{separator}SELECT id FROM (SELECT id FROM ({walks}) AS any_{stage} LIMIT {room}) AS {stage}"
            )
            .expect("writing to a string does not fail");
        }
        format!(
            // MATERIALIZED: PostgreSQL would otherwise be free to walk again and update more than it was asked for.
            "WITH due AS MATERIALIZED ({due})
             UPDATE files SET
                 status = CASE next_stage WHEN 'scan' THEN 'scanning' WHEN 'extract' THEN 'extracting'
                                          WHEN 'chunk' THEN 'chunking' ELSE 'embedding' END,
                 run_after = NULL, claim = $2, claimed_by = $3, claimed_at = $1, attempt = attempt + 1,
                 updated_at = $1
             WHERE id IN (SELECT id FROM due)
             RETURNING *"
        )
    }
}
