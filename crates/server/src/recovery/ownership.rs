//! Which database a storage belongs to.
//!
//! A blob that the database does not know looks like an orphan and is removed. So a storage must not be cleaned with the
//! wrong database, or with an old backup of the right one. A mark in the storage tells both cases: it has the identity of
//! the database and a generation. The database increments the generation every few minutes, first its own and then the
//! mark's. A mark with another identity belongs to another database. A mark with a later generation was written by a
//! later state of this database, which is lost.
//!
//! The mark is replaced only if it is still the one that was read. So of two databases that start with the same new
//! storage at the same time, one gets it and the other is told so.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::blobs::Blobs;
use crate::records::files::counts;
use landfall_core::clock::Clock;
use landfall_store::Error;
use landfall_store::{Db, Tx, Write, args};

/// How often the generation is incremented. A restored backup that is younger than this is not noticed.
const INTERVAL: Duration = Duration::from_mins(10);

/// The identity of a database, as the storage and the database itself have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, landfall_store::FromRow)]
pub struct Mark {
    #[row(rename = "id")]
    pub database: Uuid,
    pub generation: i64,
}

/// The relation between a storage and a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    Ours,
    /// It has no mark and no blobs, and the database has no files: both are new.
    Free,
    /// It has blobs and no mark, and the database has no files.
    Unmarked,
    /// It has no mark, and the database has files: it is another storage, or a folder that was not mounted.
    Missing,
    OfAnother(Mark),
    /// A later state of this database wrote its mark.
    Ahead {
        mark: Mark,
        here: Mark,
    },
    /// It has a mark that cannot be read.
    Unreadable,
}

impl Standing {
    /// A name for programs.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Free => "free",
            Self::Unmarked => "unmarked",
            Self::Missing => "missing",
            Self::OfAnother(_) => "of-another",
            Self::Ahead { .. } => "ahead",
            Self::Unreadable => "unreadable",
        }
    }

    /// Whether a blob that the database does not know is really an orphan.
    pub fn may_be_cleaned(&self) -> bool {
        matches!(self, Self::Ours | Self::Free)
    }

    /// Whether the database and the storage belong together.
    pub fn may_be_used(&self) -> bool {
        self.may_be_cleaned() || matches!(self, Self::Ahead { .. })
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const CHECK: &str = "Check DATABASE_URL and STORAGE_URL. If this database is to have this storage all the same, \
                             run `landfall storage adopt`";
        match self {
            Self::Ours => write!(f, "The storage belongs to this database"),
            Self::Free => write!(f, "The storage belongs to no database yet"),
            Self::Unmarked => write!(
                f,
                "The storage has blobs in it, and this database knows of no file: it would take them all for \
                 orphans. {CHECK}"
            ),
            Self::Missing => write!(
                f,
                "This database knows of files, and this storage has never belonged to it: it is another folder, or one \
                 that was not mounted. {CHECK}"
            ),
            Self::OfAnother(mark) => write!(
                f,
                "The storage belongs to another database ({}): this one would take its blobs for orphans. {CHECK}",
                mark.database
            ),
            Self::Ahead { mark, here } => write!(
                f,
                "The storage has seen a later state of this database (generation {}, here it is {}): a backup was \
                 restored, or commits were lost. Blobs that were stored since then look like orphans, so no orphan is \
                 removed. Save what you need of them, then run `landfall storage adopt`",
                mark.generation, here.generation
            ),
            Self::Unreadable => {
                write!(f, "The storage does not say readably which database it belongs to. {CHECK}")
            }
        }
    }
}

#[derive(Clone)]
pub struct Ownership {
    pub db: Db,
    pub blobs: Blobs,
}

impl Ownership {
    /// How the storage stands to the database now. Changes nothing.
    pub async fn standing(&self) -> Result<Standing, Error> {
        Ok(self.load().await?.0)
    }

    /// The standing, and the mark that it follows from.
    async fn load(&self) -> Result<(Standing, Option<String>), Error> {
        // The mark first: the database had this generation before the mark was written, and only increments it.
        let text = self.blobs.mark().await?;
        let here = identity(&mut self.db.read().await?).await?;
        let Some(text) = text else { return Ok((self.standing_without_mark().await?, None)) };
        let standing = match (serde_json::from_str::<Mark>(&text), here) {
            (Err(_), _) => Standing::Unreadable,
            (Ok(mark), Some(here)) if here.database == mark.database => {
                if here.generation < mark.generation {
                    Standing::Ahead { mark, here }
                } else {
                    Standing::Ours
                }
            }
            (Ok(mark), _) => Standing::OfAnother(mark),
        };
        Ok((standing, Some(text)))
    }

    async fn standing_without_mark(&self) -> Result<Standing, Error> {
        if counts::any(&mut self.db.read().await?).await? {
            return Ok(Standing::Missing);
        }
        let is_empty = self.blobs.list("", None).next_page(1).await?.is_empty();
        Ok(if is_empty { Standing::Free } else { Standing::Unmarked })
    }

    /// Takes a storage that is free, and renews the mark of one that is ours. Leaves any other as it is.
    pub async fn keep(&self) -> Result<Standing, Error> {
        loop {
            let (standing, mark) = self.load().await?;
            if !standing.may_be_cleaned() {
                return Ok(standing);
            }
            if self.advance(mark.as_deref(), 0).await? {
                return Ok(Standing::Ours);
            }
        }
    }

    /// Gives the storage to this database, whatever it belonged to. Returns the standing before.
    pub async fn adopt(&self) -> Result<Standing, Error> {
        loop {
            let (standing, mark) = self.load().await?;
            let generation = match &standing {
                Standing::Ahead { mark, .. } => mark.generation,
                _ => 0,
            };
            if self.advance(mark.as_deref(), generation).await? {
                return Ok(standing);
            }
        }
    }

    /// Increments the generation, then replaces the mark if it is still `mark`. Returns whether it was: otherwise another
    /// process has replaced it, and the standing may have changed.
    ///
    /// A crash between the two steps leaves the old mark, which is still right: its generation is an earlier one.
    async fn advance(&self, mark: Option<&str>, later_than: i64) -> Result<bool, Error> {
        let here = self.db.write(Advance { fresh: Clock::System.new_id(), later_than }).await?;
        let next = serde_json::to_string(&here).map_err(|error| Error::Internal(error.to_string()))?;
        self.blobs.replace_mark(mark, &next).await
    }

    /// Renews the mark for as long as this process runs.
    pub async fn run(self) {
        loop {
            Clock::System.sleep(INTERVAL).await;
            match self.keep().await {
                Ok(Standing::Ours) => {}
                Ok(standing) => tracing::warn!("{standing}"),
                Err(error) => tracing::warn!(%error, "could not check which database the storage belongs to"),
            }
        }
    }
}

async fn identity(tx: &mut Tx) -> Result<Option<Mark>, Error> {
    tx.row("SELECT id, generation FROM database_identity", args![]).await
}

struct Advance {
    /// The identity that the database gets if it has none yet.
    fresh: Uuid,
    later_than: i64,
}

impl Write for Advance {
    type Output = Mark;

    async fn apply(&self, tx: &mut Tx) -> Result<Mark, Error> {
        tx.execute(
            "INSERT INTO database_identity (only_one, id, generation) VALUES (TRUE, $1, 0) ON CONFLICT DO NOTHING",
            args![self.fresh],
        )
        .await?;
        tx.execute(
            "UPDATE database_identity
             SET generation = 1 + CASE WHEN generation > $1 THEN generation ELSE $1 END",
            args![self.later_than],
        )
        .await?;
        identity(tx).await?.ok_or_else(|| Error::Internal("the database has no identity".to_owned()))
    }
}
