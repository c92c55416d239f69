//! A replay on real files, as text: counters of the live page cache next to those of the simulated machine.

use std::fmt::Write;

use anyhow::anyhow;
use pageout_engine::PAGE_SIZE;
use pageout_study::replay::{Live, Row};

use crate::failure::{Failure, Outcome};
use crate::print::progress::name_of;
use crate::print::{Layout, figures};

/// Fails unless both machines have the same counters.
pub(super) fn verdict(answer: &Live) -> Outcome {
    match answer.differing() {
        0 => Ok(()),
        differing => Err(Failure::Unexpected(anyhow!(
            "--live: {} from the simulation",
            match differing {
                1 => "1 counter differs".to_string(),
                differing => format!("{differing} counters differ"),
            }
        ))),
    }
}

pub(super) fn text(answer: &Live, layout: Layout) -> String {
    let accesses = answer.accesses;
    let mut text = format!(
        "{} accesses of {} on {}, by one thread, with {} of memory (memory.max), {}: {}, {} each\n",
        figures::count(accesses),
        name_of(answer.trace()),
        if answer.region.is_some() { "anonymous memory" } else { "real files" },
        figures::bytes(answer.pages * PAGE_SIZE),
        answer.policy,
        figures::time(answer.elapsed_ns),
        figures::time(answer.elapsed_ns / accesses.max(1)),
    );
    for (at, file) in answer.files.iter().enumerate() {
        let made = if file.is_made { ", made for this: it reads as zeroes, and stays" } else { "" };
        let _ = writeln!(text, "object {at}: {}, {}{made}", file.path.display(), figures::bytes(file.bytes));
    }
    if let Some(bytes) = answer.region {
        let folder = answer.ask.live[0].display();
        let _ = writeln!(text, "region: {}, its swap file is in {folder}", figures::bytes(bytes));
    }
    let rows = &answer.rows;
    let is_shown =
        |row: &&Row| row.live.unwrap_or(0) > 0 || row.simulated.unwrap_or(0) > 0 || !row.is_equal();
    let show = |value: Option<u64>| value.map_or("-".to_string(), figures::count);
    let mut cells = vec![["", "live", "simulated", ""].map(str::to_string).to_vec()];
    cells.extend(rows.iter().filter(is_shown).map(|row| {
        let differs = if row.is_equal() { "" } else { "differs" };
        vec![row.name.clone(), show(row.live), show(row.simulated), differs.to_string()]
    }));
    let _ = writeln!(text, "\n{}", layout.table_by(&cells, |column| [1, 2].contains(&column)));
    let zero = rows.iter().filter(|row| !is_shown(row)).count();
    let differing = answer.differing();
    let _ = writeln!(
        text,
        "{} compared, {} of them zero in both: {}",
        figures::counted(rows.len() as u64, "counter"),
        zero,
        match differing {
            0 => "all are equal".to_string(),
            1 => "1 differs".to_string(),
            differing => format!("{differing} differ"),
        }
    );
    answer.remark.iter().for_each(|remark| text += &format!("note: {remark}\n"));
    text
}
