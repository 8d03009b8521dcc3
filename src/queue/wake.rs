//! Wakes idle workers: at once in this process, by `NOTIFY` in the others that share a PostgreSQL database. A signal
//! that gets lost costs a second, because every worker also looks by itself.

use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::PgListener;
use tokio::sync::Notify;

use crate::clock::Clock;
use crate::db::Db;

const CHANNEL: &str = "landfall_wake";
const RECONNECT: Duration = Duration::from_secs(1);

#[derive(Clone, Default)]
pub struct Wake {
    here: Arc<Notify>,
    elsewhere: Arc<Notify>,
    removals: Arc<Notify>,
    operations: Arc<Notify>,
    deliveries: Arc<Notify>,
}

impl Wake {
    /// Starts to pass signals to and from other processes, where the database can carry them.
    pub fn start(db: &Db, clock: Clock) -> Self {
        let wake = Self::default();
        if let Some(pool) = db.postgres() {
            tokio::spawn(send(pool.clone(), wake.elsewhere.clone()));
            tokio::spawn(listen(pool.clone(), wake.here.clone(), clock));
        }
        wake
    }

    /// There is new work.
    pub fn new_work(&self) {
        self.here.notify_one();
        self.elsewhere.notify_one();
    }

    /// Something changed in this process alone: a slot is free, a clock moved.
    pub fn look_again(&self) {
        self.here.notify_one();
    }

    /// There is a blob that nobody may have any more.
    pub fn blob_to_remove(&self) {
        self.removals.notify_one();
    }

    pub async fn removal(&self) {
        self.removals.notified().await;
    }

    /// There is an operation that somebody should go on with.
    pub fn operation_to_advance(&self) {
        self.operations.notify_one();
    }

    pub async fn operation(&self) {
        self.operations.notified().await;
    }

    /// There is something to send to a webhook.
    pub fn delivery_due(&self) {
        self.deliveries.notify_one();
    }

    pub async fn delivery(&self) {
        self.deliveries.notified().await;
    }

    /// Resolves at the next signal, or at once if there was one since the last wait.
    pub async fn signal(&self) {
        self.here.notified().await;
    }
}

/// One `NOTIFY` for all signals since the last: inside the transactions that queue files it would make them commit
/// one after the other.
async fn send(pool: sqlx::PgPool, signals: Arc<Notify>) {
    loop {
        signals.notified().await;
        if let Err(error) = sqlx::query("SELECT pg_notify($1, '')").bind(CHANNEL).execute(&pool).await {
            if pool.is_closed() {
                return;
            }
            tracing::debug!(%error, "other processes were not woken and will look by themselves");
        }
    }
}

async fn listen(pool: sqlx::PgPool, here: Arc<Notify>, clock: Clock) {
    while !pool.is_closed() {
        if let Err(error) = listen_until_cut_off(&pool, &here).await {
            tracing::debug!(%error, "not listening for new work");
        }
        clock.sleep(RECONNECT).await;
    }
}

async fn listen_until_cut_off(pool: &sqlx::PgPool, here: &Notify) -> Result<(), sqlx::Error> {
    let mut listener = PgListener::connect_with(pool).await?;
    listener.ignore_pool_close_event(false);
    listener.listen(CHANNEL).await?;
    loop {
        listener.recv().await?;
        here.notify_one();
    }
}
