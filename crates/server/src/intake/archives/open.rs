//! The files of an archive are registered: all of them or none.

use std::sync::Arc;

use serde_json::{Value, json};
use uuid::Uuid;

use super::{Archives, names};
use crate::intake::IntakeConfig;
use crate::intake::announce::Announced;
use crate::intake::register::{Register, Tickets};
use crate::records::batch::archives;
use crate::records::batch::changes::{self, Opened as OpenedBatch};
use crate::records::file::File;
use crate::records::files::archives as members;
use crate::stages::{Job, Output};
use crate::telemetry::traces;
use landfall_core::caller::{Caller, Role};
use landfall_core::clock::{Time, to_delta};
use landfall_core::failure::{Code, Failure};
use landfall_core::refusal::{Refusal, RefusalCode};
use landfall_documents::{Contents, ListedMember, WhyLeftOut};
use landfall_store::{Error, Tx, Write, apply_alone};

/// The most files that a batch names as left out.
const MAX_NAMED: usize = 50;
/// The most characters of a path there.
const MAX_NAMED_PATH: usize = 120;

/// What became of an archive that was recognised.
pub enum Opened {
    /// This batch has its files.
    Batch(Uuid),
    /// They cannot be registered yet.
    Later(Output),
}

impl Archives {
    /// Registers the files of an archive.
    pub(super) async fn open(&self, job: &Job, contents: &Contents) -> Result<Opened, Failure> {
        let (empty, members): (Vec<_>, Vec<_>) = contents.members.iter().partition(|member| member.size == 0);
        let left_out = LeftOut::of(contents, &empty);
        if members.is_empty() {
            return Err(Failure::new(Code::NoText, left_out.only()));
        }
        let (batch, now) = (self.clock.new_id(), self.clock.now());
        let register = Register {
            caller: Caller {
                tenant: job.file.tenant_id.clone(),
                user: job.file.user_id.clone(),
                role: Role::Member,
            },
            batch: Some(batch),
            priority: None,
            files: members.into_iter().map(|member| announced(&job.file, member)).collect(),
            now,
            // Their bytes are here already, so they have as long as the batch itself.
            config: IntakeConfig { confirm_window: self.config.batch_timeout, ..self.config.clone() },
            tickets: Tickets::none(),
            direct: None,
            trace: traces::current(),
        };
        let expand = Expand { archive: job.file.clone(), batch, register, left_out };
        match self.db.write(expand).await {
            Ok(true) => Ok(Opened::Batch(batch)),
            // Another worker has the archive, or it was cancelled or deleted: the fence stops what this one writes.
            Ok(false) => Ok(Opened::Later(Output::Waits { until: now, reason: String::new() })),
            Err(Error::Refused(refusal)) => refused(&refusal, now),
            Err(error) => Err(self.failed(&error)),
        }
    }
}

fn announced(archive: &File, member: &ListedMember) -> (Uuid, Announced) {
    let announced = Announced {
        name: names::name(&member.path),
        size: i64::try_from(member.size).unwrap_or(i64::MAX),
        attributes: names::attributes(archive.attributes.as_ref(), &member.path),
        ..Announced::default()
    };
    (names::id(archive.id, &member.path), announced)
}

/// Why the files cannot be registered.
fn refused(refusal: &Refusal, now: Time) -> Result<Opened, Failure> {
    let message = &refusal.message;
    match (refusal.code, refusal.retry_after) {
        (RefusalCode::TooManyRegistrations, Some(wait)) => {
            let reason = format!("Its files cannot be registered yet. {message}");
            Ok(Opened::Later(Output::Waits { until: now + to_delta(wait), reason }))
        }
        (RefusalCode::QuotaExceeded, _) => Err(Failure::new(
            Code::QuotaExceeded,
            format!("The files in this archive do not fit, and none of them was kept: {message}"),
        )),
        _ => Err(Failure::new(Code::TooLarge, format!("The files in this archive are not taken: {message}"))),
    }
}

/// The files of an archive that do not become files.
struct LeftOut {
    count: usize,
    named: Vec<(String, &'static str)>,
}

impl LeftOut {
    fn of(contents: &Contents, empty: &[&ListedMember]) -> Self {
        let left_out = contents.left_out.iter().map(|file| (&file.path, WhyLeftOut::message(file.reason)));
        let empty = empty.iter().map(|member| (&member.path, "It is empty"));
        let all: Vec<_> = left_out.chain(empty).collect();
        let named = all.iter().take(MAX_NAMED).map(|(path, why)| {
            let path: String = path.chars().take(MAX_NAMED_PATH).collect();
            (path, *why)
        });
        Self { count: all.len() + contents.more_left_out, named: named.collect() }
    }

    /// Why there is no file in the archive that could be read.
    fn only(&self) -> String {
        match self.named.first() {
            None => "There are no files in this archive".to_owned(),
            Some((path, why)) => {
                format!("None of the {} files in this archive can be unpacked. {path}: {why}", self.count)
            }
        }
    }

    /// What is stored with the batch.
    fn metadata(&self, archive: &File) -> Value {
        let files: Vec<Value> =
            self.named.iter().map(|(path, why)| json!({ "path": path, "reason": why })).collect();
        json!({ "archive": archive.file_name, "leftOut": { "count": self.count, "files": files } })
    }
}

/// Opens the batch of an archive and registers its files. Returns whether the worker still holds the archive.
struct Expand {
    /// As it was claimed.
    archive: Arc<File>,
    batch: Uuid,
    register: Register,
    left_out: LeftOut,
}

impl Write for Expand {
    type Output = bool;

    async fn apply(&self, tx: &mut Tx) -> Result<bool, Error> {
        let held = File::lock(tx, self.archive.id).await?;
        let Some(archive) = held.filter(|file| file.claim.is_some() && file.claim == self.archive.claim)
        else {
            return Ok(false);
        };
        if let Some(batch) = archive.batch_id
            && archives::is_of_archive(tx, batch).await?
        {
            let message = "This archive was in another archive, and was not recognised there";
            return Err(Refusal::new(RefusalCode::InvalidState, message).into());
        }
        let (now, config) = (self.register.now, &self.register.config);
        let opened = OpenedBatch {
            id: self.batch,
            tenant: &archive.tenant_id,
            user: &archive.user_id,
            file_count: i64::try_from(self.register.files.len()).unwrap_or(i64::MAX),
            priority: archive.priority,
            metadata: Some(self.left_out.metadata(&archive)),
            mapping: None,
            archive: Some(archive.id),
            expires_at: now + to_delta(config.batch_timeout),
            now,
        };
        changes::open(tx, opened).await?;
        apply_alone(&self.register, tx).await?;
        members::unpacked_into(tx, archive.id, self.batch).await?;
        Ok(true)
    }
}
