//! The one random-number generator: splitmix64, and the two ways the ground truth draws from it.
//!
//! Other functions come from libraries. This generator is part of the crate because it must reproduce the published sequences bit for bit,
//! permanently. `below` has the slight bias of a plain remainder, `unit` takes the top 53 bits, and the shuffle runs from the top. A library may
//! change any of these between versions.
//!
//! Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators" (2014); the constants are those of
//! the public-domain reference `splitmix64.c`.

/// A splitmix64 generator. Equal seeds give equal draws on every machine.
#[derive(Clone, Debug)]
pub struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    /// A generator at the start of the sequence of `seed`; any seed is as good as another.
    pub const fn new(seed: u64) -> SplitMix64 {
        SplitMix64 { state: seed }
    }

    /// The seed of the `index`th part of something seeded with `seed`, so that parts draw independently.
    pub fn derive_seed(seed: u64, index: u64) -> u64 {
        let mut generator = SplitMix64::new(seed ^ SplitMix64::new(index).next_u64());
        generator.next_u64()
    }

    /// The next 64 bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.state ^ (self.state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `n`, as the remainder of one draw (biased by at most n / 2^64).
    ///
    /// # Panics
    /// When `n` is 0.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        self.next_u64() % n
    }

    /// The top 53 bits of one draw: what [`SplitMix64::unit`] scales to `[0, 1)`.
    #[inline]
    pub fn mantissa(&mut self) -> u64 {
        self.next_u64() >> 11
    }

    /// A number in `[0, 1)`, a multiple of 2^-53.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        self.mantissa() as f64 * UNIT
    }

    /// Fisher-Yates from the top: the last item is placed first.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i as u64 + 1) as usize);
        }
    }
}

/// 2^-53, the spacing of [`SplitMix64::unit`].
pub const UNIT: f64 = 1.0 / (1u64 << 53) as f64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_those_of_the_reference_implementation() {
        let mut generator = SplitMix64::new(1234567);
        let draws: Vec<u64> = (0..3).map(|_| generator.next_u64()).collect();
        assert_eq!(draws, [6457827717110365317, 3203168211198807973, 9817491932198370423]);
    }

    #[test]
    fn a_shuffle_keeps_every_item() {
        let mut items: Vec<u32> = (0..1000).collect();
        SplitMix64::new(5).shuffle(&mut items);
        assert_ne!(items[..10], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        items.sort_unstable();
        assert!(items.iter().copied().eq(0..1000));
    }

    #[test]
    fn parts_of_a_seed_differ_from_each_other_and_from_it() {
        let seeds: Vec<u64> = (0..4).map(|index| SplitMix64::derive_seed(7, index)).chain([7]).collect();
        for (i, seed) in seeds.iter().enumerate() {
            assert!(!seeds[..i].contains(seed));
        }
    }
}
