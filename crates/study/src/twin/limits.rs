//! What the twin of a recording does not model, and what the recording does not tell, in sentences.

use super::evidence::{INSERTIONS, Need};
use super::recording::{Knowledge, Recording};
use crate::basis::{Verdict, verdict};
use crate::figures;

/// Turns of tasks are reported if there is more than one in this number of accesses.
const SELDOM: u64 = 100;

/// Pages that a CPU charges in one batch: a smaller difference means nothing.
const FEW: i64 = 64;

/// Returns sentences about parts that are not modelled, or not known.
pub fn limits(recording: &Recording) -> Vec<String> {
    let parts: [fn(&Recording, &mut Vec<String>); 4] = [accesses, memory, use_of_files, recorded];
    let mut lines = Vec::new();
    parts.into_iter().for_each(|part| part(recording, &mut lines));
    lines
}

/// Which accesses are known.
fn accesses(recording: &Recording, lines: &mut Vec<String>) {
    let manifest = &recording.manifest;
    if manifest.has_losses() {
        let lost = figures::counted(manifest.source.lost_events, "event");
        lines.push(format!("{lost} lost during the recording: accesses are missing"));
    }
    if manifest.source.unread_events > 0 {
        let unread = figures::counted(manifest.source.unread_events, "event");
        lines.push(format!(
            "{unread} not readable: they are shorter than their format, and their data is missing"
        ));
    }
    if manifest.recording.accesses_beyond > 0 {
        let beyond = figures::count(manifest.recording.accesses_beyond);
        lines.push(format!(
            "accesses left out: {beyond}, because a trace has a limit of files and of page numbers"
        ));
    }
    let estimated = recording.estimated_hits().unwrap_or(0);
    let known = match recording.knowledge() {
        Knowledge::Reads => {
            "every buffered read is recorded, including hits. Hits on mapped pages and reads with O_DIRECT are not recorded"
        }
        Knowledge::ReadsAndWaits => {
            "mapped files have only faults, and the times since when their pages were missed. With more \
             memory the machine has up to 3 % more misses than the twin. Less memory is unknown"
        }
        Knowledge::ReadsAndFaults => {
            "mapped files have only faults. The machine has 2 to 4 % more misses than the twin at this \
             memory, up to 7 % with more memory. Less memory is unknown"
        }
        Knowledge::Insertions => {
            "only insertions are recorded. With more memory the machine has up to 4 % more misses than the twin. Less memory is unknown"
        }
        Knowledge::None => "none are recorded",
    };
    lines.push(format!("accesses: {known}"));
    if estimated > 0 {
        let hits = figures::counted(estimated, "hit");
        lines.push(format!("{hits} on mapped pages added, estimated from the time between eviction and the next fault of each page"));
    }
}

/// How much memory programs, the kernel and files held.
fn memory(recording: &Recording, lines: &mut Vec<String>) {
    let held = recording.held();
    lines.push(memory_of_programs(recording));
    lines.extend(huge_pages(recording));
    let twin = match (recording.is_unsteady(), held.moving) {
        (true, _) => "this memory changed at unknown times, so a twin is not possible. Record insertion events of all files and every page".to_string(),
        (false, 0) => "the twin keeps this amount constant in all answers".to_string(),
        (false, moving) => format!(
            "in all answers the twin keeps {} constant and adds up to {} according to reclaim calls; below the limit the group held less",
            figures::bytes(held.constant),
            figures::bytes(moving)
        ),
    };
    lines.push(format!(
        "programs and the kernel held {} ({} to {} in {}{}); {twin}{}",
        figures::bytes(held.mean),
        figures::bytes(held.least),
        figures::bytes(held.most),
        figures::counted(held.samples as u64, "sample"),
        if held.was_full { "" } else { ", none of them at the limit" },
        match recording.has_swap() {
            true => ". With other memory a part of it may be in swap: such answers are a range, from none to all of it",
            false => "",
        },
    ));
    if held.is_chancy {
        lines.push(
            "chance: readahead windows begin at pages that were just evicted, so a few pages of \
            memory change the result much. The twin is the median of runs with up to 24 pages less and more"
                .to_string(),
        );
    }
    let rooms = verdict(recording, [INSERTIONS, Need::AllPages], |_| {
        (!recording.has_rooms).then(|| {
            "the file with the memory of files at the limit (rooms.csv) is \
            missing, so the twin keeps this memory constant. Record again, or copy the complete folder"
                .to_string()
        })
    });
    lines.extend(said_of("memory of files at the limit", rooms));
}

/// How files were used.
fn use_of_files(recording: &Recording, lines: &mut Vec<String>) {
    let sums = &recording.manifest.sums;
    if recording.before > 0 {
        let pages = figures::counted(recording.before, "page");
        lines.push(format!("{pages} in memory at the start, in unknown order of use: at most this number of misses may differ"));
    }
    let written = verdict(recording, [Need::Writes(|sums| sums.pages_written)], |[written]| {
        let pages = figures::counted(written, "page");
        (written > 0).then(|| {
            format!(
                "{pages} written: the time of writeback depends on the flusher's \
            phase, and the recording does not show which writes hit"
            )
        })
    });
    lines.extend(said_of("pages written", written));
    let around = Need::Events("mm_filemap_map_pages", |sums| sums.faults_around);
    let faults = Need::Events("mm_filemap_fault", |sums| sums.faults);
    let said = verdict(recording, [around, faults], |[around, faults]| {
        let around_told = figures::counted(around, "fault");
        (around > 0 && faults > 0).then(|| format!(
            "{around_told} of mapped files used fault-around: the recording does not show the page of the fault"
        ))
    });
    lines.extend(said_of("faults of mapped files", said));
    let turns = verdict(recording, [Need::Accesses], |[accesses]| {
        (sums.turns * SELDOM > accesses).then(|| format!(
            "{} took turns {} times: one task replays their accesses, in the order of events. The twin does \
             not include their waits for each other and their CPUs",
            figures::counted(sums.tasks, "task"),
            figures::count(sums.turns)
        ))
    });
    lines.extend(turns.ok().flatten());
    if sums.taken > 0 {
        let pages = figures::counted(sums.taken, "page");
        lines.push(format!(
            "{pages} of the group reclaimed by kswapd or DAMON for the machine: the twin \
            drops them at the same accesses in all answers"
        ));
    }
    if let Some(pages) = recording.vanished().filter(|&pages| pages > FEW) {
        let pages = figures::counted(pages as u64, "page");
        lines.push(format!("{pages} left the group's memory without an event, most likely to another group. The twin keeps them"));
    }
}

/// What happened to the group, its files and the recording.
fn recorded(recording: &Recording, lines: &mut Vec<String>) {
    let (manifest, sums) = (&recording.manifest, &recording.manifest.sums);
    if let Some(&killed) = manifest.group.events.get("oom_kill").filter(|&&killed| killed > 0) {
        let killed = figures::count(killed);
        lines.push(format!("the OOM killer ended {killed} of the group's processes: the twin kills none, and ends with their last events"));
    }
    let count_files = |is: fn(&pageout_record::FileRecord) -> bool| {
        let number = manifest.file.iter().filter(|file| is(file)).count() as u64;
        (number > 0).then(|| figures::counted(number, "file"))
    };
    if let Some(files) = count_files(|file| file.deleted && file.deletions == 0) {
        lines.push(format!(
            "{files} deleted during the recording: their pages left memory without reclaim, but stay in the twin"
        ));
    }
    if let Some(files) = count_files(|file| file.also.is_some() && file.deletions == 0) {
        lines.push(format!(
            "{files} with two names: renamed, or a reused inode; in the latter case the twin joins two files"
        ));
    }
    if !manifest.group.limits_changed.is_empty() {
        lines.push(format!(
            "limits changed during the recording: {}",
            manifest.group.limits_changed.join("; ")
        ));
    }
    if manifest.source.clock_went_back > 0 || manifest.source.out_of_order > 0 {
        lines.push(format!(
            "the clock of a CPU went back {}, and {} came too late: the order between CPUs is not certain",
            figures::counted(manifest.source.clock_went_back, "time"),
            figures::counted(manifest.source.out_of_order, "event")
        ));
    }
    if manifest.recording.sample > 1 {
        let reads = figures::counted(sums.sampled_long, "read");
        lines.push(format!(
            "memory is scaled by the sample; {reads} of several pages have only their first page recorded"
        ));
    }
    lines.extend(manifest.source.remarks.iter().cloned());
    if !manifest.source.missing.is_empty() {
        lines.push(format!("this kernel lacks {}", manifest.source.missing.join(", ")));
    }
}

/// Returns the text, if there is one, or the missing needs of `subject`.
fn said_of(subject: &str, said: Verdict<Option<String>>) -> Option<String> {
    said.unwrap_or_else(|unknown| Some(format!("{subject}: {unknown}")))
}

/// Huge pages of programs, which the twin has only as a part of their memory.
fn huge_pages(recording: &Recording) -> Option<String> {
    let group = &recording.manifest.group;
    // The first name is that of version 1 of cgroups.
    let counters = ["rss_huge", "anon_thp"].into_iter();
    let values = counters.flat_map(|name| [group.stat_begin.get(name), group.stat_end.get(name)]);
    let bytes = values.flatten().copied().max().unwrap_or(0);
    let setting = recording.manifest.kernel.transparent_hugepage.as_deref();
    let had = match (bytes, setting) {
        (0, Some("always")) => {
            "transparent_hugepage = always: memory of programs may be in huge pages".to_string()
        }
        (0, _) => return None,
        _ => format!("{} of huge pages in memory of programs", figures::bytes(bytes)),
    };
    Some(format!(
        "{had}. The twin has this memory as single pages: neither their faults, splits and charges of 512 pages, nor copies after \
         fork, khugepaged and compaction"
    ))
}

/// Which accesses to memory of programs are known.
fn memory_of_programs(recording: &Recording) -> String {
    let came_back = match recording.swap_ins() {
        Ok(0) => "no swap-ins".to_string(),
        Ok(pages) => {
            format!("{} swapped in, which the twin does not have", figures::counted(pages, "page"))
        }
        Err(ref unknown) => format!("swap-ins are {unknown}"),
    };
    let user = Need::Events("page_fault_user", |sums| sums.user_faults);
    let memory = Need::Events("page_fault_user", |sums| sums.memory_faults);
    let touched = verdict(recording, [user, memory], |[user, memory]| match (memory, user) {
        (0, 0) => "no first touches".to_string(),
        // A recording of a version that did not distinguish them.
        (0, faults) => format!("first touches are among {}", figures::counted(faults, "fault")),
        (faults, _) => {
            let swap_ins = recording.swap_ins().unwrap_or(0);
            format!("{} of first touches", figures::counted(faults.saturating_sub(swap_ins), "fault"))
        }
    });
    // Without these events the group's counter is an upper bound.
    let touched = touched.unwrap_or_else(|unknown| match recording.rose("pgfault") {
        Some(faults) => format!("first touches are among {} of the group", figures::counted(faults, "fault")),
        None => format!("first touches are {unknown}"),
    });
    format!("memory of programs: {touched}, {came_back}; accesses to resident pages are unknown")
}
