//! Wall times of a zone into instants, by the zone's whole history.
//!
//! A zone's offset holds over long ranges, so the ranges that were looked up stay at hand: a column
//! of wall times costs a comparison a value. The ranges leave out skipped and repeated hours, which
//! are always looked up.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};

use crate::ingest::convert::moment::{
    MICROS_PER_DAY, MICROS_PER_SECOND, MomentTrouble, calendar_day, in_range,
};
use crate::spec::Ambiguous;

/// Wall times `begin..end` (microseconds) that have exactly one offset.
#[derive(Debug, Clone, Copy)]
struct Range {
    begin: i64,
    end: i64,
    offset: i64,
}

/// Ranges of one field's zone; belongs to one worker.
#[derive(Debug, Clone, Default)]
pub(crate) struct ZoneCache {
    ranges: Vec<Range>,
    last: usize,
}

/// Most ranges kept; a zone with two changes a year needs so many for decades.
const MAX_RANGES: usize = 128;

fn micros(offset: Offset) -> i64 {
    i64::from(offset.seconds()) * MICROS_PER_SECOND
}

/// The wall clock's reading as jiff's type. (jiff's own instants end two days before the year 9999
/// does, so the way does not lead over them.)
fn civil(wall: i64) -> Result<DateTime, MomentTrouble> {
    let (year, month, day) = calendar_day(wall.div_euclid(MICROS_PER_DAY));
    let seconds = wall.rem_euclid(MICROS_PER_DAY) / MICROS_PER_SECOND;
    let small = |n: i64| i8::try_from(n).map_err(|_| MomentTrouble::Range);
    let year = i16::try_from(year).map_err(|_| MomentTrouble::Range)?;
    DateTime::new(
        year,
        small(month)?,
        small(day)?,
        small(seconds / 3600)?,
        small(seconds / 60 % 60)?,
        small(seconds % 60)?,
        0,
    )
    .map_err(|_| MomentTrouble::Range)
}

impl ZoneCache {
    /// The instant of the wall time `wall` (microseconds since 1970-01-01T00:00:00 of the wall).
    #[inline]
    pub(crate) fn instant(
        &mut self,
        zone: &TimeZone,
        wall: i64,
        ambiguous: Ambiguous,
    ) -> Result<i64, MomentTrouble> {
        let holds = |r: &Range| (r.begin..r.end).contains(&wall);
        if let Some(range) = self.ranges.get(self.last).filter(|r| holds(r)) {
            return in_range(wall - range.offset);
        }
        if let Some(i) = self.ranges.iter().position(holds) {
            self.last = i;
            return in_range(wall - self.ranges[i].offset);
        }
        self.look_up(zone, wall, ambiguous)
    }

    fn look_up(
        &mut self,
        zone: &TimeZone,
        wall: i64,
        ambiguous: Ambiguous,
    ) -> Result<i64, MomentTrouble> {
        let offset = match zone.to_ambiguous_timestamp(civil(wall)?).offset() {
            AmbiguousOffset::Unambiguous { offset } => {
                self.keep(zone, wall, offset);
                offset
            }
            AmbiguousOffset::Gap { .. } => return Err(MomentTrouble::Gap),
            AmbiguousOffset::Fold { before, after } => match ambiguous {
                Ambiguous::Earlier => before,
                Ambiguous::Later => after,
                Ambiguous::Reject => return Err(MomentTrouble::Fold),
            },
        };
        in_range(wall - micros(offset))
    }

    /// Keeps the range around `wall` in which `offset` alone holds.
    fn keep(&mut self, zone: &TimeZone, wall: i64, offset: Offset) {
        let here = micros(offset);
        let Ok(instant) = Timestamp::from_microsecond(wall - here) else {
            return;
        };
        // `preceding` is strictly before; an instant at the change itself belongs to what follows it.
        let after = Timestamp::from_microsecond(wall - here + 1).unwrap_or(instant);
        let begin = zone.preceding(after).next().map_or(i64::MIN, |change| {
            let at = change.timestamp().as_microsecond();
            let earlier = Timestamp::from_microsecond(at - 1).map_or(offset, |t| zone.to_offset(t));
            at + here.max(micros(earlier))
        });
        let end = zone.following(instant).next().map_or(i64::MAX, |change| {
            change.timestamp().as_microsecond() + here.min(micros(change.offset()))
        });
        if !(begin..end).contains(&wall) {
            return;
        }
        if self.ranges.len() >= MAX_RANGES {
            self.ranges.clear();
        }
        self.last = self.ranges.len();
        self.ranges.push(Range {
            begin,
            end,
            offset: here,
        });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::time::Instant;

    fn wall(text: &str) -> i64 {
        format!("{text}Z").parse::<Instant>().unwrap().micros()
    }

    fn at(
        cache: &mut ZoneCache,
        zone: &str,
        text: &str,
        a: Ambiguous,
    ) -> Result<String, MomentTrouble> {
        let zone = crate::time::time_zone(zone).unwrap();
        let instant = cache.instant(&zone, wall(text), a)?;
        Ok(Instant::from_micros(instant)
            .to_string()
            .replace(".000000", ""))
    }

    #[test]
    fn gaps_and_folds() {
        let mut cache = ZoneCache::default();
        let mut ny = |text: &str, a| at(&mut cache, "America/New_York", text, a);
        let good = |t: &str| Ok(t.to_owned());
        for _ in 0..2 {
            assert_eq!(
                ny("2024-07-01T12:00:00", Ambiguous::Reject),
                good("2024-07-01T16:00:00Z")
            );
            assert_eq!(
                ny("2024-11-03T01:30:00", Ambiguous::Reject),
                Err(MomentTrouble::Fold)
            );
            assert_eq!(
                ny("2024-11-03T01:30:00", Ambiguous::Earlier),
                good("2024-11-03T05:30:00Z")
            );
            assert_eq!(
                ny("2024-11-03T01:30:00", Ambiguous::Later),
                good("2024-11-03T06:30:00Z")
            );
            assert_eq!(
                ny("2024-11-03T00:59:59", Ambiguous::Reject),
                good("2024-11-03T04:59:59Z")
            );
            assert_eq!(
                ny("2024-11-03T02:00:00", Ambiguous::Reject),
                good("2024-11-03T07:00:00Z")
            );
            assert_eq!(
                ny("2024-03-10T02:30:00", Ambiguous::Earlier),
                Err(MomentTrouble::Gap)
            );
            assert_eq!(
                ny("2024-03-10T03:00:00", Ambiguous::Reject),
                good("2024-03-10T07:00:00Z")
            );
            assert_eq!(
                ny("2024-03-10T01:59:59", Ambiguous::Reject),
                good("2024-03-10T06:59:59Z")
            );
        }
    }

    #[test]
    fn zones_have_their_history() {
        let mut cache = ZoneCache::default();
        let mut sh = |text: &str| at(&mut cache, "Asia/Shanghai", text, Ambiguous::Reject);
        assert_eq!(sh("2024-07-01T08:00:00").unwrap(), "2024-07-01T00:00:00Z");
        assert_eq!(sh("1988-07-01T08:00:00").unwrap(), "1988-06-30T23:00:00Z");
        assert_eq!(sh("0001-01-01T00:00:00"), Err(MomentTrouble::Range));
        let zone = crate::time::time_zone("Asia/Shanghai").unwrap();
        let last = 2_932_897 * MICROS_PER_DAY - 1;
        let instant = cache.instant(&zone, last, Ambiguous::Reject);
        assert_eq!(instant, Ok(last - 8 * 3600 * MICROS_PER_SECOND));
    }

    proptest! {
        #[test]
        fn the_cache_changes_nothing(
            zone in prop::sample::select(vec!["America/New_York", "Asia/Shanghai", "Australia/Lord_Howe", "Africa/Casablanca", "UTC", "Pacific/Apia"]),
            walls in prop::collection::vec((1900_i64..2100, 0_i64..366 * 24 * 60), 1..60),
        ) {
            let zone = crate::time::time_zone(zone).unwrap();
            let mut cache = ZoneCache::default();
            for (year, minute) in walls {
                let wall = ((year - 1970) * 365 * 24 * 60 + minute) * 60 * MICROS_PER_SECOND;
                let cached = cache.instant(&zone, wall, Ambiguous::Reject);
                let fresh = ZoneCache::default().look_up(&zone, wall, Ambiguous::Reject);
                prop_assert_eq!(cached, fresh);
            }
        }

        #[test]
        fn hours_around_changes_are_right_with_a_warm_cache(
            zone in prop::sample::select(vec!["America/New_York", "Australia/Lord_Howe", "Europe/Dublin", "Pacific/Apia"]),
            year in 1975_i64..2030,
            steps in prop::collection::vec(-20_i64..20, 10..40),
        ) {
            let zone = crate::time::time_zone(zone).unwrap();
            let start = Timestamp::from_second((year - 1970) * 31_556_952).unwrap();
            let Some(change) = zone.following(start).next() else { return Ok(()); };
            let mut cache = ZoneCache::default();
            let base = change.timestamp().as_microsecond() + micros(change.offset());
            for step in steps {
                let wall = base + step * 10 * 60 * MICROS_PER_SECOND;
                prop_assert_eq!(
                    cache.instant(&zone, wall, Ambiguous::Reject),
                    ZoneCache::default().look_up(&zone, wall, Ambiguous::Reject)
                );
            }
        }
    }
}
