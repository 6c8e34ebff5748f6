//! The site as a whole: pages over a real socket, faults as they show on the wire.

mod client;
mod content;
mod numbers;
mod wire;
