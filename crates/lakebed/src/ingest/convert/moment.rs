//! Dates and instants from their text: the strict defaults and the epoch forms.
//!
//! The years are 0001 to 9999, of the instant in UTC as well. Fractions keep six digits; further
//! digits must be zeros.

use crate::ingest::convert::number::{NumberTrouble, int_from_text, is_number, scaled};

/// Why a text is no date or instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MomentTrouble {
    /// Not written as declared.
    Format,
    /// A day or an instant outside the years 0001 to 9999, or one that the calendar does not have.
    Range,
    /// More than six fraction digits that are not zeros.
    Precision,
    /// A wall time that the zone's clocks skipped.
    Gap,
    /// A wall time that the zone's clocks showed twice.
    Fold,
}

pub(crate) const MICROS_PER_SECOND: i64 = 1_000_000;
pub(crate) const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SECOND;
const MIN_DAY: i64 = -719_162;
const MAX_DAY: i64 = 2_932_896;

/// Days since 1970-01-01 of a day in the years 1 to 9999, if the calendar has it.
#[inline]
pub(crate) fn day_number(year: u32, month: u32, day: u32) -> Option<i32> {
    const LENGTHS: [u32; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let index = usize::try_from(month.checked_sub(1)?).ok()?;
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let length = LENGTHS.get(index)? + u32::from(leap && month == 2);
    if day == 0 || day > length || year == 0 || year > 9999 {
        return None;
    }
    // Years begin in March, so that the leap day is the last one (all values stay positive).
    let y = if month <= 2 { year - 1 } else { year };
    let m = (month + 9) % 12;
    let of_year = (153 * m + 2) / 5 + day - 1;
    let days = y * 365 + y / 4 - y / 100 + y / 400 + of_year;
    i32::try_from(days).ok().map(|d| d - 719_468)
}

/// Year, month and day of a day number, whatever its year.
pub(crate) fn calendar_day(day: i64) -> (i64, i64, i64) {
    // Years begin in March, as in `day_number`; 146097 days are 400 years.
    let shifted = day + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = (shifted_month + 2) % 12 + 1;
    (era * 400 + year + i64::from(month <= 2), month, day)
}

/// `YYYY-MM-DD` of a day number.
pub(crate) fn date_text(day: i64) -> String {
    let (year, month, day) = calendar_day(day);
    format!("{year:04}-{month:02}-{day:02}")
}

/// `YYYY-MM-DDTHH:MM:SS.ffffff` of microseconds since 1970-01-01T00:00:00.
pub(crate) fn wall_text(micros: i64) -> String {
    let date = date_text(micros.div_euclid(MICROS_PER_DAY));
    let of_day = micros.rem_euclid(MICROS_PER_DAY);
    let (seconds, fraction) = (of_day / MICROS_PER_SECOND, of_day % MICROS_PER_SECOND);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{date}T{hour:02}:{minute:02}:{second:02}.{fraction:06}")
}

/// Whether the instant lies in the years 0001 to 9999 of UTC.
#[inline]
pub(crate) fn in_range(micros: i64) -> Result<i64, MomentTrouble> {
    if (MIN_DAY * MICROS_PER_DAY..(MAX_DAY + 1) * MICROS_PER_DAY).contains(&micros) {
        Ok(micros)
    } else {
        Err(MomentTrouble::Range)
    }
}

/// Whether the day lies in the years 0001 to 9999.
pub(crate) fn day_in_range(day: i32) -> bool {
    (MIN_DAY..=MAX_DAY).contains(&i64::from(day))
}

/// Exactly two digits.
#[inline]
fn two(bytes: &[u8], at: usize) -> Option<u32> {
    let (a, b) = (
        bytes.get(at)?.wrapping_sub(b'0'),
        bytes.get(at + 1)?.wrapping_sub(b'0'),
    );
    (a < 10 && b < 10).then(|| u32::from(a) * 10 + u32::from(b))
}

/// The day of `YYYY-MM-DD` at the beginning of `bytes`.
#[inline]
fn leading_day(bytes: &[u8]) -> Result<i32, MomentTrouble> {
    let parts = || {
        let year = two(bytes, 0)? * 100 + two(bytes, 2)?;
        let dashes = bytes.get(4) == Some(&b'-') && bytes.get(7) == Some(&b'-');
        dashes.then_some((year, two(bytes, 5)?, two(bytes, 8)?))
    };
    let (year, month, day) = parts().ok_or(MomentTrouble::Format)?;
    day_number(year, month, day).ok_or(MomentTrouble::Range)
}

/// Days since the epoch of `YYYY-MM-DD`.
#[inline]
pub(crate) fn date(text: &str) -> Result<i32, MomentTrouble> {
    if text.len() != 10 {
        return Err(MomentTrouble::Format);
    }
    leading_day(text.as_bytes())
}

/// Microseconds of the digits at the beginning of `bytes`, and how many digits there are.
#[inline]
pub(crate) fn fraction(bytes: &[u8]) -> Result<(i64, usize), MomentTrouble> {
    let mut micros = 0;
    let mut count = 0;
    while let Some(digit) = bytes.get(count).filter(|b| b.is_ascii_digit()) {
        if count < 6 {
            micros = micros * 10 + i64::from(digit - b'0');
        } else if *digit != b'0' {
            return Err(MomentTrouble::Precision);
        }
        count += 1;
    }
    if count == 0 {
        return Err(MomentTrouble::Format);
    }
    for _ in count..6 {
        micros *= 10;
    }
    Ok((micros, count))
}

/// Microseconds since the epoch of a strict RFC 3339 text: `T`, seconds, an offset with colon or `Z`.
#[inline]
pub(crate) fn rfc3339(text: &str) -> Result<i64, MomentTrouble> {
    let bytes = text.as_bytes();
    let shape = bytes.len() >= 20 && bytes[10] == b'T' && bytes[13] == b':' && bytes[16] == b':';
    if !shape {
        return Err(MomentTrouble::Format);
    }
    let day = leading_day(bytes)?;
    let time = (two(bytes, 11), two(bytes, 14), two(bytes, 17));
    let (Some(hour), Some(minute), Some(second)) = time else {
        return Err(MomentTrouble::Format);
    };
    if hour > 23 || minute > 59 || second > 59 {
        return Err(MomentTrouble::Range);
    }
    let (mut micros, mut at) = (0, 19);
    if bytes[19] == b'.' {
        let (value, digits) = fraction(&bytes[20..])?;
        micros = value;
        at = 20 + digits;
    }
    let offset = match bytes.get(at..).unwrap_or_default() {
        [b'Z'] => 0,
        rest @ [sign @ (b'+' | b'-'), _, _, b':', _, _] => {
            let (Some(hours), Some(minutes)) = (two(rest, 1), two(rest, 4)) else {
                return Err(MomentTrouble::Format);
            };
            if hours > 23 || minutes > 59 {
                return Err(MomentTrouble::Range);
            }
            let seconds = i64::from(hours * 3600 + minutes * 60);
            if *sign == b'-' { -seconds } else { seconds }
        }
        _ => return Err(MomentTrouble::Format),
    };
    let seconds = i64::from(hour * 3600 + minute * 60 + second) - offset;
    in_range(i64::from(day) * MICROS_PER_DAY + seconds * MICROS_PER_SECOND + micros)
}

/// The unit of an epoch form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EpochUnit {
    /// `epoch_s`, which alone takes fractions.
    Seconds,
    /// `epoch_ms`.
    Millis,
    /// `epoch_us`.
    Micros,
}

impl EpochUnit {
    pub(crate) fn find(name: &str) -> Option<Self> {
        match name {
            "epoch_s" => Some(Self::Seconds),
            "epoch_ms" => Some(Self::Millis),
            "epoch_us" => Some(Self::Micros),
            _ => None,
        }
    }

    fn per_unit(self) -> i64 {
        match self {
            Self::Seconds => MICROS_PER_SECOND,
            Self::Millis => 1000,
            Self::Micros => 1,
        }
    }

    /// An instant from an unscaled count of units.
    pub(crate) fn instant(self, units: i64) -> Result<i64, MomentTrouble> {
        in_range(
            units
                .checked_mul(self.per_unit())
                .ok_or(MomentTrouble::Range)?,
        )
    }

    /// From a JSON number by its text: exactly integral, for seconds with a fraction.
    pub(crate) fn of_number(self, text: &str) -> Result<i64, MomentTrouble> {
        let trouble = |t| match t {
            NumberTrouble::Format => MomentTrouble::Format,
            NumberTrouble::Range => MomentTrouble::Range,
            NumberTrouble::Precision => MomentTrouble::Precision,
        };
        let (scale, unit) = match self {
            Self::Seconds => (6, Self::Micros),
            Self::Millis | Self::Micros => (0, self),
        };
        let value = scaled(text, 25, scale).map_err(trouble)?;
        unit.instant(i64::try_from(value).map_err(|_| MomentTrouble::Range)?)
    }

    /// From a text of digits with an optional minus, for seconds with a fraction.
    pub(crate) fn of_text(self, text: &str) -> Result<i64, MomentTrouble> {
        match int_from_text(text) {
            Ok(units) => self.instant(units),
            Err(NumberTrouble::Range) => Err(MomentTrouble::Range),
            Err(NumberTrouble::Format | NumberTrouble::Precision) => {
                let plain = !text.bytes().any(|b| matches!(b, b'e' | b'E'));
                if self == Self::Seconds && plain && is_number(text) {
                    return self.of_number(text);
                }
                Err(MomentTrouble::Format)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::MomentTrouble::{Format, Precision, Range};
    use super::*;

    #[test]
    fn the_calendar_is_that_of_jiff() {
        let mut day = jiff::civil::date(1, 1, 1);
        loop {
            let part = |n: i8| u32::try_from(n).unwrap();
            let year = u32::try_from(day.year()).unwrap();
            assert_eq!(
                day_number(year, part(day.month()), part(day.day())),
                Some(crate::time::days_since_epoch(day))
            );
            let days = i64::from(crate::time::days_since_epoch(day));
            assert_eq!(date_text(days), day.to_string());
            match day.checked_add(jiff::Span::new().days(13)) {
                Ok(next) => day = next,
                Err(_) => break,
            }
        }
        assert_eq!(day_number(9999, 12, 31), Some(2_932_896));
        for (y, m, d) in [
            (0, 1, 1),
            (10_000, 1, 1),
            (2023, 2, 29),
            (1900, 2, 29),
            (2024, 13, 1),
            (2024, 0, 1),
            (2024, 4, 31),
            (2024, 1, 0),
        ] {
            assert_eq!(day_number(y, m, d), None);
        }
        assert!(day_number(2000, 2, 29).is_some());
    }

    #[test]
    fn rfc3339_is_strict() {
        let second = 1_716_192_000_000_000;
        for (text, wanted) in [
            ("2024-05-20T08:00:00Z", Ok(second)),
            ("2024-05-20T08:00:00+02:00", Ok(second - 7_200_000_000)),
            ("2024-05-20T08:00:00-05:30", Ok(second + 19_800_000_000)),
            ("2024-05-20T08:00:00-00:00", Ok(second)),
            ("2024-05-20T08:00:00.25Z", Ok(second + 250_000)),
            ("2024-05-20T08:00:00.123456000Z", Ok(second + 123_456)),
            ("2024-05-20T08:00:00.1234567Z", Err(Precision)),
            ("1969-12-31T23:59:59.999999Z", Ok(-1)),
            ("0001-01-01T00:00:00Z", Ok(-62_135_596_800_000_000)),
            ("0001-01-01T00:00:00+00:01", Err(Range)),
            ("9999-12-31T23:59:59.999999Z", Ok(253_402_300_799_999_999)),
            ("9999-12-31T23:59:59-00:01", Err(Range)),
            ("2024-05-20T24:00:00Z", Err(Range)),
            ("2024-05-20T23:59:60Z", Err(Range)),
            ("2024-02-30T00:00:00Z", Err(Range)),
            ("2024-05-20T08:00:00+24:00", Err(Range)),
            ("2024-05-20t08:00:00Z", Err(Format)),
            ("2024-05-20T08:00:00z", Err(Format)),
            ("2024-05-20 08:00:00Z", Err(Format)),
            ("2024-05-20T08:00:00", Err(Format)),
            ("2024-05-20T08:00Z", Err(Format)),
            ("2024-05-20T08:00:00+0200", Err(Format)),
            ("2024-05-20T08:00:00+02", Err(Format)),
            ("2024-05-20T08:00:00.Z", Err(Format)),
            ("2024-05-20T08:00:00,5Z", Err(Format)),
            ("2024-05-20T08:00:00Z ", Err(Format)),
            (" 2024-05-20T08:00:00Z", Err(Format)),
            ("2024-5-20T08:00:00Z", Err(Format)),
            ("２024-05-20T08:00:0Z", Err(Format)),
            ("", Err(Format)),
        ] {
            assert_eq!(rfc3339(text), wanted, "{text}");
        }
    }

    #[test]
    fn epochs_take_digits() {
        use EpochUnit::{Micros, Millis, Seconds};
        assert_eq!(Millis.of_number("1716163200123"), Ok(1_716_163_200_123_000));
        assert_eq!(Millis.of_number("-1"), Ok(-1000));
        assert_eq!(Millis.of_number("1e3"), Ok(1_000_000));
        assert_eq!(Millis.of_number("1.5"), Err(Precision));
        assert_eq!(Millis.of_text("1716163200123"), Ok(1_716_163_200_123_000));
        assert_eq!(Millis.of_text("1.5"), Err(Format));
        assert_eq!(Millis.of_text("1.0"), Err(Format));
        assert_eq!(Millis.of_text("soon"), Err(Format));
        assert_eq!(Seconds.of_text("1716163200.25"), Ok(1_716_163_200_250_000));
        assert_eq!(Seconds.of_text("1e3"), Err(Format));
        assert_eq!(Seconds.of_number("0.0000001"), Err(Precision));
        assert_eq!(Seconds.of_number("-0.5"), Ok(-500_000));
        assert_eq!(Micros.of_number("7"), Ok(7));
        assert_eq!(Seconds.of_number("253402300800"), Err(Range));
        assert_eq!(Seconds.of_number("99999999999999999999"), Err(Range));
        assert_eq!(Micros.of_text("99999999999999999999"), Err(Range));
    }

    proptest! {
        #[test]
        fn rfc3339_agrees_with_jiff(micros in -62_135_596_800_000_000_i64..253_402_300_800_000_000) {
            let text = format!("{}Z", wall_text(micros));
            prop_assert_eq!(rfc3339(&text), Ok(micros));
            if let Ok(jiff) = text.parse::<jiff::Timestamp>() {
                prop_assert_eq!(jiff.as_microsecond(), micros);
            }
        }

        #[test]
        fn any_text_is_no_crash(text in "[0-9T:.Z+\\- 年]{0,32}") {
            if let (Ok(micros), Ok(jiff)) = (rfc3339(&text), text.parse::<jiff::Timestamp>()) {
                prop_assert_eq!(jiff.as_microsecond(), micros);
            }
            prop_assert_eq!(date(&text).ok(), text.parse::<crate::time::BusinessDate>().ok().map(|d| d.days()));
        }
    }
}
