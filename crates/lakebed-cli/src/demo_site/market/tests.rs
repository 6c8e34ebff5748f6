//! What the market shows over days, and what it must never depend on.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::demo_site::flat::Kind;

fn date(text: &str) -> BusinessDate {
    text.parse().unwrap()
}

fn ids(market: &Market, date: BusinessDate) -> BTreeSet<u64> {
    let day = market.day(date);
    let flats = day.flats(None).iter();
    flats.map(|f| market.listing_of(*f, date).id).collect()
}

fn found(lookup: Lookup) -> Option<Listing> {
    match lookup {
        Lookup::Found(listing) => Some(*listing),
        Lookup::Gone | Lookup::Unknown => None,
    }
}

#[test]
fn sizes_are_kept_and_others_refused() {
    for size in [20, 500, 5_000] {
        let market = Market::new(3, size).unwrap();
        for day in ["2024-02-29", "2026-11-30", "2027-06-01"] {
            let count = market.day(date(day)).flats(None).len();
            let size = usize::try_from(size).unwrap();
            // A market of 20 varies by its nature; a larger one hardly.
            let slack = if size < 100 { size / 2 } else { size / 12 };
            assert!(count.abs_diff(size) <= slack, "{size} on {day}: {count}");
        }
    }
    assert!(Market::new(1, 19).is_err());
    assert!(Market::new(1, 1_000_001).is_err());
    assert_eq!(Market::new(1, 1_000_000).unwrap().flats, 3_070_000);
}

/// Attacks SITE-1. Another market, other days first, a smaller market: the same listings.
#[test]
fn a_listing_depends_on_seed_id_and_date_alone() {
    let day = date("2026-11-30");
    let market = Market::new(7, 300).unwrap();
    let other = Market::new(7, 300).unwrap();
    for n in 0..20 {
        other.day(day.plus_days(n - 10));
    }
    assert_eq!(market.day(day), other.day(day));
    let larger = Market::new(7, 900).unwrap();
    assert!(ids(&market, day).is_subset(&ids(&larger, day)));
    for id in ids(&market, day) {
        assert_eq!(market.find(id, day), larger.find(id, day));
    }
    let stranger = Market::new(8, 300).unwrap();
    assert!(ids(&market, day).intersection(&ids(&stranger, day)).count() < 30);
}

#[test]
fn lists_and_lookups_agree_and_lists_are_sorted() {
    let day = date("2026-03-01");
    let market = Market::new(1, 1000).unwrap();
    let index = market.day(day);
    let mut by_city = 0;
    for city in 0..CITIES.len() {
        let mut last = None;
        for flat in index.flats(Some(city)) {
            let listing = market.listing_of(*flat, day);
            assert_eq!(listing.flat.city, city);
            assert_eq!(found(market.find(listing.id, day)).as_ref(), Some(&listing));
            assert!(last.is_none_or(|l| listing.posted <= l), "newest first");
            assert!(listing.posted <= listing.changed && listing.changed <= day);
            last = Some(listing.posted);
            by_city += 1;
        }
    }
    assert_eq!(by_city, index.flats(None).len());
}

#[test]
fn a_market_moves_as_markets_do() {
    let market = Market::new(1, 4000).unwrap();
    let mut day = date("2026-10-01");
    let (mut stock, mut appeared, mut vanished, mut changed, mut returned) = (0, 0, 0, 0, 0);
    let mut before: BTreeMap<u64, u32> = BTreeMap::new();
    let mut seen: BTreeSet<u64> = BTreeSet::new();
    for n in 0..40 {
        let index = market.day(day);
        let flats = index.flats(None).iter();
        let listings = flats.map(|f| market.listing_of(*f, day));
        let now: BTreeMap<u64, u32> = listings.map(|l| (l.id, l.offer.price)).collect();
        if n > 0 {
            stock += now.len();
            let fresh: Vec<u64> = now
                .keys()
                .filter(|id| !before.contains_key(id))
                .copied()
                .collect();
            appeared += fresh.len();
            returned += fresh.iter().filter(|id| seen.contains(id)).count();
            vanished += before.keys().filter(|id| !now.contains_key(id)).count();
            changed += now
                .iter()
                .filter(|(id, p)| before.get(id).is_some_and(|b| b != *p))
                .count();
        }
        seen.extend(now.keys());
        before = now;
        day = day.plus_days(1);
    }
    let permille = |n: usize| n * 1000 / stock;
    assert!(
        (25..60).contains(&permille(appeared)),
        "appeared {}",
        permille(appeared)
    );
    assert!(
        (25..60).contains(&permille(vanished)),
        "vanished {}",
        permille(vanished)
    );
    assert!(
        (5..25).contains(&permille(changed)),
        "changed {}",
        permille(changed)
    );
    assert!(
        (1..10).contains(&permille(returned)),
        "returned {}",
        permille(returned)
    );
}

#[test]
fn a_flat_comes_back_under_a_new_id_and_a_paused_listing_under_its_own() {
    let market = Market::new(1, 200).unwrap();
    let mut ids_of: BTreeMap<u32, BTreeSet<u64>> = BTreeMap::new();
    let mut days_of: BTreeMap<u64, Vec<i32>> = BTreeMap::new();
    let first = date("2026-01-01");
    for n in 0..300 {
        let day = first.plus_days(n);
        for flat in market.day(day).flats(None) {
            let listing = market.listing_of(*flat, day);
            ids_of.entry(*flat).or_default().insert(listing.id);
            days_of.entry(listing.id).or_default().push(day.days());
        }
    }
    assert!(ids_of.values().filter(|ids| ids.len() > 1).count() > 300);
    let paused = days_of
        .values()
        .filter(|days| days.windows(2).any(|w| w[1] - w[0] > 1))
        .count();
    assert!(paused > 20, "{paused}");
    let again = ids_of.values().find(|ids| ids.len() > 1).unwrap();
    let flats: Vec<Flat> = again
        .iter()
        .map(|id| {
            let day = first.plus_days(i64::from(days_of[id][0] - first.days()));
            found(market.find(*id, day)).unwrap().flat
        })
        .collect();
    assert_eq!(
        flats[0], flats[1],
        "the flat is the same, the listing is not"
    );
}

#[test]
fn an_ended_listing_is_let_or_gone_and_then_forgotten() {
    let market = Market::new(1, 500).unwrap();
    let day = date("2026-06-01");
    let (mut rented, mut gone) = (0, 0);
    for id in ids(&market, day) {
        let mut at = day;
        while !matches!(market.find(id, at), Lookup::Unknown) {
            at = at.plus_days(1);
            match market.find(id, at) {
                Lookup::Found(l) if l.status == Status::Rented => rented += 1,
                Lookup::Gone => gone += 1,
                Lookup::Found(_) | Lookup::Unknown => {}
            }
            assert!(at < day.plus_days(200), "{id} never ends");
        }
        assert_eq!(market.find(id, day.plus_days(-200)), Lookup::Unknown);
    }
    assert!(rented > 500 && gone > 5_000, "{rented} {gone}");
}

#[test]
fn foreign_ids_are_unknown() {
    let market = Market::new(1, 100).unwrap();
    for id in [
        0,
        1,
        12_345,
        u64::MAX,
        u64::MAX >> 1,
        (100_001 << 22) | 5,
        5,
    ] {
        assert_eq!(market.find(id, date("2026-06-01")), Lookup::Unknown, "{id}");
    }
    let day = date("2026-06-01");
    for id in ids(&Market::new(1, 300).unwrap(), day) {
        let known = ids(&market, day).contains(&id);
        assert_eq!(market.find(id, day) != Lookup::Unknown, known, "{id}");
    }
}

#[test]
fn the_ends_of_the_calendar_are_days_like_others() {
    let market = Market::new(1, 100).unwrap();
    for day in ["0001-01-01", "1969-12-31", "9999-12-31"] {
        let count = market.day(date(day)).flats(None).len();
        assert!((70..130).contains(&count), "{day}: {count}");
    }
}

#[test]
fn values_are_believable() {
    let market = Market::new(1, 3000).unwrap();
    let day = date("2026-11-30");
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    let index = market.day(day);
    for flat in index.flats(None) {
        let listing = market.listing_of(*flat, day);
        let (flat, offer) = (&listing.flat, &listing.offer);
        *kinds.entry(flat.kind.code()).or_default() += 1;
        let range = match flat.kind {
            Kind::Whole => 4_000..90_000,
            Kind::Studio => 3_500..35_000,
            Kind::Suite => 2_500..20_000,
            Kind::Room => 1_500..14_000,
            Kind::Parking => 1_000..5_000,
        };
        assert!(
            range.contains(&offer.price),
            "{:?} {}",
            flat.kind,
            offer.price
        );
        assert!(flat.floor <= i32::try_from(flat.total_floors).unwrap() + 1);
        assert_eq!(offer.price % 100, 0);
        assert_eq!(
            offer.price_changes == 0,
            offer.price == offer.first_price && listing.changed == listing.posted
        );
        assert!(!listing.title(Lang::Zh).is_empty() && !listing.description(Lang::En).is_empty());
        assert!(
            offer.contact.phone().starts_with("0000-"),
            "nobody has such a number"
        );
    }
    assert!(
        kinds["whole"] > kinds["room"] && kinds["parking"] < 200,
        "{kinds:?}"
    );
}
