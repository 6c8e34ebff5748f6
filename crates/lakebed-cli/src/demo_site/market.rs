//! The rental market: which listings there are on a day, and what each says.
//!
//! Nothing is held but an index of the days that were asked for last (eight bytes a listing); every
//! listing is computed when it is shown. SITE-1: the state of a listing is a function of (seed, id,
//! date), so any two servers agree and any day can be asked for, in any order.

use std::sync::{Arc, Mutex, PoisonError};

use lakebed::time::BusinessDate;
use lakebed::{Error, Result};

use crate::demo_site::draw::{Draw, Purpose};
use crate::demo_site::flat::{Flat, city_of};
use crate::demo_site::offer::{self, Offer};
use crate::demo_site::timeline::{Day, Letting, MAX_FLATS, Presence};
use crate::demo_site::words::{CITIES, Lang};

/// Fewest and most listings of a market.
pub(crate) const SIZES: std::ops::RangeInclusive<u32> = 20..=1_000_000;
/// Flats for a thousand listings on the site on a day.
const FLATS_PER_THOUSAND: u64 = 3_070;
/// Days whose index is kept.
const KEPT_DAYS: usize = 8;
/// For how many days a flat that was let is shown as let.
const RENTED_DAYS: u32 = 7;
/// For how many days the site remembers that a listing was there.
const GONE_DAYS: u32 = 30;

/// A market.
#[derive(Debug)]
pub(crate) struct Market {
    seed: u64,
    flats: u32,
    days: Mutex<Vec<(Day, Arc<DayIndex>)>>,
}

/// The flats that are to let on a day, the newest listing first.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DayIndex {
    all: Vec<u32>,
    by_city: Vec<Vec<u32>>,
}

/// What the site shows for an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// To let.
    Listed,
    /// Was let some days ago; the page still stands, with a mark.
    Rented,
}

/// The answer for an id on a day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Lookup {
    /// The page stands.
    Found(Box<Listing>),
    /// It was there and is not any more, or not just now.
    Gone,
    /// There is no such listing.
    Unknown,
}

/// A listing on a day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listing {
    /// The id in addresses.
    pub(crate) id: u64,
    /// To let, or let already.
    pub(crate) status: Status,
    /// What is let.
    pub(crate) flat: Flat,
    /// For how much and by whom.
    pub(crate) offer: Offer,
    /// First day on the site.
    pub(crate) posted: BusinessDate,
    /// Day of the last change of anything that the page shows.
    pub(crate) changed: BusinessDate,
    seed: u64,
    letting: Letting,
}

impl Listing {
    /// The title.
    pub(crate) fn title(&self, lang: Lang) -> String {
        offer::title(self.seed, &self.letting, &self.flat, lang)
    }

    /// The description, paragraph by paragraph.
    pub(crate) fn description(&self, lang: Lang) -> Vec<String> {
        offer::description(self.seed, &self.letting, lang)
    }

    /// Second of the day of the last change, for `Last-Modified`.
    pub(crate) fn changed_second(&self) -> u32 {
        Draw::new(self.seed, Purpose::Offer, self.id, 1).below(86_400)
    }
}

impl Market {
    /// A market of about `listings` listings on every day.
    pub(crate) fn new(seed: u64, listings: u32) -> Result<Self> {
        if !SIZES.contains(&listings) {
            return Err(Error::invalid(format!(
                "a market of `{listings}` listings cannot be made"
            ))
            .hint(format!("give {} to {}", SIZES.start(), SIZES.end())));
        }
        let flats = u64::from(listings) * FLATS_PER_THOUSAND / 1000;
        Ok(Self {
            seed,
            flats: u32::try_from(flats).unwrap_or(MAX_FLATS).min(MAX_FLATS),
            days: Mutex::new(Vec::new()),
        })
    }

    /// The seed.
    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    /// What is to let on a day.
    pub(crate) fn day(&self, date: BusinessDate) -> Arc<DayIndex> {
        let day = Day::of(date);
        let mut days = self.days.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = days.iter().position(|(d, _)| *d == day) {
            let found = days.remove(at);
            let index = found.1.clone();
            days.push(found);
            return index;
        }
        let index = Arc::new(self.build(day));
        if days.len() >= KEPT_DAYS {
            days.remove(0);
        }
        days.push((day, index.clone()));
        index
    }

    fn build(&self, day: Day) -> DayIndex {
        let mut by_age: Vec<Vec<u32>> = Vec::new();
        for flat in 0..self.flats {
            let letting = Letting::at(self.seed, flat, day);
            if letting.is_listed(day) {
                let age = usize::try_from(day.since(letting.posted)).unwrap_or(0);
                if by_age.len() <= age {
                    by_age.resize_with(age + 1, Vec::new);
                }
                by_age[age].push(flat);
            }
        }
        let all = by_age.concat();
        let mut by_city = vec![Vec::new(); CITIES.len()];
        for flat in &all {
            by_city[city_of(self.seed, *flat)].push(*flat);
        }
        DayIndex { all, by_city }
    }

    /// The listing of a flat that is to let on that day.
    pub(crate) fn listing_of(&self, flat: u32, date: BusinessDate) -> Listing {
        let day = Day::of(date);
        let letting = Letting::at(self.seed, flat, day);
        self.listing(letting, Status::Listed, day, date)
    }

    /// What the site shows for an id on a day.
    pub(crate) fn find(&self, id: u64, date: BusinessDate) -> Lookup {
        let day = Day::of(date);
        let Some(letting) = Letting::find(self.seed, id).filter(|l| l.flat < self.flats) else {
            return Lookup::Unknown;
        };
        let found = |status| Lookup::Found(Box::new(self.listing(letting, status, day, date)));
        match letting.presence(day) {
            Presence::Listed => found(Status::Listed),
            Presence::Ended(n) if n < RENTED_DAYS && self.was_let(&letting) => {
                found(Status::Rented)
            }
            Presence::Ended(n) if n < GONE_DAYS => Lookup::Gone,
            Presence::Paused => Lookup::Gone,
            Presence::Ended(_) | Presence::Unknown => Lookup::Unknown,
        }
    }

    /// Some listings end because the flat was let through the site, others are taken off.
    fn was_let(&self, letting: &Letting) -> bool {
        Draw::new(self.seed, Purpose::Offer, letting.id(), 2).percent(45)
    }

    fn listing(&self, letting: Letting, status: Status, day: Day, date: BusinessDate) -> Listing {
        let flat = Flat::of(self.seed, letting.flat);
        let offer = Offer::of(self.seed, &letting, &flat, day);
        let changed = match status {
            Status::Listed => offer.changed,
            Status::Rented => letting.ends,
        };
        let date_of = |d: Day| date.plus_days(-i64::from(day.since(d)));
        Listing {
            id: letting.id(),
            status,
            flat,
            posted: date_of(letting.posted),
            changed: date_of(changed),
            offer,
            seed: self.seed,
            letting,
        }
    }
}

impl DayIndex {
    /// The flats of a city, or of all, the newest listing first.
    pub(crate) fn flats(&self, city: Option<usize>) -> &[u32] {
        match city {
            Some(city) => self.by_city.get(city).map_or(&[], Vec::as_slice),
            None => &self.all,
        }
    }
}

#[cfg(test)]
mod tests;
