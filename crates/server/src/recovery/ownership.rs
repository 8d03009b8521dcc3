//! Which database a storage belongs to.
//!
//! Whatever the database does not know of looks like nobody's and is cleaned away. So beside the wrong database, or beside
//! an old backup of the right one, a storage must not be cleaned. Both are told by a mark in the storage: the identity of
//! its database, and a generation that the database counts up every few minutes, itself first and the mark after. A mark
//! with another identity is another database's; a mark with a later generation was made by a state of this database that
//! is not here any more.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::blobs::Blobs;
use landfall_core::clock::Clock;
use landfall_store::Error;
use landfall_store::{Db, Tx, Write, args};

/// How often the generation is counted up. What a backup that is younger than this has lost is not noticed.
const INTERVAL: Duration = Duration::from_mins(10);

/// What the storage says of its database, and the database of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, sqlx::FromRow)]
pub struct Mark {
    #[sqlx(rename = "id")]
    pub database: Uuid,
    pub generation: i64,
}

/// How a storage stands to a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    Ours,
    /// It has no mark and no blobs, and the database knows no file: both are new.
    Free,
    /// It has blobs and no mark, and the database knows no file at all.
    Unmarked,
    /// It has no mark, and the database knows files: another folder, or one that was not mounted.
    Missing,
    OfAnother(Mark),
    /// It has seen a later state of this database.
    Ahead {
        mark: Mark,
        here: Mark,
    },
    /// It has a mark that cannot be read.
    Unreadable,
}

impl Standing {
    /// In one word, for programs.
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

    /// Whether what the database does not know of is really nobody's.
    pub fn may_be_cleaned(&self) -> bool {
        matches!(self, Self::Ours | Self::Free)
    }

    /// Whether the database and the storage have anything to do with one another.
    pub fn may_be_used(&self) -> bool {
        self.may_be_cleaned() || matches!(self, Self::Ahead { .. })
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const CHECK: &str = "Check DATABASE_URL and STORAGE_URL. If this database shall have this storage all the same, \
                             run `landfall storage adopt`";
        match self {
            Self::Ours => write!(f, "The storage belongs to this database"),
            Self::Free => write!(f, "The storage belongs to no database yet"),
            Self::Unmarked => write!(
                f,
                "The storage has blobs in it, and this database knows of no file: it would take them all for \
                 nobody's. {CHECK}"
            ),
            Self::Missing => write!(
                f,
                "This database knows of files, and this storage has never been its own: the folder is another, or \
                 was not mounted. {CHECK}"
            ),
            Self::OfAnother(mark) => write!(
                f,
                "The storage belongs to another database ({}): this one would take its blobs for orphans. {CHECK}",
                mark.database
            ),
            Self::Ahead { mark, here } => write!(
                f,
                "The storage has seen a later state of this database (generation {}, here it is {}): a backup was \
                 restored, or commits were lost. Newer blobs seem to belong to no file, so none of them is \
                 removed. Save those that you need, then run `landfall storage adopt`",
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
    /// How it stands now. Changes nothing.
    pub async fn look(&self) -> Result<Standing, Error> {
        // The mark first: the database was as far as it says before it was made, and only goes on.
        let mark = self.blobs.mark().await?;
        let here = identity(&mut self.db.read().await?).await?;
        let Some(mark) = mark else { return self.look_unmarked().await };
        let Ok(mark) = serde_json::from_str::<Mark>(&mark) else { return Ok(Standing::Unreadable) };
        Ok(match here {
            Some(here) if here.database != mark.database => Standing::OfAnother(mark),
            Some(here) if here.generation < mark.generation => Standing::Ahead { mark, here },
            Some(_) => Standing::Ours,
            None => Standing::OfAnother(mark),
        })
    }

    async fn look_unmarked(&self) -> Result<Standing, Error> {
        let sql = "SELECT COUNT(*) FROM (SELECT 1 FROM files LIMIT 1) AS known";
        if self.db.read().await?.number(sql, args![]).await? > 0 {
            return Ok(Standing::Missing);
        }
        let is_empty = self.blobs.list().next_page(1).await?.is_empty();
        Ok(if is_empty { Standing::Free } else { Standing::Unmarked })
    }

    /// Takes a storage that is free, and goes on with one that is ours. Leaves any other as it is.
    pub async fn keep(&self) -> Result<Standing, Error> {
        let standing = self.look().await?;
        if standing.may_be_cleaned() {
            self.mark(0).await?;
            return Ok(Standing::Ours);
        }
        Ok(standing)
    }

    /// Makes the storage this database's, whosever it was. Answers how it stood before.
    pub async fn adopt(&self) -> Result<Standing, Error> {
        let standing = self.look().await?;
        let seen = match &standing {
            Standing::Ahead { mark, .. } => mark.generation,
            _ => 0,
        };
        self.mark(seen).await?;
        Ok(standing)
    }

    /// Goes one generation on. A crash between the two steps leaves the mark behind, which is as if this had not been.
    async fn mark(&self, later_than: i64) -> Result<(), Error> {
        let here = self.db.write(Advance { fresh: Clock::System.new_id(), later_than }).await?;
        let mark = serde_json::to_string(&here).map_err(|error| Error::Internal(error.to_string()))?;
        self.blobs.set_mark(&mark).await
    }

    /// Keeps the mark up to date, for as long as this process runs.
    pub async fn run(self) {
        loop {
            Clock::System.sleep(INTERVAL).await;
            match self.keep().await {
                Ok(Standing::Ours) => {}
                Ok(standing) => tracing::warn!("{standing}"),
                Err(error) => tracing::warn!(%error, "could not look at whose the storage is"),
            }
        }
    }
}

async fn identity(tx: &mut Tx) -> Result<Option<Mark>, Error> {
    tx.row("SELECT id, generation FROM database_identity", args![]).await
}

struct Advance {
    /// What this database is called if it has no identity yet.
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
