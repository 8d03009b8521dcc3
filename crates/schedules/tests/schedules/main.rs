//! The contracts of the parts where tasks of one process meet, in many orders of their steps.

mod answers;
mod events;
mod fetched;
mod joint;
mod room;
mod settler;
mod writer;
