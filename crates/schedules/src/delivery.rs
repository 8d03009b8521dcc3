//! Event streams.

pub use landfall_server::delivery::EventsConfig;

#[path = "../../server/src/delivery/fan_out.rs"]
pub mod fan_out;
#[path = "../../server/src/delivery/tail.rs"]
pub mod tail;
