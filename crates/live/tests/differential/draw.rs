//! Random numbers: splitmix64, so that a seed gives the same numbers everywhere.

/// A sequence of random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Draw(u64);

/// One step of splitmix64's output function.
pub(crate) fn mix(number: u64) -> u64 {
    let mixed = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

impl Draw {
    pub(crate) fn new(seed: u64) -> Draw {
        Draw(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `sides`, which is at least 1.
    pub(crate) fn below(&mut self, sides: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(sides)) >> 64) as u64
    }

    /// True once in `times`.
    pub(crate) fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    pub(crate) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}

/// Fills a buffer with the bytes that a write of this number writes from an offset on. No byte is zero, so that a hole is never taken for data.
pub(crate) fn fill(buf: &mut [u8], number: u32, offset: u64) {
    for (byte, at) in buf.iter_mut().zip(0..) {
        // A write that is to be refused may end behind 2^64.
        let at = offset.wrapping_add(at);
        *byte = mix(u64::from(number) << 40 ^ at >> 3).to_le_bytes()[(at & 7) as usize] | 1;
    }
}

/// The bytes that a write of this number writes.
pub(crate) fn filled(number: u32, offset: u64, len: usize) -> Vec<u8> {
    let mut buf = vec![0; len];
    fill(&mut buf, number, offset);
    buf
}
