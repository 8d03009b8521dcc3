//! The contract, in sentences. Everything that touches a database runs on SQLite and, where `make test` has started
//! one, on PostgreSQL.

#[macro_use]
mod support;

mod api;
mod auth;
mod batches;
mod configuration;
mod command_line;
mod crashes;
mod damage;
mod documents;
mod journey;
mod lifecycle;
mod liveness;
mod queue;
mod quotas;
mod races;
mod sandbox;
mod search;
