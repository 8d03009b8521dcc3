//! Events as streams read them.

pub use landfall_server::records::events::written;

#[path = "../../../server/src/records/events/removal.rs"]
pub mod removal;
#[path = "../../../server/src/records/events/stored.rs"]
pub mod stored;
