//! What a flat is like: a function of (seed, flat). It stays the same when the flat is let again.

use crate::demo_site::draw::{Draw, Purpose};
use crate::demo_site::words::{CITIES, City, FEATURES, Pair, STREETS};

/// What is let.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A whole flat.
    Whole,
    /// A studio of its own.
    Studio,
    /// A room with bath in a divided flat.
    Suite,
    /// A room with shared bath.
    Room,
    /// A place for a car.
    Parking,
}

impl Kind {
    /// All, in the order of their numbers on the site.
    pub(crate) const ALL: [Self; 5] = [
        Self::Whole,
        Self::Studio,
        Self::Suite,
        Self::Room,
        Self::Parking,
    ];

    /// As in addresses and the interface.
    pub(crate) const fn code(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Studio => "studio",
            Self::Suite => "suite",
            Self::Room => "room",
            Self::Parking => "parking",
        }
    }

    /// Its name.
    pub(crate) const fn name(self) -> Pair {
        match self {
            Self::Whole => ("整層住家", "Whole flat"),
            Self::Studio => ("獨立套房", "Studio"),
            Self::Suite => ("分租套房", "En-suite room"),
            Self::Room => ("雅房", "Room"),
            Self::Parking => ("車位", "Parking space"),
        }
    }

    /// The kind of a code.
    pub(crate) fn parse(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|k| k.code() == code)
    }

    fn draw(draw: &mut Draw) -> Self {
        match draw.below(100) {
            0..=33 => Self::Whole,
            34..=63 => Self::Studio,
            64..=85 => Self::Suite,
            86..=96 => Self::Room,
            _ => Self::Parking,
        }
    }

    /// Area in tenths of a ping.
    fn area(self, draw: &mut Draw) -> u32 {
        match self {
            Self::Whole => draw.between(160, 420) + draw.below(180),
            Self::Studio => draw.between(60, 130) + draw.below(50),
            Self::Suite => draw.between(45, 110),
            Self::Room => draw.between(25, 70),
            Self::Parking => draw.between(25, 40),
        }
    }
}

/// The building a flat is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Building {
    /// Up to five floors, no lift.
    WalkUp,
    /// Up to ten floors.
    MidRise,
    /// Many floors.
    Tower,
    /// A house of its own.
    House,
}

impl Building {
    /// As in the interface.
    pub(crate) const fn code(self) -> &'static str {
        match self {
            Self::WalkUp => "walk_up",
            Self::MidRise => "mid_rise",
            Self::Tower => "tower",
            Self::House => "house",
        }
    }

    /// Its name.
    pub(crate) const fn name(self) -> Pair {
        match self {
            Self::WalkUp => ("公寓", "Walk-up"),
            Self::MidRise => ("華廈", "Mid-rise"),
            Self::Tower => ("電梯大樓", "Tower with lift"),
            Self::House => ("透天厝", "Town house"),
        }
    }
}

/// A flat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Flat {
    /// Index of the city in [`CITIES`].
    pub(crate) city: usize,
    /// Index of the district in the city.
    pub(crate) district: usize,
    /// The street.
    pub(crate) street: Pair,
    /// The number in the street.
    pub(crate) house_number: u32,
    /// What is let.
    pub(crate) kind: Kind,
    /// In what.
    pub(crate) building: Building,
    /// In tenths of a ping.
    pub(crate) area_tenths: u32,
    /// Above `total_floors` for a hut on the roof, 0 for the whole building, negative below ground.
    pub(crate) floor: i32,
    /// Floors of the building.
    pub(crate) total_floors: u32,
    /// Bedrooms, living rooms, bathrooms; all 0 for a parking space.
    pub(crate) rooms: [u32; 3],
    /// Which of [`FEATURES`] it has.
    pub(crate) features: [bool; FEATURES.len()],
    /// Latitude and longitude in millionths of a degree, in the open sea.
    pub(crate) position: (i32, i32),
    /// Usual monthly rent.
    pub(crate) rent: u32,
}

impl Flat {
    /// The flat with this number.
    pub(crate) fn of(seed: u64, flat: u32) -> Self {
        let city = city_of(seed, flat);
        let mut draw = Draw::new(seed, Purpose::Flat, u64::from(flat), 0);
        let place = &CITIES[city];
        let district = draw.index(place.districts.len());
        let kind = Kind::draw(&mut draw);
        let building = building(&mut draw, kind);
        let (floor, total_floors) = floors(&mut draw, kind, building);
        let area_tenths = kind.area(&mut draw);
        let features = features(&mut draw, kind, building);
        let spread = |draw: &mut Draw| i32::try_from(draw.below(40_000)).unwrap_or(0);
        let base = i32::try_from(city).unwrap_or(0) * 200_000;
        let position = (
            base + spread(&mut draw),
            -150_000_000 + base / 2 + spread(&mut draw),
        );
        let rent = rent(&mut draw, place, district, kind, area_tenths);
        Self {
            city,
            district,
            street: *draw.pick(&STREETS),
            house_number: draw.between(1, 320),
            kind,
            building,
            area_tenths,
            floor,
            total_floors,
            rooms: rooms(&mut draw, kind, area_tenths),
            features,
            position,
            rent,
        }
    }

    /// The city.
    pub(crate) fn city(&self) -> &'static City {
        &CITIES[self.city]
    }

    /// The district's name.
    pub(crate) fn district(&self) -> Pair {
        self.city()
            .districts
            .get(self.district)
            .map_or(("", ""), |d| d.0)
    }
}

/// The city of a flat, apart from the rest: an index over all flats asks for it alone.
pub(crate) fn city_of(seed: u64, flat: u32) -> usize {
    let mut at = Draw::new(seed, Purpose::City, u64::from(flat), 0).below(100);
    for (i, city) in CITIES.iter().enumerate() {
        if at < city.share {
            return i;
        }
        at -= city.share;
    }
    0
}

fn building(draw: &mut Draw, kind: Kind) -> Building {
    match (kind, draw.below(100)) {
        (Kind::Parking, _) | (_, 60..=94) => Building::Tower,
        (_, 0..=37) => Building::WalkUp,
        (_, 38..=59) => Building::MidRise,
        (_, _) => Building::House,
    }
}

fn floors(draw: &mut Draw, kind: Kind, building: Building) -> (i32, u32) {
    let total = match building {
        Building::WalkUp => draw.between(4, 5),
        Building::MidRise => draw.between(6, 10),
        Building::Tower => draw.between(11, 28),
        Building::House => draw.between(2, 4),
    };
    let at = i32::try_from(draw.between(1, total)).unwrap_or(1);
    let top = i32::try_from(total).unwrap_or(1);
    let floor = match (kind, building) {
        (Kind::Parking, _) => -i32::try_from(draw.between(1, 3)).unwrap_or(1),
        (Kind::Whole, Building::House) => 0,
        (_, Building::WalkUp) if draw.percent(9) => top + 1,
        (_, _) => at,
    };
    (floor, total)
}

fn rooms(draw: &mut Draw, kind: Kind, area_tenths: u32) -> [u32; 3] {
    match kind {
        Kind::Whole => {
            let bedrooms = (area_tenths / 95).clamp(1, 5);
            [
                bedrooms,
                draw.between(1, 2),
                (bedrooms / 2).max(1) + draw.below(2),
            ]
        }
        Kind::Studio => [1, u32::from(draw.percent(30)), 1],
        Kind::Suite => [1, 0, 1],
        Kind::Room => [1, 0, 0],
        Kind::Parking => [0, 0, 0],
    }
}

fn features(draw: &mut Draw, kind: Kind, building: Building) -> [bool; FEATURES.len()] {
    FEATURES.map(|(code, _, share)| {
        let has = draw.percent(share);
        match (code, kind, building) {
            (_, Kind::Parking, _) => false,
            ("lift", _, Building::WalkUp | Building::House) => false,
            ("lift", _, Building::Tower) => true,
            ("gas" | "sofa", Kind::Room | Kind::Suite, _) => false,
            (_, _, _) => has,
        }
    })
}

/// Smaller places cost more a ping.
fn rent(draw: &mut Draw, city: &City, district: usize, kind: Kind, area_tenths: u32) -> u32 {
    let level = city.districts.get(district).map_or(100, |d| d.1);
    let per_ping = city.rent * level / 100;
    let base = match kind {
        Kind::Whole => per_ping * area_tenths / 10,
        Kind::Studio => per_ping * area_tenths * 12 / 100 + 1500,
        Kind::Suite => per_ping * area_tenths * 12 / 100 + 1000,
        Kind::Room => per_ping * area_tenths * 12 / 100 + 800,
        Kind::Parking => city.rent * 3,
    };
    base * draw.between(86, 116) / 100
}
