//! Governance: what is checked and mended over the whole lake.

pub mod audit;
