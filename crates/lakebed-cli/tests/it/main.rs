//! The one integration-test binary: the real `lakebed` on real folders.

mod bad_input;
mod commit;
mod demo;
mod lake;
mod output;
mod project;
mod real;
mod schema;
