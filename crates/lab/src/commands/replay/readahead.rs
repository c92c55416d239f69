//! What is read ahead, and figures below the bound for it, in words.

use std::fmt::Write;

use pageout_sim::scenario::{Channel, Device};
use pageout_study::replay::{Ask, Below, Bound};

use crate::print::{Layout, figures};

/// The bound at a size.
pub(super) fn bound(bound: &Bound) -> String {
    match bound.spread {
        None => format!("{:.4}", bound.miss_ratio),
        Some(spread) => format!("~{:.4} ±{spread:.4}", bound.miss_ratio),
    }
}

/// What is read ahead, as a table has it.
pub(super) fn shown(ask: &Ask, has_neighbours: bool) -> String {
    match ask.window_kb(has_neighbours) {
        _ if ask.lacks_swap() => "-".to_string(),
        0 => "off".to_string(),
        _ if ask.channel == Channel::Anonymous => "8 pages".to_string(),
        kib => figures::bytes(u64::from(kib) << 10),
    }
}

/// A line on what is read ahead, and how to have it otherwise.
pub(super) fn line(ask: &Ask, has_neighbours: bool) -> String {
    let is_anonymous = ask.channel == Channel::Anonymous;
    let why = match (ask.read_ahead_kb, has_neighbours) {
        (None, false) => {
            "the trace is of opaque ids, which have no neighbours; --read-ahead-kb 128 reads ahead as Linux does"
        }
        _ => "--read-ahead-kb 0",
    };
    match ask.window_kb(has_neighbours) {
        _ if ask.lacks_swap() => String::new(),
        0 if is_anonymous => format!("swap is read a page at a time ({why})\n"),
        0 => format!("nothing is read ahead ({why})\n"),
        _ if is_anonymous => {
            "swap is read ahead as in a scenario (vm.page-cluster = 3); --read-ahead-kb 0: a page at a time\n"
                .to_string()
        }
        kib => format!(
            "files are read ahead up to {}{}{}; --read-ahead-kb 0: not at all\n",
            figures::bytes(u64::from(kib) << 10),
            if kib == Device::READ_AHEAD_KB { ", as in a scenario" } else { "" },
            if has_neighbours {
                ""
            } else {
                ", across opaque ids, whose neighbours are what is asked for next"
            },
        ),
    }
}

/// A paragraph behind the table on what is below the bound.
pub(super) fn below_text(below: &[Below], window_kb: u32, layout: Layout) -> String {
    self::below(below, window_kb).map_or(String::new(), |says| format!("\n{}", layout.wrap(&says, "")))
}

/// What is below the bound, and why.
pub(super) fn below(below: &[Below], window_kb: u32) -> Option<String> {
    let first = below.first()?;
    let mut says = format!(
        "{} is below the bound at {}: {:.4}, and opt has {:.4}.",
        first.policy,
        figures::bytes(first.pages * 4096),
        first.miss_ratio,
        first.bound
    );
    if below.len() > 1 {
        let more = figures::counted(below.len() as u64 - 1, "other figure");
        let _ = write!(says, " {more} {} below it, too.", if below.len() == 2 { "is" } else { "are" });
    }
    let _ = write!(
        says,
        " opt is a bound of policies that read only what is asked for, and {}. --read-ahead-kb 0 compares like with like.",
        match window_kb {
            0 => "this one reads more than that".to_string(),
            kib => format!("this one reads ahead, up to {}", figures::bytes(u64::from(kib) << 10)),
        }
    );
    Some(says)
}
