//! The request and response types of the HTTP API, one module for each resource.
//!
//! Each type is defined once. The server builds responses from it and parses requests into it, the command line does
//! the reverse, and the OpenAPI description is generated from it.
//!
//! This crate may use `landfall-core` and no other crate of the workspace. It does no I/O and knows no database.

pub mod comma_list;
pub mod page;

pub mod audit_log;
pub mod batches;
pub mod blockers;
pub mod dashboard;
pub mod dead_letters;
pub mod events;
pub mod file_queries;
pub mod files;
pub mod health;
pub mod jobs;
pub mod keys;
pub mod maintenance;
pub mod notifications;
pub mod operations;
pub mod orphans;
pub mod queues;
pub mod quotas;
pub mod refusal;
pub mod reindex;
pub mod search;
pub mod sessions;
pub mod settings;
pub mod stuck;
pub mod storage;
pub mod uploads;
pub mod webhooks;

pub use page::Page;
