//! What a text or a number looks like, by its characters alone.

use jiff::civil::Date;

/// The class of a text; the first that fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextClass {
    Empty,
    /// White space only.
    Blank,
    /// ASCII digits with an optional minus, as a number is written.
    Int,
    /// Digits with a leading zero: a code.
    LeadingZero,
    /// Digits, point, digits.
    Decimal,
    /// `true` or `false`.
    Bool,
    /// A day of the calendar, `YYYY-MM-DD`.
    Date,
    /// An instant as RFC 3339 writes it, with at most six fraction digits.
    Rfc3339,
    Other,
}

pub(super) fn classify(text: &str) -> TextClass {
    if text.is_empty() {
        return TextClass::Empty;
    }
    if text.chars().all(char::is_whitespace) {
        return TextClass::Blank;
    }
    if text == "true" || text == "false" {
        return TextClass::Bool;
    }
    let digits = text.strip_prefix('-').unwrap_or(text);
    if is_digits(digits) {
        return if digits.len() > 1 && digits.starts_with('0') {
            TextClass::LeadingZero
        } else {
            TextClass::Int
        };
    }
    if let Some((whole, fraction)) = digits.split_once('.')
        && is_digits(whole)
        && is_digits(fraction)
    {
        return if whole.len() > 1 && whole.starts_with('0') {
            TextClass::LeadingZero
        } else {
            TextClass::Decimal
        };
    }
    if is_date(text) {
        TextClass::Date
    } else if is_rfc3339(text) {
        TextClass::Rfc3339
    } else {
        TextClass::Other
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// The number that two digits at `at` write.
fn two(text: &str, at: usize) -> Option<i8> {
    text.get(at..at + 2).filter(|t| is_digits(t))?.parse().ok()
}

fn is_date(text: &str) -> bool {
    let parse = || {
        let year: i16 = text.get(..4).filter(|t| is_digits(t))?.parse().ok()?;
        let month = two(text, 5)?;
        let day = two(text, 8)?;
        (year >= 1).then_some(())?;
        Date::new(year, month, day).ok()
    };
    text.len() == 10
        && text.as_bytes()[4] == b'-'
        && text.as_bytes()[7] == b'-'
        && parse().is_some()
}

fn is_rfc3339(text: &str) -> bool {
    let check = || {
        let day = text.get(..10)?;
        let marks = [(10, b'T'), (13, b':'), (16, b':')];
        let marked = marks
            .iter()
            .all(|(i, b)| text.as_bytes().get(*i) == Some(b));
        let in_range = two(text, 11)? < 24 && two(text, 14)? < 60 && two(text, 17)? < 60;
        let mut rest = text.get(19..)?;
        if let Some(fraction) = rest.strip_prefix('.') {
            let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
            if digits == 0 || digits > 6 {
                return None;
            }
            rest = fraction.get(digits..)?;
        }
        let offset = rest == "Z"
            || (rest.len() == 6
                && rest.starts_with(['+', '-'])
                && rest.as_bytes()[3] == b':'
                && two(rest, 1)? < 24
                && two(rest, 4)? < 60);
        Some(is_date(day) && marked && in_range && offset)
    };
    check().unwrap_or(false)
}

/// Whether an integer's digits look like a time since 1970: seconds or milliseconds of 2001 to 2286.
pub(super) fn looks_like_epoch(digits: &str) -> bool {
    (digits.len() == 10 || digits.len() == 13) && is_digits(digits) && !digits.starts_with('0')
}

/// Whether a float64 gives the number's digits back.
pub(super) fn float_keeps(text: &str) -> bool {
    let Ok(value) = text.parse::<f64>() else {
        return false;
    };
    if !value.is_finite() {
        return false;
    }
    if text.contains(['e', 'E']) {
        return true;
    }
    let plain = |t: &str| {
        let t = if t.contains('.') {
            t.trim_end_matches('0').trim_end_matches('.')
        } else {
            t
        };
        if t == "-0" {
            "0".to_owned()
        } else {
            t.to_owned()
        }
    };
    plain(text) == plain(&value.to_string())
}
