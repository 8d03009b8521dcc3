//! This process among those that share the database: it proves that it lives, and notices when another does not.

pub mod liveness;
