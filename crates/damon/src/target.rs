//! A target: what is watched, a process or physical memory, as sorted regions. [access-aware 1.1, 1.7]

use crate::region::Region;

/// Addresses from the first to below the second.
pub type Range = std::ops::Range<u64>;

/// What is watched.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Target {
    pub(crate) regions: Vec<Region>,
}

impl Target {
    /// Its regions, in the order of addresses.
    pub fn regions(&self) -> &[Region] {
        &self.regions
    }

    /// Addresses in its regions.
    pub fn size(&self) -> u64 {
        self.regions.iter().map(Region::size).sum()
    }

    /// Adapts the regions to sorted ranges: drops those that no range touches, stretches those at the ends of a range, and fills holes with new ones.
    pub fn set_ranges(&mut self, ranges: &[Range], min_region_size: u64) {
        let mut adapted: Vec<Region> = Vec::new();
        for range in ranges.iter().map(|range| aligned(range, min_region_size)) {
            let start = adapted.last().map_or(range.start, |last| last.end.max(range.start));
            let mut at = start;
            for region in self.regions.iter().filter(|region| start < region.end && region.start < range.end)
            {
                if at < region.start && at > start {
                    adapted.push(Region::new(at, region.start));
                }
                let from = if at == start { start } else { region.start };
                at = region.end.min(range.end);
                adapted.push(Region { start: from, end: at, sampled: from, ..*region });
            }
            match adapted.last_mut() {
                Some(last) if at > start => last.end = range.end,
                _ if start < range.end => adapted.push(Region::new(start, range.end)),
                _ => {}
            }
        }
        self.regions = adapted;
    }

    /// Cuts regions above a size into parts of it; the last part is the rest.
    pub(crate) fn cut_evenly(&mut self, limit: u64, min_region_size: u64, copies_count: bool) {
        let size = (limit / min_region_size * min_region_size).max(min_region_size);
        if self.regions.iter().all(|region| region.size() <= size) {
            return;
        }
        let mut parts = Vec::with_capacity(2 * self.regions.len());
        for &region in &self.regions {
            let mut rest = region;
            while rest.size() > size {
                let right = rest.cut(size, copies_count);
                parts.push(rest);
                rest = right;
            }
            parts.push(rest);
        }
        self.regions = parts;
    }
}

/// The range up to whole regions of the smallest size.
fn aligned(range: &Range, size: u64) -> Range {
    range.start / size * size..range.end.div_ceil(size) * size
}

/// The three ranges of a process: its mappings, without the two largest gaps between them. `None`: there are fewer than two gaps.
pub fn three_ranges(mappings: &[Range]) -> Option<[Range; 3]> {
    let (first, last) = (mappings.first()?, mappings.last()?);
    let mut gaps: Vec<Range> = mappings
        .windows(2)
        .map(|pair| pair[0].end..pair[1].start)
        .filter(|gap| gap.start < gap.end)
        .collect();
    gaps.sort_by_key(|gap| std::cmp::Reverse(gap.end - gap.start));
    gaps.truncate(2);
    gaps.sort_by_key(|gap| gap.start);
    let [low, high] = gaps.as_slice() else { return None };
    Some([first.start..low.start, low.end..high.start, high.end..last.end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(ranges: &[Range]) -> Target {
        Target {
            regions: ranges
                .iter()
                .enumerate()
                .map(|(at, range)| Region { age: at as u32 + 1, ..Region::new(range.start, range.end) })
                .collect(),
        }
    }

    fn shown(target: &Target) -> Vec<(u64, u64, u32)> {
        target.regions.iter().map(|region| (region.start, region.end, region.age)).collect()
    }

    #[test]
    fn three_ranges_leave_the_two_largest_gaps_out() {
        let mappings = [10..20, 20..25, 200..220, 300..305, 314..320];
        assert_eq!(three_ranges(&mappings), Some([10..25, 200..220, 300..320]));
        assert_eq!(three_ranges(&[10..20, 20..25, 200..220]), None, "one gap");
        assert_eq!(three_ranges(&[]), None);
    }

    #[test]
    fn new_ranges_drop_stretch_and_fill() {
        let mut of = target(&[10..20, 20..30, 50..55, 55..57, 57..59]);
        of.set_ranges(&[5..27, 45..70, 90..95], 1);
        assert_eq!(shown(&of), [(5, 20, 1), (20, 27, 2), (45, 55, 3), (55, 57, 4), (57, 70, 5), (90, 95, 0)]);
        of.set_ranges(&[93..97], 1);
        assert_eq!(shown(&of), [(93, 97, 0)]);
    }

    #[test]
    fn new_ranges_fill_a_hole_between_regions() {
        let mut of = target(&[10..20, 30..40]);
        of.set_ranges(&[10..40], 1);
        assert_eq!(shown(&of), [(10, 20, 1), (20, 30, 0), (30, 40, 2)]);
    }

    #[test]
    fn region_across_two_ranges_is_divided() {
        let mut of = target(&[0..100]);
        of.set_ranges(&[0..40, 60..100], 1);
        assert_eq!(shown(&of), [(0, 40, 1), (60, 100, 1)]);
    }

    #[test]
    fn ranges_are_aligned_to_the_smallest_region() {
        let mut of = Target::default();
        of.set_ranges(&[5000..9000], 4096);
        assert_eq!(shown(&of), [(4096, 12288, 0)]);
    }

    #[test]
    fn even_cuts_leave_the_rest_to_the_last_part() {
        let mut of = target(&[0..100, 100..130]);
        of.cut_evenly(31, 10, true);
        assert_eq!(shown(&of), [(0, 30, 1), (30, 60, 1), (60, 90, 1), (90, 100, 1), (100, 130, 2)]);
    }
}
