//! Times as HTTP writes them (RFC 9110, 5.6.7): `Sun, 06 Nov 1994 08:49:37 GMT`.

use lakebed::time::{BusinessDate, Instant};

const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// A second of a day in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HttpTime {
    date: BusinessDate,
    second: u32,
}

impl HttpTime {
    /// That second of the day, the last one for seconds beyond it.
    pub(crate) fn new(date: BusinessDate, second: u32) -> Self {
        Self {
            date,
            second: second.min(86_399),
        }
    }

    /// The second in which an instant lies; `None` beyond the years 1 to 9999.
    pub(crate) fn of(instant: Instant) -> Option<Self> {
        let seconds = instant.micros().div_euclid(1_000_000);
        let days = i32::try_from(seconds.div_euclid(86_400)).ok()?;
        let second = u32::try_from(seconds.rem_euclid(86_400)).ok()?;
        Some(Self::new(BusinessDate::from_days(days)?, second))
    }

    /// Reads the form of today; the two obsolete ones give `None`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (_, rest) = text.trim().split_once(", ")?;
        let mut parts = rest.split(' ');
        let (day, month, year) = (parts.next()?, parts.next()?, parts.next()?);
        let (time, zone) = (parts.next()?, parts.next()?);
        let month = MONTHS.iter().position(|m| *m == month)? + 1;
        let date = format!("{year}-{month:02}-{day}").parse().ok()?;
        let mut clock = time.split(':').map(|n| n.parse::<u32>().ok());
        let (h, m, s) = (clock.next()??, clock.next()??, clock.next()??);
        let whole = parts.next().is_none() && clock.next().is_none() && zone == "GMT";
        (whole && h < 24 && m < 60 && s < 61).then(|| Self::new(date, h * 3600 + m * 60 + s))
    }
}

impl std::fmt::Display for HttpTime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let weekday = usize::try_from(self.date.days().rem_euclid(7)).unwrap_or(0);
        let iso = self.date.to_string();
        let (year, month, day) = (&iso[..4], &iso[5..7], &iso[8..]);
        let month = month.parse::<usize>().unwrap_or(1);
        let (weekday, month) = (DAYS[weekday % 7], MONTHS[(month + 11) % 12]);
        let (h, m, s) = (self.second / 3600, self.second / 60 % 60, self.second % 60);
        write!(
            f,
            "{weekday}, {day} {month} {year} {h:02}:{m:02}:{s:02} GMT"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_and_read() {
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Thu, 01 Jan 1970 00:00:00 GMT",
            "Wed, 31 Dec 1969 23:59:59 GMT",
            "Tue, 29 Feb 2028 12:00:00 GMT",
        ] {
            assert_eq!(HttpTime::parse(text).unwrap().to_string(), text);
        }
        let at = HttpTime::of(Instant::from_micros(784_111_777_999_999)).unwrap();
        assert_eq!(at.to_string(), "Sun, 06 Nov 1994 08:49:37 GMT");
    }

    #[test]
    fn other_texts_are_no_times() {
        for text in [
            "",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37 CET",
            "Sun, 31 Feb 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 24:00:00 GMT",
            "Sun, 06 Nov 1994 08:49 GMT",
            "Sun, 06 Nov 1994 08:49:37 GMT x",
        ] {
            assert_eq!(HttpTime::parse(text), None, "{text}");
        }
    }
}
