//! Zipf ranks by a table of the summed distribution: the first rank whose sum is above `unit() * total`.
//!
//! A binary search over a million sums takes twenty dependent cache misses. The guide table stores for each slice of `[0, 1)` where the search of its
//! lowest value ends. `unit() * total` never falls as `unit()` rises. So any value of the slice ends there or a little above, and a short walk finds
//! the same rank as the search would.
//!
//! ```text
//!   unit() = 0.b1 b2 b3 ... b53
//!            └─ slice ─┘            guide[slice] = rank of the slice's lowest value, then walk up
//! ```
//!
//! Source of the idea: Chen and Asau, "On generating random variates from an empirical distribution" (1974).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::rng::UNIT;

/// Tables that streams share: of as many ranks and one exponent there is one, however many threads draw from it.
#[derive(Clone, Default)]
pub struct ZipfTables(Arc<Mutex<Tables>>);

/// By ranks and by the exponent's bits.
type Tables = BTreeMap<(u32, u64), Arc<ZipfTable>>;

impl ZipfTables {
    pub(super) fn get(&self, ranks: u32, alpha: f64) -> Arc<ZipfTable> {
        let mut tables = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let table = tables.entry((ranks, alpha.to_bits()));
        Arc::clone(table.or_insert_with(|| Arc::new(ZipfTable::new(ranks, alpha))))
    }
}

impl fmt::Debug for ZipfTables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ZipfTables")
    }
}

/// Zipf ranks by table look-up; 16 bytes a rank, 24 just above a power of two.
pub struct ZipfTable {
    /// `sums[k]`: of the weights of the ranks 0 to k.
    sums: Vec<f64>,
    /// Rank of the lowest value of each slice; a slice more than there are so that a bound is always there.
    guide: Vec<u32>,
    total: f64,
    /// Shifts a 53-bit mantissa to its slice.
    slice_shift: u32,
}

impl ZipfTable {
    /// A table of `ranks` ranks.
    ///
    /// # Panics
    /// When `ranks` is 0.
    pub fn new(ranks: u32, alpha: f64) -> ZipfTable {
        assert!(ranks > 0, "a distribution has at least one rank");
        let mut total = 0.0;
        let sums: Vec<f64> = (1..=ranks)
            .map(|rank| {
                total += 1.0 / libm::pow(f64::from(rank), alpha);
                total
            })
            .collect();
        let slices = u64::from(ranks).next_power_of_two() * 2;
        let slice_shift = 53 - slices.trailing_zeros();
        let mut rank = 0;
        let guide = (0..slices)
            .map(|slice| {
                let target = ((slice << slice_shift) as f64 * UNIT) * total;
                while rank + 1 < sums.len() && sums[rank] <= target {
                    rank += 1;
                }
                rank as u32
            })
            .collect();
        ZipfTable { sums, guide, total, slice_shift }
    }

    /// The rank, from 0, that the 53-bit `mantissa` of a unit draw stands for: what `bisect_right(sums, u * total)`
    /// finds, and the last rank where rounding puts it past the end.
    #[inline]
    pub fn rank(&self, mantissa: u64) -> u32 {
        let mut rank = self.guide[(mantissa >> self.slice_shift) as usize] as usize;
        let target = (mantissa as f64 * UNIT) * self.total;
        while rank + 1 < self.sums.len() && self.sums[rank] <= target {
            rank += 1;
        }
        rank as u32
    }

    /// [`ZipfTable::rank`] of many. `mantissas` and `ranks` are of one length.
    pub fn ranks(&self, mantissas: &[u64], ranks: &mut [u32]) {
        // Two loops: the look-ups of the first overlap, and the second finds its guide entries in the cache.
        for (rank, &mantissa) in ranks.iter_mut().zip(mantissas) {
            *rank = self.guide[(mantissa >> self.slice_shift) as usize];
        }
        let last = self.sums.len() - 1;
        for (rank, &mantissa) in ranks.iter_mut().zip(mantissas) {
            let target = (mantissa as f64 * UNIT) * self.total;
            let mut at = *rank as usize;
            while at < last && self.sums[at] <= target {
                at += 1;
            }
            *rank = at as u32;
        }
    }

    /// The naive model of [`ZipfTable::rank`].
    #[cfg(test)]
    fn rank_by_bisection(&self, mantissa: u64) -> u32 {
        let target = (mantissa as f64 * UNIT) * self.total;
        (self.sums.partition_point(|&sum| sum <= target) as u32).min(self.sums.len() as u32 - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::SplitMix64;

    #[test]
    fn the_guide_table_finds_what_bisection_finds() {
        for (ranks, alpha) in
            [(1, 0.99), (2, 0.0), (3, 5.0), (1000, 0.5), (4096, 1.0), (16_385, 0.99), (100_000, 100.0)]
        {
            let table = ZipfTable::new(ranks, alpha);
            let mut rng = SplitMix64::new(u64::from(ranks));
            let edges = (0..4096u64).flat_map(|slice| {
                [slice << 41, (slice << 41) + 1, (slice << 41).wrapping_sub(1) & ((1 << 53) - 1)]
            });
            let random = (0..20_000).map(|_| rng.mantissa()).collect::<Vec<_>>();
            let mantissas: Vec<u64> = edges.chain(random).collect();
            let mut batch = vec![0; mantissas.len()];
            table.ranks(&mantissas, &mut batch);
            for (&mantissa, &rank) in mantissas.iter().zip(&batch) {
                assert_eq!(rank, table.rank_by_bisection(mantissa), "{ranks} ranks, alpha {alpha}");
                assert_eq!(rank, table.rank(mantissa));
            }
        }
    }
}
