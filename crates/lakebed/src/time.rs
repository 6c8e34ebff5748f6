//! Clock, instants, business dates and unique ids: the only place that asks the machine for the
//! time or for randomness. Stages take values of these types and never look themselves.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::Serialize;

use crate::error::{Error, Result};
use crate::name::read_as_text;

/// An instant in microseconds since 1970-01-01T00:00:00Z; written as RFC 3339 in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(into = "String")]
pub struct Instant(i64);

read_as_text!(Instant);

impl Instant {
    /// From microseconds since the epoch.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since the epoch.
    #[must_use]
    pub fn micros(self) -> i64 {
        self.0
    }

    /// The later of this instant and the one a microsecond after `previous`: log times grow.
    #[must_use]
    pub fn after(self, previous: Option<Self>) -> Self {
        match previous {
            Some(p) if p.0 >= self.0 => Self(p.0 + 1),
            _ => self,
        }
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_microsecond(self.0) {
            Ok(t) => write!(f, "{t:.6}"),
            Err(_) => write!(f, "{}us", self.0),
        }
    }
}

impl FromStr for Instant {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        let t: jiff::Timestamp = text.parse().map_err(|e| {
            Error::invalid(format!("`{text}` is not an RFC 3339 instant")).caused_by(e)
        })?;
        Ok(Self(t.as_microsecond()))
    }
}

impl From<Instant> for String {
    fn from(value: Instant) -> Self {
        value.to_string()
    }
}

/// A calendar day in the lake's time zone, years 0001 to 9999, written `YYYY-MM-DD`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(into = "String")]
pub struct BusinessDate(Date);

read_as_text!(BusinessDate);

impl BusinessDate {
    /// Not after any date.
    pub const MIN: Self = Self(Date::MIN);
    /// Not before any date.
    pub const MAX: Self = Self(Date::MAX);

    /// The calendar day.
    #[must_use]
    pub fn date(self) -> Date {
        self.0
    }

    /// Days since 1970-01-01, as Parquet and Arrow count them.
    #[must_use]
    pub fn days(self) -> i32 {
        days_since_epoch(self.0)
    }

    /// The day that lies `days` days after 1970-01-01; `None` beyond the years 0001 to 9999.
    #[must_use]
    pub fn from_days(days: i32) -> Option<Self> {
        let span = jiff::Span::new().try_days(days).ok()?;
        let date = jiff::civil::date(1970, 1, 1).checked_add(span).ok()?;
        (date.year() >= 1).then_some(Self(date))
    }

    /// The day `n` days later; clamped to the years 0001 to 9999.
    #[must_use]
    pub fn plus_days(self, n: i64) -> Self {
        Self(self.0.saturating_add(jiff::Span::new().days(n)))
    }

    /// The business date of an instant in a zone.
    #[must_use]
    pub fn of(instant: Instant, zone: &TimeZone) -> Self {
        let t = jiff::Timestamp::from_microsecond(instant.micros())
            .unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        Self(zone.to_datetime(t).date())
    }
}

/// Days since 1970-01-01.
#[must_use]
pub fn days_since_epoch(date: Date) -> i32 {
    let epoch = jiff::civil::date(1970, 1, 1);
    date.duration_since(epoch)
        .as_hours()
        .try_into()
        .map_or(0, |h: i32| h / 24)
}

impl fmt::Display for BusinessDate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:04}-{:02}-{:02}",
            self.0.year(),
            self.0.month(),
            self.0.day()
        )
    }
}

impl FromStr for BusinessDate {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        let bad = || {
            Error::invalid(format!("`{text}` is not a date"))
                .hint("a date is written YYYY-MM-DD, for example 2026-11-30")
        };
        let b = text.as_bytes();
        if b.len() != 10 || b[4] != b'-' || b[7] != b'-' {
            return Err(bad());
        }
        let number = |range: std::ops::Range<usize>| -> Option<i16> {
            let part = text.get(range)?;
            part.bytes()
                .all(|c| c.is_ascii_digit())
                .then(|| part.parse().ok())
                .flatten()
        };
        let (year, month, day) = (number(0..4), number(5..7), number(8..10));
        let (Some(year), Some(month), Some(day)) = (year, month, day) else {
            return Err(bad());
        };
        if year == 0 {
            return Err(bad());
        }
        let (month, day) = (i8::try_from(month), i8::try_from(day));
        let (Ok(month), Ok(day)) = (month, day) else {
            return Err(bad());
        };
        Date::new(year, month, day)
            .map(Self)
            .map_err(|e| bad().caused_by(e))
    }
}

impl From<BusinessDate> for String {
    fn from(value: BusinessDate) -> Self {
        value.to_string()
    }
}

/// Where the present time comes from: the machine, or a test.
#[derive(Debug, Default)]
pub enum Clock {
    /// The machine's clock.
    #[default]
    System,
    /// A clock that stands still until it is set; microseconds since the epoch.
    Manual(AtomicI64),
}

impl Clock {
    /// A clock of a test.
    #[must_use]
    pub fn manual(at: Instant) -> Self {
        Self::Manual(AtomicI64::new(at.micros()))
    }

    /// The present instant.
    #[must_use]
    #[allow(
        clippy::disallowed_methods,
        reason = "the one place that asks the machine for the time"
    )]
    pub fn now(&self) -> Instant {
        match self {
            Self::System => Instant(jiff::Timestamp::now().as_microsecond()),
            Self::Manual(at) => Instant(at.load(Ordering::SeqCst)),
        }
    }
}

/// A new unique id: 16 hex digits of time (so that ids sort by age), then 16 of randomness.
#[must_use]
#[allow(
    clippy::disallowed_methods,
    reason = "the one place that asks the machine for randomness"
)]
pub fn unique_id(clock: &Clock) -> String {
    static COUNTER: AtomicI64 = AtomicI64::new(0);
    let mut random = [0_u8; 8];
    if getrandom::fill(&mut random).is_err() {
        // Without a random source, process id and a counter still tell two ids of a machine apart.
        let n = COUNTER.fetch_add(1, Ordering::SeqCst);
        let seed = format!("{}:{n}:{}", std::process::id(), clock.now().micros());
        random.copy_from_slice(&blake3::hash(seed.as_bytes()).as_bytes()[..8]);
    }
    format!(
        "{:016x}{:016x}",
        clock.now().micros(),
        u64::from_be_bytes(random)
    )
}

/// A new secret: 256 bits of the machine's randomness as 64 hex digits.
///
/// # Errors
/// `Unavailable` where the machine has no random source: a secret is never made of anything else.
#[allow(
    clippy::disallowed_methods,
    reason = "the one place that asks the machine for randomness"
)]
pub fn new_secret() -> Result<String> {
    let mut random = [0_u8; 32];
    getrandom::fill(&mut random)
        .map_err(|e| Error::unavailable(format!("ask the machine for randomness: {e}")))?;
    Ok(random.iter().map(|b| format!("{b:02x}")).collect())
}

/// The IANA time zone of that name.
pub fn time_zone(name: &str) -> Result<TimeZone> {
    TimeZone::get(name).map_err(|e| {
        Error::invalid(format!("`{name}` is not a time zone"))
            .caused_by(e)
            .hint("use an IANA name, for example `Asia/Shanghai`, `Asia/Taipei` or `UTC`")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_strict() {
        for good in ["0001-01-01", "1234-01-01", "2024-02-29", "9999-12-31"] {
            assert_eq!(good.parse::<BusinessDate>().unwrap().to_string(), good);
        }
        for bad in [
            "0000-01-01",
            "2023-02-29",
            "2024-2-9",
            "2024/02/09",
            "20240209",
            "2024-13-01",
            "",
            "٢٠٢٤-01-01",
        ] {
            assert!(bad.parse::<BusinessDate>().is_err(), "{bad}");
        }
    }

    #[test]
    fn days_count_from_the_epoch() {
        let days = |t: &str| t.parse::<BusinessDate>().unwrap().days();
        assert_eq!(days("1970-01-01"), 0);
        assert_eq!(days("1969-12-31"), -1);
        assert_eq!(days("2024-05-20"), 19863);
        assert_eq!(days("0001-01-01"), -719_162);
        assert_eq!(days("9999-12-31"), 2_932_896);
    }

    #[test]
    fn log_times_grow() {
        let t = Instant::from_micros(5);
        assert_eq!(t.after(Some(Instant::from_micros(9))).micros(), 10);
        assert_eq!(t.after(None).micros(), 5);
    }

    #[test]
    fn instants_round_trip() {
        let t = Instant::from_micros(1_716_163_200_000_001);
        assert_eq!(t.to_string(), "2024-05-20T00:00:00.000001Z");
        assert_eq!(t.to_string().parse::<Instant>().unwrap(), t);
    }

    #[test]
    fn ids_differ() {
        assert_ne!(unique_id(&Clock::System), unique_id(&Clock::System));
    }
}
