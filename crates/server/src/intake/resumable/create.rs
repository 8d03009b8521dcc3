//! Begins an upload. Its file is registered in the same transaction, so that its room and its place in a batch are kept for it.

use uuid::Uuid;

use super::{Progress, Resumables};
use crate::blobs::Blobs;
use crate::intake::announce::Announced;
use crate::intake::idempotency::{Idempotent, Key};
use crate::intake::register::{Register, Tickets};
use crate::intake::{IntakeConfig, registrations};
use crate::process::machine::boot_id;
use crate::records::quota;
use crate::records::resumable::{self, Kind, New};
use crate::telemetry::traces;
use landfall_core::caller::Caller;
use landfall_core::clock::{Time, to_delta};
use landfall_core::refusal::{Refusal, RefusalCode};
use landfall_store::{Error, Tx, Write, apply_alone};

/// The parts that may be joined at once.
pub const MAX_PARTS: usize = 1_000;
/// What is kept of an upload beside its file counts as a row for each started part of this size.
const BYTES_OF_A_ROW: usize = 1_024;

/// An upload that is to begin.
pub struct Beginning {
    pub caller: Caller,
    pub batch: Option<Uuid>,
    pub announced: Announced,
    /// As the client sent them.
    pub metadata: Option<String>,
    pub concat: Option<String>,
    /// The parts that it is joined from, in their order. None: its bytes are sent.
    pub parts: Vec<Uuid>,
    pub key: Option<Key>,
}

impl Resumables {
    /// Registers a file and begins its upload. Returns the id of both.
    pub async fn create(&self, beginning: Beginning) -> Result<Uuid, Error> {
        let Beginning { caller, batch, announced, metadata, concat, parts, key } = beginning;
        let (id, now) = (self.clock.new_id(), self.clock.now());
        let upload = New {
            id,
            owner: caller.owner(),
            kind: if concat.is_some() { Kind::Joined } else { Kind::Whole },
            blob_key: Blobs::key(id, self.clock.new_id()),
            length: announced.size,
            metadata,
            concat,
            boot: boot_id().to_owned(),
            expires_at: None,
        };
        let config = IntakeConfig { confirm_window: self.config.resumable_window, ..self.config.clone() };
        let files = vec![(id, announced)];
        let tickets = Tickets::none();
        // No client sends these bytes straight to the object store.
        let direct = None;
        let trace = traces::current();
        let register = Register { caller, batch, priority: None, files, now, config, tickets, direct, trace };
        self.db.write(Idempotent { key, now, change: Create { register, upload, parts } }).await
    }

    /// Begins the upload of a part. Returns its id.
    pub async fn create_part(
        &self,
        caller: &Caller,
        length: i64,
        metadata: Option<String>,
        key: Option<Key>,
    ) -> Result<Uuid, Error> {
        let (id, now) = (self.clock.new_id(), self.clock.now());
        let upload = New {
            id,
            owner: caller.owner(),
            kind: Kind::Part,
            blob_key: Blobs::key(id, self.clock.new_id()),
            length,
            metadata,
            concat: None,
            boot: boot_id().to_owned(),
            expires_at: Some(now + to_delta(self.config.resumable_window)),
        };
        self.db
            .write(Idempotent { key, now, change: CreatePart { upload, config: self.config.clone(), now } })
            .await
    }

    /// How many bytes these parts have together, if all of them are the caller's and complete.
    pub async fn measure(&self, caller: &Caller, parts: &[Uuid]) -> Result<i64, Error> {
        let mut tx = self.db.read().await?;
        let mut size = 0_i64;
        for part in parts {
            let part = resumable::find(&mut tx, *part).await?;
            size = size.saturating_add(whole_part(part, caller)?.length);
        }
        Ok(size)
    }

    /// An upload that has just begun.
    pub async fn begun(&self, caller: &Caller, id: Uuid) -> Result<Progress, Error> {
        self.status(caller, id).await
    }
}

/// A part that can be joined.
fn whole_part(part: Option<resumable::Resumable>, caller: &Caller) -> Result<resumable::Resumable, Refusal> {
    let part = part.ok_or_else(Refusal::no_such_upload)?;
    if !caller.is(&part.tenant_id, &part.user_id) {
        return Err(Refusal::no_such_upload().not_permitted());
    }
    if part.kind != Kind::Part || part.is_over || part.joined_into.is_some() {
        return Err(Refusal::no_such_upload());
    }
    if part.offset_bytes != part.length {
        let message = format!(
            "The part {} has {} of its {} bytes; send the rest before the parts are joined",
            part.id, part.offset_bytes, part.length
        );
        return Err(Refusal::new(RefusalCode::InvalidState, message));
    }
    Ok(part)
}

struct Create {
    register: Register,
    upload: New,
    parts: Vec<Uuid>,
}

impl Write for Create {
    type Output = Uuid;

    async fn apply(&self, tx: &mut Tx) -> Result<Uuid, Error> {
        let Register { caller, config, now, .. } = &self.register;
        // In the order of their ids, so that two that join the same parts never wait for one another.
        let mut ordered = self.parts.clone();
        ordered.sort_unstable();
        let mut lengths = std::collections::HashMap::new();
        for id in ordered {
            let part = whole_part(resumable::lock(tx, id).await?, caller)?;
            // What was reserved for the part is reserved for the file from here on.
            quota::release(tx, &part.tenant_id, part.length, 1).await?;
            lengths.insert(id, part.length);
        }
        count_texts(tx, &self.upload, config, *now).await?;
        apply_alone(&self.register, tx).await?;
        resumable::insert(tx, &self.upload, *now).await?;
        let mut at = 0;
        for part in &self.parts {
            resumable::join(tx, *part, self.upload.id, at, *now).await?;
            at += lengths.get(part).copied().unwrap_or_default();
        }
        if !self.parts.is_empty() && at != self.upload.length {
            return Err(Error::Internal("the parts of an upload changed their length".to_owned()));
        }
        Ok(self.upload.id)
    }
}

struct CreatePart {
    upload: New,
    config: IntakeConfig,
    now: Time,
}

impl Write for CreatePart {
    type Output = Uuid;

    async fn apply(&self, tx: &mut Tx) -> Result<Uuid, Error> {
        let tenant = &self.upload.owner.tenant;
        registrations::take(tx, tenant, 1, self.config.registrations, self.now).await?;
        count_texts(tx, &self.upload, &self.config, self.now).await?;
        quota::reserve(tx, tenant, self.upload.length, 1, &self.config.quota).await?;
        resumable::insert(tx, &self.upload, self.now).await?;
        Ok(self.upload.id)
    }
}

/// What the client stores with an upload counts like what it stores with a file.
async fn count_texts(tx: &mut Tx, upload: &New, config: &IntakeConfig, now: Time) -> Result<(), Error> {
    let texts = upload.metadata.iter().chain(&upload.concat);
    let rows = texts.map(|text| text.len() / BYTES_OF_A_ROW).sum();
    if rows > 0 {
        registrations::take(tx, &upload.owner.tenant, rows, config.registrations, now).await?;
    }
    Ok(())
}
