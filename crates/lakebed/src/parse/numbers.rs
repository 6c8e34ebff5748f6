//! Numbers as people write them, into digits: exactly, or not at all.

use crate::config::NumberMarks;

/// A number that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Digits {
    is_negative: bool,
    /// Without leading zeros; `0` at least.
    whole: String,
    /// As written; empty for none.
    fraction: String,
}

impl Digits {
    /// Reads a text that is a number and nothing else. White space at the ends does not count; full-width
    /// forms are read as their ASCII ones.
    pub(super) fn parse(text: &str, marks: &NumberMarks) -> Option<Self> {
        let text: String = text.trim().chars().map(narrow).collect();
        let (is_negative, text) = match text.strip_prefix(['-', '\u{2212}']) {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(&text)),
        };
        let decimal = narrow(marks.decimal.unwrap_or('.'));
        let (whole, fraction) = match text.split_once(decimal) {
            Some((_, "")) => return None,
            Some((whole, fraction)) => (whole, fraction),
            None => (text, ""),
        };
        let is_digits = |t: &str| t.bytes().all(|b| b.is_ascii_digit());
        if !is_digits(fraction) || whole.is_empty() {
            return None;
        }
        let whole = match marks.thousands.map(narrow) {
            Some(mark) if whole.contains(mark) => {
                let groups: Vec<&str> = whole.split(mark).collect();
                let first = groups.first().is_some_and(|g| (1..=3).contains(&g.len()));
                let rest = groups.iter().skip(1).all(|g| g.len() == 3);
                if !first || !rest {
                    return None;
                }
                groups.concat()
            }
            _ => whole.to_owned(),
        };
        if !is_digits(&whole) {
            return None;
        }
        let significant = whole.trim_start_matches('0');
        Some(Self {
            is_negative,
            whole: if significant.is_empty() {
                "0"
            } else {
                significant
            }
            .to_owned(),
            fraction: fraction.to_owned(),
        })
    }

    /// The whole number, if it is one: zeros behind the mark do not count.
    pub(super) fn to_int(&self) -> Option<String> {
        self.fraction
            .bytes()
            .all(|b| b == b'0')
            .then(|| format!("{}{}", self.sign(), self.whole))
    }

    /// With a point, and the zeros that stood there.
    pub(super) fn to_decimal(&self) -> String {
        match self.fraction.as_str() {
            "" => format!("{}{}", self.sign(), self.whole),
            fraction => format!("{}{}.{fraction}", self.sign(), self.whole),
        }
    }

    fn sign(&self) -> &'static str {
        let is_zero = self.whole == "0" && self.fraction.bytes().all(|b| b == b'0');
        if self.is_negative && !is_zero {
            "-"
        } else {
            ""
        }
    }
}

/// The ASCII form of a full-width character.
fn narrow(c: char) -> char {
    match c {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c),
        '\u{3000}' => ' ',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_by_their_marks_or_not_at_all() {
        let plain = NumberMarks::default();
        let comma = NumberMarks {
            thousands: Some(','),
            decimal: None,
        };
        let german = NumberMarks {
            thousands: Some('.'),
            decimal: Some(','),
        };
        let read =
            |text: &str, marks: &NumberMarks| Digits::parse(text, marks).map(|d| d.to_decimal());
        for (text, marks, expected) in [
            ("51.77", &plain, Some("51.77")),
            (" 007.50\u{a0}", &plain, Some("7.50")),
            ("-0.0", &plain, Some("0.0")),
            ("\u{2212}3", &plain, Some("-3")),
            ("1,234", &plain, None),
            ("1,234,567.8", &comma, Some("1234567.8")),
            ("１２，３４５．６", &comma, Some("12345.6")),
            ("1234", &comma, Some("1234")),
            ("1,23", &comma, None),
            (",123", &comma, None),
            ("1,,234", &comma, None),
            ("1.234,5", &german, Some("1234.5")),
            ("1.234", &german, Some("1234")),
            ("£1", &plain, None),
            ("1.", &plain, None),
            (".5", &plain, None),
            ("", &plain, None),
            ("1e3", &plain, None),
            ("１ ２", &plain, None),
        ] {
            assert_eq!(read(text, marks).as_deref(), expected, "{text}");
        }
        let int = |text: &str| Digits::parse(text, &plain).and_then(|d| d.to_int());
        assert_eq!(int("22.00").as_deref(), Some("22"));
        assert_eq!(int("22.5"), None);
        assert_eq!(
            int("99999999999999999999").as_deref(),
            Some("99999999999999999999")
        );
    }
}
