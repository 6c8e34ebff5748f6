//! The site as a whole: pages over a real socket, faults as they show on the wire.

mod client;
mod content;
mod hostile;
mod numbers;
mod wire;
