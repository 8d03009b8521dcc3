//! Sends events to one client, until something ends the stream.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::outlet::Outlet;
use crate::delivery::EventsConfig;
use crate::delivery::fan_out::{Delivery, Next, Subscription};
use landfall_core::clock::{Clock, Time};

/// A longer sleep is split: timers have a maximum.
const MAX_SLEEP: Duration = Duration::from_hours(24);
/// How many signs of life may stay without a reply.
const MAX_UNANSWERED: u32 = 2;

pub struct Delivering {
    pub subscription: Subscription,
    /// When the token expires with which the stream was opened.
    pub until: Time,
    pub clock: Clock,
    pub config: EventsConfig,
    pub closing: CancellationToken,
    /// Whether to continue after all past events are sent.
    pub follow: bool,
}

/// Why a stream ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The client left, or cannot be reached any more.
    Gone,
    TooSlow,
    TokenExpired,
    ServerStopping,
    CaughtUp,
    Trouble,
}

impl Ending {
    pub fn code(self) -> &'static str {
        match self {
            Self::Gone => "GONE",
            Self::TooSlow => "TOO_SLOW",
            Self::TokenExpired => "TOKEN_EXPIRED",
            Self::ServerStopping => "SERVER_STOPPING",
            Self::CaughtUp => "CAUGHT_UP",
            Self::Trouble => "EVENTS_UNAVAILABLE",
        }
    }

    /// The WebSocket close code: RFC 6455 defines those below 4000.
    pub fn close_code(self) -> u16 {
        match self {
            Self::Gone | Self::CaughtUp => 1000,
            Self::ServerStopping => 1001,
            Self::Trouble => 1011,
            Self::TooSlow => 4008,
            Self::TokenExpired => 4001,
        }
    }
}

impl Delivering {
    pub async fn run(mut self, mut outlet: Outlet) {
        let ending = self.deliver(&mut outlet).await;
        tracing::debug!(ending = ending.code(), "an event stream ended");
        // The subscription's resources are freed before the client is told.
        drop(self.subscription);
        outlet.end(ending).await;
    }

    async fn deliver(&mut self, outlet: &mut Outlet) -> Ending {
        let mut expiry = Box::pin(expire(self.clock.clone(), self.until));
        let mut beat = sleep(self.config.heartbeat);
        let mut unanswered = 0;
        loop {
            let messages = tokio::select! {
                () = self.closing.cancelled() => return Ending::ServerStopping,
                () = &mut expiry => return Ending::TokenExpired,
                next = self.subscription.next() => match next {
                    Ok(Next::Messages(messages)) => messages,
                    Ok(Next::CaughtUp) if self.follow => continue,
                    Ok(Next::CaughtUp) => return Ending::CaughtUp,
                    Ok(Next::TooSlow) => return Ending::TooSlow,
                    Err(error) => {
                        tracing::warn!(%error, "a client's events could not be read");
                        return Ending::Trouble;
                    }
                },
                is_there = outlet.heard() => {
                    if !is_there {
                        return Ending::Gone;
                    }
                    unanswered = 0;
                    continue;
                }
                () = &mut beat => {
                    beat = sleep(self.config.heartbeat);
                    unanswered += 1;
                    if outlet.must_answer() && unanswered > MAX_UNANSWERED {
                        return Ending::Gone;
                    }
                    if let Err(ending) = self.within(outlet.beat()).await {
                        return ending;
                    }
                    continue;
                }
            };
            if let Err(ending) = self.send(outlet, messages).await {
                return ending;
            }
        }
    }

    async fn send(&self, outlet: &mut Outlet, messages: Vec<Arc<Delivery>>) -> Result<(), Ending> {
        for message in messages {
            self.within(outlet.send(&message)).await?;
        }
        Ok(())
    }

    /// A client must accept what is written to it within a time limit.
    async fn within(&self, written: impl Future<Output = bool>) -> Result<(), Ending> {
        tokio::select! {
            biased;
            written = written => if written { Ok(()) } else { Err(Ending::Gone) },
            () = self.closing.cancelled() => Err(Ending::ServerStopping),
            () = Clock::System.sleep(self.config.stall) => Err(Ending::TooSlow),
        }
    }
}

fn sleep(duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(Clock::System.sleep(duration))
}

async fn expire(clock: Clock, until: Time) {
    while let Ok(left) = (until - clock.now()).to_std()
        && !left.is_zero()
    {
        clock.sleep(left.min(MAX_SLEEP)).await;
    }
}
