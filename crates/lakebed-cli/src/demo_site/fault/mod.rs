//! Faults on order: how a real site misbehaves, one by one, for all requests or for some.
//!
//! `spec` is what can be ordered and how it is written, `memory` what the faults remember from
//! request to request, `verdict` what comes of them for one request. Carrying it out belongs to
//! `serve` and `body`.

mod memory;
mod spec;
mod verdict;

pub(crate) use memory::FaultMemory;
pub(crate) use spec::{CharsetFault, FaultSpec, PageKind, RetryForm, RobotsFault};
pub(crate) use verdict::{Block, Look, Pacing, Refusal, Request, Verdict, judge};
