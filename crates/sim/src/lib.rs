//! The simulator: several whole processes of the server over one database and one object store, with clients and faults, on one
//! thread and in simulated time. A history is a pure function of its seed, so a failure can be repeated, shrunk and kept.
//!
//! `docs/reliability.md` says what it covers and what it does not.

// What happens: drawn from the seed.
pub mod plan;
// The surroundings of a process, with their faults.
pub mod entropy;
pub mod shared;
pub mod trace;
pub mod database;
pub mod storage;
pub mod services;
pub mod receiver;
// The processes and their time; the clients.
pub mod world;
pub mod clients;
pub mod deeds;
// One history and its verdict; many of them; a smaller one that fails in the same way.
pub mod oracles;
pub mod history;
pub mod forks;
pub mod shrink;
pub mod report;
