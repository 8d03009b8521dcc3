//! Gathers endings while a commit is under way and writes them together in the next.

use tokio::sync::{mpsc, oneshot};

use super::breaker::BreakerConfig;
use super::settle::{SettleGroup, Settlement};
use landfall_core::clock::Clock;
use landfall_core::lifecycle::Status;
use landfall_store::Db;
use landfall_store::Error;

/// The most endings in one transaction.
const MAX_GROUP: usize = 256;

#[derive(Clone)]
pub struct Settler {
    queue: mpsc::Sender<Waiting>,
}

struct Waiting {
    settlement: Settlement,
    reply: oneshot::Sender<Result<Option<Status>, Error>>,
}

impl Settler {
    pub fn start(db: Db, clock: Clock, breaker: BreakerConfig, worker_name: String) -> Self {
        let (queue, endings) = mpsc::channel(MAX_GROUP);
        tokio::spawn(Gather { db, clock, breaker, worker_name }.run(endings));
        Self { queue }
    }

    /// Writes how an attempt ended. Returns the file's new status once it is written; `None` if the attempt no longer
    /// held the file.
    pub async fn settle(&self, settlement: Settlement) -> Result<Option<Status>, Error> {
        let (reply, result) = oneshot::channel();
        self.queue.send(Waiting { settlement, reply }).await.map_err(|_| Error::Closed)?;
        result.await.map_err(|_| Error::Closed)?
    }
}

struct Gather {
    db: Db,
    clock: Clock,
    breaker: BreakerConfig,
    worker_name: String,
}

impl Gather {
    async fn run(self, mut endings: mpsc::Receiver<Waiting>) {
        let mut waiting = Vec::with_capacity(MAX_GROUP);
        while endings.recv_many(&mut waiting, MAX_GROUP).await > 0 {
            gather(&mut endings, &mut waiting).await;
            let (settlements, replies): (Vec<_>, Vec<_>) =
                waiting.drain(..).map(|one| (one.settlement, one.reply)).unzip();
            match self.write(settlements.clone()).await {
                Ok(held) => replies.into_iter().zip(held).for_each(|(reply, held)| answer(reply, Ok(held))),
                // No single ending is the cause, so writing them one by one would not help. Each caller retries.
                Err(error) if error.database_is_away() => {
                    for reply in replies {
                        answer(reply, Err(error.again()));
                    }
                }
                // One ending that the database cannot store must not fail the others.
                Err(error) if settlements.len() > 1 => {
                    tracing::warn!(%error, "writing a group of endings one by one");
                    for (settlement, reply) in settlements.into_iter().zip(replies) {
                        // If the claim is gone, the group may have been written after all. An error tells the
                        // caller that this is uncertain, and not that another process took the file.
                        let held = self.write(vec![settlement]).await;
                        answer(
                            reply,
                            held.and_then(
                                |held| if held[0].is_some() { Ok(held[0]) } else { Err(error.again()) },
                            ),
                        );
                    }
                }
                Err(error) => {
                    let only = replies.into_iter().next().expect("a group has at least one");
                    answer(only, Err(error));
                }
            }
        }
    }

    async fn write(&self, settlements: Vec<Settlement>) -> Result<Vec<Option<Status>>, Error> {
        let (now, worker_name) = (self.clock.now(), self.worker_name.clone());
        self.db.write(SettleGroup { settlements, worker_name, breaker: self.breaker, now }).await
    }
}

/// Adds the endings that arrive at this moment: a commit costs more than the short wait.
async fn gather(endings: &mut mpsc::Receiver<Waiting>, waiting: &mut Vec<Waiting>) {
    let mut before = 0;
    while waiting.len() > before && waiting.len() < MAX_GROUP {
        before = waiting.len();
        tokio::task::yield_now().await;
        while waiting.len() < MAX_GROUP
            && let Ok(one) = endings.try_recv()
        {
            waiting.push(one);
        }
    }
}

fn answer(reply: oneshot::Sender<Result<Option<Status>, Error>>, ending: Result<Option<Status>, Error>) {
    // The send fails if the caller was stopped in the meantime. What was written stays written.
    drop(reply.send(ending));
}
