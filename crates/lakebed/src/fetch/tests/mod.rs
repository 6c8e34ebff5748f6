//! Fetches against real servers on this machine.

mod bodies;
mod connections;
mod hops;
mod origins;
mod proxies;
mod secure;
mod server;
mod tries;
