//! Proves to the other processes that this one is alive, and detects when one of them is not.
//!
//! A process has a row, a lock that ends with it, and a heartbeat, which catches a process that is frozen or cut
//! off. A process that finds its row gone was declared dead: other processes hold its work now. It drops its work
//! and rejoins under a new id. A process that only lost its lock, because the connection or the database server
//! failed, takes it again under the same id.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use futures_util::future::BoxFuture;
use tokio::sync::{Mutex, watch};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::database_time::DatabaseTime;
use super::workers;
use landfall_core::clock::{Clock, Time, to_delta};
use landfall_store::Error;
use landfall_store::locks::{self, ProcessLock};
use landfall_store::{Db, Tx, Write};

/// The id of this process, valid until the other processes declare it dead.
#[derive(Debug, Clone)]
pub struct Identity {
    pub id: Uuid,
    /// Cancelled when they do.
    pub lost: CancellationToken,
}

/// How often a process proves that it is alive, and when it is declared dead.
#[derive(Debug, Clone, Copy)]
pub struct LivenessConfig {
    pub heartbeat_interval: Duration,
    pub heartbeat_expiry: Duration,
    /// How often the locks of other processes are checked, which is how soon a killed process is detected.
    pub lock_check_interval: Duration,
}

/// What the other processes can read about this one.
#[derive(Debug, Clone, Default)]
pub struct Description {
    /// Where it runs, for people.
    pub name: String,
    /// The stages that it runs, and the services that they need, separated by commas.
    pub stages: String,
    pub services: String,
}

/// Releases what a dead process held. `App` supplies it, because only there all the parts are known that a process
/// may hold.
pub trait OnDeath: Send + Sync {
    /// Removes the worker's row and releases what it held, in one transaction. Returns whether this call did it,
    /// and not another process before.
    fn rescue(&self, worker: Uuid, now: Time) -> BoxFuture<'_, Result<bool, Error>>;

    /// The order in which workers are rescued that were found dead at once.
    fn in_order(&self, workers: Vec<Uuid>) -> BoxFuture<'_, Result<Vec<Uuid>, Error>>;
}

pub struct Liveness {
    db: Db,
    /// Not the clock of the files' deadlines: a test may advance that one by a year without declaring a process
    /// dead.
    clock: Clock,
    /// Corrected as often as the heartbeat is renewed.
    time: DatabaseTime,
    config: LivenessConfig,
    description: Description,
    on_death: Arc<dyn OnDeath>,
    identity: watch::Sender<Identity>,
    renewed_at: watch::Sender<Time>,
    lock: Mutex<Option<ProcessLock>>,
}

impl Liveness {
    /// Registers this process. `machine`: the clock of this machine.
    pub async fn start(
        db: Db,
        machine: Clock,
        config: LivenessConfig,
        description: Description,
        on_death: Arc<dyn OnDeath>,
    ) -> Result<Arc<Self>, Error> {
        let time = DatabaseTime::start(db.clone(), machine).await?;
        let clock = time.clock();
        let first = Identity { id: clock.new_id(), lost: CancellationToken::new() };
        let liveness = Self {
            lock: Mutex::new(None),
            identity: watch::Sender::new(first),
            renewed_at: watch::Sender::new(clock.now()),
            db,
            clock,
            time,
            config,
            description,
            on_death,
        };
        let lock = liveness.register(liveness.identity().id).await?;
        *liveness.lock.lock().await = Some(lock);
        Ok(Arc::new(liveness))
    }

    pub fn name(&self) -> &str {
        &self.description.name
    }

    pub fn identity(&self) -> Identity {
        self.identity.borrow().clone()
    }

    /// Renews the heartbeat and rescues what dead processes held, until `stop`.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        let keep_alive = {
            let liveness = self.clone();
            let stop = stop.clone();
            tokio::spawn(async move { stop.run_until_cancelled(liveness.keep_alive()).await })
        };
        let beside = async { tokio::join!(self.check_other_processes(), self.keep_time()) };
        stop.run_until_cancelled(beside).await;
        drop(keep_alive.await);
    }

    /// Unregisters this process. It holds nothing, so nothing needs a rescue.
    pub async fn leave(&self) -> Result<(), Error> {
        self.on_death.rescue(self.identity().id, self.clock.now()).await?;
        if let Some(lock) = self.lock.lock().await.take() {
            lock.release().await;
        }
        Ok(())
    }

    /// Drops what this process holds, because other processes hold it now, and registers it under a new id.
    pub async fn rejoin(&self, lost: &Identity) -> Result<(), Error> {
        lost.lost.cancel();
        let mut lock = self.lock.lock().await;
        if self.identity().id != lost.id {
            return Ok(());
        }
        tracing::warn!(workerId = %lost.id, "declared dead by the other processes; rejoining under a new id");
        if let Some(lock) = lock.take() {
            lock.release().await;
        }
        let fresh = Identity { id: self.clock.new_id(), lost: CancellationToken::new() };
        *lock = Some(self.register(fresh.id).await?);
        self.renewed_at.send_replace(self.clock.now());
        // Registered before it is used.
        self.identity.send_replace(fresh);
        Ok(())
    }

    /// Registers a worker with this id.
    async fn register(&self, worker: Uuid) -> Result<ProcessLock, Error> {
        // The lock first: a row without a held lock belongs to a dead worker.
        let lock = ProcessLock::take(&self.db, worker).await?;
        self.db
            .write(RegisterWorker {
                worker,
                description: self.description.clone(),
                epoch: lock.epoch().to_owned(),
                now: self.clock.now(),
            })
            .await?;
        Ok(lock)
    }

    async fn keep_alive(&self) {
        let expiry = to_delta(self.config.heartbeat_expiry);
        loop {
            self.clock.sleep(self.config.heartbeat_interval).await;
            let identity = self.identity();
            let asked_at = self.clock.now();
            // When the others may declare it dead, the work stops, whether or not the database has responded by
            // then.
            let left = (self.renewed_at() + expiry - asked_at).to_std().unwrap_or_default();
            let alive = match tokio::time::timeout(left, self.renew(&identity, asked_at)).await {
                Ok(Ok(true)) => {
                    self.renewed_at.send_replace(asked_at);
                    true
                }
                Ok(Ok(false)) => false,
                Ok(Err(error)) => {
                    tracing::warn!(%error, "the heartbeat could not be renewed");
                    self.clock.now() - self.renewed_at() < expiry
                }
                Err(_) => {
                    tracing::warn!("the heartbeat could not be renewed in time");
                    false
                }
            };
            if !alive {
                identity.lost.cancel();
                // On a connection that is cut off, the error comes only after minutes.
                let rejoined = tokio::time::timeout(self.config.heartbeat_expiry, self.rejoin(&identity));
                match rejoined.await.unwrap_or(Err(Error::no_connection())) {
                    Ok(()) => self.db.wake().poll_work(),
                    Err(error) => {
                        tracing::warn!(%error, "could not rejoin; retrying with the next heartbeat");
                    }
                }
            }
        }
    }

    /// Renews the heartbeat and the lock. Returns whether this process is still registered.
    async fn renew(&self, identity: &Identity, now: Time) -> Result<bool, Error> {
        if identity.lost.is_cancelled() {
            return Ok(false);
        }
        let epoch = {
            let mut lock = self.lock.lock().await;
            let held = match lock.as_mut() {
                // On a connection that is cut off, the error comes only after minutes.
                Some(lock) => {
                    let asked = tokio::time::timeout(self.config.heartbeat_interval, lock.still_held());
                    asked.await.unwrap_or(false)
                }
                None => false,
            };
            if !held {
                let again = ProcessLock::take_again(&self.db, identity.id);
                let again = tokio::time::timeout(self.config.heartbeat_interval, again).await;
                let again = again.unwrap_or(Err(Error::no_connection()))?;
                let Some(again) = again else { return Ok(false) };
                *lock = Some(again);
                tracing::info!(workerId = %identity.id, "retook the lock that was lost with its connection");
            }
            lock.as_ref().map(|lock| lock.epoch().to_owned()).unwrap_or_default()
        };
        self.db.write(Heartbeat { worker: identity.id, epoch, now }).await
    }

    pub fn time(&self) -> &DatabaseTime {
        &self.time
    }

    /// When this process last renewed its heartbeat.
    pub fn renewed_at(&self) -> Time {
        *self.renewed_at.borrow()
    }

    /// For how long this process has not renewed its heartbeat, if that is longer than the expiry.
    pub fn silent_for(&self) -> Option<TimeDelta> {
        let silent = self.clock.now() - self.renewed_at();
        (silent >= to_delta(self.config.heartbeat_expiry)).then_some(silent)
    }

    /// Follows the database's clock. Apart from the heartbeat, which must not wait for it.
    async fn keep_time(&self) {
        loop {
            self.clock.sleep(self.config.heartbeat_interval).await;
            self.time.correct(self.config.heartbeat_interval).await;
        }
    }

    async fn check_other_processes(&self) {
        loop {
            if let Err(error) = self.rescue_dead_workers().await {
                tracing::debug!(%error, "could not check the other processes");
            }
            self.clock.sleep(self.config.lock_check_interval).await;
        }
    }

    /// Releases what dead workers held. Returns how many there were.
    pub async fn rescue_dead_workers(&self) -> Result<usize, Error> {
        let own = self.identity().id;
        let mut rescued = 0;
        let mut dead = locks::dead_workers(&self.db, self.config.heartbeat_expiry, self.clock.now()).await?;
        dead.retain(|worker| *worker != own);
        for worker in self.on_death.in_order(dead).await? {
            if self.on_death.rescue(worker, self.clock.now()).await? {
                rescued += 1;
                locks::forget(&self.db, worker);
            }
        }
        Ok(rescued)
    }
}

struct RegisterWorker {
    worker: Uuid,
    description: Description,
    epoch: String,
    now: Time,
}

impl Write for RegisterWorker {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        workers::register(tx, self.worker, &self.description, &self.epoch, self.now).await
    }
}

struct Heartbeat {
    worker: Uuid,
    epoch: String,
    now: Time,
}

impl Write for Heartbeat {
    /// Whether the worker is still registered.
    type Output = bool;

    async fn apply(&self, tx: &mut Tx) -> Result<bool, Error> {
        workers::renew(tx, self.worker, &self.epoch, self.now).await
    }
}
