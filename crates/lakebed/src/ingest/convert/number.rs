//! Numbers from their text: integers, floats and decimals, exact or refused.
//!
//! Nothing passes through a float on its way to an integer or a decimal.

use crate::ingest::json::ShortNumber;

/// Why a number does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NumberTrouble {
    /// The text is no number as the type takes it.
    Format,
    /// Too large or too small.
    Range,
    /// More digits after the point than the type keeps.
    Precision,
}

/// Largest number of digits that a decimal holds.
const MAX_DIGITS: usize = 38;

const POWERS: [u128; MAX_DIGITS + 1] = {
    let mut powers = [1_u128; MAX_DIGITS + 1];
    let mut i = 1;
    while i <= MAX_DIGITS {
        powers[i] = powers[i - 1] * 10;
        i += 1;
    }
    powers
};

/// Integers of so few digits cannot overflow an `i64`.
const SAFE_INT_DIGITS: usize = 18;

/// Whether `text` is `-?digits[.digits][e[+-]digits]`: a JSON number, leading zeros allowed.
pub(crate) fn is_number(text: &str) -> bool {
    let mut rest = text.as_bytes();
    let digits = |rest: &mut &[u8]| {
        let n = rest.iter().take_while(|b| b.is_ascii_digit()).count();
        *rest = &rest[n..];
        n > 0
    };
    if let [b'-', more @ ..] = rest {
        rest = more;
    }
    if !digits(&mut rest) {
        return false;
    }
    if let [b'.', more @ ..] = rest {
        rest = more;
        if !digits(&mut rest) {
            return false;
        }
    }
    if let [b'e' | b'E', more @ ..] = rest {
        rest = more;
        if let [b'+' | b'-', more @ ..] = rest {
            rest = more;
        }
        if !digits(&mut rest) {
            return false;
        }
    }
    rest.is_empty()
}

/// The digits of a plain integer text and whether it is negative.
#[inline]
fn plain_digits(text: &str) -> Option<(bool, &[u8])> {
    let bytes = text.as_bytes();
    let (negative, digits) = match bytes {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, bytes),
    };
    (!digits.is_empty() && digits.iter().all(u8::is_ascii_digit)).then_some((negative, digits))
}

#[inline]
fn small_int(negative: bool, digits: &[u8]) -> i64 {
    let value = digits
        .iter()
        .fold(0_i64, |n, b| n * 10 + i64::from(b - b'0'));
    if negative { -value } else { value }
}

/// An integer from ASCII digits with an optional minus; leading zeros are allowed.
#[inline]
pub(crate) fn int_from_text(text: &str) -> Result<i64, NumberTrouble> {
    let (negative, digits) = plain_digits(text).ok_or(NumberTrouble::Format)?;
    if digits.len() <= SAFE_INT_DIGITS {
        return Ok(small_int(negative, digits));
    }
    wide_int(text)
}

/// An integer from a JSON number that is exactly integral.
#[inline]
pub(crate) fn int_from_number(text: &str) -> Result<i64, NumberTrouble> {
    match plain_digits(text) {
        Some((negative, digits)) if digits.len() <= SAFE_INT_DIGITS => {
            Ok(small_int(negative, digits))
        }
        _ => wide_int(text),
    }
}

fn wide_int(text: &str) -> Result<i64, NumberTrouble> {
    let value = scaled(text, 19, 0)?;
    i64::try_from(value).map_err(|_| NumberTrouble::Range)
}

/// A float from a number text whose grammar was checked. An integer literal must be held exactly;
/// fractions round as IEEE 754 says; what overflows is refused.
pub(crate) fn float(text: &str) -> Result<f64, NumberTrouble> {
    if let Some((negative, digits)) = plain_digits(text) {
        if digits.len() <= 15 {
            #[allow(
                clippy::cast_precision_loss,
                reason = "integers of 15 digits are exact in a double"
            )]
            let value = small_int(false, digits) as f64;
            // `-0` keeps its sign, as `-0.0` does.
            return Ok(if negative { -value } else { value });
        }
        let value: f64 = text.parse().map_err(|_| NumberTrouble::Format)?;
        if value.is_infinite() {
            return Err(NumberTrouble::Range);
        }
        let first = digits.iter().position(|b| *b != b'0');
        let wanted = first.map_or(&b"0"[..], |i| &digits[i..]);
        let exact = format!("{:.0}", value.abs());
        return if exact.as_bytes() == wanted {
            Ok(value)
        } else {
            Err(NumberTrouble::Precision)
        };
    }
    let value: f64 = text.parse().map_err(|_| NumberTrouble::Format)?;
    if value.is_finite() {
        Ok(value)
    } else {
        Err(NumberTrouble::Range)
    }
}

/// Digits of a number as they are read: `mantissa` ends in a digit that is not zero.
#[derive(Default)]
struct Digits {
    mantissa: u128,
    significant: usize,
    pending_zeros: i64,
    fraction: i64,
}

impl Digits {
    #[inline]
    fn push(&mut self, digit: u8, in_fraction: bool) {
        self.fraction += i64::from(in_fraction);
        if digit == 0 {
            if self.significant > 0 {
                self.pending_zeros += 1;
            }
            return;
        }
        let shift = usize::try_from(self.pending_zeros).map_or(usize::MAX, |z| z + 1);
        self.pending_zeros = 0;
        let shift = if self.significant == 0 { 1 } else { shift };
        self.significant = self.significant.saturating_add(shift);
        if self.significant <= MAX_DIGITS {
            self.mantissa = self.mantissa * POWERS[shift] + u128::from(digit);
        }
    }
}

/// The unscaled value of a decimal, exact from the digits of a number text whose grammar was checked
/// (leading zeros and exponents allowed).
#[inline]
pub(crate) fn scaled(text: &str, precision: u8, scale: u8) -> Result<i128, NumberTrouble> {
    if let Some((negative, digits, fraction)) = short_decimal(text)
        && let Some(value) = scaled_digits(digits, fraction, precision, scale)
    {
        return signed(value, negative);
    }
    scaled_long(text, precision, scale)
}

/// Digits of which `fraction` follow the point, at a decimal's scale; `None` where they do not fit.
#[inline]
fn scaled_digits(digits: u64, fraction: usize, precision: u8, scale: u8) -> Option<u128> {
    let power = POWERS.get(usize::from(scale).checked_sub(fraction)?)?;
    // 18 digits and the scale's 38 at most do not always fit; what does not takes the long way.
    let value = u128::from(digits).checked_mul(*power)?;
    (value < POWERS[usize::from(precision).min(MAX_DIGITS)]).then_some(value)
}

/// As [`scaled`], of a number that was read already; `None` where the long way must look at it.
#[inline]
pub(crate) fn short_scaled(number: ShortNumber, precision: u8, scale: u8) -> Option<i128> {
    let value = scaled_digits(number.digits, number.fraction, precision, scale)?;
    i128::try_from(value).ok()
}

/// As [`float`], of a number that was read already; `None` where it has too many digits to be exact.
#[inline]
pub(crate) fn short_float(number: ShortNumber) -> Option<f64> {
    const POWERS: [f64; 16] = [
        1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
    ];
    if number.count > 15 {
        return None;
    }
    #[allow(
        clippy::cast_precision_loss,
        reason = "integers of 15 digits are exact in a double"
    )]
    let digits = number.digits as f64;
    // Both are exact, so the quotient is rounded once, as the decimal itself would be.
    Some(digits / POWERS.get(number.fraction)?)
}

/// Sign, digits and number of fraction digits of a plain number of at most 18 digits.
#[inline]
fn short_decimal(text: &str) -> Option<(bool, u64, usize)> {
    let bytes = text.as_bytes();
    let (negative, bytes) = match bytes {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, bytes),
    };
    if bytes.len() > SAFE_INT_DIGITS + 1 {
        return None;
    }
    let mut digits = 0_u64;
    let mut point = bytes.len();
    for (i, b) in bytes.iter().enumerate() {
        let digit = b.wrapping_sub(b'0');
        if digit < 10 {
            digits = digits * 10 + u64::from(digit);
        } else if *b == b'.' {
            point = i + 1;
        } else {
            return None;
        }
    }
    Some((negative, digits, bytes.len() - point))
}

/// As [`scaled`], for any number of digits and any exponent.
fn scaled_long(text: &str, precision: u8, scale: u8) -> Result<i128, NumberTrouble> {
    let bytes = text.as_bytes();
    let (negative, bytes) = match bytes {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, bytes),
    };
    let mut digits = Digits::default();
    let mut in_fraction = false;
    let mut exponent = 0_i64;
    for (i, b) in bytes.iter().enumerate() {
        match b {
            b'0'..=b'9' => digits.push(b - b'0', in_fraction),
            b'.' => in_fraction = true,
            b'e' | b'E' => {
                exponent = exponent_of(&bytes[i + 1..]);
                break;
            }
            _ => return Err(NumberTrouble::Format),
        }
    }
    if digits.significant == 0 {
        return Ok(0);
    }
    let shift = exponent + digits.pending_zeros - digits.fraction + i64::from(scale);
    let Ok(shift) = usize::try_from(shift) else {
        return Err(NumberTrouble::Precision);
    };
    if digits.significant.saturating_add(shift) > usize::from(precision).min(MAX_DIGITS) {
        return Err(NumberTrouble::Range);
    }
    signed(digits.mantissa * POWERS[shift], negative)
}

fn signed(value: u128, negative: bool) -> Result<i128, NumberTrouble> {
    let value = i128::try_from(value).map_err(|_| NumberTrouble::Range)?;
    Ok(if negative { -value } else { value })
}

/// An exponent, cut off far beyond anything that fits.
fn exponent_of(bytes: &[u8]) -> i64 {
    let (negative, digits) = match bytes {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, bytes),
    };
    let limit = i64::MAX / 4;
    let value = digits.iter().fold(0_i64, |n, b| {
        (n.saturating_mul(10)
            .saturating_add(i64::from(b.wrapping_sub(b'0'))))
        .min(limit)
    });
    if negative { -value } else { value }
}

/// The unscaled value of a decimal that is exactly the float; a float that is not a decimal of that
/// scale (0.1 is none) is refused.
pub(crate) fn scaled_from_float(
    value: f64,
    precision: u8,
    scale: u8,
) -> Result<i128, NumberTrouble> {
    if value == 0.0 {
        return Ok(0);
    }
    let bits = value.to_bits();
    let biased = i64::try_from((bits >> 52) & 0x7ff).unwrap_or(0);
    let stored = bits & ((1 << 52) - 1);
    let (mut mantissa, mut exponent) = if biased == 0 {
        (stored, -1074)
    } else {
        (stored | (1 << 52), biased - 1075)
    };
    let zeros = mantissa.trailing_zeros();
    mantissa >>= zeros;
    exponent += i64::from(zeros);
    let mantissa = u128::from(mantissa);
    let scale = usize::from(scale);
    let whole = if exponent >= 0 {
        let shift = u32::try_from(exponent).map_err(|_| NumberTrouble::Range)?;
        let shifted = (shift < 75).then(|| mantissa << shift);
        shifted.and_then(|n| n.checked_mul(POWERS[scale]))
    } else {
        let halvings = usize::try_from(-exponent).map_err(|_| NumberTrouble::Precision)?;
        if halvings > scale {
            return Err(NumberTrouble::Precision);
        }
        let fives = POWERS[halvings] >> halvings;
        mantissa
            .checked_mul(fives)
            .and_then(|n| n.checked_mul(POWERS[scale - halvings]))
    };
    let whole = whole.ok_or(NumberTrouble::Range)?;
    if whole >= POWERS[usize::from(precision).min(MAX_DIGITS)] {
        return Err(NumberTrouble::Range);
    }
    signed(whole, value < 0.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::NumberTrouble::{Format, Precision, Range};
    use super::*;

    #[test]
    fn ints_from_json_numbers_are_exactly_integral() {
        for (text, wanted) in [
            ("0", Ok(0)),
            ("-0", Ok(0)),
            ("7.0", Ok(7)),
            ("1e3", Ok(1000)),
            ("12.30e1", Ok(123)),
            ("-9223372036854775808", Ok(i64::MIN)),
            ("9223372036854775807", Ok(i64::MAX)),
            ("9223372036854775808", Err(Range)),
            ("-9223372036854775809", Err(Range)),
            ("36893488147419103232", Err(Range)),
            ("1e400", Err(Range)),
            ("1e99999999999999999999", Err(Range)),
            ("0e99999999999999999999", Ok(0)),
            ("1e-99999999999999999999", Err(Precision)),
            ("1.5", Err(Precision)),
            ("10e-2", Err(Precision)),
            ("100e-2", Ok(1)),
            ("1000000000000000000000000000000000000000000e-41", Ok(10)),
        ] {
            assert_eq!(int_from_number(text), wanted, "{text}");
        }
    }

    #[test]
    fn ints_from_texts_are_digits() {
        assert_eq!(int_from_text("00123"), Ok(123));
        assert_eq!(int_from_text("-007"), Ok(-7));
        assert_eq!(int_from_text("0000000000000000000000009"), Ok(9));
        assert_eq!(int_from_text("9223372036854775808"), Err(Range));
        for bad in [
            "", "-", "+1", "4.0", " 4", "4 ", "1_000", "0x1F", "٣", "１", "1e3", "--1",
        ] {
            assert_eq!(int_from_text(bad), Err(Format), "{bad}");
        }
    }

    #[test]
    fn floats_hold_integers_exactly_or_not_at_all() {
        assert_eq!(float("9007199254740992"), Ok(9_007_199_254_740_992.0));
        assert_eq!(float("9007199254740993"), Err(Precision));
        assert_eq!(float("-9007199254740994"), Ok(-9_007_199_254_740_994.0));
        assert_eq!(float("100000000000000000000000"), Err(Precision));
        assert_eq!(float("00000000000000000000003"), Ok(3.0));
        assert_eq!(
            float("18446744073709551616"),
            Ok(18_446_744_073_709_551_616.0)
        );
        assert_eq!(float("0.1"), Ok(0.1));
        assert_eq!(float("1e-7"), Ok(1e-7));
        assert_eq!(float("1e-400"), Ok(0.0));
        assert_eq!(float("1e400"), Err(Range));
        assert_eq!(float(&"9".repeat(400)), Err(Range));
    }

    #[test]
    fn decimals_are_exact() {
        for (text, wanted) in [
            ("1.00", Ok(100)),
            ("1.200", Ok(120)),
            ("-0.05", Ok(-5)),
            ("5", Ok(500)),
            ("0005.10", Ok(510)),
            ("1.2e1", Ok(1200)),
            ("12345678.90", Ok(1_234_567_890)),
            ("99999999.99", Ok(9_999_999_999)),
            ("100000000.00", Err(Range)),
            ("1e8", Err(Range)),
            ("1.234", Err(Precision)),
            ("1.005", Err(Precision)),
            ("0.000", Ok(0)),
            ("0.001e1", Ok(1)),
        ] {
            assert_eq!(scaled(text, 10, 2), wanted, "{text}");
        }
        let nines = "9".repeat(38);
        assert_eq!(scaled(&nines, 38, 0), Ok(10_i128.pow(38) - 1));
        assert_eq!(scaled(&format!("{nines}9"), 38, 0), Err(Range));
        assert_eq!(
            scaled("18446744073709551615", 20, 0),
            Ok(18_446_744_073_709_551_615)
        );
        let long = format!("1.{}1", "0".repeat(60));
        assert_eq!(scaled(&long, 38, 10), Err(Precision));
    }

    #[test]
    fn floats_into_decimals_only_by_their_exact_value() {
        assert_eq!(scaled_from_float(1.5, 10, 2), Ok(150));
        assert_eq!(scaled_from_float(-0.25, 10, 2), Ok(-25));
        assert_eq!(scaled_from_float(0.1, 10, 2), Err(Precision));
        assert_eq!(scaled_from_float(1e10, 10, 2), Err(Range));
        assert_eq!(
            scaled_from_float(1e30, 38, 0),
            Ok(1_000_000_000_000_000_019_884_624_838_656)
        );
        assert_eq!(scaled_from_float(f64::MIN_POSITIVE, 38, 38), Err(Precision));
        assert_eq!(scaled_from_float(f64::MAX, 38, 0), Err(Range));
        assert_eq!(scaled_from_float(7.0, 19, 0), Ok(7));
    }

    proptest! {
        #[test]
        fn any_writing_of_a_decimal_is_the_same(value in -10_i64.pow(15)..10_i64.pow(15), zeros in 0_usize..40, exponent in -30_i64..30) {
            let sign = if value < 0 { "-" } else { "" };
            let digits = value.unsigned_abs();
            let plain = format!("{sign}{digits}.{}", "0".repeat(zeros + 1));
            prop_assert_eq!(scaled(&plain, 38, 4), Ok(i128::from(value) * 10_000));
            let shifted = format!("{sign}{digits}e{exponent}");
            let back = scaled(&shifted, 38, 38);
            if let Ok(v) = back {
                let power = u32::try_from(38 + exponent).unwrap();
                prop_assert_eq!(v, i128::from(value) * 10_i128.pow(power));
            }
        }

        #[test]
        fn the_short_way_and_the_long_way_agree(
            text in "-?(0|[0-9]{1,20})(\\.[0-9]{1,12})?",
            precision in 1_u8..=38,
            scale in 0_u8..=38,
        ) {
            let scale = scale.min(precision);
            prop_assert_eq!(scaled(&text, precision, scale), scaled_long(&text, precision, scale));
        }

        #[test]
        fn any_i64_is_read(value in any::<i64>()) {
            prop_assert_eq!(int_from_text(&value.to_string()), Ok(value));
            prop_assert_eq!(int_from_number(&format!("{value}.0")), Ok(value));
        }

        #[test]
        fn any_number_text_is_no_crash(text in "-?[0-9]{1,60}(\\.[0-9]{1,60})?([eE][+-]?[0-9]{1,25})?") {
            prop_assert!(is_number(&text));
            prop_assert_ne!(scaled(&text, 38, 9), Err(Format));
            prop_assert_ne!(float(&text), Err(Format));
        }
    }
}
