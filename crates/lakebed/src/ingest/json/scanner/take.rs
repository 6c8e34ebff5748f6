//! The usual forms of keys and values, read in one pass.
//!
//! Each of these methods takes the whole of what it reads, or leaves the cursor where it is: then the
//! strict way reads the text and judges it. The cursor stands on the first byte, not on white space.

use super::{HIGHS, ONES, Scanner, is_word_byte};

/// Most bytes of a key that is short.
const SHORT_BYTES: usize = 15;
/// A number of so many digits fits an `i64`.
const MAX_DIGITS: usize = 18;

/// The bytes of `n` in both halves.
const fn twice(n: u64) -> u128 {
    // `from` is not const.
    (n as u128) << 64 | n as u128
}

/// A key of at most 15 bytes as a word: its bytes and its closing quote, then zeros. No two keys have
/// the same word, since none without escapes holds a quote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ShortKey(pub(crate) u128);

impl ShortKey {
    /// The key that a name has, if it is short and JSON needs no escape for it.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        let is_plain = |b: u8| b >= 0x20 && b != b'"' && b != b'\\';
        if name.len() > SHORT_BYTES || !name.bytes().all(is_plain) {
            return None;
        }
        let quoted = format!("{name}\"");
        Self::leading(quoted.as_bytes()).map(|(key, _)| key)
    }

    /// The key up to the first quote of `bytes`, and its length; whether the bytes before the quote are
    /// those of a key is not checked.
    #[inline(always)]
    fn leading(bytes: &[u8]) -> Option<(Self, usize)> {
        let word = match bytes.first_chunk::<16>() {
            Some(chunk) => u128::from_le_bytes(*chunk),
            None => last_word(bytes),
        };
        let x = word ^ twice(ONES * 0x22);
        // The lowest mark is a quote, as in `string_stops`.
        let quotes = x.wrapping_sub(twice(ONES)) & !x & twice(HIGHS);
        if quotes == 0 {
            return None;
        }
        // All bits up to the mark, which is the highest one of its byte.
        let key = word & (quotes ^ (quotes - 1));
        Some((Self(key), (quotes.trailing_zeros() / 8) as usize))
    }
}

/// Less than 16 bytes, then zeros.
fn last_word(bytes: &[u8]) -> u128 {
    let mut padded = [0; 16];
    for (to, from) in padded.iter_mut().zip(bytes) {
        *to = *from;
    }
    u128::from_le_bytes(padded)
}

/// A number without sign and exponent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ShortNumber {
    /// The number without its point.
    pub(crate) digits: u64,
    /// How many digits there are, 18 at most.
    pub(crate) count: usize,
    /// How many of them follow the point.
    pub(crate) fraction: usize,
}

/// Adds the digits at the beginning of `bytes` to `value`; returns how many there are. What passes 64
/// bits is lost.
#[inline(always)]
fn add_digits(bytes: &[u8], value: &mut u64) -> usize {
    let mut count = 0;
    while let Some(byte) = bytes.get(count) {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        *value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
        count += 1;
    }
    count
}

impl Scanner<'_> {
    /// The next key of the open object if it is short and nothing but a blank stands before it and
    /// nothing before its colon, and the offset after the colon; the cursor stays where it is. The key
    /// is not checked: it is one only where it equals that of a name.
    #[inline(always)]
    pub(crate) fn short_key(&self, first: bool) -> Option<(ShortKey, usize)> {
        let bytes = self.text.as_bytes();
        let mut at = self.at;
        if !first {
            if bytes.get(at) != Some(&b',') {
                return None;
            }
            at += 1;
        }
        at += usize::from(bytes.get(at) == Some(&b' '));
        if bytes.get(at) != Some(&b'"') {
            return None;
        }
        at += 1;
        let (key, length) = ShortKey::leading(bytes.get(at..)?)?;
        let colon = at + length + 1;
        (bytes.get(colon) == Some(&b':')).then_some((key, colon + 1))
    }

    #[inline(always)]
    fn rest(&self) -> &[u8] {
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }

    /// An integer of at most 18 digits.
    #[inline(always)]
    pub(crate) fn take_int(&mut self) -> Option<i64> {
        let rest = self.rest();
        let negative = rest.first() == Some(&b'-');
        let rest = rest.get(usize::from(negative)..)?;
        let mut value = 0;
        let count = add_digits(rest, &mut value);
        if !is_digits_of_number(rest, count) || rest.get(count).is_some_and(is_word_byte) {
            return None;
        }
        let value = i64::try_from(value).ok()?;
        self.at += count + usize::from(negative);
        Some(if negative { -value } else { value })
    }

    /// A number of at most 18 digits without sign and exponent.
    #[inline(always)]
    pub(crate) fn take_number(&mut self) -> Option<ShortNumber> {
        let rest = self.rest();
        let mut digits = 0;
        let whole = add_digits(rest, &mut digits);
        if !is_digits_of_number(rest, whole) {
            return None;
        }
        let (mut end, mut fraction) = (whole, 0);
        if rest.get(whole) == Some(&b'.') {
            fraction = add_digits(rest.get(whole + 1..)?, &mut digits);
            end = whole + 1 + fraction;
        }
        let is_short = whole + fraction <= MAX_DIGITS && (fraction > 0 || end == whole);
        if !is_short || rest.get(end).is_some_and(is_word_byte) {
            return None;
        }
        self.at += end;
        Some(ShortNumber {
            digits,
            count: whole + fraction,
            fraction,
        })
    }

    /// `true` or `false`.
    #[inline(always)]
    pub(crate) fn take_bool(&mut self) -> Option<bool> {
        if self.take_word(b"true") {
            return Some(true);
        }
        self.take_word(b"false").then_some(false)
    }

    /// Steps over `null`.
    #[inline(always)]
    pub(crate) fn take_null(&mut self) -> bool {
        self.take_word(b"null")
    }

    #[inline(always)]
    fn take_word<const N: usize>(&mut self, word: &[u8; N]) -> bool {
        let rest = self.rest();
        let is_next =
            rest.first_chunk::<N>() == Some(word) && !rest.get(N).is_some_and(is_word_byte);
        if is_next {
            self.at += N;
        }
        is_next
    }
}

/// Whether `count` digits at the beginning of `bytes` are the whole part of a number, and not too many.
#[inline(always)]
fn is_digits_of_number(bytes: &[u8], count: usize) -> bool {
    let leading_zero = count > 1 && bytes.first() == Some(&b'0');
    count > 0 && count <= MAX_DIGITS && !leading_zero
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str, first: bool) -> Option<(ShortKey, usize)> {
        Scanner::new(text).short_key(first)
    }

    #[test]
    fn a_short_key_is_that_of_its_name() {
        for name in [
            "",
            "a",
            "posted",
            "12345678",
            "123456789012345",
            "標題",
            "é\u{7f}",
        ] {
            let expected = ShortKey::of_name(name).unwrap();
            for after in ["1}", "\"a value that is longer\"}"] {
                let text = format!("\"{name}\":{after}");
                assert_eq!(key(&text, true), Some((expected, name.len() + 3)), "{text}");
                let text = format!(", {text}");
                assert_eq!(
                    key(&text, false),
                    Some((expected, name.len() + 5)),
                    "{text}"
                );
            }
        }
        let names = [
            "",
            "a",
            "a\0",
            "b",
            "aa",
            "a b",
            "1234567a",
            "1234567b",
            "123456789",
        ];
        for a in names {
            for b in names {
                let same =
                    ShortKey::of_name(a).is_some() && ShortKey::of_name(a) == ShortKey::of_name(b);
                assert_eq!(same, a == b && !a.contains('\0'), "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn what_is_no_short_key_is_left() {
        for name in ["1234567890123456", "a\"", "a\\", "a\n", "五個漢字四a"] {
            assert_eq!(ShortKey::of_name(name), None, "{name:?}");
        }
        for text in [
            "",
            "}",
            "\"",
            "\"a",
            "\"a\"",
            "\"a\" :1",
            "a:1",
            "  \"a\":1",
            "\"1234567890123456\":1",
            ",\"a\":1",
        ] {
            assert_eq!(key(text, true), None, "{text}");
        }
        assert_eq!(key("\"a\":1", false), None);
        assert_eq!(key("}", false), None);
        // A quote in a key, or an escape, or a control character: no name has such a key.
        for text in ["\"a\\\":1", "\"\\u0061\":1", "\"a\nb\":1"] {
            if let Some((key, _)) = key(text, true) {
                assert_ne!(Some(key), ShortKey::of_name("a"), "{text}");
            }
        }
    }

    #[test]
    fn numbers_and_words_are_taken_whole_or_left() {
        let int = |text| {
            let mut scanner = Scanner::new(text);
            (scanner.take_int(), scanner.offset())
        };
        let number = |text| {
            let mut scanner = Scanner::new(text);
            let got = scanner.take_number();
            (
                got.map(|n| (n.digits, n.count, n.fraction)),
                scanner.offset(),
            )
        };
        assert_eq!(int("0,"), (Some(0), 1));
        assert_eq!(int("-12}"), (Some(-12), 3));
        assert_eq!(
            int("999999999999999999"),
            (Some(999_999_999_999_999_999), 18)
        );
        assert_eq!(number("0.50,"), (Some((50, 3, 2)), 4));
        assert_eq!(number("12 "), (Some((12, 2, 0)), 2));
        assert_eq!(
            number("1234567890.12345678]"),
            (Some((123_456_789_012_345_678, 18, 8)), 19)
        );
        for text in [
            "",
            "-",
            "x",
            "01",
            "-01",
            "1.",
            "1e5",
            "1.5e5",
            "1a",
            "1\"",
            "1-",
            "1_",
            "1+",
            "\"1\"",
            "1234567890123456789",
            "18446744073709551617",
            "-.5",
            "1.5.",
            "1..5",
        ] {
            assert_eq!(int(text), (None, 0), "{text}");
            assert_eq!(number(text), (None, 0), "{text}");
        }
        assert_eq!(int("1.5"), (None, 0));
        assert_eq!(number("-1"), (None, 0));
        assert_eq!(number("1234567890.123456789"), (None, 0));
        for (text, taken) in [
            ("true,", Some(true)),
            ("false", Some(false)),
            ("truer", None),
            ("tru", None),
            ("true.", None),
        ] {
            assert_eq!(Scanner::new(text).take_bool(), taken, "{text}");
        }
        for (text, taken) in [
            ("null", true),
            ("null}", true),
            ("nul", false),
            ("nulls", false),
            ("null\"", false),
        ] {
            assert_eq!(Scanner::new(text).take_null(), taken, "{text}");
        }
    }
}
