//! SQL over small lakes on disk, through the SQLite catalog.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking"
)]

mod errors;
mod floats;
mod latest;
mod nested;
mod output;
mod planning;
mod queue_tables;
mod retyped;
mod same_answer;
mod slt;
mod support;
mod tables;
mod values;
