//! Sequential reads without readahead: how many pages were read from files in order, which Linux would have read ahead.
//!
//! If readahead is off, every page of such a stream is a separate request. So a run reports how many there were.

use pageout_engine::FileId;

/// Streams of one file that are distinguished: several readers of a file at different places are each in order.
const STREAMS: usize = 4;

/// Reads of files, and those of them that went on where another had ended.
#[derive(Debug, Default)]
pub(super) struct Sequences {
    /// By file: where its latest reads ended, the last one first.
    ends: Vec<[u64; STREAMS]>,
    pub(super) pages: u64,
    pub(super) pages_in_order: u64,
}

impl Sequences {
    /// This many pages of a file are being read from its device.
    pub(super) fn note(&mut self, file: FileId, page: u64, pages: u32) {
        let slot = file.0 as usize;
        if self.ends.len() <= slot {
            self.make_known(slot);
        }
        let ends = &mut self.ends[slot];
        let stream = ends.iter().position(|&end| end == page);
        self.pages += u64::from(pages);
        self.pages_in_order += stream.map_or(0, |_| u64::from(pages));
        // The sequence that continues, or the one that has been idle for the longest time, moves to the front: a few steps, instead of a memmove call
        // by `copy_within`.
        for at in (0..stream.unwrap_or(STREAMS - 1)).rev() {
            ends[at + 1] = ends[at];
        }
        ends[0] = page + u64::from(pages);
    }

    #[cold]
    fn make_known(&mut self, file: usize) {
        self.ends.resize(file + 1, [u64::MAX; STREAMS]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_order(reads: &[(u32, u64)]) -> u64 {
        let mut sequences = Sequences::default();
        reads.iter().for_each(|&(file, page)| sequences.note(FileId(file), page, 1));
        assert_eq!(sequences.pages, reads.len() as u64);
        sequences.pages_in_order
    }

    #[test]
    fn a_page_behind_the_one_before_is_read_in_order() {
        assert_eq!(in_order(&[(0, 7), (0, 8), (0, 9), (0, 3), (0, 3)]), 2);
    }

    #[test]
    fn streams_of_several_readers_and_files_are_told_apart() {
        let interleaved: Vec<(u32, u64)> =
            (0..100).flat_map(|page| [(0, page), (0, 500 + page), (0, 900 + page), (1, page)]).collect();
        assert_eq!(in_order(&interleaved), 4 * 99);
    }
}
