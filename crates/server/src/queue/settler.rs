//! Gathers endings while a commit is under way and writes them together in the next.
//!
//! A worker does not wait for the ending of a stage to be written before it begins the next one. If that ends before the
//! settler took up the first, both endings are written as one change of the row.

use std::sync::Arc;

use landfall_sync::{Mutex, MutexGuard, mpsc, oneshot};

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
    slot: Arc<Slot>,
    reply: oneshot::Sender<Result<Option<Status>, Error>>,
}

impl Waiting {
    /// How many stages have ended in it.
    fn stages(&self) -> usize {
        self.slot.lock().as_ref().map_or(0, |settlement| settlement.finished_before.len() + 1)
    }
}

/// Holds an ending until the settler takes it.
struct Slot(Mutex<Option<Settlement>>);

impl Slot {
    fn lock(&self) -> MutexGuard<'_, Option<Settlement>> {
        self.0.lock().expect("nothing panics while it holds this")
    }
}

/// An ending that was handed in.
pub struct Receipt {
    slot: Arc<Slot>,
    result: oneshot::Receiver<Result<Option<Status>, Error>>,
}

impl Receipt {
    /// Adds the ending of the next stage, unless this one is being written.
    pub fn add(&self, next: &Settlement) -> bool {
        let mut slot = self.slot.lock();
        let Some(settlement) = slot.take() else { return false };
        *slot = Some(settlement.then(next.clone()));
        true
    }

    /// Waits until it is written. Returns the file's new status; `None` if the attempt no longer held the file.
    /// It has one answer: do not ask again.
    pub async fn written(&mut self) -> Result<Option<Status>, Error> {
        (&mut self.result).await.map_err(|_| Error::Closed)?
    }
}

impl Settler {
    pub fn start(db: Db, clock: Clock, breaker: BreakerConfig, worker_name: String) -> Self {
        let (queue, endings) = mpsc::channel(MAX_GROUP);
        landfall_sync::spawn(Gather { db, clock, breaker, worker_name }.run(endings));
        Self { queue }
    }

    /// Writes how an attempt ended. Returns the file's new status once it is written; `None` if the attempt no longer
    /// held the file.
    pub async fn settle(&self, settlement: Settlement) -> Result<Option<Status>, Error> {
        self.hand_in(settlement).await.written().await
    }

    /// Takes how an attempt ended, to write it with the next group.
    pub async fn hand_in(&self, settlement: Settlement) -> Receipt {
        let (reply, result) = oneshot::channel();
        let slot = Arc::new(Slot(Mutex::new(Some(settlement))));
        // If the settler is gone, the receipt says so.
        drop(self.queue.send(Waiting { slot: slot.clone(), reply }).await);
        Receipt { slot, result }
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
                waiting.drain(..).filter_map(|one| Some((one.slot.lock().take()?, one.reply))).unzip();
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

/// Adds the endings that arrive at this moment, also those of next stages: a commit costs more than the short wait.
async fn gather(endings: &mut mpsc::Receiver<Waiting>, waiting: &mut Vec<Waiting>) {
    let mut before = 0;
    while waiting.len() < MAX_GROUP {
        let ended = waiting.iter().map(Waiting::stages).sum();
        if ended == before {
            break;
        }
        before = ended;
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
