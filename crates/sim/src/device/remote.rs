//! Remote completions: a share of a device's requests ends on another CPU than the one that submitted them.

use rand_pcg::Pcg32;
use rand_pcg::rand_core::Rng;

use super::draw::generator;

/// One more than the greatest draw.
const TWO_TO_32: f64 = 4_294_967_296.0;

/// A seeded choice.
#[derive(Debug)]
pub(super) struct Remote {
    share: f64,
    generator: Pcg32,
}

impl Remote {
    /// `None` where no request ends elsewhere.
    pub(super) fn new(share: f64, seed: u64) -> Option<Remote> {
        (share > 0.0).then(|| Remote { share, generator: generator(seed) })
    }

    /// Which of the other CPUs handles the end of a request, if one does. It draws as often either way, so that another share is the
    /// same choice with more or fewer requests in it.
    pub(super) fn draw(&mut self) -> Option<u32> {
        let (chance, which) = (self.generator.next_u32(), self.generator.next_u32());
        (f64::from(chance) < self.share * TWO_TO_32).then_some(which)
    }
}
