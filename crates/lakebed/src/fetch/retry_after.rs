//! `Retry-After`: how long a host wants to be left alone. A duration, never an instant: clocks of workers differ.

use std::time::Duration;

use http::{HeaderMap, header};
use jiff::civil::DateTime;

use super::head::text_of;
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
    /// How long a header asks for, within the bounds; `None` for rubbish and negative numbers. A date is counted from
    /// `now`: what the answer itself says in `Date`, where it does.
    #[must_use]
    pub fn read(&self, value: &str, now: Instant) -> Option<Duration> {
        let value = value.trim();
        let wait = if !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit()) {
            // More digits than a number has mean "very long".
            value.parse().map_or(self.max, Duration::from_secs)
        } else {
            let at = http_date(value)?;
            let micros = at.micros().saturating_sub(now.micros());
            Duration::from_micros(u64::try_from(micros).unwrap_or(0))
        };
        Some(wait.clamp(self.min, self.max))
    }

    /// As [`Self::read`], where a date is counted from what the answer says in `Date`, and from `here` where
    /// that says nothing.
    #[must_use]
    pub fn read_beside(&self, value: &str, date: Option<&str>, here: Instant) -> Option<Duration> {
        self.read(value, date.and_then(http_date).unwrap_or(here))
    }

    /// The patience with a host that named none.
    #[must_use]
    pub fn unnamed(&self) -> Duration {
        self.default.clamp(self.min, self.max)
    }
}

/// What the host's own clock said when it answered; `None` where it did not say.
pub(super) fn answered_at(headers: &HeaderMap) -> Option<Instant> {
    http_date(&text_of(headers, &header::DATE)?)
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
            ("120", Some(120)),
            (" 120 ", Some(120)),
            ("0", Some(1)),
            ("86400", Some(3600)),
            ("99999999999999999999999999", Some(3600)),
            ("Mon, 30 Nov 2026 12:10:00 GMT", Some(600)),
            ("Monday, 30-Nov-26 12:10:00 GMT", Some(600)),
            ("Mon Nov 30 12:10:00 2026", Some(600)),
            ("Mon Nov  2 12:10:00 2026", Some(1)),
            ("Mon, 30 Nov 2026 11:00:00 GMT", Some(1)),
            ("Fri, 30 Nov 2046 12:10:00 GMT", Some(3600)),
            ("-5", None),
            ("+5", None),
            ("1.5", None),
            ("5 minutes", None),
            ("soon", None),
            ("", None),
            ("Mon, 31 Feb 2026 12:10:00 GMT", None),
        ] {
            assert_eq!(
                limits.read(value, now),
                expected.map(Duration::from_secs),
                "{value}"
            );
        }
        assert_eq!(limits.unnamed(), Duration::from_secs(60));
    }
}
