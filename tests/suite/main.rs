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
mod curl_suite;
mod damage;
mod dashboard;
mod database_outage;
mod dead_letters;
mod documents;
mod embedding_service;
mod fairness;
mod formats;
mod gateway;
mod healing;
mod health;
mod journey;
mod lifecycle;
mod liveness;
mod logs;
mod limits;
mod losses;
mod mending;
mod model_folder;
mod notifications;
mod observability;
mod ocr;
mod operations;
mod outages;
mod ownership;
mod queue;
mod quotas;
mod races;
mod recovery;
mod recovery_document;
mod reindex;
mod retries;
mod runbooks;
mod sandbox;
mod scan;
mod search;
mod terminal;
mod traps;
mod traces;
mod waiting;
