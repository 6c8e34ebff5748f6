//! Lakebed takes crawl data its whole way: queue, raw packs, partitions, manifests, gates.
//!
//! Layers, each naming lower ones only (a test keeps it so):
//!
//! | layer | modules |
//! | --- | --- |
//! | 5 | `crawl`, `flow` |
//! | 4 | `queue`, `fetch`, `pack`, `parse`, `ingest`, `fold`, `govern` |
//! | 3 | `log`, `catalog`, `registry` |
//! | 2 | `store`, `config` |
//! | 1 | `spec` |
//! | 0 | `error`, `name`, `time`, `fault` |

pub mod catalog;
pub mod config;
pub mod crawl;
pub mod error;
pub mod fault;
pub mod fetch;
pub mod flow;
pub mod fold;
pub mod govern;
pub mod ingest;
pub mod log;
pub mod name;
pub mod pack;
pub mod parse;
pub mod queue;
pub mod registry;
pub mod spec;
pub mod store;
pub mod time;

pub use error::{Error, ErrorKind, Result};
