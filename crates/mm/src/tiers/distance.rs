//! The abstract distance: how slow a node's memory is, as one number, by which it is put into a tier. [tiering 1.1]
//!
//! ```text
//!   distance   0 ── 128 ── 256 ── 384 ── 512 ── 640 ── 768 ── 896 ── ..  2816 ── 2944
//!   tier         0      1      2      3      4      5      6                 22
//!                                          DRAM 576                       dax/kmem 2880
//! ```
//! Slower memory is farther. DRAM is in the middle of the fifth chunk, so that faster memory fits below it. The distance is relative to the machine's
//! own DRAM: twice the latency is twice as far, and so is half the bandwidth.

use crate::units::AccessCoordinate;

/// Distances of a tier, as a power of two.
const CHUNK_BITS: u32 = 7;
/// Distances of a tier.
pub(super) const CHUNK: u32 = 1 << CHUNK_BITS;
/// The distance of ordinary memory: the middle of the fifth tier.
pub const ADISTANCE_DRAM: u32 = 4 * CHUNK + CHUNK / 2;
/// The distance of a memory-only device of unknown performance: five times as far as DRAM.
pub const ADISTANCE_DAX_KMEM: u32 = 5 * ADISTANCE_DRAM;

/// Sum of the latencies, and of the bandwidths.
fn sums(of: &AccessCoordinate) -> (u64, u64) {
    let latency = u64::from(of.read_latency) + u64::from(of.write_latency);
    (latency, u64::from(of.read_bandwidth) + u64::from(of.write_bandwidth))
}

/// Returns true if one memory differs from another by more than a tenth of that in any attribute.
pub(super) fn differs(one: &AccessCoordinate, other: &AccessCoordinate) -> bool {
    let attributes =
        |of: &AccessCoordinate| [of.read_latency, of.write_latency, of.read_bandwidth, of.write_bandwidth];
    let far = |(ours, theirs): (u32, u32)| ours.abs_diff(theirs) > theirs / 10;
    attributes(one).into_iter().zip(attributes(other)).any(far)
}

/// The abstract distance of memory of this performance, where `dram` is that of the machine's DRAM. In whole numbers, from left to
/// right. `None`: it has no latency or no bandwidth, or the DRAM has none.
#[doc(alias = "mt_perf_to_adistance")]
pub fn adistance(of: &AccessCoordinate, dram: &AccessCoordinate) -> Option<u32> {
    let ((latency, bandwidth), (latency_0, bandwidth_0)) = (sums(of), sums(dram));
    if [latency, bandwidth, latency_0, bandwidth_0].contains(&0) {
        return None;
    }
    let by_latency = u128::from(ADISTANCE_DRAM) * u128::from(latency) / u128::from(latency_0);
    let distance = by_latency * u128::from(bandwidth_0) / u128::from(bandwidth);
    Some(u32::try_from(distance).unwrap_or(u32::MAX))
}

/// The tier that a distance belongs to.
pub(super) fn tier_of(adistance: u32) -> u32 {
    adistance >> CHUNK_BITS
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAM: AccessCoordinate = AccessCoordinate {
        read_latency: 100,
        write_latency: 100,
        read_bandwidth: 200_000,
        write_bandwidth: 200_000,
    };

    #[test]
    fn dram_is_in_tier_4_and_memory_that_nobody_knows_in_tier_22() {
        assert_eq!((ADISTANCE_DRAM, tier_of(ADISTANCE_DRAM)), (576, 4));
        assert_eq!((ADISTANCE_DAX_KMEM, tier_of(ADISTANCE_DAX_KMEM)), (2880, 22));
        assert_eq!(adistance(&DRAM, &DRAM), Some(576));
    }

    #[test]
    fn twice_the_latency_or_half_the_bandwidth_is_twice_as_far() {
        let slow = AccessCoordinate { read_latency: 200, write_latency: 200, ..DRAM };
        assert_eq!(adistance(&slow, &DRAM), Some(1152));
        let narrow = AccessCoordinate { read_bandwidth: 100_000, write_bandwidth: 100_000, ..DRAM };
        assert_eq!(adistance(&narrow, &DRAM), Some(1152));
    }

    /// 2.2 times the latency and half the bandwidth: whole numbers, latency first.
    #[test]
    fn the_formula_is_computed_in_whole_numbers_from_left_to_right() {
        let cxl = AccessCoordinate {
            read_latency: 220,
            write_latency: 220,
            read_bandwidth: 100_000,
            write_bandwidth: 100_000,
        };
        assert_eq!(adistance(&cxl, &DRAM), Some(2534));
        assert_eq!(tier_of(2534), 19);
        // 576 * 201 / 200 is 578.88 and cut to 578; times 3 / 2 that is 867, and not 868.
        let odd = AccessCoordinate { read_latency: 101, write_latency: 100, ..DRAM };
        let dram = AccessCoordinate { read_bandwidth: 300_000, write_bandwidth: 300_000, ..DRAM };
        assert_eq!(adistance(&odd, &dram), Some(867));
    }

    #[test]
    fn memory_without_latency_or_bandwidth_has_no_distance() {
        let none = AccessCoordinate { read_bandwidth: 0, write_bandwidth: 0, ..DRAM };
        assert_eq!(adistance(&none, &DRAM), None);
        assert_eq!(adistance(&DRAM, &none), None);
        assert_eq!(adistance(&AccessCoordinate { read_latency: 0, write_latency: 0, ..DRAM }, &DRAM), None);
    }

    #[test]
    fn a_tenth_is_no_difference_and_more_than_that_is_one() {
        assert!(!differs(&AccessCoordinate { read_latency: 110, ..DRAM }, &DRAM));
        assert!(differs(&AccessCoordinate { read_latency: 111, ..DRAM }, &DRAM));
        assert!(differs(&AccessCoordinate { write_bandwidth: 179_999, ..DRAM }, &DRAM));
    }
}
