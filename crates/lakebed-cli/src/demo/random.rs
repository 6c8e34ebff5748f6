//! Random numbers that are the same everywhere: SplitMix64 (Steele, Lea, Flood 2014), seeded by what
//! the numbers are for.

/// A stream of numbers.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    /// The stream for a purpose and two indices, such as a day and a row.
    pub(crate) fn new(purpose: &str, a: i64, b: i64) -> Self {
        let mut state = 0x6c61_6b65_6265_6421_u64;
        for byte in purpose
            .bytes()
            .chain(a.to_le_bytes())
            .chain(b.to_le_bytes())
        {
            state = (state ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        let mut random = Self(state);
        random.next();
        random
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from `low` to `high`, both included; `low` when the range is empty.
    pub(crate) fn range(&mut self, low: u32, high: u32) -> u32 {
        let span = u64::from(high.saturating_sub(low)) + 1;
        low.saturating_add(u32::try_from(self.next() % span).unwrap_or(0))
    }

    /// True once in `n`.
    pub(crate) fn one_in(&mut self, n: u32) -> bool {
        self.range(1, n) == 1
    }

    /// One of the words; empty for no words.
    pub(crate) fn pick<'a>(&mut self, words: &[&'a str]) -> &'a str {
        let last = u32::try_from(words.len().saturating_sub(1)).unwrap_or(0);
        let i = usize::try_from(self.range(0, last)).unwrap_or(0);
        words.get(i).copied().unwrap_or("")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_the_same_everywhere() {
        let mut r = Random::new("topic", -3, 7);
        let got: Vec<u32> = (0..4).map(|_| r.range(0, 999)).collect();
        let mut again = Random::new("topic", -3, 7);
        assert_eq!(got, (0..4).map(|_| again.range(0, 999)).collect::<Vec<_>>());
        let mut other = Random::new("topic", -3, 8);
        assert_ne!(got, (0..4).map(|_| other.range(0, 999)).collect::<Vec<_>>());
    }

    #[test]
    fn ranges_hold_their_ends() {
        let mut r = Random::new("x", 0, 0);
        let drawn: Vec<u32> = (0..200).map(|_| r.range(3, 5)).collect();
        assert!((3..=5).all(|n| drawn.contains(&n)));
        assert!(drawn.iter().all(|n| (3..=5).contains(n)));
        assert_eq!(r.pick(&[]), "");
    }
}
