//! govern
