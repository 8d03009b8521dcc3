//! The contract, in sentences. Everything that touches a database runs on SQLite and, where `make test` has started
//! one, on PostgreSQL.

#[macro_use]
mod support;

mod alerts;
mod api;
mod auth;
mod batches;
mod bombs;
mod cancelling;
mod cleaning;
mod command_line;
mod configuration;
mod corpus;
mod crashes;
mod damage;
mod dead_letters;
mod documents;
mod embedding_service;
mod fairness;
mod formats;
mod gateway;
mod healing;
mod journey;
mod lifecycle;
mod liveness;
mod limits;
mod mending;
mod model_folder;
mod notifications;
mod ocr;
mod openapi;
mod operations;
mod outages;
mod queue;
mod quotas;
mod races;
mod reindex;
mod retries;
mod sandbox;
mod scan;
mod search;
mod strangers;
mod waiting;
