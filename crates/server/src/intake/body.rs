//! The bytes of an upload, as they come from its client: without long pauses, not too slowly, and only while the disk has room.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt};

use super::pace::Pace;
use crate::process::disk_space::DiskSpace;
use landfall_core::clock::Clock;
use landfall_core::refusal::{Refusal, RefusalCode};
use landfall_store::Error;

/// After so many bytes the free space of the disk is looked at again.
const LOOK_AT_DISK: u64 = 8 << 20;

/// What a client has to keep.
#[derive(Clone)]
pub struct Terms {
    pub clock: Clock,
    pub disk: DiskSpace,
    /// How long it may send nothing.
    pub stall: Duration,
    /// The bytes a second that it must send.
    pub min_rate: u64,
}

pub struct Body<S> {
    stream: S,
    terms: Terms,
    pace: Pace,
    came: u64,
    look_at_disk_at: u64,
}

impl<S, E> Body<S>
where
    S: Stream<Item = Result<Bytes, E>> + Unpin,
    E: std::fmt::Display,
{
    pub fn new(stream: S, terms: Terms) -> Self {
        let pace = Pace::new(terms.min_rate, terms.stall);
        Self { stream, terms, pace, came: 0, look_at_disk_at: LOOK_AT_DISK }
    }

    /// The next bytes, or `None` at the end. `interrupted` resolves when no more are wanted.
    pub async fn next(&mut self, interrupted: impl Future<Output = Refusal>) -> Result<Option<Bytes>, Error> {
        let Terms { clock, disk, stall, min_rate } = &self.terms;
        if self.came >= self.look_at_disk_at {
            self.look_at_disk_at = self.came + LOOK_AT_DISK;
            disk.require_room().await?;
        }
        let (stalled, waiting_since) = (clock.sleep(*stall), clock.now());
        let part = tokio::select! {
            part = self.stream.next() => part,
            refusal = interrupted => return Err(refusal.into()),
            () = stalled => {
                return Err(Refusal::new(RefusalCode::UploadStalled, "No bytes arrived for too long; send them again").retryable().into());
            }
        };
        let Some(part) = part else { return Ok(None) };
        let part = part.map_err(|error| {
            Refusal::new(RefusalCode::UploadBroken, format!("The upload broke off: {error}")).retryable()
        })?;
        self.came += part.len() as u64;
        if !self.pace.keeps_up(part.len(), (clock.now() - waiting_since).to_std().unwrap_or_default()) {
            let message = format!(
                "The bytes arrived at less than {min_rate} a second for {} s; send them again over a faster connection",
                stall.as_secs()
            );
            return Err(Refusal::new(RefusalCode::UploadTooSlow, message).retryable().into());
        }
        Ok(Some(part))
    }
}
