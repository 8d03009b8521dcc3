//! The records that event streams read.

pub mod events;

#[path = "../../server/src/records/epochs.rs"]
pub mod epochs;
#[path = "../../server/src/records/reach.rs"]
pub mod reach;

pub mod files {
    pub mod queue {
        pub use landfall_server::records::files::queue::Lane;
    }
}
