//! The rules of Landfall, without any I/O: the states of a file and the transitions between them, why a file may
//! fail and when it is retried, the caller, the clock, and the text that the stages pass on.
//!
//! Every other crate may use this one. It uses none of them.

// Enums with names; the states of a file, its stages, and every transition; all other states; the kinds of events.
pub mod names;
pub mod lifecycle;
pub mod states;
pub mod event;
pub mod priority;
// Why a stage did not finish, what that says about a service, and when it is retried.
pub mod failure;
pub mod reason;
pub mod service;
pub mod retry;
// The caller, who or what caused a change, and why a request is refused.
pub mod caller;
pub mod actor;
pub mod refusal;
// The text of a document, its chunks, their vectors; and what is missing of the text.
pub mod text;
pub mod warning;
// The codes of failures, refusals and warnings in the description of the API.
#[cfg(feature = "openapi")]
pub mod schemas;
// What a simulation replaces: time, chance, and threads.
#[cfg(feature = "clock")]
pub mod clock;
#[cfg(feature = "clock")]
pub mod random;
#[cfg(feature = "clock")]
pub mod blocking;
// What proves that the simulator finds faults.
pub mod mutants;
