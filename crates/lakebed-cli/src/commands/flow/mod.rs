//! `run`, `status`, `watch`, `flow`: the stages of sources as one.

mod advice;
mod closed;
mod graphs;
mod live;
mod run;
mod show;
mod shown;
mod status;
mod tally;
mod watch;

pub(crate) use run::run;
pub(crate) use show::show;
pub(crate) use status::status;
pub(crate) use watch::watch;
