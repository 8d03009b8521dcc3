//! The simulated endpoint of a webhook, which fails at times.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use uuid::Uuid;

use landfall_core::clock::Clock;
use landfall_server::delivery::webhooks::send::Receiver;

use crate::shared::{Life, Shared};

/// What arrived at the endpoint, in its order.
pub struct Received {
    shared: Arc<Shared>,
    /// The first attempts are made in the order of the events, whatever is answered.
    attempts: Mutex<Vec<Uuid>>,
    accepted: Mutex<Vec<Uuid>>,
}

impl Received {
    pub fn new(shared: &Arc<Shared>) -> Arc<Self> {
        Arc::new(Self { shared: shared.clone(), attempts: Mutex::default(), accepted: Mutex::default() })
    }

    /// The endpoint as one process reaches it.
    pub fn of(self: &Arc<Self>, life: &Arc<Life>) -> Arc<dyn Receiver> {
        Arc::new(Endpoint { received: self.clone(), life: life.clone() })
    }

    /// The ids of the messages that arrived.
    pub fn attempts(&self) -> Vec<Uuid> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Those that were not turned away.
    pub fn accepted(&self) -> Vec<Uuid> {
        self.accepted.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

struct Endpoint {
    received: Arc<Received>,
    life: Arc<Life>,
}

impl Receiver for Endpoint {
    fn receive<'a>(&'a self, _url: &'a str, id: Uuid, _body: &'a str) -> BoxFuture<'a, Result<u16, String>> {
        async move {
            let shared = &self.received.shared;
            Clock::System.sleep(Duration::from_millis(1 + shared.number(30))).await;
            if self.life.is_over() {
                return std::future::pending().await;
            }
            self.received.attempts.lock().unwrap_or_else(PoisonError::into_inner).push(id);
            if shared.happens(shared.plan.mix.bad_receiver, "receiver failed") {
                return Ok(503);
            }
            self.received.accepted.lock().unwrap_or_else(PoisonError::into_inner).push(id);
            if shared.happens(shared.plan.mix.bad_receiver, "receiver answer lost") {
                return Err("the answer was lost".to_owned());
            }
            Ok(200)
        }
        .boxed()
    }
}
