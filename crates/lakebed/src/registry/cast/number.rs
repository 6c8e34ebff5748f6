//! Numbers of casts: plain notation, decimals of other scales, floats by their digits.

use crate::registry::cast::pairs::FLOAT_DIGITS;
use crate::spec::Lossy;

/// The largest double below which every integer is one.
const EXACT_INTEGERS: f64 = 9_007_199_254_740_992.0;
/// Two to the power of 63: one more than the largest integer of 64 bits.
const INT_END: f64 = 9_223_372_036_854_775_808.0;
/// Ten to the power of [`FLOAT_DIGITS`].
const FLOAT_UNITS: i128 = 1_000_000_000_000_000;

/// A number in plain notation, digits apart: no plus, no blank, no exponent, no leading zero, no zero
/// with a minus.
struct Plain<'a> {
    negative: bool,
    whole: &'a str,
    fraction: &'a str,
    has_point: bool,
}

fn plain(text: &str) -> Option<Plain<'_>> {
    let (negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (whole, fraction, has_point) = match rest.split_once('.') {
        Some((whole, fraction)) => (whole, fraction, true),
        None => (rest, "", false),
    };
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let sound = digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && (!has_point || digits(fraction));
    let zero = |part: &str| part.bytes().all(|b| b == b'0');
    (sound && !(negative && zero(whole) && zero(fraction))).then_some(Plain {
        negative,
        whole,
        fraction,
        has_point,
    })
}

/// An integer in plain notation.
pub(super) fn int_of_text(text: &str) -> Option<i64> {
    plain(text).filter(|p| !p.has_point)?;
    text.parse().ok()
}

/// A float in plain notation of at most 15 digits.
pub(super) fn float_of_text(text: &str) -> Option<f64> {
    let digits = plain(text).map(|p| p.whole.len() + p.fraction.len())?;
    (digits <= usize::from(FLOAT_DIGITS)).then(|| text.parse().ok())?
}

/// A decimal in plain notation; zeros at the end of a fraction do not count.
pub(super) fn decimal_of_text(text: &str, precision: u8, scale: u8) -> Option<i128> {
    let number = plain(text)?;
    let fraction = number.fraction.trim_end_matches('0');
    let missing = usize::from(scale).checked_sub(fraction.len())?;
    let digits = format!("{}{fraction}{}", number.whole, "0".repeat(missing));
    let digits = digits.trim_start_matches('0');
    if digits.len() > usize::from(precision) {
        return None;
    }
    let units: i128 = match digits {
        "" => 0,
        digits => digits.parse().ok()?,
    };
    Some(if number.negative { -units } else { units })
}

/// A decimal with all digits of its scale.
pub(super) fn decimal_text(units: i128, scale: u8) -> String {
    let scale = usize::from(scale);
    let digits = format!("{:0>width$}", units.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let sign = if units < 0 { "-" } else { "" };
    match fraction {
        "" => format!("{sign}{whole}"),
        fraction => format!("{sign}{whole}.{fraction}"),
    }
}

fn power(exponent: u8) -> Option<i128> {
    10_i128.checked_pow(u32::from(exponent))
}

/// The units of a decimal at another scale; what is too fine is an error, or cut as `lossy` says.
pub(super) fn rescaled(units: i128, from: u8, to: (u8, u8), lossy: Option<Lossy>) -> Option<i128> {
    let (precision, scale) = to;
    let units = match scale.checked_sub(from) {
        Some(more) => units.checked_mul(power(more)?)?,
        None => {
            let step = power(from - scale)?;
            let (whole, rest) = (units / step, units % step);
            match lossy {
                None if rest != 0 => return None,
                // A step is even and at least ten, so its half is whole.
                Some(Lossy::Round) if rest.abs() >= step / 2 => whole + rest.signum(),
                None | Some(_) => whole,
            }
        }
    };
    (units.unsigned_abs() < power(precision)?.unsigned_abs()).then_some(units)
}

/// The integer that a float is.
#[allow(
    clippy::cast_possible_truncation,
    reason = "the range is checked, and what is cut off is zero or declared"
)]
pub(super) fn int_of_float(value: f64, lossy: Option<Lossy>) -> Option<i64> {
    let whole = match lossy {
        None if value.fract() != 0.0 => return None,
        None => value,
        // Above, a float is not the number that was sent.
        Some(_) if value.abs() >= EXACT_INTEGERS => return None,
        Some(Lossy::Truncate) => value.trunc(),
        Some(Lossy::Round) => value.round(),
    };
    (-INT_END..INT_END).contains(&whole).then_some(whole as i64)
}

/// The float that an integer is; the nearest one where `lossy` says so.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "what is lost is looked for"
)]
pub(super) fn float_of_int(value: i64, lossy: Option<Lossy>) -> Option<f64> {
    let float = value as f64;
    let back = float < INT_END && float as i64 == value;
    (back || lossy == Some(Lossy::Round)).then_some(float)
}

/// The decimal of at most 15 digits whose nearest double a float is.
#[allow(
    clippy::cast_possible_truncation,
    reason = "integers of 15 digits are exact in a double"
)]
pub(super) fn decimal_of_float(value: f64, precision: u8, scale: u8) -> Option<i128> {
    let steps = 10_f64.powi(i32::from(scale));
    let units = (value * steps).round();
    let small = units.abs() < 1e15 && units / steps == value;
    let units = small.then_some(units as i128)?;
    (units.unsigned_abs() < power(precision)?.unsigned_abs()).then_some(units)
}

/// The double nearest to a decimal of at most 15 digits; of any where `lossy` says so.
#[allow(
    clippy::cast_precision_loss,
    reason = "integers of 15 digits are exact in a double"
)]
pub(super) fn float_of_decimal(units: i128, scale: u8, lossy: Option<Lossy>) -> Option<f64> {
    if units.abs() < FLOAT_UNITS {
        return Some(units as f64 / 10_f64.powi(i32::from(scale)));
    }
    match lossy {
        Some(Lossy::Round) => decimal_text(units, scale).parse().ok(),
        Some(Lossy::Truncate) | None => None,
    }
}
