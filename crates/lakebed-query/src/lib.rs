//! SQL over a Lakebed lake.
mod scan;
