//! Kernel files, and values to write to them: valid ones, invalid ones, and odd ones.

use pageout_engine::MemcgId;

/// Values that a file may or may not take.
pub(super) const ODDITIES: [&str; 27] = [
    "",
    " ",
    "max",
    "MAX",
    "-1",
    "0",
    "4095",
    "18446744073709551615",
    "18446744073709551616",
    "16777215T",
    "16777216T",
    "1 M",
    "1M swappiness=200",
    "1M swappiness=201",
    "1M swappiness=",
    "1M swappiness=0 swappiness=100",
    "k",
    "1é",
    "1kk",
    "+1",
    "+",
    "+ 2 0 3 60 0",
    "- 2 0 0;+ 1 0 3,é",
    "-2 0 1 max\n",
    "y",
    "n",
    "1",
];
/// Files of a group.
pub(super) const FILES: [&str; 13] = [
    "memory.current",
    "memory.swap.current",
    "memory.min",
    "memory.low",
    "memory.high",
    "memory.max",
    "memory.swap.max",
    "memory.stat",
    "memory.events",
    "memory.reclaim",
    "memory.pressure",
    "",
    "memory.oom.group",
];

pub(super) const LRU_GEN_FILES: [&str; 4] = [
    "/sys/kernel/debug/lru_gen",
    "/sys/kernel/mm/lru_gen/enabled",
    "/sys/kernel/debug/lru_gen_full",
    "/sys/kernel/mm/lru_gen/min_ttl_ms",
];

/// Commands around the generations of a group, half of them well-formed; or what any file might be given.
pub(super) fn lru_gen_text(memcg: MemcgId, youngest: u64, file: u8, text: u8) -> String {
    let (id, number) = (memcg.0 + 1, u64::from(text >> 4));
    let seq = (youngest + 1).saturating_sub(number % 5);
    let last = ["", " 60", " 200 0", " 0 1", " max", " 0x10 7", " 201 4", " 1 99999999999999999999"];
    let last = last[usize::from(text & 7)];
    match file / LRU_GEN_FILES.len() as u8 % 8 {
        0..3 => format!("+ {id} 0 {seq}{last}"),
        3..5 => format!("- {id} 0 {seq}{last}"),
        5 => format!(
            "+ {id} 0 {youngest},- {id} 0 {};;\n- {id} {number} {seq}{last}",
            youngest.saturating_sub(2)
        ),
        6 => format!("{:#x}", text & 7),
        _ => ODDITIES[usize::from(text) % ODDITIES.len()].to_owned(),
    }
}
