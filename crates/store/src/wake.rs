//! Wakes tasks that wait for something to be committed: at once in this process, by `NOTIFY` in the others that share a
//! PostgreSQL database.
//!
//! A transaction announces a [`Signal`] with [`Tx::signal`](crate::Tx::signal), and it is sent after the commit. A
//! lost signal costs time until the next poll: every task also polls.

use std::sync::Arc;
use std::time::Duration;

use landfall_core::clock::Clock;
use landfall_sync::{Notify, watch};
use sqlx_postgres::{PgListener, PgPool};

const WORK: &str = "landfall_wake";
const EVENTS: &str = "landfall_events";
const RECONNECT: Duration = Duration::from_secs(1);
/// The minimum time between two notifications of new events to other processes. More would only keep them busy.
const EVENTS_INTERVAL: Duration = Duration::from_millis(10);

/// Work that a commit may create.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// A file is due for a worker.
    Work,
    /// A blob that no file uses any more can be removed.
    BlobToRemove,
    /// An operation on many files has a next step.
    Operation,
    /// A webhook delivery is due.
    Delivery,
    /// A webhook was registered. Without any, a process does not read events for webhooks.
    Webhook,
    /// The progress of a batch is owed.
    Progress,
    /// Re-embedding was asked for or stopped.
    Reindex,
}

#[derive(Clone, Default)]
pub struct Wake {
    work: Arc<Notify>,
    other_processes: Arc<Notify>,
    removals: Arc<Notify>,
    operations: Arc<Notify>,
    deliveries: Arc<Notify>,
    webhooks: Arc<Notify>,
    progress: Arc<Notify>,
    reindexing: Arc<Notify>,
    commits: watch::Sender<()>,
    events: watch::Sender<()>,
}

impl Wake {
    /// Starts to pass signals to and from other processes.
    pub(crate) fn connect(&self, pool: &PgPool) {
        tokio::spawn(notify_work(pool.clone(), self.other_processes.clone()));
        tokio::spawn(notify_events(pool.clone(), self.commits.subscribe()));
        tokio::spawn(listen(pool.clone(), self.clone()));
    }

    /// Changes when there may be new events: after each commit of this process, and soon after one of another.
    pub fn events(&self) -> watch::Receiver<()> {
        self.events.subscribe()
    }

    pub(crate) fn committed(&self) {
        self.commits.send_replace(());
        self.events.send_replace(());
    }

    /// Sends a signal. Inside a transaction use [`Tx::signal`](crate::Tx::signal) instead.
    pub fn send(&self, signal: Signal) {
        match signal {
            Signal::Work => {
                self.work.notify_one();
                self.other_processes.notify_one();
            }
            Signal::BlobToRemove => self.removals.notify_one(),
            Signal::Operation => self.operations.notify_one(),
            Signal::Delivery => self.deliveries.notify_one(),
            Signal::Webhook => self.webhooks.notify_one(),
            Signal::Progress => self.progress.notify_one(),
            Signal::Reindex => self.reindexing.notify_one(),
        }
    }

    /// Wakes only the worker of this process: a slot is free, or a clock moved.
    pub fn poll_work(&self) {
        self.work.notify_one();
    }

    /// Resolves at the next signal, or at once if there was one since the last wait.
    pub async fn wait(&self, signal: Signal) {
        match signal {
            Signal::Work => &self.work,
            Signal::BlobToRemove => &self.removals,
            Signal::Operation => &self.operations,
            Signal::Delivery => &self.deliveries,
            Signal::Webhook => &self.webhooks,
            Signal::Progress => &self.progress,
            Signal::Reindex => &self.reindexing,
        }
        .notified()
        .await;
    }
}

/// One `NOTIFY` for all signals since the last. A `NOTIFY` inside the transactions that queue files would serialize
/// their commits.
async fn notify_work(pool: PgPool, signals: Arc<Notify>) {
    loop {
        signals.notified().await;
        if !notify(&pool, WORK).await {
            return;
        }
    }
}

async fn notify_events(pool: PgPool, mut commits: watch::Receiver<()>) {
    while commits.changed().await.is_ok() {
        if !notify(&pool, EVENTS).await {
            return;
        }
        Clock::System.sleep(EVENTS_INTERVAL).await;
    }
}

/// Returns `false` once the pool is closed.
async fn notify(pool: &PgPool, channel: &str) -> bool {
    // Nothing is stored, so its commit need not wait for the disk.
    let sql = "SELECT set_config('synchronous_commit', 'off', TRUE), pg_notify($1, '')";
    if let Err(error) = sqlx::query(sql).bind(channel).execute(pool).await {
        if pool.is_closed() {
            return false;
        }
        tracing::debug!(%error, "other processes were not notified; they poll");
    }
    true
}

async fn listen(pool: PgPool, wake: Wake) {
    while !pool.is_closed() {
        if let Err(error) = listen_until_disconnected(&pool, &wake).await {
            tracing::debug!(%error, "not listening for new work");
        }
        Clock::System.sleep(RECONNECT).await;
    }
}

async fn listen_until_disconnected(pool: &PgPool, wake: &Wake) -> Result<(), sqlx::Error> {
    let mut listener = PgListener::connect_with(pool).await?;
    listener.ignore_pool_close_event(false);
    listener.listen_all([WORK, EVENTS]).await?;
    loop {
        let signal = listener.recv().await?;
        if signal.channel() == EVENTS {
            wake.events.send_replace(());
        } else {
            wake.work.notify_one();
        }
    }
}
