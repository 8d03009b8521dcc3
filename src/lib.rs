//! Landfall takes files in, turns them into searchable text, and makes sure that every one of them arrives: it ends
//! `ready`, or `failed` with a reason that a person understands.
//!
//! The modules stand in the order in which a file meets them.

// What the states of a file are, and every way from one to another.
pub mod lifecycle;
// Why a file may not arrive.
pub mod failure;

// A file, and who it belongs to.
pub mod file;
pub mod batch;
pub mod quota;

// It arrives: registered, uploaded, confirmed.
pub mod intake;
// Its bytes have a place.
pub mod blobs;
// Its turn comes.
pub mod queue;
// Its text is taken out, cut up, and understood.
pub mod stages;
// It can be found.
pub mod index;
// What happened to it is written down.
pub mod events;
// Its owner is told.
pub mod notifications;
// So are programs that its owner named.
pub mod webhooks;
// What went wrong on the way is put right.
pub mod recovery;
// How the whole of it is doing.
pub mod observe;
// Whether all of that is true can be checked.
pub mod audit;

// The ways in for people and programs.
pub mod http;
pub mod cli;
pub mod auth;

// The ground it all stands on.
pub mod app;
pub mod config;
pub mod db;
pub mod clock;
pub mod error;
pub mod tls;
