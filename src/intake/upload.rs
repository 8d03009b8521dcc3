//! The bytes arrive: checked on the way, on disk before the row says so.

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use uuid::Uuid;

use crate::blobs::{Blobs, Stored};
use crate::clock::{Clock, Time, to_delta};
use crate::config::Config;
use crate::db::{Db, Tx, Write, args};
use crate::error::{Error, Refusal};
use crate::file::{File, Shift};
use crate::lifecycle::{Status, Transition};

/// How often bytes that keep arriving push the deadline of their file back.
const SIGN_OF_LIFE: std::time::Duration = std::time::Duration::from_secs(30);

/// Takes in the body of an upload. Refused or broken off, it leaves nothing behind, and the file stays as it was.
pub struct Upload<'a> {
    pub db: &'a Db,
    pub blobs: &'a Blobs,
    pub clock: &'a Clock,
    pub config: &'a Config,
    /// The process that takes the bytes in.
    pub owner: Uuid,
}

impl Upload<'_> {
    pub async fn receive<S, E>(
        &self,
        id: Uuid,
        size: i64,
        md5: Option<String>,
        body: S,
    ) -> Result<Stored, Error>
    where
        S: Stream<Item = Result<Bytes, E>> + Unpin + Send,
        E: std::fmt::Display,
    {
        let file = File::find(&mut self.db.read().await?, id).await?.ok_or_else(Refusal::no_such_file)?;
        must_await_bytes(&file)?;
        let expected = size.unsigned_abs();

        let key = Blobs::key(id, self.clock.new_id());
        let mut incoming = self.blobs.receive(self.owner, &key).await?;
        let mut body = body;
        let mut last_sign = self.clock.now();
        loop {
            let stalled = self.clock.sleep(self.config.http.upload_stall);
            let part = tokio::select! {
                part = body.next() => part,
                () = stalled => {
                    return Err(Refusal::new(408, "UPLOAD_STALLED", "No bytes arrived for too long; send them again").retryable().into());
                }
            };
            let Some(part) = part else { break };
            let part = part.map_err(|error| {
                Refusal::new(400, "UPLOAD_BROKEN", format!("The upload broke off: {error}")).retryable()
            })?;
            if incoming.size() + part.len() as u64 > expected {
                return Err(wrong_size(expected, "more".to_owned()));
            }
            incoming.write(&part).await?;
            if self.clock.now() - last_sign > to_delta(SIGN_OF_LIFE) {
                last_sign = self.clock.now();
                self.db.write(StillArriving { file: id, now: last_sign, until: self.deadline() }).await?;
            }
        }
        if incoming.size() != expected {
            return Err(wrong_size(expected, format!("{}", incoming.size())));
        }

        let stored = incoming.keep().await?;
        if let Err(refusal) = check_md5(&stored, [file.declared_md5.as_deref(), md5.as_deref()]) {
            self.blobs.remove(&key).await?;
            return Err(refusal.into());
        }
        let arrived = Arrived {
            file: id,
            key: key.clone(),
            md5: stored.md5.clone(),
            now: self.clock.now(),
            until: self.deadline(),
        };
        match self.db.write(arrived).await {
            Ok(replaced) => {
                if let Some(old) = replaced
                    && let Err(error) = self.blobs.remove(&old).await
                {
                    tracing::warn!(file = %id, %error, "the blob of an earlier upload could not be removed");
                }
                Ok(stored)
            }
            Err(error @ Error::Refused(_)) => {
                // The row does not know these bytes, so nobody would ever remove them.
                self.blobs.remove(&key).await?;
                Err(error)
            }
            Err(error) => {
                // The answer is lost; the row may know these bytes or not.
                match settle_unfinished(self.db, self.blobs, &key).await {
                    Ok(true) => Ok(stored),
                    Ok(false) => Err(error),
                    Err(_) => {
                        incoming.leave_for_later();
                        Err(error)
                    }
                }
            }
        }
    }

    fn deadline(&self) -> Time {
        self.clock.now() + to_delta(self.config.intake.confirm_window)
    }
}

/// Cleans up after uploads that a dead process had not seen to their end.
pub async fn discard_unfinished(db: &Db, blobs: &Blobs, owner: Uuid) -> Result<(), Error> {
    for key in blobs.unfinished(owner).await? {
        settle_unfinished(db, blobs, &key).await?;
        blobs.forget_unfinished(owner, &key).await?;
    }
    Ok(())
}

/// Whether the row knows the blob; one that it does not know is removed.
async fn settle_unfinished(db: &Db, blobs: &Blobs, key: &str) -> Result<bool, Error> {
    let known = match Blobs::file_of(key) {
        Some(file) => File::find(&mut db.read().await?, file).await?,
        None => None,
    };
    let known = known.is_some_and(|file| file.blob_key.as_deref() == Some(key));
    if !known {
        blobs.remove(key).await?;
    }
    Ok(known)
}

fn must_await_bytes(file: &File) -> Result<(), Refusal> {
    match file.status {
        Status::Registered | Status::Uploaded => Ok(()),
        Status::Deleted => Err(Refusal::gone()),
        other => Err(Refusal::new(
            409,
            "INVALID_STATE",
            format!("This file is {other}: its bytes are confirmed and cannot be replaced"),
        )
        .details(serde_json::json!({ "status": other }))),
    }
}

fn wrong_size(expected: u64, actual: String) -> Error {
    Refusal::new(400, "SIZE_MISMATCH", format!("{expected} bytes were declared, {actual} arrived"))
        .retryable()
        .into()
}

fn check_md5(stored: &Stored, expected: [Option<&str>; 2]) -> Result<(), Refusal> {
    match expected.into_iter().flatten().find(|md5| *md5 != stored.md5) {
        None => Ok(()),
        Some(md5) => Err(Refusal::new(
            400,
            "CHECKSUM_MISMATCH",
            format!("The MD5 {md5} was declared; the bytes that arrived have {}", stored.md5),
        )
        .retryable()),
    }
}

/// Bytes keep arriving: the upload is slow, not abandoned.
struct StillArriving {
    file: Uuid,
    now: Time,
    until: Time,
}

impl Write for StillArriving {
    type Answer = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        tx.execute(
            "UPDATE files SET upload_until = $2, updated_at = $3
             WHERE id = $1 AND status IN ('registered', 'uploaded')",
            args![self.file, self.until, self.now],
        )
        .await
        .map(drop)
    }
}

/// The whole upload is on disk under `key`. Answers the key of an earlier upload that it replaces.
struct Arrived {
    file: Uuid,
    key: String,
    md5: String,
    now: Time,
    until: Time,
}

impl Write for Arrived {
    type Answer = Option<String>;

    async fn apply(&self, tx: &mut Tx) -> Result<Self::Answer, Error> {
        let mut file = File::lock(tx, self.file).await?.ok_or_else(Refusal::no_such_file)?;
        // While the bytes were on their way the file may have been deleted, or confirmed with other bytes.
        must_await_bytes(&file)?;
        let replaced = file.blob_key.clone();
        if file.status == Status::Uploaded {
            tx.execute(
                "UPDATE files SET blob_key = $2, md5 = $3, upload_until = $4, updated_at = $5 WHERE id = $1",
                args![file.id, &self.key, &self.md5, self.until, self.now],
            )
            .await?;
        } else {
            let shift = Shift {
                transition: Transition::Upload,
                now: self.now,
                set: "blob_key = $5, md5 = $6, upload_until = $7",
                args: args![&self.key, &self.md5, self.until],
                failure: None,
            };
            file.shift(tx, shift).await?;
        }
        Ok(replaced)
    }
}
