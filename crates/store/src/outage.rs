//! Detects whether PostgreSQL can be reached.
//!
//! The pool tries for seconds to connect to a server that is down, and every caller would wait that long. So a
//! caller that waits for longer than usual checks whether the server accepts connections. Once it is known to be
//! down, callers fail quickly until a connection succeeds again.

use std::sync::Arc;
use std::time::Duration;

use sqlx::Connection;
use sqlx_postgres::{PgConnection, PgPool};
use tokio::sync::{Mutex, watch};

use crate::{Error, tls};
use landfall_core::clock::Clock;

/// After this time without a connection a caller checks whether the server is up.
const CHECK_AFTER: Duration = Duration::from_secs(1);
/// How long a server that is up may take to accept a connection. On a machine that is too busy that takes seconds.
const CHECK_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a caller waits while the server is known to be down. It is also how quickly its return is noticed.
const TIMEOUT_WHILE_DOWN: Duration = Duration::from_millis(500);

#[derive(Clone)]
pub struct Outage {
    down: Arc<watch::Sender<bool>>,
    checking: Arc<Mutex<()>>,
}

impl Outage {
    pub fn none() -> Self {
        Self { down: Arc::new(watch::Sender::new(false)), checking: Arc::default() }
    }

    /// Waits for a connection from the pool, and gives up early while the server is down.
    pub async fn acquire<T>(
        &self,
        pool: &PgPool,
        connection: impl Future<Output = Result<T, sqlx::Error>>,
    ) -> Result<T, Error> {
        let result = if *self.down.borrow() {
            let result = tokio::time::timeout(TIMEOUT_WHILE_DOWN, connection).await;
            result.unwrap_or(Err(sqlx::Error::PoolTimedOut))
        } else {
            self.acquire_or_check(pool, connection).await
        };
        match result {
            Ok(connection) => {
                if self.down.send_if_modified(|down| std::mem::replace(down, false)) {
                    tracing::info!("the database is back");
                }
                Ok(connection)
            }
            Err(error) => Err(Error::from(error)),
        }
    }

    async fn acquire_or_check<T>(
        &self,
        pool: &PgPool,
        connection: impl Future<Output = Result<T, sqlx::Error>>,
    ) -> Result<T, sqlx::Error> {
        tokio::pin!(connection);
        tokio::select! {
            result = &mut connection => return result,
            () = Clock::System.sleep(CHECK_AFTER) => {}
        }
        // One caller checks for all.
        if let Ok(_checking) = self.checking.try_lock() {
            let checked = tokio::select! {
                result = &mut connection => return result,
                checked = check(pool) => checked,
            };
            if let Err(error) = checked {
                if !self.down.send_replace(true) {
                    let why = tls::explain(&error, &pool.connect_options());
                    let error = why.unwrap_or_else(|| error.to_string());
                    tracing::error!(%error, "the database cannot be reached");
                }
                return Err(sqlx::Error::PoolTimedOut);
            }
        }
        let mut down = self.down.subscribe();
        tokio::select! {
            result = connection => result,
            Ok(_) = down.wait_for(|down| *down) => Err(sqlx::Error::PoolTimedOut),
        }
    }
}

async fn check(pool: &PgPool) -> Result<(), sqlx::Error> {
    let options = pool.connect_options();
    let connected = tokio::time::timeout(CHECK_TIMEOUT, PgConnection::connect_with(&options));
    let connection = connected.await.unwrap_or(Err(sqlx::Error::PoolTimedOut))?;
    // Whether or not the close message arrives.
    drop(tokio::time::timeout(CHECK_TIMEOUT, connection.close()).await);
    Ok(())
}
