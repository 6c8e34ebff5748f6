//! The test site: a rental market that changes from day to day and misbehaves on order.
//!
//! ```text
//! draw, words -> timeline, flat, offer -> market      what there is on a day (pure functions)
//! address, market -> page -> charset                  from an address and a day to bytes (pure)
//! fault                                               what goes wrong with a request
//! answer, body                                        status, headers, and bytes at their pace
//! journal                                             what was asked for, seen from the server
//! site                                                what all connections share
//! server (connections) -> serve (one request) -> control (steering)
//! command                                             `lakebed demo-site`
//! ```
//! Content is a function of seed, size, date and address, never of the clock; announced totals are
//! true; equal tests fail equally. The page for users is docs/demo-site.md. What does not belong here:
//! anything of the crawler; the site knows only what stands in a request.

mod address;
mod answer;
mod body;
mod charset;
mod command;
mod control;
mod draw;
mod fault;
mod flat;
mod http_date;
mod journal;
mod market;
mod offer;
mod page;
mod serve;
mod server;
mod site;
mod timeline;
mod words;

pub(crate) use command::run;

#[cfg(test)]
mod tests;
