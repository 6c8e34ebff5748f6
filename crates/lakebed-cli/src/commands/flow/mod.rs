//! `run`, `status`, `watch`, `flow`: the stages of sources as one.

mod closed;
mod graphs;
mod run;
mod show;
mod shown;
mod status;
mod watch;

pub(crate) use run::run;
pub(crate) use show::show;
pub(crate) use status::status;
pub(crate) use watch::watch;
