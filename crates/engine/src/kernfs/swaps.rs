//! `/proc/swaps`: the swap devices, how full they are, and in which order they are used.

use std::fmt::Write;

use crate::access::engine::Engine;
use crate::config::SwapKind;
use crate::units::{PAGE_SIZE, SwapId};

/// A line a device, in the order in which they were enabled. They have no names of their own: those on block devices are
/// numbered, as compressed ones are.
pub(super) fn swaps_show(engine: &mut Engine) -> String {
    let swap = &engine.core.mm.memory.swap;
    let mut text = String::from("Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n");
    let mut numbers = [0, 0];
    for device in (0..swap.devices()).map(|at| SwapId(at as u8)) {
        let kind = swap.kind(device);
        let name = if kind == SwapKind::Synchronous { "/dev/zram" } else { "/dev/swap" };
        let number = &mut numbers[usize::from(kind == SwapKind::Synchronous)];
        let [used, size] = swap.used_of(device).map(|pages| pages * PAGE_SIZE / 1024);
        let name = format!("{name}{number}");
        let line = writeln!(text, "{name:<40}partition\t{size}\t\t{used}\t\t{}", swap.priority(device));
        line.expect("a text takes what is written to it");
        *number += 1;
    }
    text
}
