//! Numbers, keys and ids as SQL keeps them.

use crate::error::{Error, Result};
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
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut out = String::with_capacity(bytes.len() * 2);
    for b in bytes {
        for nibble in [b >> 4, b & 15] {
            out.push(char::from(DIGITS[usize::from(nibble)]));
        }
    }
    out
}

/// The bytes of hex digits, as a database wrote them.
pub(super) fn bytes_of_hex(digits: &str) -> Result<Vec<u8>> {
    let nibble = |d: u8| char::from(d).to_digit(16);
    let pairs = digits.as_bytes().chunks(2);
    let byte = |pair: &[u8]| match *pair {
        [high, low] => u8::try_from((nibble(high)? << 4) | nibble(low)?).ok(),
        _ => None,
    };
    let bytes: Option<Vec<u8>> = pairs.map(byte).collect();
    bytes.ok_or_else(|| Error::internal("read the hex digits of a body"))
}
