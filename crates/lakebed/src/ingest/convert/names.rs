//! Short names of an input object's members, found by their word (see [`ShortKey`]): one look-up and
//! one comparison, without a loop over the key.

use crate::ingest::json::ShortKey;

/// Factors that are tried for names without a collision.
const TRIES: u64 = 64;
/// Odd, and its bits have no pattern.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// A hash table with its entries in the open: a name stands at its place, or at the next free one.
#[derive(Debug)]
pub(crate) struct ShortNames {
    /// A power of two many, at most a quarter of them taken.
    places: Vec<Place>,
    factor: u64,
    /// Leaves the high bits of a product that number a place.
    shift: u32,
}

/// A name and its position; the word of a free place is zero, which no key has.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    key: u128,
    position: usize,
}

impl ShortNames {
    /// The table of the names that are short, by their positions.
    pub(crate) fn new<'n>(names: impl Iterator<Item = &'n str>) -> Self {
        let keys: Vec<_> = names
            .enumerate()
            .filter_map(|(position, name)| Some((ShortKey::of_name(name)?, position)))
            .collect();
        let mut best = Self::with_factor(&keys, FACTOR);
        for n in 1..TRIES {
            if best.1 == 0 {
                break;
            }
            let next = Self::with_factor(&keys, FACTOR.wrapping_mul(2 * n + 1));
            if next.1 < best.1 {
                best = next;
            }
        }
        best.0
    }

    /// The table, and how many steps its names are away from their places.
    fn with_factor(keys: &[(ShortKey, usize)], factor: u64) -> (Self, usize) {
        let length = (keys.len() * 4).next_power_of_two().max(4);
        let mut table = Self {
            places: vec![Place::default(); length],
            factor,
            shift: u64::BITS - length.trailing_zeros(),
        };
        let mut steps = 0;
        for (ShortKey(key), position) in keys {
            let mut at = table.place_of(*key);
            while table.places.get(at).is_some_and(|p| p.key != 0) {
                at = (at + 1) % length;
                steps += 1;
            }
            if let Some(place) = table.places.get_mut(at) {
                *place = Place {
                    key: *key,
                    position: *position,
                };
            }
        }
        (table, steps)
    }

    /// Where a key is looked for first.
    #[inline(always)]
    fn place_of(&self, key: u128) -> usize {
        #[allow(clippy::cast_possible_truncation, reason = "the halves of a word")]
        let (low, high) = (key as u64, (key >> 64) as u64);
        let mixed = (low ^ high.rotate_left(23)).wrapping_mul(self.factor);
        usize::try_from(mixed >> self.shift).unwrap_or(0)
    }

    /// The position of the name that has this key.
    #[inline(always)]
    pub(crate) fn find(&self, ShortKey(key): ShortKey) -> Option<usize> {
        let mut at = self.place_of(key);
        loop {
            let place = self.places.get(at)?;
            if place.key == key {
                return Some(place.position);
            }
            if place.key == 0 {
                return None;
            }
            at = (at + 1) & (self.places.len() - 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(names: &[String]) {
        let table = ShortNames::new(names.iter().map(String::as_str));
        for (position, name) in names.iter().enumerate() {
            if let Some(key) = ShortKey::of_name(name) {
                assert_eq!(table.find(key), Some(position), "{name:?}");
            }
        }
        for other in ["", "none", "a name of others", "id ", "nam", "name_"] {
            if !names.iter().any(|n| n == other)
                && let Some(key) = ShortKey::of_name(other)
            {
                assert_eq!(table.find(key), None, "{other:?}");
            }
        }
    }

    #[test]
    fn every_short_name_is_found_and_no_other() {
        check(&[]);
        check(&["name".to_owned()]);
        check(
            &[
                "id",
                "a name that is long",
                "標題",
                "a\"b",
                "name",
                "nama",
                "ename",
            ]
            .map(str::to_owned),
        );
        // Names that differ in one byte, at every place; and more of them than a small table has room for.
        for length in 1..=15 {
            let of = |i: usize| {
                (0..length)
                    .map(|n| if n == i { 'b' } else { 'a' })
                    .collect()
            };
            check(&(0..=length).map(of).collect::<Vec<String>>());
        }
        check(&(0..3000).map(|n| format!("field_{n}")).collect::<Vec<_>>());
    }

    #[test]
    fn few_names_stand_at_their_places() {
        let names = [
            "id",
            "title",
            "url",
            "city",
            "price",
            "area",
            "rooms",
            "owner",
            "posted_at",
            "floor",
            "tags",
        ];
        let keys: Vec<_> = names
            .iter()
            .map(|n| (ShortKey::of_name(n).unwrap(), 0))
            .collect();
        let steps = |n: u64| ShortNames::with_factor(&keys, FACTOR.wrapping_mul(2 * n + 1)).1;
        assert_eq!((0..TRIES).map(steps).min(), Some(0));
    }
}
