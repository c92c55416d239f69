//! What the twin of a recording does not model, and what the recording does not tell, in sentences.

use super::evidence::{INSERTIONS, Need};
use super::recording::{Knowledge, Recording};
use crate::basis::{Verdict, verdict};
use crate::figures;

/// Turns of tasks are told where there is more than one in so many accesses.
const SELDOM: u64 = 100;

/// Pages that a CPU charges at once: a difference as small says nothing.
const FEW: i64 = 64;

/// What could not be modelled, and what is not known.
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
        lines.push(format!("{lost} lost while it was recorded: accesses are missing"));
    }
    if manifest.source.unread_events > 0 {
        let unread = figures::counted(manifest.source.unread_events, "event");
        lines.push(format!("{unread} could not be read: they were shorter than their format says, and what they told is missing"));
    }
    if manifest.recording.accesses_beyond > 0 {
        let beyond = figures::count(manifest.recording.accesses_beyond);
        lines.push(format!(
            "accesses left out: {beyond}, as a trace can't hold so many files, or pages of so high a number"
        ));
    }
    let estimated = recording.estimated_hits().unwrap_or(0);
    let known = match recording.knowledge() {
        Knowledge::Reads => {
            "every buffered read is known, hits too. Hits on mapped pages and reads with O_DIRECT are not"
        }
        Knowledge::ReadsAndWaits => {
            "of mapped files the faults alone are known, and since when their pages were missed. At more memory there are up to 3 % more misses than told, and of less nothing is known"
        }
        Knowledge::ReadsAndFaults => {
            "of mapped files the faults alone are known. There are 2 to 4 % more misses than told at this memory, up to 7 % at more, and of less nothing is known"
        }
        Knowledge::Insertions => {
            "only what came in is known. At more memory there are up to 4 % more misses than told, and of less memory nothing is known"
        }
        Knowledge::None => "none are known",
    };
    lines.push(format!("accesses: {known}"));
    if estimated > 0 {
        let hits = figures::counted(estimated, "hit");
        lines.push(format!("{hits} on mapped pages put in: as often as the time says that each page was missed after its eviction"));
    }
}

/// How much memory programs, the kernel and files held.
fn memory(recording: &Recording, lines: &mut Vec<String>) {
    let held = recording.held();
    lines.push(memory_of_programs(recording));
    let twin = match (recording.is_unsteady(), held.moving) {
        (true, _) => "that came and went, and when is not known: no twin of it would say anything. Record events of insertions, with all files and every page".to_string(),
        (false, 0) => "the twin holds that constant, whatever is asked".to_string(),
        (false, moving) => format!(
            "the twin holds {} all the time and up to {} more where calls of reclaim tell it, whatever is asked; while the group was not full less was held",
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
            true => ". With other memory their part may be in swap: such answers are a range, from none of it there to all of it",
            false => "",
        },
    ));
    if held.is_chancy {
        lines.push("chance: windows of readahead begin where a page has just been evicted, so a few pages of memory more or less change much. The twin is the middle one of runs that hold up to 24 pages less and more".to_string());
    }
    let large = Need::Events("mm_filemap_add_to_page_cache", |sums| sums.insertions_large);
    let said = verdict(recording, [INSERTIONS, large], |[insertions, large]| {
        let share = figures::percent(figures::share(large, insertions));
        (large * 100 > insertions).then(|| format!("{share} of the pages came in large folios; the twin has single pages, which reclaim takes one by one"))
    });
    lines.extend(said_of("large folios", said));
    let rooms = verdict(recording, [INSERTIONS, Need::AllPages], |_| {
        (!recording.has_rooms).then(|| "rooms.csv is missing: how much memory files had whenever the group was full is not known, and the twin takes it for constant. Record again, or copy the whole folder".to_string())
    });
    lines.extend(said_of("how much memory files had whenever the group was full", rooms));
}

/// How files were used.
fn use_of_files(recording: &Recording, lines: &mut Vec<String>) {
    let sums = &recording.manifest.sums;
    if recording.before > 0 {
        let pages = figures::counted(recording.before, "page");
        lines.push(format!("{pages} in memory when it began: in which order they were used before is not known, so as many misses at most may be others"));
    }
    let written = verdict(recording, [Need::Writes(|sums| sums.pages_written)], |[written]| {
        let pages = figures::counted(written, "page");
        (written > 0).then(|| format!("{pages} written: when they are written back hangs on the flusher's phase, and what a write found in memory is not told"))
    });
    lines.extend(said_of("pages written", written));
    let around = Need::Events("mm_filemap_map_pages", |sums| sums.faults_around);
    let faults = Need::Events("mm_filemap_fault", |sums| sums.faults);
    let said =
        verdict(recording, [around, faults], |[around, faults]| {
            let around_told = figures::counted(around, "fault");
            (around > 0 && faults > 0).then(|| format!(
            "{around_told} of mapped files looked for pages nearby: which page was asked for is not told"
        ))
        });
    lines.extend(said_of("faults of mapped files", said));
    let turns = verdict(recording, [Need::Accesses], |[accesses]| {
        (sums.turns * SELDOM > accesses).then(|| format!(
            "{} took turns {} times: one task plays their accesses, in the order of their events. Who waited for whom, and on which CPU, is not in it",
            figures::counted(sums.tasks, "task"),
            figures::count(sums.turns)
        ))
    });
    lines.extend(turns.ok().flatten());
    if sums.taken > 0 {
        let pages = figures::counted(sums.taken, "page");
        lines.push(format!("{pages} that it had brought in taken by kswapd or DAMON, for the whole machine: the twin loses them at the same places, whatever is asked"));
    }
    if let Some(pages) = recording.vanished().filter(|&pages| pages > FEW) {
        let pages = figures::counted(pages as u64, "page");
        lines.push(format!("{pages} left the group's memory, and no event tells who took them: another group, most likely. The twin keeps them"));
    }
}

/// What happened to the group, its files and the recording.
fn recorded(recording: &Recording, lines: &mut Vec<String>) {
    let (manifest, sums) = (&recording.manifest, &recording.manifest.sums);
    if let Some(&killed) = manifest.group.events.get("oom_kill").filter(|&&killed| killed > 0) {
        let killed = figures::count(killed);
        lines.push(format!("memory ran out, and the kernel killed {killed} of the group's processes: the twin kills none, and ends where their events do"));
    }
    let count_files = |is: fn(&pageout_record::FileRecord) -> bool| {
        let number = manifest.file.iter().filter(|file| is(file)).count() as u64;
        (number > 0).then(|| figures::counted(number, "file"))
    };
    if let Some(files) = count_files(|file| file.deleted && file.deletions == 0) {
        lines.push(format!(
            "{files} deleted meanwhile: their pages left memory without reclaim, and stay in the twin"
        ));
    }
    if let Some(files) = count_files(|file| file.also.is_some() && file.deletions == 0) {
        lines.push(format!(
            "{files} with two names: renamed, or an inode was used again, and then two files are one here"
        ));
    }
    if !manifest.group.limits_changed.is_empty() {
        lines.push(format!(
            "limits changed while it was recorded: {}",
            manifest.group.limits_changed.join("; ")
        ));
    }
    if manifest.source.clock_went_back > 0 || manifest.source.out_of_order > 0 {
        lines.push(format!(
            "the clock of a CPU went back {}, and {} came too late: order between CPUs is not sure there",
            figures::counted(manifest.source.clock_went_back, "time"),
            figures::counted(manifest.source.out_of_order, "event")
        ));
    }
    if manifest.recording.sample > 1 {
        let reads = figures::counted(sums.sampled_long, "read");
        lines.push(format!(
            "memory is scaled by the sample; {reads} of several pages are known by their first page alone"
        ));
    }
    lines.extend(manifest.source.remarks.iter().cloned());
    if !manifest.source.missing.is_empty() {
        lines.push(format!("this kernel lacks {}", manifest.source.missing.join(", ")));
    }
}

/// What is said, if there is something; or what `subject` would have needed.
fn said_of(subject: &str, said: Verdict<Option<String>>) -> Option<String> {
    said.unwrap_or_else(|unknown| Some(format!("{subject}: {unknown}")))
}

/// Which accesses to memory of programs are known.
fn memory_of_programs(recording: &Recording) -> String {
    let came_back = match recording.swap_ins() {
        Ok(0) => "none came back from swap".to_string(),
        Ok(pages) => {
            format!("{} came back from swap, which the twin has not", figures::counted(pages, "page"))
        }
        Err(ref unknown) => format!("what came back from swap is {unknown}"),
    };
    let user = Need::Events("page_fault_user", |sums| sums.user_faults);
    let memory = Need::Events("page_fault_user", |sums| sums.memory_faults);
    let touched = verdict(recording, [user, memory], |[user, memory]| match (memory, user) {
        (0, 0) => "there were no first touches".to_string(),
        // A recording of a version that did not tell them apart.
        (0, faults) => format!("first touches are among {}", figures::counted(faults, "fault")),
        (faults, _) => {
            let swap_ins = recording.swap_ins().unwrap_or(0);
            format!("{} of first touches", figures::counted(faults.saturating_sub(swap_ins), "fault"))
        }
    });
    let touched = touched.unwrap_or_else(|unknown| format!("first touches are {unknown}"));
    format!("memory of programs: {touched}, and {came_back}; of accesses to what is there nothing is known")
}
