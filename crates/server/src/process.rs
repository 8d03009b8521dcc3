//! This process among those that share the database: it proves that it is alive, and detects when another one is
//! not.

pub mod database_time;
pub mod disk_space;
pub mod liveness;
pub mod loose_modes;
pub mod machine;
pub mod workers;
