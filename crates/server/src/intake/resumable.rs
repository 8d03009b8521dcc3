//! Uploads that come in several requests and go on where they were, whatever was interrupted: the connection, the client, the
//! process that received them.
//!
//! An upload is a row (`records/resumable.rs`) and bytes that are not a blob yet (`blobs/resumable.rs`). Its file is registered
//! when it is created, like any other. With its last byte the bytes become a blob and the file is confirmed. Each step of that
//! can be repeated, and what a process did not get to the next request or the next sweep does
//! (`recovery/resumable_uploads.rs`).
//!
//! | module | what it does |
//! |---|---|
//! | `create` | begins an upload, a part, or the joining of parts |
//! | `turns` | one request at a time writes, and the newest is the one |
//! | `receive` | takes in the bytes of a request, or says how far the upload is |
//! | `finish` | makes a file of the bytes |
//! | `join` | appends parts to one another |
//! | `removal` | ends an upload before its time, and removes what it leaves |

pub mod checksum;
pub mod create;
mod finish;
mod join;
pub mod receive;
mod removal;
pub mod turns;

use std::sync::Arc;
use std::time::Duration;

use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::IntakeConfig;
use super::body::Terms;
use crate::blobs::{Blobs, Saved};
use crate::process::disk_space::DiskSpace;
use crate::process::liveness::Liveness;
use crate::records::events;
use crate::records::file::File;
use crate::records::resumable::{self, Kind, Reached, Resumable};
use landfall_core::caller::{Caller, Role, TenantUser};
use landfall_core::clock::{Clock, Time};
use landfall_core::lifecycle::Status;
use landfall_core::refusal::Refusal;
use landfall_store::{Db, Error};
use turns::Turns;

/// All that the uploads of this process need.
#[derive(Clone)]
pub struct Resumables {
    pub db: Db,
    pub blobs: Blobs,
    pub clock: Clock,
    pub liveness: Arc<Liveness>,
    /// The requests under way. They run to their end, even if the client disconnects.
    pub tasks: TaskTracker,
    pub turns: Turns,
    pub disk: DiskSpace,
    pub config: IntakeConfig,
    /// How long an upload may go without new bytes.
    pub stall: Duration,
}

/// An upload as its owner sees it.
#[derive(Debug, Clone)]
pub struct Progress {
    pub id: Uuid,
    pub kind: Kind,
    pub length: u64,
    /// `None` while its parts are being joined.
    pub offset: Option<u64>,
    /// As the client sent them.
    pub metadata: Option<String>,
    pub concat: Option<String>,
    /// When it is given up. `None` once it is a file in the queue.
    pub expires_at: Option<Time>,
}

/// What the id of an upload stands for.
enum Found {
    Upload(Box<Resumable>),
    /// It is a file in the queue, or further.
    Done(Box<File>),
}

impl Resumables {
    /// The upload of this id, if it is the caller's own. For everyone else there is none.
    async fn find(&self, caller: &Caller, id: Uuid) -> Result<Found, Error> {
        let mut tx = self.db.read().await?;
        let of_another = || Refusal::no_such_upload().not_permitted();
        if let Some(upload) = resumable::find(&mut tx, id).await? {
            if !caller.is(&upload.tenant_id, &upload.user_id) {
                return Err(of_another().into());
            }
            if upload.is_over || upload.joined_into.is_some() {
                return Err(Refusal::no_such_upload().into());
            }
            if let Some(file) = upload.file() {
                let file = File::find(&mut tx, file).await?.ok_or_else(Refusal::no_such_upload)?;
                match file.status {
                    Status::Registered | Status::Uploaded => {}
                    Status::Deleted => return Err(events::gone(&mut tx, id).await?.into()),
                    _ => return Ok(Found::Done(Box::new(file))),
                }
            }
            return Ok(Found::Upload(Box::new(upload)));
        }
        let file = File::find(&mut tx, id).await?.ok_or_else(Refusal::no_such_upload)?;
        if !caller.is(&file.tenant_id, &file.user_id) {
            return Err(of_another().into());
        }
        match file.status {
            // Its bytes are sent in another way.
            Status::Registered | Status::Uploaded => Err(Refusal::no_such_upload().into()),
            Status::Deleted => Err(events::gone(&mut tx, id).await?.into()),
            _ => Ok(Found::Done(Box::new(file))),
        }
    }

    fn terms(&self) -> Terms {
        Terms {
            clock: self.clock.clone(),
            disk: self.disk.clone(),
            stall: self.stall,
            min_rate: self.config.min_rate,
        }
    }
}

/// The upload of a file that is in the queue, or further.
fn done(file: &File) -> Progress {
    let size = u64::try_from(file.size_bytes).unwrap_or(0);
    Progress {
        id: file.id,
        kind: Kind::Whole,
        length: size,
        offset: Some(size),
        metadata: None,
        concat: None,
        expires_at: None,
    }
}

/// The owner, as the one who confirms or deletes.
fn as_caller(owner: TenantUser) -> Caller {
    Caller { tenant: owner.tenant, user: owner.user, role: Role::Member }
}

fn saved(upload: &Resumable) -> Saved {
    Saved {
        offset: u64::try_from(upload.offset_bytes).unwrap_or(0),
        hashes: upload.hashes.clone(),
        stored: upload.stored.clone(),
    }
}

fn reached(saved: Saved) -> Reached {
    Reached {
        offset: i64::try_from(saved.offset).unwrap_or(i64::MAX),
        hashes: saved.hashes,
        stored: saved.stored,
    }
}
