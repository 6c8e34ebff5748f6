//! Resolving the escapes of a JSON string whose escapes were checked by the scanner.

use std::borrow::Cow;

/// What resolving met, to be counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unescaped {
    /// Lone surrogates that became U+FFFD.
    pub lone_surrogates: u64,
    /// NUL characters.
    pub nuls: u64,
}

pub(super) fn hex4(bytes: &[u8]) -> Option<u32> {
    let mut value = 0;
    for b in bytes.get(..4)? {
        value = value * 16 + char::from(*b).to_digit(16)?;
    }
    Some(value)
}

/// Appends the text of `body`, its escapes resolved, to `out`.
pub fn unescape_into(body: &str, out: &mut String) -> Unescaped {
    let mut met = Unescaped::default();
    let bytes = body.as_bytes();
    let mut at = 0;
    while let Some(next) = memchr::memchr(b'\\', &bytes[at..]) {
        out.push_str(&body[at..at + next]);
        at += next;
        let simple = match bytes.get(at + 1) {
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                at += unescape_unit(&bytes[at..], out, &mut met);
                continue;
            }
            Some(&other) => char::from(other),
            None => break,
        };
        out.push(simple);
        at += 2;
    }
    out.push_str(body.get(at..).unwrap_or_default());
    met
}

/// Resolves the `\uXXXX` (or the pair of two) at the beginning of `bytes`; returns its length.
fn unescape_unit(bytes: &[u8], out: &mut String, met: &mut Unescaped) -> usize {
    let unit = bytes.get(2..).and_then(hex4).unwrap_or(0xfffd);
    let mut length = 6;
    let mut code = unit;
    if (0xd800..0xdc00).contains(&unit)
        && bytes.get(6..8) == Some(b"\\u")
        && let Some(low @ 0xdc00..0xe000) = bytes.get(8..).and_then(hex4)
    {
        code = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
        length = 12;
    }
    let c = char::from_u32(code).unwrap_or_else(|| {
        met.lone_surrogates += 1;
        char::REPLACEMENT_CHARACTER
    });
    met.nuls += u64::from(c == '\0');
    out.push(c);
    length.min(bytes.len())
}

/// The text of `body`, its escapes resolved where it has any.
#[must_use]
pub fn unescaped(body: &str, escaped: bool) -> Cow<'_, str> {
    if !escaped {
        return Cow::Borrowed(body);
    }
    let mut out = String::with_capacity(body.len());
    unescape_into(body, &mut out);
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(body: &str) -> (String, Unescaped) {
        let mut out = String::new();
        let met = unescape_into(body, &mut out);
        (out, met)
    }

    #[test]
    fn escapes_resolve() {
        assert_eq!(both(r#"a\"\\\/\b\f\n\r\té"#).0, "a\"\\/\u{8}\u{c}\n\r\té");
        assert_eq!(both(r"\u5fae\u535A x").0, "微博 x");
        assert_eq!(both(r"\ud83d\ude00").0, "😀");
    }

    #[test]
    fn lone_surrogates_and_nul_are_counted() {
        for (body, text, lone) in [
            (r"a\ud83d", "a\u{fffd}", 1),
            (r"\ude00b", "\u{fffd}b", 1),
            (r"\ud83d\ud83d\ude00", "\u{fffd}😀", 1),
            (r"\ud83dx\ude00", "\u{fffd}x\u{fffd}", 2),
            (r"\ud83d\n", "\u{fffd}\n", 1),
            (r"\ufffd", "\u{fffd}", 0),
        ] {
            let (got, met) = both(body);
            assert_eq!((got.as_str(), met.lone_surrogates), (text, lone), "{body}");
        }
        assert_eq!(both(r"a\u0000b").1.nuls, 1);
    }
}
