//! `lakebed serve --api`: the queue and the packs for crawlers of somebody else, over HTTP (docs/api.md).
//!
//! ```text
//! connection -> limits -> token -> route -> body -> typed call -> office -> desk (lakebed::crawl) -> typed answer
//! ```
//!
//! | part | what it knows |
//! | --- | --- |
//! | `command`, `token` | the process: its address, its secret, its end |
//! | `server`, `body` | connections and bytes, and what they are bounded by |
//! | `route` | every call: method, path, shapes, refusals |
//! | `shape` | what calls and answers look like |
//! | `framed` | a finish with the bytes of its responses |
//! | `fail` | how a refusal looks, and its status |
//! | `office` | runs, their desks, seedings and workers |
//! | `runs`, `work` | what each call does |
//! | `openapi` | the document that `route` and `shape` make |
//!
//! API-4: nothing is answered but to who has the token, which stands in no log and no answer. API-5: what a connection can take of the
//! machine is bounded: bytes of heads and bodies, time, their number.
//!
//! What does not belong here: rules of the queue, of packs and of politeness.

mod body;
mod command;
mod fail;
mod framed;
mod office;
mod openapi;
mod route;
mod runs;
mod server;
mod shape;
mod token;
mod work;

pub(crate) use command::run;
