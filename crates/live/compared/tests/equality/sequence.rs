//! The accesses of one thread to a file and a region.

use pageout_workload::Access;

/// The objects, by number.
pub(crate) const FILE: u32 = 0;
pub(crate) const REGION: u32 = 1;

/// Repeated accesses to some pages, single random ones, and runs: `of_file` of ten to the file. A third of the accesses to the region write.
pub(crate) fn accesses(
    mut draw: impl FnMut(u64) -> u64,
    of_file: u64,
    [file_pages, region_pages]: [u64; 2],
    count: usize,
) -> Vec<Access> {
    let mut accesses = Vec::new();
    while accesses.len() < count {
        let (object, pages) = if draw(10) < of_file { (FILE, file_pages) } else { (REGION, region_pages) };
        let (first, length) = match draw(8) {
            0 => (draw(pages - 60), 1 + draw(60)),
            1..3 => (draw(pages), 1),
            _ => (draw(300), 1),
        };
        let writes = object == REGION && draw(3) == 0;
        accesses.extend((first..first + length).map(|page| Access::new(object, page, writes)));
    }
    accesses
}
