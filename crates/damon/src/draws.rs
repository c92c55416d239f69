//! The random numbers of one kdamond: splitmix64. They are drawn in the order of addresses.
//!
//! Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators" (2014).

/// A stream of random numbers. Equal seeds give equal streams.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Draws(u64);

impl Draws {
    /// The stream of a seed.
    pub const fn new(seed: u64) -> Draws {
        Draws(seed)
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from `from` to below `end`.
    ///
    /// # Panics
    /// If there is none.
    pub fn within(&mut self, from: u64, end: u64) -> u64 {
        assert!(from < end, "a number is drawn from {from}..{end}");
        from + ((u128::from(self.next_u64()) * u128::from(end - from)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_equal_the_reference_sequence() {
        let mut draws = Draws::new(1234567);
        let drawn = [draws.next_u64(), draws.next_u64(), draws.next_u64()];
        assert_eq!(drawn, [6457827717110365317, 3203168211198807973, 9817491932198370423]);
    }

    #[test]
    fn draws_within_a_range_reach_all_of_it() {
        let mut draws = Draws::new(7);
        let mut seen = [0u32; 9];
        (0..9000).for_each(|_| seen[draws.within(1, 10) as usize - 1] += 1);
        assert!(seen.iter().all(|&count| (800..1200).contains(&count)), "{seen:?}");
    }
}
