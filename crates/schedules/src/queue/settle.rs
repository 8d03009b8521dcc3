//! What the settler writes here: endings in a table of their own, instead of all that belongs to a file.

use landfall_core::clock::Time;
use landfall_core::lifecycle::Status;
use landfall_store::{Error, Tx, Write, args};

use super::breaker::BreakerConfig;

/// How the attempt at one stage, or at several in a row, ended.
#[derive(Debug, Clone)]
pub struct Settlement {
    pub file: i64,
    pub finished_before: Vec<i64>,
    pub stage: i64,
    /// The database refuses it.
    pub is_refused: bool,
}

impl Settlement {
    #[must_use]
    pub fn then(self, next: Self) -> Self {
        let mut finished_before = self.finished_before;
        finished_before.push(self.stage);
        finished_before.extend(&next.finished_before);
        Self { finished_before, is_refused: self.is_refused || next.is_refused, ..next }
    }
}

pub struct SettleGroup {
    pub settlements: Vec<Settlement>,
    pub worker_name: String,
    pub breaker: BreakerConfig,
    pub now: Time,
}

impl Write for SettleGroup {
    type Output = Vec<Option<Status>>;

    async fn apply(&self, tx: &mut Tx) -> Result<Self::Output, Error> {
        let mut held = Vec::new();
        for one in &self.settlements {
            let sql = "SELECT COUNT(*) FROM endings WHERE file = $1 AND stage = $2";
            // As with a claim that is gone: what is written already changes nothing.
            if tx.number(sql, args![one.file, one.stage]).await? > 0 {
                held.push(None);
                continue;
            }
            for stage in one.finished_before.iter().chain([&one.stage]) {
                tx.execute("INSERT INTO endings (file, stage) VALUES ($1, $2)", args![one.file, *stage])
                    .await?;
            }
            if one.is_refused {
                return Err(Error::Internal("this ending cannot be stored".to_owned()));
            }
            held.push(Some(Status::Queued));
        }
        Ok(held)
    }
}
