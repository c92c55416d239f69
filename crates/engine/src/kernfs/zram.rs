//! Statistics of a zram device: `/sys/block/zramN/mm_stat` and `io_stat`, one line of numbers each.

use crate::config::SwapKind;
use crate::swap::zram::Zram;
use crate::units::{PAGE_SIZE, SwapId};

/// A file of a zram device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ZramFile {
    MmStat,
    IoStat,
}

/// Names of the files of a zram device.
pub const ZRAM_FILES: &[&str] = &["mm_stat", "io_stat"];

impl ZramFile {
    /// The number of the device among those that are compressed, and the file.
    pub(super) fn of_path(path: &str) -> Option<(usize, ZramFile)> {
        let (number, name) = path.strip_prefix("/sys/block/zram")?.split_once('/')?;
        let file =
            [ZramFile::MmStat, ZramFile::IoStat][ZRAM_FILES.iter().position(|&known| known == name)?];
        Some((number.parse().ok()?, file))
    }

    pub(super) fn text(self, zram: &Zram) -> String {
        let stat = zram.stat;
        match self {
            // original, compressed and used size, limit, most used; pages of one word, compacted, huge, huge ever
            ZramFile::MmStat => format!(
                "{} {} {} {} {} {} 0 {} {}\n",
                (stat.stored + stat.same) * PAGE_SIZE,
                stat.compressed_bytes,
                zram.pages() * PAGE_SIZE,
                zram.limit.unwrap_or(0) * PAGE_SIZE,
                stat.used_max * PAGE_SIZE,
                stat.same,
                stat.huge,
                stat.huge_since
            ),
            // failed reads and writes, invalid requests, slots freed
            ZramFile::IoStat => format!("0 {} 0 0\n", stat.failed_writes),
        }
    }
}

/// The swap device of the `number`-th compressed one.
pub(super) fn device(kinds: impl Iterator<Item = SwapKind>, number: usize) -> Option<SwapId> {
    let compressed = kinds.enumerate().filter(|(_, kind)| *kind == SwapKind::Synchronous);
    compressed.map(|(at, _)| SwapId(at as u8)).nth(number)
}
