//! Numbers, keys and ids as SQL keeps them.

use crate::name::RequestKey;

/// How many, as SQL counts.
pub(super) fn len<T>(items: &[T]) -> i64 {
    i64::try_from(items.len()).unwrap_or(i64::MAX)
}

/// `u64` as SQL keeps it; no count comes near the end of the range.
pub(super) fn signed(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// A count that SQL keeps.
pub(super) fn unsigned(n: i64) -> u64 {
    u64::try_from(n).unwrap_or(0)
}

/// The 16 bytes of a key.
pub(super) fn key_bytes(key: &RequestKey) -> Vec<u8> {
    let digits = key.as_str().as_bytes();
    let nibble = |d: u8| if d <= b'9' { d - b'0' } else { d - b'a' + 10 };
    digits
        .chunks_exact(2)
        .map(|pair| nibble(pair[0]) << 4 | nibble(pair[1]))
        .collect()
}

/// Small hex digits of bytes.
pub(super) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut out, b| {
        // Writing into a String cannot fail.
        write!(out, "{b:02x}").unwrap_or_default();
        out
    })
}
