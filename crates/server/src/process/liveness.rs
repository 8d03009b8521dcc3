//! Proves to the other processes that this one lives, and notices when one of them does not.
//!
//! A process has a row, a lock that dies with it, and a heartbeat that catches it when it is frozen or cut off. A
//! process that finds its row gone was taken for dead: whatever it held is in other hands. It drops its work and
//! begins anew under another name. One whose lock was lost alone, with the connection or the server that knew it, takes
//! it again under the same name.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use futures_util::future::BoxFuture;
use tokio::sync::{Mutex, watch};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use landfall_core::clock::{Clock, Time, to_delta};
use landfall_store::Error;
use landfall_store::locks::{self, ProcessLock};
use landfall_store::{Db, Tx, Write, args};

/// Who this process is, for as long as the others believe that it lives.
#[derive(Debug, Clone)]
pub struct Identity {
    pub id: Uuid,
    /// Cancelled when the others stop believing it.
    pub lost: CancellationToken,
}

/// When a process proves that it lives, and when the others stop believing it.
#[derive(Debug, Clone, Copy)]
pub struct LivenessConfig {
    pub heartbeat_interval: Duration,
    pub heartbeat_expiry: Duration,
    /// How often the locks of other processes are checked, which is how soon a killed one is noticed.
    pub lock_check_interval: Duration,
}

/// What the others read of this process.
#[derive(Debug, Clone, Default)]
pub struct Description {
    /// Where it runs, for people.
    pub name: String,
    /// What it works at, and which services that needs, separated by commas.
    pub stages: String,
    pub services: String,
}

/// Takes care of what a dead process held. Set where the parts are put together: what a process may hold is known only there.
pub trait OnDeath: Send + Sync {
    /// Removes the worker's row and releases what it held, in one transaction. Returns whether this call did it, and not
    /// another process before.
    fn rescue(&self, worker: Uuid, now: Time) -> BoxFuture<'_, Result<bool, Error>>;
}

pub struct Liveness {
    db: Db,
    /// Not the clock of the files' deadlines: a test may move that one by a year, and no process has died.
    clock: Clock,
    config: LivenessConfig,
    description: Description,
    on_death: Arc<dyn OnDeath>,
    identity: watch::Sender<Identity>,
    renewed_at: watch::Sender<Time>,
    lock: Mutex<Option<ProcessLock>>,
}

impl Liveness {
    /// Registers this process.
    pub async fn start(
        db: Db,
        clock: Clock,
        config: LivenessConfig,
        description: Description,
        on_death: Arc<dyn OnDeath>,
    ) -> Result<Arc<Self>, Error> {
        let first = Identity { id: clock.new_id(), lost: CancellationToken::new() };
        let liveness = Self {
            lock: Mutex::new(None),
            identity: watch::Sender::new(first),
            renewed_at: watch::Sender::new(clock.now()),
            db,
            clock,
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

    /// Renews the heartbeat and looks after the others, until `stop`.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        let keep_alive = {
            let liveness = self.clone();
            let stop = stop.clone();
            tokio::spawn(async move { stop.run_until_cancelled(liveness.keep_alive()).await })
        };
        stop.run_until_cancelled(self.look_after_others()).await;
        drop(keep_alive.await);
    }

    /// Says goodbye: nothing is held any more, nothing needs rescue.
    pub async fn leave(&self) -> Result<(), Error> {
        self.on_death.rescue(self.identity().id, self.clock.now()).await?;
        if let Some(lock) = self.lock.lock().await.take() {
            lock.release().await;
        }
        Ok(())
    }

    /// Drops what this process holds, because others hold it now, and comes back under a new name.
    pub async fn begin_anew(&self, lost: &Identity) -> Result<(), Error> {
        lost.lost.cancel();
        let mut lock = self.lock.lock().await;
        if self.identity().id != lost.id {
            return Ok(());
        }
        tracing::warn!(workerId = %lost.id, "taken for dead by the other processes; beginning anew");
        if let Some(lock) = lock.take() {
            lock.release().await;
        }
        let fresh = Identity { id: self.clock.new_id(), lost: CancellationToken::new() };
        *lock = Some(self.register(fresh.id).await?);
        self.renewed_at.send_replace(self.clock.now());
        // Known to all before it is used.
        self.identity.send_replace(fresh);
        Ok(())
    }

    /// Makes a worker of that name known to the others.
    async fn register(&self, worker: Uuid) -> Result<ProcessLock, Error> {
        // The lock first: a row without a held lock is a dead worker's.
        let lock = ProcessLock::take(&self.db, worker).await?;
        self.db
            .write(Register { worker, description: self.description.clone(), now: self.clock.now() })
            .await?;
        Ok(lock)
    }

    async fn keep_alive(&self) {
        let expiry = to_delta(self.config.heartbeat_expiry);
        loop {
            self.clock.sleep(self.config.heartbeat_interval).await;
            let identity = self.identity();
            let asked_at = self.clock.now();
            // When the others may take it for dead, the work stops, whether or not the database has answered by then.
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
                // A connection that is cut off without a word answers after minutes.
                let anew = tokio::time::timeout(self.config.heartbeat_expiry, self.begin_anew(&identity));
                match anew.await.unwrap_or(Err(Error::Database(sqlx::Error::PoolTimedOut))) {
                    Ok(()) => self.db.wake().poll_work(),
                    Err(error) => {
                        tracing::warn!(%error, "could not begin anew; trying again with the next heartbeat");
                    }
                }
            }
        }
    }

    /// Says that this process lives. Answers whether the others believe it.
    async fn renew(&self, identity: &Identity, now: Time) -> Result<bool, Error> {
        if identity.lost.is_cancelled() {
            return Ok(false);
        }
        {
            let mut lock = self.lock.lock().await;
            let held = match lock.as_mut() {
                // A connection that is cut off without a word answers after minutes.
                Some(lock) => {
                    let asked = tokio::time::timeout(self.config.heartbeat_interval, lock.still_held());
                    asked.await.unwrap_or(false)
                }
                None => false,
            };
            if !held {
                let again = ProcessLock::take_again(&self.db, identity.id);
                let again = tokio::time::timeout(self.config.heartbeat_interval, again).await;
                let again = again.unwrap_or(Err(Error::Database(sqlx::Error::PoolTimedOut)))?;
                let Some(again) = again else { return Ok(false) };
                *lock = Some(again);
                tracing::info!(workerId = %identity.id, "took the lock again that was lost with its connection");
            }
        }
        self.db.write(Heartbeat { worker: identity.id, now }).await
    }

    /// When the others last heard of this process.
    pub fn renewed_at(&self) -> Time {
        *self.renewed_at.borrow()
    }

    /// For how long the others have not heard of this process, where that is longer than they believe in it.
    pub fn silent_for(&self) -> Option<TimeDelta> {
        let silent = self.clock.now() - self.renewed_at();
        (silent >= to_delta(self.config.heartbeat_expiry)).then_some(silent)
    }

    async fn look_after_others(&self) {
        loop {
            if let Err(error) = self.rescue_the_dead().await {
                tracing::debug!(%error, "could not look after the other processes");
            }
            self.clock.sleep(self.config.lock_check_interval).await;
        }
    }

    /// Gives back what dead workers held; answers how many there were.
    pub async fn rescue_the_dead(&self) -> Result<usize, Error> {
        let oldest = self.clock.now() - to_delta(self.config.heartbeat_expiry);
        let own = self.identity().id;
        let mut rescued = 0;
        for worker in locks::dead_workers(&self.db, oldest).await? {
            if worker == own {
                continue;
            }
            if self.on_death.rescue(worker, self.clock.now()).await? {
                rescued += 1;
                locks::forget(&self.db, worker);
            }
        }
        Ok(rescued)
    }
}

/// Whether a worker is known, and if so, that it stays so until the transaction ends.
///
/// Whoever rescues what a worker held removes its row first. Holding the row means that the rescue either sees what
/// this transaction does, or is seen by it.
pub async fn hold(tx: &mut Tx, worker: Uuid) -> Result<bool, Error> {
    let hold = tx.key_share();
    let sql = format!("SELECT lock_key FROM workers WHERE id = $1 {hold}");
    Ok(tx.row::<(i64,)>(sql, args![worker]).await?.is_some())
}

struct Register {
    worker: Uuid,
    description: Description,
    now: Time,
}

impl Write for Register {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        let sql = format!(
            "INSERT INTO workers (id, name, stages, services, lock_key, lock_epoch, started_at, heartbeat_at)
             VALUES ($1, $2, $3, $4, $5, {}, $6, $6)",
            locks::epoch(tx)
        );
        tx.execute(
            sql,
            args![
                self.worker,
                &self.description.name,
                &self.description.stages,
                &self.description.services,
                locks::lock_key(self.worker),
                self.now
            ],
        )
        .await
        .map(drop)
    }
}

struct Heartbeat {
    worker: Uuid,
    now: Time,
}

impl Write for Heartbeat {
    /// Whether the worker is still known.
    type Output = bool;

    async fn apply(&self, tx: &mut Tx) -> Result<bool, Error> {
        // Its lock was taken before this, on the server that answers.
        let sql =
            format!("UPDATE workers SET heartbeat_at = $2, lock_epoch = {} WHERE id = $1", locks::epoch(tx));
        Ok(tx.execute(sql, args![self.worker, self.now]).await? == 1)
    }
}
