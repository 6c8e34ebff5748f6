//! When a flat is to let: a function of (seed, flat, day) alone, computed without the days before.
//!
//! ```text
//! a flat's time is cut into periods of equal length; in each it is let at most once:
//!
//! |--- period k -------------------------|--- period k+1 ----------------------|
//! |      [=== listed ==..pause..===]     |   [= listed =]                      |
//!        posted                  ends        another letting, another id
//! ```
//! So the same flat comes back under a new id (a re-listing), and a paused listing under its old one.
//! What does not belong here: what a flat is like (`flat`) and what it costs (`offer`).

use lakebed::time::BusinessDate;

use crate::demo_site::draw::{Draw, Purpose};

/// Days from the beginning of this calendar (some years before the year 1) to 1970-01-01.
const EPOCH: i32 = 720_000;
/// Share of periods in which the flat is not to let.
const QUIET_PERCENT: u32 = 5;
/// Share of longer lettings that are taken off the site for some days.
const PAUSE_PERCENT: u32 = 12;
/// No date of the calendar lies in a later period of any flat.
const MAX_NUMBER: u32 = 100_000;
/// Bits of a flat's number in the id of a listing.
const FLAT_BITS: u32 = 22;
/// Most flats of a market.
pub(crate) const MAX_FLATS: u32 = 1 << FLAT_BITS;

/// A day as a number that is never negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Day(u32);

impl Day {
    /// The number of a date.
    pub(crate) fn of(date: BusinessDate) -> Self {
        Self(u32::try_from(date.days().saturating_add(EPOCH)).unwrap_or(0))
    }

    /// Days that have passed since `earlier`; 0 if it is not earlier.
    pub(crate) fn since(self, earlier: Self) -> u32 {
        self.0.saturating_sub(earlier.0)
    }

    /// The day `n` days later.
    pub(crate) fn plus(self, n: u32) -> Self {
        Self(self.0.saturating_add(n))
    }
}

/// One period of a flat and the letting in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Letting {
    /// The flat.
    pub(crate) flat: u32,
    /// The number of the period.
    pub(crate) number: u32,
    /// First day on the site.
    pub(crate) posted: Day,
    /// First day off the site; `posted` itself for a period without a letting.
    pub(crate) ends: Day,
    pause: Option<(Day, Day)>,
}

/// What the site knows about a letting on a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    /// Not posted yet, or forgotten, or never to be.
    Unknown,
    /// To let.
    Listed,
    /// Off the site for some days; it will come back under this id.
    Paused,
    /// Off the site for so many days, from 0 on.
    Ended(u32),
}

impl Letting {
    /// The letting of the period in which `day` lies.
    pub(crate) fn at(seed: u64, flat: u32, day: Day) -> Self {
        let (length, shift) = period(seed, flat);
        Self::of(seed, flat, (day.0 + shift) / length, length, shift)
    }

    /// The letting with this id.
    pub(crate) fn find(seed: u64, id: u64) -> Option<Self> {
        let flat = u32::try_from(id & u64::from(MAX_FLATS - 1)).ok()?;
        let number = u32::try_from(id >> FLAT_BITS).ok()?;
        if number == 0 || number > MAX_NUMBER {
            return None;
        }
        let (length, shift) = period(seed, flat);
        let letting = Self::of(seed, flat, number, length, shift);
        (letting.ends > letting.posted).then_some(letting)
    }

    fn of(seed: u64, flat: u32, number: u32, length: u32, shift: u32) -> Self {
        let begins = (number * length).saturating_sub(shift);
        let mut draw = Draw::new(seed, Purpose::Cycle, u64::from(flat), u64::from(number));
        let days = days_listed(&mut draw).min(length - 1);
        let posted = Day(begins + draw.below(length - days));
        let pause = (days > 14 && draw.percent(PAUSE_PERCENT)).then(|| {
            let from = posted.plus(4 + draw.below(days - 10));
            (from, from.plus(draw.between(2, 4)))
        });
        Self {
            flat,
            number,
            posted,
            ends: posted.plus(days),
            pause,
        }
    }

    /// The id under which the site shows it: later periods have higher ones.
    pub(crate) fn id(&self) -> u64 {
        (u64::from(self.number) << FLAT_BITS) | u64::from(self.flat)
    }

    /// Whether it is to let on that day.
    pub(crate) fn is_listed(&self, day: Day) -> bool {
        self.posted <= day && day < self.ends && !self.is_paused(day)
    }

    fn is_paused(&self, day: Day) -> bool {
        self.pause
            .is_some_and(|(from, until)| from <= day && day < until)
    }

    /// What the site knows about it on that day.
    pub(crate) fn presence(&self, day: Day) -> Presence {
        if day < self.posted || self.ends <= self.posted {
            Presence::Unknown
        } else if day >= self.ends {
            Presence::Ended(day.since(self.ends))
        } else if self.is_paused(day) {
            Presence::Paused
        } else {
            Presence::Listed
        }
    }
}

/// Length of a flat's periods and how far the first one began before the calendar.
fn period(seed: u64, flat: u32) -> (u32, u32) {
    let mut draw = Draw::new(seed, Purpose::Period, u64::from(flat), 0);
    let length = draw.between(50, 110);
    (length, draw.below(length))
}

/// Most flats go within a month; some within a day or two, some hardly ever.
fn days_listed(draw: &mut Draw) -> u32 {
    match draw.below(100) {
        n if n < QUIET_PERCENT => 0,
        n if n < 13 => draw.between(1, 3),
        n if n < 50 => draw.between(4, 20),
        n if n < 87 => draw.between(20, 45),
        _ => draw.between(45, 90),
    }
}
