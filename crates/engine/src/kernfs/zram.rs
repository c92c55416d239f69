//! Statistics of a zram device: `/sys/block/zramN/mm_stat` and `io_stat`, one line of numbers each.

use crate::access::engine::Engine;
use crate::config::SwapKind;
use crate::swap::zram::Zram;
use crate::units::{PAGE_SIZE, SwapId};

/// A file of each zram device, read only.
pub struct ZramFile {
    /// The file's name in the device's directory, `/sys/block/zramN`.
    pub name: &'static str,
    /// Meaning of the file's contents.
    pub doc: &'static str,
    show: fn(&Zram) -> String,
}

/// The files of a zram device.
#[rustfmt::skip]
pub const ZRAM_FILES: &[ZramFile] = &[
    ZramFile { name: "mm_stat", doc: "Original, compressed and used size, limit, maximum used; pages of one word, compacted, huge now, huge ever.", show: mm_stat_show },
    ZramFile { name: "io_stat", doc: "Failed reads and writes, invalid requests, slots freed.", show: io_stat_show },
];

fn mm_stat_show(zram: &Zram) -> String {
    let stat = zram.stat;
    format!(
        "{} {} {} {} {} {} 0 {} {}\n",
        (stat.stored + stat.same) * PAGE_SIZE,
        stat.compressed_bytes,
        zram.pages() * PAGE_SIZE,
        zram.limit.unwrap_or(0) * PAGE_SIZE,
        stat.used_max * PAGE_SIZE,
        stat.same,
        stat.huge,
        stat.huge_since
    )
}

fn io_stat_show(zram: &Zram) -> String {
    format!("0 {} 0 0\n", zram.stat.failed_writes)
}

/// The number of the device among those that are compressed, and the file.
pub(super) fn of_path(path: &str) -> Option<(usize, &'static ZramFile)> {
    let (number, name) = path.strip_prefix("/sys/block/zram")?.split_once('/')?;
    Some((number.parse().ok()?, ZRAM_FILES.iter().find(|file| file.name == name)?))
}

impl Engine {
    /// The swap device of the `number`-th compressed one.
    pub(super) fn zram_device(&self, number: usize) -> Option<SwapId> {
        let swap = &self.core.mm.memory.swap;
        let devices = (0..swap.devices()).map(|at| SwapId(at as u8));
        devices.filter(|&device| swap.kind(device) == SwapKind::Synchronous).nth(number)
    }

    pub(super) fn zram_text(&self, swap: SwapId, file: &ZramFile) -> String {
        let zram = self.core.mm.memory.swap.zram(swap);
        zram.map_or_else(String::new, file.show)
    }
}
