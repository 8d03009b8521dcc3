//! Whether PostgreSQL is there.
//!
//! The pool tries for seconds to connect to a server that is away, and everybody who comes by would wait that long. So
//! the first who waits for longer than a busy server takes looks whether there is a server at all; once it is known that
//! there is none, all are told so at once, until a connection is made again.

use std::sync::Arc;
use std::time::Duration;

use sqlx::Connection;
use sqlx_postgres::{PgConnection, PgPool};
use tokio::sync::{Mutex, watch};

use crate::Error;
use landfall_core::clock::Clock;

/// After so long without a connection somebody looks whether the server is there.
const SUSPICIOUS: Duration = Duration::from_secs(1);
/// How long a server that is there takes to let one in.
const LOOK: Duration = Duration::from_secs(2);
/// How long one waits for a server that is known to be away: so long it may take to notice that it is back.
const WHILE_AWAY: Duration = Duration::from_millis(500);

#[derive(Clone)]
pub struct Outage {
    away: Arc<watch::Sender<bool>>,
    looking: Arc<Mutex<()>>,
}

impl Outage {
    pub fn none() -> Self {
        Self { away: Arc::new(watch::Sender::new(false)), looking: Arc::default() }
    }

    /// Waits for a connection that is asked of the pool, for as long as there is somebody to connect to.
    pub async fn outwait<T>(
        &self,
        pool: &PgPool,
        connection: impl Future<Output = Result<T, sqlx::Error>>,
    ) -> Result<T, Error> {
        let answer = if *self.away.borrow() {
            let answer = tokio::time::timeout(WHILE_AWAY, connection).await;
            answer.unwrap_or(Err(sqlx::Error::PoolTimedOut))
        } else {
            self.suspiciously(pool, connection).await
        };
        match answer {
            Ok(connection) => {
                if self.away.send_if_modified(|away| std::mem::replace(away, false)) {
                    tracing::info!("the database is back");
                }
                Ok(connection)
            }
            Err(error) => Err(Error::from(error)),
        }
    }

    async fn suspiciously<T>(
        &self,
        pool: &PgPool,
        connection: impl Future<Output = Result<T, sqlx::Error>>,
    ) -> Result<T, sqlx::Error> {
        tokio::pin!(connection);
        tokio::select! {
            answer = &mut connection => return answer,
            () = Clock::System.sleep(SUSPICIOUS) => {}
        }
        // One looks for all.
        if let Ok(_looking) = self.looking.try_lock() {
            let looked = tokio::select! {
                answer = &mut connection => return answer,
                looked = look(pool) => looked,
            };
            if let Err(error) = looked {
                if !self.away.send_replace(true) {
                    tracing::error!(%error, "the database is away");
                }
                return Err(sqlx::Error::PoolTimedOut);
            }
        }
        let mut away = self.away.subscribe();
        tokio::select! {
            answer = connection => answer,
            Ok(_) = away.wait_for(|away| *away) => Err(sqlx::Error::PoolTimedOut),
        }
    }
}

async fn look(pool: &PgPool) -> Result<(), sqlx::Error> {
    let options = pool.connect_options();
    let connected = tokio::time::timeout(LOOK, PgConnection::connect_with(&options));
    let connection = connected.await.unwrap_or(Err(sqlx::Error::PoolTimedOut))?;
    // Whether or not the goodbye arrives.
    drop(tokio::time::timeout(LOOK, connection.close()).await);
    Ok(())
}
