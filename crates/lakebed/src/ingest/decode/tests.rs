//! Tests of decoding.
