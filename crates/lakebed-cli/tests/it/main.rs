//! The one integration-test binary: the real `lakebed` on real folders.

mod api;
mod audit;
mod backups;
mod bad_input;
mod commit;
mod crawl_rules;
mod demo;
mod demo_site;
mod disk;
mod dual;
mod lake;
mod latest;
mod lines;
mod output;
mod pack;
mod parse;
mod parse_runs;
mod personal;
mod project;
mod real;
mod retype;
mod revision;
mod schema;
