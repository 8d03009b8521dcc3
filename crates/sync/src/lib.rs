//! What threads and tasks of one process meet with, in the parts that `crates/schedules` tests.
//!
//! These are the primitives of the standard library and of Tokio, and nothing else. `crates/schedules` compiles the same
//! sources with `crates/schedules-sync` under this name, where each call is a point at which another task may run.
//!
//! This crate may use no other crate of ours.

pub use std::sync::{Mutex, MutexGuard, RwLock, atomic};

pub use tokio::spawn;
pub use tokio::sync::{Mutex as AsyncMutex, Notify, OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};
