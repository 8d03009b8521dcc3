//! A user retries a file that failed or was cancelled.

use serde_json::json;
use uuid::Uuid;

use crate::blobs::Blobs;
use crate::content::artifacts;
use crate::records::file::File;
use crate::records::moves::{self, Change, Move};
use crate::telemetry::traces;
use landfall_core::actor::Actor;
use landfall_core::caller::{Caller, TenantUser};
use landfall_core::clock::Time;
use landfall_core::failure::Code;
use landfall_core::lifecycle::{Stage, Status, Transition};
use landfall_core::refusal::{Refusal, RefusalCode};
use landfall_store::Error;
use landfall_store::{Db, Tx, Write};

/// Queues a file again at the stage where it ended, or at an earlier one, with its attempts reset.
#[derive(Debug, Clone)]
pub struct Revive {
    pub caller: Caller,
    pub file: Uuid,
    /// The stage to begin at; `None` for the stage where the file ended.
    pub from_stage: Option<Stage>,
    /// The first stage of this installation: without a scanner nothing is scanned.
    pub first_stage: Stage,
    /// Refuse a cancelled file.
    pub only_failed: bool,
    pub now: Time,
}

/// Checks that the bytes that the stage needs are still there, then queues the file.
pub async fn revive(db: &Db, blobs: &Blobs, request: Revive) -> Result<File, Error> {
    let file = File::find_for(&mut db.read().await?, &request.caller, request.file).await?;
    let stage = request.stage(&file)?;
    if matches!(stage, Stage::Scan | Stage::Extract) {
        let stored = match &file.blob_key {
            Some(key) => blobs.size(key).await?,
            None => None,
        };
        stored.ok_or_else(source_gone)?;
    }
    db.write(request).await
}

impl Write for Revive {
    type Output = File;

    async fn apply(&self, tx: &mut Tx) -> Result<File, Error> {
        let file = File::lock_for(tx, &self.caller, self.file).await?;
        let stage = self.stage(&file)?;
        if stage < file.next_stage && stage <= Stage::Extract {
            // The result of the earlier extraction would not match the new text.
            artifacts::forget_result(tx, file.id).await?;
        }
        let trace = traces::current();
        let by =
            RetriedBy { user: &self.caller.owner(), operation: None, trace: trace.as_deref(), now: self.now };
        let revived = revive_all(tx, &[(stage, file)], &by).await?;
        revived.into_iter().next().ok_or_else(|| Error::Internal("nothing was revived".to_owned()))
    }
}

impl Revive {
    /// The stage where the file continues, or why it cannot be retried.
    fn stage(&self, file: &File) -> Result<Stage, Refusal> {
        if file.status == Status::Deleted {
            return Err(Refusal::gone());
        }
        file.status.apply(Transition::Revive)?;
        if self.only_failed && file.status != Status::Failed {
            return Err(Refusal::not_failed(file.status));
        }
        if is_infected(file) {
            return Err(removed_as_infected());
        }
        let Some(stage) = self.from_stage else { return Ok(file.next_stage) };
        if stage > file.next_stage {
            let message = format!(
                "This file ended at the {} stage and cannot go on from {stage}, which needs what that makes",
                file.next_stage
            );
            return Err(Refusal::new(RefusalCode::StageNotReached, message)
                .details(json!({ "nextStage": file.next_stage, "fromStage": stage })));
        }
        if stage < self.first_stage {
            return Err(Refusal::new(RefusalCode::NoScanner, "There is no virus scanner here to begin with"));
        }
        Ok(stage)
    }
}

pub fn is_infected(file: &File) -> bool {
    file.status == Status::Failed && file.code() == Some(Code::Infected)
}

pub fn removed_as_infected() -> Refusal {
    let message = "The bytes of this file were removed, because the virus scanner found something in it";
    Refusal::new(RefusalCode::FileNotFound, message)
}

pub fn source_gone() -> Refusal {
    Refusal::new(RefusalCode::FileNotFound, "Source file no longer exists")
}

/// The user that requested the retry, and when.
pub struct RetriedBy<'a> {
    pub user: &'a TenantUser,
    /// The operation, if the retry is part of one.
    pub operation: Option<Uuid>,
    /// The trace in which the files continue.
    pub trace: Option<&'a str>,
    pub now: Time,
}

impl RetriedBy<'_> {
    /// What the history says of the retry: from where, after what, and whether with others.
    fn reason(&self, stage: Stage, file: &File) -> String {
        let with = self.operation.map(|id| format!(" with the operation {id}")).unwrap_or_default();
        let after = match (&file.error_code, &file.error_message) {
            (Some(code), Some(message)) => format!(", after {code}: {message}"),
            _ => String::new(),
        };
        format!("Retried{with} from the {stage} stage{after}")
    }
}

/// Queues files again that the transaction has locked, each at its stage, with all that belongs to it: the rows, the
/// batches' counts, the history.
pub async fn revive_all(
    tx: &mut Tx,
    files: &[(Stage, File)],
    by: &RetriedBy<'_>,
) -> Result<Vec<File>, Error> {
    let moves = files.iter().map(|(stage, file)| Move {
        file: file.id,
        from: file.status,
        passed: Vec::new(),
        transition: Transition::Revive,
        change: Change::Revive {
            stage: *stage,
            by: by.user.user.clone(),
            operation: by.operation,
            trace: by.trace.map(str::to_owned),
            failed_at: file.failed_at,
        },
        worker: None,
        actor: Actor::user(by.user, &file.tenant_id, &file.user_id),
        data: Some(json!({ "reason": by.reason(*stage, file) })),
    });
    let revived = moves::apply(tx, moves.collect(), by.now).await?;
    Ok(revived.into_iter().flatten().filter_map(|moved| moved.file).collect())
}
