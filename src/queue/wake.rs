//! Wakes idle workers, and whoever reads events: at once in this process, by `NOTIFY` in the others that share a
//! PostgreSQL database. A signal that gets lost costs a second at most, because everybody also looks by themselves.

use std::sync::Arc;
use std::time::Duration;

use sqlx_postgres::PgListener;
use tokio::sync::{Notify, watch};

use crate::clock::Clock;
use crate::db::Db;

const WORK: &str = "landfall_wake";
const EVENTS: &str = "landfall_events";
const RECONNECT: Duration = Duration::from_secs(1);
/// At most so often are other processes told that there may be events. In between they would only be kept busy.
const BETWEEN_TIDINGS: Duration = Duration::from_millis(10);

#[derive(Clone, Default)]
pub struct Wake {
    here: Arc<Notify>,
    elsewhere: Arc<Notify>,
    removals: Arc<Notify>,
    operations: Arc<Notify>,
    deliveries: Arc<Notify>,
    events: watch::Sender<()>,
}

impl Wake {
    /// Starts to pass signals to and from other processes, where the database can carry them.
    pub fn start(db: &Db, clock: Clock) -> Self {
        let wake = Self::default();
        tokio::spawn(pass_on(db.commits(), wake.events.clone()));
        if let Some(pool) = db.postgres() {
            tokio::spawn(send(pool.clone(), wake.elsewhere.clone()));
            tokio::spawn(send_tidings(pool.clone(), db.commits(), clock.clone()));
            tokio::spawn(listen(pool.clone(), wake.clone(), clock));
        }
        wake
    }

    /// Changes whenever there may be new events: after each commit here, and soon after one elsewhere.
    pub fn events(&self) -> watch::Receiver<()> {
        self.events.subscribe()
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
async fn send(pool: sqlx_postgres::PgPool, signals: Arc<Notify>) {
    loop {
        signals.notified().await;
        if !notify(&pool, WORK).await {
            return;
        }
    }
}

async fn send_tidings(pool: sqlx_postgres::PgPool, mut commits: watch::Receiver<()>, clock: Clock) {
    while commits.changed().await.is_ok() {
        if !notify(&pool, EVENTS).await {
            return;
        }
        clock.sleep(BETWEEN_TIDINGS).await;
    }
}

/// Answers whether there is anything left to notify with.
async fn notify(pool: &sqlx_postgres::PgPool, channel: &str) -> bool {
    if let Err(error) = sqlx::query("SELECT pg_notify($1, '')").bind(channel).execute(pool).await {
        if pool.is_closed() {
            return false;
        }
        tracing::debug!(%error, "other processes were not woken and will look by themselves");
    }
    true
}

async fn pass_on(mut commits: watch::Receiver<()>, events: watch::Sender<()>) {
    while commits.changed().await.is_ok() {
        events.send_replace(());
    }
}

async fn listen(pool: sqlx_postgres::PgPool, wake: Wake, clock: Clock) {
    while !pool.is_closed() {
        if let Err(error) = listen_until_cut_off(&pool, &wake).await {
            tracing::debug!(%error, "not listening for new work");
        }
        clock.sleep(RECONNECT).await;
    }
}

async fn listen_until_cut_off(pool: &sqlx_postgres::PgPool, wake: &Wake) -> Result<(), sqlx::Error> {
    let mut listener = PgListener::connect_with(pool).await?;
    listener.ignore_pool_close_event(false);
    listener.listen_all([WORK, EVENTS]).await?;
    loop {
        let signal = listener.recv().await?;
        if signal.channel() == EVENTS {
            wake.events.send_replace(());
        } else {
            wake.here.notify_one();
        }
    }
}
