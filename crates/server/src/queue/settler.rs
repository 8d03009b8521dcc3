//! Gathers endings while a commit is under way and writes them together in the next.

use tokio::sync::{mpsc, oneshot};

use super::breaker::BreakerConfig;
use super::settle::{SettleGroup, Settlement};
use landfall_core::clock::Clock;
use landfall_core::lifecycle::Status;
use landfall_store::Db;
use landfall_store::Error;

/// Endings in one transaction.
const GROUP: usize = 256;

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
        let (queue, endings) = mpsc::channel(GROUP);
        tokio::spawn(Gather { db, clock, breaker, worker_name }.run(endings));
        Self { queue }
    }

    /// Writes how an attempt ended. Answers, once that is written, where the file is now; `None` if the attempt did not
    /// hold it any more.
    pub async fn settle(&self, settlement: Settlement) -> Result<Option<Status>, Error> {
        let (reply, answer) = oneshot::channel();
        self.queue.send(Waiting { settlement, reply }).await.map_err(|_| Error::Closed)?;
        answer.await.map_err(|_| Error::Closed)?
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
        let mut waiting = Vec::with_capacity(GROUP);
        while endings.recv_many(&mut waiting, GROUP).await > 0 {
            gather(&mut endings, &mut waiting).await;
            let (settlements, replies): (Vec<_>, Vec<_>) =
                waiting.drain(..).map(|one| (one.settlement, one.reply)).unzip();
            match self.write(settlements.clone()).await {
                Ok(held) => replies.into_iter().zip(held).for_each(|(reply, held)| answer(reply, Ok(held))),
                // Nobody's fault, and no better one by one. Each tries again when it thinks fit.
                Err(error) if error.database_is_away() => {
                    for reply in replies {
                        answer(reply, Err(error.again()));
                    }
                }
                // One that the database cannot take must not fail its neighbours.
                Err(error) if settlements.len() > 1 => {
                    tracing::warn!(%error, "a group of endings is written one by one");
                    for (settlement, reply) in settlements.into_iter().zip(replies) {
                        // One that finds its claim gone may have been written by the group after all: its holder must
                        // not take that for somebody else's doing.
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

/// Lets those come along that end at this moment: a commit costs more than the moment does.
async fn gather(endings: &mut mpsc::Receiver<Waiting>, waiting: &mut Vec<Waiting>) {
    let mut before = 0;
    while waiting.len() > before && waiting.len() < GROUP {
        before = waiting.len();
        tokio::task::yield_now().await;
        while waiting.len() < GROUP
            && let Ok(one) = endings.try_recv()
        {
            waiting.push(one);
        }
    }
}

fn answer(reply: oneshot::Sender<Result<Option<Status>, Error>>, ending: Result<Option<Status>, Error>) {
    // Whoever asked was stopped in the meantime; what was written stands.
    drop(reply.send(ending));
}
