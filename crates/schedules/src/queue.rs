//! The worker's places for files, and the writing of endings.

pub mod settle;

#[path = "../../server/src/queue/room.rs"]
pub mod room;
#[path = "../../server/src/queue/settler.rs"]
pub mod settler;
#[path = "../../server/src/queue/tenant_share.rs"]
pub mod tenant_share;

pub mod breaker {
    pub use landfall_server::queue::breaker::BreakerConfig;
}

pub mod config {
    pub use landfall_server::queue::config::StageConfig;
}
