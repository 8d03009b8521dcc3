//! The Landfall server: it takes files in, turns them into searchable text, and makes sure that every one of them arrives.
//! A file ends `ready`, or `failed` with a reason that a person understands.
//!
//! The modules are layers, from the ground up: each may use those that stand before it in this list, and none that stand
//! after it. A test reads the imports and holds them to that.
//!
//! This crate may use all other crates of ours but the command line.

// How this process calls other services, and how it reports on itself.
pub mod outbound;
pub mod telemetry;

// The rows: files, batches, quotas, events, totals. The one function that moves files.
pub mod records;
// The processes that share a database, and how they notice that one of them died.
pub mod process;
// Where the bytes of a file are.
pub mod blobs;
// What was made of them: text, chunks, the index, search.
pub mod content;

// What is done to a file: scan, extract, chunk, embed.
pub mod stages;
// When it is done, and by which worker.
pub mod queue;
// A file arrives: registered, uploaded, confirmed. Or leaves: cancelled, deleted.
pub mod intake;
// What is done to many files at a person's wish, in steps.
pub mod operations;

// Who is asking.
pub mod auth;
// What happened is delivered: event streams and webhooks.
pub mod delivery;
// What went wrong is repaired, and what is not needed any more is removed.
pub mod recovery;
// How the whole of it is doing.
pub mod reports;
// Whether all of that is true.
pub mod audit;

// The parts, configured and put together.
pub mod config;
pub mod app;
// The API and the page.
pub mod http;
