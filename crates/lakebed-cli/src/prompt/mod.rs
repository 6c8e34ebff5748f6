//! The prompt of `lakebed sql` without a query: statements from a terminal, answers to it.
//!
//! ```text
//! editor (keys, completion, multi-line) -> session (one input) -> command (`.tables`, ...)
//!                                                              -> statement (a query that Ctrl-C stops)
//! history: what was typed, one file a user, outside of project and lake
//! ```
//!
//! Each statement is planned over what the catalog says then, so it sees commits made meanwhile. An
//! error ends a statement, never the prompt.

mod command;
mod editor;
mod history;
mod session;
mod statement;

pub(crate) use session::{PromptOptions, run};
