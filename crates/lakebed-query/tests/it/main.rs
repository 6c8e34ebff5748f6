//! SQL over small lakes on disk, through the SQLite catalog.

mod errors;
mod output;
mod planning;
mod support;
mod tables;
mod values;
