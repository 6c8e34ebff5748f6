//! The commands: raw arguments become checked options, options become calls of the library,
//! answers become output. One file per group; `dispatch` is the one place that lists them all.

mod catalog;
mod closing;
mod crawl;
mod crawl_close;
mod crawl_date;
mod crawl_plan;
mod dataset;
mod derive;
mod dispatch;
mod flow;
mod fold;
mod govern;
mod history;
mod ingest;
mod lineage;
mod log;
mod pack;
pub(crate) mod parse;
mod project;
mod prune;
mod queue;
mod read;
mod rejects;
mod revision;
mod rows;
pub(crate) mod schema;
mod shadow;
mod skeleton;
mod source;
mod sql;

pub(crate) use crawl::stop_signal;
pub(crate) use crawl_close::exit_of;
pub(crate) use crawl_date::check_new_run;
pub(crate) use crawl_plan::plan_of;
pub(crate) use dispatch::{format_of, run};
pub(crate) use queue::STATE_FOLDER;
pub(crate) use rows::write_rows;
pub(crate) use sql::{count_reads, engine as sql_engine, query_cost};
