//! A file arrives: it is registered, its bytes are uploaded, its owner confirms. And it leaves again: deleted.

pub mod announce;
pub mod batches;
pub mod cancel;
pub mod cancel_batch;
pub mod confirm;
pub mod delete;
pub mod idempotency;
pub mod register;
pub mod revive;
pub mod upload;
