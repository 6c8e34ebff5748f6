//! `Retry-After`: how long a host wants to be left alone.

use std::time::Duration;

use jiff::civil::DateTime;

use crate::time::Instant;

/// Bounds of the patience that a host can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryAfterLimits {
    /// At least this much, whatever it says: a `0` must not become a storm.
    pub min: Duration,
    /// At most this much.
    pub max: Duration,
    /// A 429 that names no time.
    pub default: Duration,
}

impl Default for RetryAfterLimits {
    /// One second to one hour; a minute where nothing is said.
    fn default() -> Self {
        Self {
            min: Duration::from_secs(1),
            max: Duration::from_secs(3600),
            default: Duration::from_secs(60),
        }
    }
}

impl RetryAfterLimits {
    /// The instant a header asks for, within the bounds; `None` for rubbish and negative numbers.
    #[must_use]
    pub fn read(&self, value: &str, now: Instant) -> Option<Instant> {
        let value = value.trim();
        let wait = if !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit()) {
            // More digits than a number has mean "very long".
            value.parse().map_or(self.max, Duration::from_secs)
        } else {
            let at = http_date(value)?;
            let micros = at.micros().saturating_sub(now.micros());
            Duration::from_micros(u64::try_from(micros).unwrap_or(0))
        };
        Some(later(now, wait.clamp(self.min, self.max)))
    }

    /// The instant for a host that named none.
    #[must_use]
    pub fn unnamed(&self, now: Instant) -> Instant {
        later(now, self.default.clamp(self.min, self.max))
    }
}

/// `now` and `wait` together.
pub(super) fn later(now: Instant, wait: Duration) -> Instant {
    let micros = i64::try_from(wait.as_micros()).unwrap_or(i64::MAX);
    Instant::from_micros(now.micros().saturating_add(micros))
}

/// A date of HTTP (RFC 9110, 5.6.7) in its present form or one of the two obsolete ones.
pub(super) fn http_date(text: &str) -> Option<Instant> {
    let (_, after_weekday) = text.split_once([' '])?;
    let bare = after_weekday
        .trim()
        .strip_suffix("GMT")
        .unwrap_or(after_weekday)
        .trim();
    let civil = [
        "%d %b %Y %H:%M:%S",
        "%d-%b-%y %H:%M:%S",
        "%b %e %H:%M:%S %Y",
    ]
    .iter()
    .find_map(|format| DateTime::strptime(format, bare).ok())?;
    let at = jiff::tz::TimeZone::UTC.to_timestamp(civil).ok()?;
    Some(Instant::from_micros(at.as_microsecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Instant {
        text.parse().unwrap()
    }

    #[test]
    fn seconds_and_dates_within_bounds() {
        let limits = RetryAfterLimits::default();
        let now = at("2026-11-30T12:00:00Z");
        for (value, expected) in [
            ("120", Some("2026-11-30T12:02:00Z")),
            (" 120 ", Some("2026-11-30T12:02:00Z")),
            ("0", Some("2026-11-30T12:00:01Z")),
            ("86400", Some("2026-11-30T13:00:00Z")),
            ("99999999999999999999999999", Some("2026-11-30T13:00:00Z")),
            (
                "Mon, 30 Nov 2026 12:10:00 GMT",
                Some("2026-11-30T12:10:00Z"),
            ),
            (
                "Monday, 30-Nov-26 12:10:00 GMT",
                Some("2026-11-30T12:10:00Z"),
            ),
            ("Mon Nov 30 12:10:00 2026", Some("2026-11-30T12:10:00Z")),
            ("Mon Nov  2 12:10:00 2026", Some("2026-11-30T12:00:01Z")),
            (
                "Mon, 30 Nov 2026 11:00:00 GMT",
                Some("2026-11-30T12:00:01Z"),
            ),
            (
                "Fri, 30 Nov 2046 12:10:00 GMT",
                Some("2026-11-30T13:00:00Z"),
            ),
            ("-5", None),
            ("+5", None),
            ("1.5", None),
            ("5 minutes", None),
            ("soon", None),
            ("", None),
            ("Mon, 31 Feb 2026 12:10:00 GMT", None),
        ] {
            assert_eq!(limits.read(value, now), expected.map(at), "{value}");
        }
        assert_eq!(limits.unnamed(now), at("2026-11-30T12:01:00Z"));
    }
}
