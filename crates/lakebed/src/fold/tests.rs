//! The engine over rows that are written down here.
