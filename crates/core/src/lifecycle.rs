//! The lifecycle of a file: its states, its stages, and every transition between two states.
//!
//! A [`Transition`] is the only thing that can move a file, and each variant defines where it starts and where it
//! ends. A move that is not listed here cannot be expressed. `docs/lifecycle.md` has the same table, and a test
//! compares the two.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::names::named;

/// The stages, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    // The other names are those that older clients send: the states in which the stages run.
    #[serde(alias = "scanning")]
    Scan,
    #[serde(alias = "extracting")]
    Extract,
    #[serde(alias = "chunking")]
    Chunk,
    #[serde(alias = "embedding")]
    Embed,
}

impl Stage {
    pub const ALL: [Self; 4] = [Self::Scan, Self::Extract, Self::Chunk, Self::Embed];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Scan => "scan",
            Self::Extract => "extract",
            Self::Chunk => "chunk",
            Self::Embed => "embed",
        }
    }

    /// The state of a file while a worker runs this stage.
    pub const fn running(self) -> Status {
        match self {
            Self::Scan => Status::Scanning,
            Self::Extract => Status::Extracting,
            Self::Chunk => Status::Chunking,
            Self::Embed => Status::Embedding,
        }
    }

    /// The stage after this one; `None` after the last, when the file is ready.
    pub const fn next(self) -> Option<Self> {
        match self {
            Self::Scan => Some(Self::Extract),
            Self::Extract => Some(Self::Chunk),
            Self::Chunk => Some(Self::Embed),
            Self::Embed => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = FileStatus))]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Registered,
    Uploaded,
    Queued,
    Scanning,
    Extracting,
    Chunking,
    Embedding,
    Ready,
    Failed,
    Cancelled,
    Deleted,
}

impl Status {
    pub const ALL: [Self; 11] = [
        Self::Registered,
        Self::Uploaded,
        Self::Queued,
        Self::Scanning,
        Self::Extracting,
        Self::Chunking,
        Self::Embedding,
        Self::Ready,
        Self::Failed,
        Self::Cancelled,
        Self::Deleted,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Registered => "registered",
            Self::Uploaded => "uploaded",
            Self::Queued => "queued",
            Self::Scanning => "scanning",
            Self::Extracting => "extracting",
            Self::Chunking => "chunking",
            Self::Embedding => "embedding",
            Self::Ready => "ready",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Deleted => "deleted",
        }
    }

    /// The stage that a worker runs, for the states in which a worker holds the file.
    pub const fn stage(self) -> Option<Stage> {
        match self {
            Self::Scanning => Some(Stage::Scan),
            Self::Extracting => Some(Stage::Extract),
            Self::Chunking => Some(Stage::Chunk),
            Self::Embedding => Some(Stage::Embed),
            _ => None,
        }
    }

    /// Whether the file is finished: its state does not change again unless a person asks for it.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Ready | Self::Failed | Self::Cancelled | Self::Deleted)
    }

    pub const fn is_running(self) -> bool {
        self.stage().is_some()
    }

    /// No worker has the file, and none may take it.
    pub const fn is_idle(self) -> bool {
        !self.is_running() && !matches!(self, Self::Queued)
    }

    /// The state after `transition`, or an error if it does not start here.
    pub fn apply(self, transition: Transition) -> Result<Self, InvalidTransition> {
        if transition.from().contains(&self) {
            Ok(transition.to())
        } else {
            Err(InvalidTransition { from: self, transition })
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a file that is {from} cannot {transition}")]
pub struct InvalidTransition {
    pub from: Status,
    pub transition: Transition,
}

/// Every transition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Transition {
    /// The server received the whole upload.
    Upload,
    /// The owner confirmed the upload; the file enters the queue.
    Confirm,
    /// A worker takes the file.
    Claim(Stage),
    /// A worker finished a stage and takes the file into the next, or to `ready` after the last.
    Advance(Stage),
    /// A worker finished a stage and has no free slot for the next: the file queues for it.
    HandOver(Stage),
    /// The file goes back to the queue: for a retry, or because its worker shuts down or died.
    Requeue(Stage),
    /// The stage failed and will not be retried.
    DeadLetter(Stage),
    /// A service that the file waits for did not come back in time.
    GiveUp,
    /// A person cancelled the file.
    Cancel,
    /// A person asked for a retry.
    Revive,
    /// The file becomes a tombstone. A waiting or running file is cancelled first.
    Delete,
}

impl Transition {
    /// Every transition, each with every stage it can have.
    pub fn all() -> Vec<Self> {
        let mut all =
            vec![Self::Upload, Self::Confirm, Self::GiveUp, Self::Cancel, Self::Revive, Self::Delete];
        for stage in Stage::ALL {
            all.extend([
                Self::Claim(stage),
                Self::Advance(stage),
                Self::Requeue(stage),
                Self::DeadLetter(stage),
            ]);
            if stage.next().is_some() {
                all.push(Self::HandOver(stage));
            }
        }
        all
    }

    pub const fn from(self) -> &'static [Status] {
        use Status::{
            Cancelled, Chunking, Embedding, Extracting, Failed, Queued, Ready, Registered, Scanning, Uploaded,
        };
        match self {
            Self::Upload => &[Registered],
            Self::Confirm => &[Registered, Uploaded],
            Self::Claim(_) | Self::GiveUp => &[Queued],
            Self::Advance(stage) | Self::HandOver(stage) | Self::Requeue(stage) | Self::DeadLetter(stage) => {
                match stage {
                    Stage::Scan => &[Scanning],
                    Stage::Extract => &[Extracting],
                    Stage::Chunk => &[Chunking],
                    Stage::Embed => &[Embedding],
                }
            }
            Self::Cancel => &[Queued, Scanning, Extracting, Chunking, Embedding],
            Self::Revive => &[Failed, Cancelled],
            Self::Delete => &[Registered, Uploaded, Ready, Failed, Cancelled],
        }
    }

    pub const fn to(self) -> Status {
        match self {
            Self::Upload => Status::Uploaded,
            Self::Confirm | Self::HandOver(_) | Self::Requeue(_) | Self::Revive => Status::Queued,
            Self::Claim(stage) => stage.running(),
            Self::Advance(stage) => match stage.next() {
                Some(next) => next.running(),
                None => Status::Ready,
            },
            Self::DeadLetter(_) | Self::GiveUp => Status::Failed,
            Self::Cancel => Status::Cancelled,
            Self::Delete => Status::Deleted,
        }
    }
}

impl fmt::Display for Transition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Upload => f.write_str("be uploaded"),
            Self::Confirm => f.write_str("be confirmed"),
            Self::Claim(stage) => write!(f, "be claimed to {stage}"),
            Self::Advance(stage) => write!(f, "go on after {stage}"),
            Self::HandOver(stage) => write!(f, "be handed over after {stage}"),
            Self::Requeue(stage) => write!(f, "go back to the queue at {stage}"),
            Self::DeadLetter(stage) => write!(f, "fail at {stage}"),
            Self::GiveUp => f.write_str("fail while it waits"),
            Self::Cancel => f.write_str("be cancelled"),
            Self::Revive => f.write_str("be retried"),
            Self::Delete => f.write_str("be deleted"),
        }
    }
}

named!(Stage);
named!(Status);
