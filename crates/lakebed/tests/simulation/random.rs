//! A small generator of its own (splitmix64), so that a seed gives the same history on every machine.

/// Numbers that follow from a seed.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed ^ 0x6C61_6B65_6265_6421)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `end`, which is not 0.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// A small number below `end`.
    pub(crate) fn small(&mut self, end: u32) -> u32 {
        u32::try_from(self.below(u64::from(end))).unwrap()
    }

    /// Whether an event of `percent` in a hundred happens.
    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of the items.
    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        let at = self.below(items.len() as u64);
        &items[usize::try_from(at).unwrap()]
    }
}

#[test]
fn the_same_seed_gives_the_same_numbers() {
    let draw = |seed| {
        let mut random = Random::new(seed);
        (0..50).map(|_| random.below(1000)).collect::<Vec<_>>()
    };
    assert_eq!(draw(7), draw(7));
    assert_ne!(draw(7), draw(8));
    assert!(draw(1).iter().any(|n| *n > 900) && draw(1).iter().any(|n| *n < 100));
}
