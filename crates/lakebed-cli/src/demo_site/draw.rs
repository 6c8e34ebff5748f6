//! Numbers that look random and are a pure function of what they are for.
//!
//! Counter-based: seed, purpose and two indices give the start of a SplitMix64 stream (Steele, Lea,
//! Flood 2014), so any listing of any day is computed without those before it. Unlike the demo's
//! generator it takes no text, because it runs for every listing of the market.

/// What a stream is for; equal indices of two purposes give unrelated numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// When a flat is to let.
    Period,
    /// One letting of a flat.
    Cycle,
    /// In which city a flat lies.
    City,
    /// What a flat is like.
    Flat,
    /// What one letting asks for.
    Offer,
    /// Title and description.
    Words,
    /// Which requests a fault hits.
    Fault,
}

impl Purpose {
    const fn salt(self) -> u64 {
        match self {
            Self::Period => 0x7065_7269_6f64_0001,
            Self::Cycle => 0x6379_636c_6500_0002,
            Self::City => 0x6369_7479_0000_0003,
            Self::Flat => 0x666c_6174_0000_0004,
            Self::Offer => 0x6f66_6665_7200_0005,
            Self::Words => 0x776f_7264_7300_0006,
            Self::Fault => 0x6661_756c_7400_0007,
        }
    }
}

/// A stream of numbers.
#[derive(Debug, Clone)]
pub(crate) struct Draw(u64);

fn mixed(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Draw {
    /// The stream of a seed for a purpose and two indices, such as a flat and the number of its letting.
    pub(crate) fn new(seed: u64, purpose: Purpose, a: u64, b: u64) -> Self {
        let start = mixed(seed ^ purpose.salt()).wrapping_add(a);
        Self(mixed(start).wrapping_add(b.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed(self.0)
    }

    /// A number below `n`; 0 for `n = 0`.
    pub(crate) fn below(&mut self, n: u32) -> u32 {
        let high = self.next() >> 32;
        u32::try_from((high * u64::from(n)) >> 32).unwrap_or(0)
    }

    /// A number from `low` to `high`, both included; `low` when the range is empty.
    pub(crate) fn between(&mut self, low: u32, high: u32) -> u32 {
        low.saturating_add(self.below(high.saturating_sub(low).saturating_add(1)))
    }

    /// True in `percent` of 100 cases.
    pub(crate) fn percent(&mut self, percent: u32) -> bool {
        self.below(100) < percent
    }

    /// An index below `len`; 0 for an empty list.
    pub(crate) fn index(&mut self, len: usize) -> usize {
        let n = u32::try_from(len).unwrap_or(u32::MAX);
        usize::try_from(self.below(n)).unwrap_or(0)
    }

    /// One of the items.
    pub(crate) fn pick<'a, T, const N: usize>(&mut self, items: &'a [T; N]) -> &'a T {
        const { assert!(N > 0, "there is nothing to pick from") };
        &items[self.index(N)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_the_same_everywhere() {
        let take = |mut d: Draw| (0..4).map(|_| d.below(1000)).collect::<Vec<_>>();
        let base = take(Draw::new(1, Purpose::Flat, 3, 7));
        assert_eq!(base, [26, 651, 802, 363]);
        assert_eq!(base, take(Draw::new(1, Purpose::Flat, 3, 7)));
        for other in [
            Draw::new(2, Purpose::Flat, 3, 7),
            Draw::new(1, Purpose::City, 3, 7),
            Draw::new(1, Purpose::Flat, 4, 7),
            Draw::new(1, Purpose::Flat, 3, 8),
        ] {
            assert_ne!(base, take(other));
        }
    }

    #[test]
    fn ranges_hold_their_ends_and_are_even() {
        let mut d = Draw::new(9, Purpose::Words, 0, 0);
        let mut seen = [0_u32; 4];
        for _ in 0..40_000 {
            seen[d.index(4)] += 1;
            assert!((5..=7).contains(&d.between(5, 7)));
        }
        assert!(seen.iter().all(|n| (9_500..10_500).contains(n)), "{seen:?}");
        assert_eq!((d.below(0), d.between(7, 3), d.index(0)), (0, 7, 0));
        assert!(d.percent(100) && !d.percent(0));
    }
}
