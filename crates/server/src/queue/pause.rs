//! An operator pauses a stage in every process, and resumes it.

use landfall_core::clock::Time;
use landfall_core::lifecycle::Stage;
use landfall_store::Error;
use landfall_store::wake::Signal;
use landfall_store::{Tx, Write, args};

/// From now on nothing is claimed at the stage. Work that is running is finished.
pub struct Pause {
    pub stage: Stage,
    pub by: String,
    pub now: Time,
}

impl Write for Pause {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        tx.execute(
            "INSERT INTO paused_stages (stage, paused_at, paused_by) VALUES ($1, $2, $3)
             ON CONFLICT (stage) DO NOTHING",
            args![self.stage, self.now, &self.by],
        )
        .await?;
        // Every worker learns of it when it polls.
        tx.signal(Signal::Work);
        Ok(())
    }
}

pub struct Resume {
    pub stage: Stage,
}

impl Write for Resume {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        tx.execute("DELETE FROM paused_stages WHERE stage = $1", args![self.stage]).await?;
        tx.signal(Signal::Work);
        Ok(())
    }
}

/// The stages that are paused.
pub async fn stages(tx: &mut Tx) -> Result<Vec<Stage>, Error> {
    let paused: Vec<(String,)> = tx.rows("SELECT stage FROM paused_stages", args![]).await?;
    Ok(paused.into_iter().filter_map(|(stage,)| stage.parse().ok()).collect())
}

/// A stage that is paused, since when and by which operator.
#[derive(Debug)]
pub struct Paused {
    pub stage: String,
    pub at: Time,
    pub by: String,
}

/// The stages that are paused, with all that is known of it.
pub async fn all(tx: &mut Tx) -> Result<Vec<Paused>, Error> {
    let paused: Vec<(String, Time, String)> =
        tx.rows("SELECT stage, paused_at, paused_by FROM paused_stages", args![]).await?;
    Ok(paused.into_iter().map(|(stage, at, by)| Paused { stage, at, by }).collect())
}
