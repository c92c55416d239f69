//! Steps and rules in words.
//!
//! One line a step: when, where the page was (or came to be), the bits of its use, and the rule that decided, with the numbers it
//! compared. Indented lines between them tell what the page's lists went through meanwhile.

use std::fmt::Write;

use pageout_engine::{
    Arrival, Batch, Because, Deactivation, Filled, FoundBy, Heat, HotSource, ListsEvent, LruType, MemcgId,
    MigrateReason, MigrateRefusal, Nanos, NodeId, PageEvent, PageState, PlaceRule, Position, RefTierLimit,
    RefaultRule, ScanBalance, Stamp, TypeChoice, TypeReason, Unrotated, Verdict, Whereabouts,
    WritebackReason,
};

use super::keep::{Since, Step};
use super::{PageReport, Telling};
use crate::print::figures::{count, counted, time};
use crate::print::output;

/// What the columns mean.
const LEGEND: &str = "Time in seconds. R referenced, A active, W workingset, +n read n times more; y: a page table's accessed \
                      bit is set; t its tier. gen 1 of 0..3: 0 is the oldest, 3 the youngest. [what its lists went through \
                      meanwhile: the last decision of each kind, and how often it was taken.]";

/// All stories, one after the other.
pub(super) fn stories(
    telling: &Telling,
    reports: &[PageReport],
    evictions: Option<u64>,
    width: usize,
) -> String {
    let mut text = String::new();
    if let Some(total) = evictions {
        let _ =
            writeln!(text, "The last {} of {}\n", count(reports.len() as u64), counted(total, "eviction"));
    }
    let texts: Vec<String> = reports.iter().map(|report| story(telling, report, width)).collect();
    text += &texts.join("\n");
    text.push('\n');
    text += &output::wrap(LEGEND, width, "");
    text
}

fn story(telling: &Telling, report: &PageReport, width: usize) -> String {
    let mut text = heading(telling, report);
    let steps: Vec<&Step> = report.story.steps().collect();
    if steps.is_empty() {
        text += &output::wrap(
            &format!(
                "Nothing has happened to it in {} accesses, up to {}: no task has needed it.",
                count(telling.accesses),
                time(telling.end.0)
            ),
            width,
            "",
        );
        return text;
    }
    // Columns as wide as they need to be; the rest is for the words.
    let rows: Vec<[String; 3]> =
        steps.iter().map(|step| [seconds(step.at), place(telling, step), bits(&step.state)]).collect();
    let widths: Vec<usize> =
        (0..3).map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)).collect();
    let left = widths.iter().sum::<usize>() + 6;
    let indent = " ".repeat(left);
    for (at, (step, row)) in steps.iter().zip(&rows).enumerate() {
        if at == report.story.first.len() && report.story.left_out > 0 {
            let _ = writeln!(text, "{indent}... {} left out ...", counted(report.story.left_out, "step"));
        }
        for line in meanwhile(&step.since, true) {
            text += &output::wrap(&format!("[{line}]"), width.saturating_sub(2), &format!("{indent}  "));
        }
        let mut words = phrase(telling, step, &steps[..at]);
        if step.times > 1 {
            let _ =
                write!(words, " ({} in a row, until {})", counted(step.times, "time"), seconds(step.until));
        }
        let words = output::wrap(&words, width, &indent);
        let front = format!(
            "{:>a$}  {:<b$}  {:<c$}  ",
            row[0],
            row[1],
            row[2],
            a = widths[0],
            b = widths[1],
            c = widths[2]
        );
        text += &format!("{front}{}", &words[indent.len().min(words.len())..]);
    }
    text + "\n" + &output::wrap(&summary(telling, report, &steps), width, "")
}

fn heading(telling: &Telling, report: &PageReport) -> String {
    let group = report.story.last_step().map(|step| step.memcg);
    let group = group.map_or_else(String::new, |group| format!(" of {}", self::group(telling, group)));
    match report.eviction {
        Some(eviction) => format!("{}{group}, evicted at {}\n", report.title, seconds(eviction.at)),
        None => format!("{}{group}, {}\n", report.title, telling.policy),
    }
}

fn group(telling: &Telling, group: MemcgId) -> &str {
    &telling.groups[&group]
}

fn seconds(at: Nanos) -> String {
    format!("{}.{:06}", at.0 / 1_000_000_000, at.0 / 1000 % 1_000_000)
}

pub(super) fn type_name(kind: LruType) -> &'static str {
    match kind {
        LruType::Anon => "anon",
        LruType::File => "file",
    }
}

/// The place, short, with the node where there are several.
fn place(telling: &Telling, step: &Step) -> String {
    let list = list(&step.state);
    if telling.has_nodes { format!("{list}, node {}", step.node.0) } else { list }
}

fn list(state: &PageState) -> String {
    let kind = type_name(state.kind);
    match state.place {
        Whereabouts::NoList => "-".to_string(),
        Whereabouts::Unevictable => "unevictable".to_string(),
        Whereabouts::Inactive => format!("inactive {kind}"),
        Whereabouts::Active => format!("active {kind}"),
        Whereabouts::SingleList => "list".to_string(),
        Whereabouts::Generation { seq, oldest, youngest, .. } => {
            format!("gen {seq} of {oldest}..{youngest}")
        }
    }
}

/// The bits, short.
fn bits(state: &PageState) -> String {
    let mut text = String::new();
    for (is_set, letter) in [(state.referenced, 'R'), (state.active, 'A'), (state.workingset, 'W')] {
        if is_set {
            text.push(letter);
        }
    }
    if state.counter > 0 {
        let _ = write!(text, "+{}", state.counter);
    }
    if state.accessed {
        text.push('y');
    }
    if text.is_empty() {
        text.push('-');
    }
    if let Some(tier) = state.tier {
        let _ = write!(text, " t{tier}");
    }
    text
}

/// A generation in relation to the others of its type.
fn generation(seq: u64, oldest: u64, youngest: u64) -> String {
    let of = if seq == oldest && oldest < youngest {
        format!("the oldest of {}", youngest - oldest + 1)
    } else if seq == youngest {
        "the youngest".to_string()
    } else {
        let older = seq.saturating_sub(oldest);
        format!("{} older, {} younger", older, youngest.saturating_sub(seq))
    };
    format!("generation {seq} ({of})")
}

/// Where it is, in words.
fn whereabouts(state: &PageState) -> String {
    let kind = type_name(state.kind);
    match state.place {
        Whereabouts::NoList => "on no list".to_string(),
        Whereabouts::Unevictable => "unevictable".to_string(),
        Whereabouts::Inactive => format!("the inactive {kind} list"),
        Whereabouts::Active => format!("the active {kind} list"),
        Whereabouts::SingleList => "the list".to_string(),
        Whereabouts::Generation { seq, listed, oldest, youngest } => {
            let mut text = generation(seq, oldest, youngest);
            if listed != seq {
                let _ = write!(text, ", still on the list of {listed}");
            }
            text
        }
    }
}

/// What happened and why. `before`: the steps before it, for what a step leaves unsaid.
fn phrase(telling: &Telling, step: &Step, before: &[&Step]) -> String {
    let state = &step.state;
    match &step.event {
        PageEvent::Filled { with, task, reclaim_calls, reclaimed } => {
            let task = telling.tasks.get(&task.0).map_or("a task", String::as_str);
            let mut text = match with {
                Filled::File => format!("missing; read from its file for {task}"),
                Filled::Readahead => format!("read ahead for {task}, which has not asked for it yet"),
                Filled::Overwritten => {
                    format!("missing; overwritten as a whole by {task}, so nothing is read")
                }
                Filled::Anon => match state.huge {
                    Some(at) => format!(
                        "first touched, it or another of its 2 MiB, by {task}: page {at} of a new huge page of zeroes"
                    ),
                    None => format!("first touched, by {task}: a new page of zeroes"),
                },
                Filled::Tmpfs => format!("first written, by {task}: a new page of tmpfs"),
                Filled::SwapReadahead => {
                    format!("read back from swap with what {task} wanted, before anyone asked for it")
                }
                Filled::Swap => format!("missing; read back from swap for {task}"),
            };
            if *reclaim_calls > 0 {
                let _ = write!(
                    text,
                    "; at its limit the group had to give up {} first",
                    counted(*reclaimed, "page")
                );
            }
            text
        }
        PageEvent::Refaulted { rule, recent, workingset, refs, tier } => {
            refault(*rule, *recent, *workingset, *refs, *tier, state.kind)
        }
        PageEvent::Read { ok: true } => "the read has ended".to_string(),
        PageEvent::Read { ok: false } => "the read has failed".to_string(),
        PageEvent::ZswapStored { bytes: 0 } => "stored in zswap as one word: it needs no write".to_string(),
        PageEvent::ZswapStored { bytes } => {
            format!("compressed into zswap, {bytes} bytes: it needs no write")
        }
        PageEvent::ZswapLoaded => "filled from zswap, which lets go of it".to_string(),
        PageEvent::ZswapWrittenBack => {
            "zswap writes it back: filled from there, it waits to be added to a list, and is being written"
                .to_string()
        }
        PageEvent::NotRotated { why } => {
            let why = match why {
                Unrotated::NotListed => "it is on no list: an add batch or a reclaimer has it",
                Unrotated::Unfit => "it is locked, dirty or unevictable",
                Unrotated::Active => "it is active",
            };
            format!("its write has ended, but it does not go to the cold end: {why}")
        }
        PageEvent::Dropped => "its write has ended, and it is dropped from memory".to_string(),
        PageEvent::Mapped { write } => {
            format!("mapped by a fault{}", if *write { ", for a store" } else { "" })
        }
        PageEvent::SecondAccess { in_add_batch: true } => {
            "activated: second access, while it waits to be added to a list".to_string()
        }
        PageEvent::SecondAccess { in_add_batch: false } => "activated: second access".to_string(),
        PageEvent::Queued { batch, waiting, full } => {
            let what = match batch {
                Batch::Add => "to be added to a list",
                Batch::MoveTail => "to go to the cold end, as its write has ended",
                Batch::DeactivateFile => "to go to the cold end (fadvise)",
                Batch::Deactivate => "to be deactivated (madvise)",
                Batch::LazyFree => "to become forgettable (madvise)",
                Batch::Activate => "to be activated",
            };
            let then = if waiting >= full { ", which is now full" } else { "" };
            format!(
                "waits {what}, {} of {} in the CPU's batch{then}",
                count(*waiting as u64),
                count(*full as u64)
            )
        }
        PageEvent::Drained { batch: Batch::Activate } if state.place == Whereabouts::Active => {
            "the batch is drained: active already, nothing to do".to_string()
        }
        PageEvent::Drained { .. } => "the batch is drained".to_string(),
        PageEvent::Placed { arrival, rule } => placed(*arrival, *rule, state),
        PageEvent::MovedToHead => "accessed: moved to the head of the list".to_string(),
        PageEvent::FoundYoung { by: FoundBy::Walk } => {
            "a walk of page tables finds its accessed bit set".to_string()
        }
        PageEvent::FoundYoung { by: FoundBy::LookAround } => {
            "a look around from a neighbour in use finds its accessed bit set".to_string()
        }
        PageEvent::MadeYoungest { seq } => {
            format!("promoted: used, so it belongs to generation {seq}, the youngest, from now on")
        }
        PageEvent::Promoted { refs, to } => {
            format!(
                "promoted: accessed so often that it belongs to generation {to} from now on, its count {refs}"
            )
        }
        PageEvent::Sorted => match state.place {
            Whereabouts::Generation { seq, listed, .. } => format!(
                "spared: met on the list of generation {listed}, but used since and of generation {seq}: moved there"
            ),
            _ => "moved to the list of its generation".to_string(),
        },
        PageEvent::PassedOn { to } => format!("dirty or being written: passed on to generation {to}"),
        PageEvent::Protected { tier, limit, spared, at_top, to } => {
            protected(*tier, limit, spared, *at_top, *to, state.kind)
        }
        PageEvent::MovedUp { to } => {
            format!(
                "the oldest generation was closed to make room for a new one: joins {to} at its tail, its count cleared"
            )
        }
        PageEvent::Isolated => match state.place {
            Whereabouts::Generation { seq, oldest, youngest, .. } => {
                format!("taken off {} to be judged", generation(seq, oldest, youngest))
            }
            Whereabouts::Active => "taken off the tail of the active list to be aged".to_string(),
            Whereabouts::Inactive => "taken off the tail of the inactive list to be judged".to_string(),
            _ => "taken off the tail of the list to be judged".to_string(),
        },
        PageEvent::IsolatedToMove => "taken off its list to move to another frame".to_string(),
        PageEvent::HintMarked => "marked by a scan: its next access takes a hint fault".to_string(),
        PageEvent::HintFault { by } => format!("hint fault: accessed on node {}", by.0),
        PageEvent::HeatJudged { to, heat } => judged_heat(to.0, *heat),
        PageEvent::Reported { source, by, accesses, is_ready } => {
            reported(*source, *by, *accesses, *is_ready)
        }
        PageEvent::SetAside { to } => {
            format!("set aside by its reader, to be promoted to node {} when its call is over", to.0)
        }
        PageEvent::Migrated { from, to, why } => migrated(from.0, to.0, *why),
        PageEvent::NotMigrated { to, why } => not_migrated(to.0, *why),
        PageEvent::SplitOff => {
            "its huge page was made single pages: a page of its own from now on".to_string()
        }
        PageEvent::Judged { verdict, because } => judged(*verdict, *because),
        PageEvent::Deactivated { young, why } => deactivated(*young, why.as_ref(), state.kind),
        PageEvent::KeptActive => "stays active: a program's code, used since reclaim last looked".to_string(),
        PageEvent::Dirtied => "dirty: it differs from its file from now on".to_string(),
        PageEvent::FileWriteBegun { reason } => {
            let why = match reason {
                WritebackReason::Background => "more is dirty than the background threshold",
                WritebackReason::Vmscan => "reclaim met nothing but dirty pages",
                WritebackReason::Fsync => "a task waits for its file to be on the device",
                WritebackReason::Writer => "a task had dirtied too much, and wrote itself",
                WritebackReason::Foreign => "a group over its limits has dirtied pages of its owner's",
                WritebackReason::Periodic => "it has been dirty for long enough",
                WritebackReason::Pageout => "reclaim writes it itself",
            };
            format!("its write to its file begins: {why}")
        }
        PageEvent::FileWritten { ok: true } => "its write to its file has ended".to_string(),
        PageEvent::FileWritten { ok: false } => {
            "its write to its file has failed: what was written is in memory only, and is lost when it leaves"
                .to_string()
        }
        PageEvent::Written { ok: true } => "its write to swap has ended".to_string(),
        PageEvent::Written { ok: false } => "its write to swap has failed: dirty again".to_string(),
        PageEvent::Evicted { stamp, workingset, refs, tier, swapped, .. } => {
            let isolated = before.iter().rev().find(|step| step.event == PageEvent::Isolated);
            let from = isolated.map_or_else(|| "memory".to_string(), |step| whereabouts(&step.state));
            let used = match isolated.map(|step| step.state.place) {
                Some(Whereabouts::Generation { .. }) => {
                    format!("tier {tier}, {} counted", counted(u64::from(*refs), "repeated read"))
                }
                Some(Whereabouts::SingleList) => "its turn had come".to_string(),
                _ if *workingset => "not used since it was deactivated".to_string(),
                _ => "not used twice".to_string(),
            };
            let shadow = match stamp {
                Stamp::OldestGeneration(seq) => format!("generation {seq} as the oldest"),
                Stamp::Age(age) => format!("age {}", count(*age)),
            };
            let gone = if *swapped { " (it is on swap)" } else { "" };
            format!("evicted from {from}: {used}; its shadow holds {shadow}{gone}")
        }
        PageEvent::Released => "freed: its owner gave it up".to_string(),
    }
}

/// Whether a page in use was found hot.
fn judged_heat(to: u8, heat: Heat) -> String {
    match heat {
        Heat::RoomToSpare => format!("hot: node {to} has so much free that whatever is used is welcome"),
        Heat::OnActiveList(true) => "hot: it is active".to_string(),
        Heat::OnActiveList(false) => "not hot: it was not active, and is from now on".to_string(),
        Heat::Age { age_ms, threshold_ms } => {
            let (is_hot, than) =
                if age_ms < threshold_ms { ("hot", "less than") } else { ("not hot", "no less than") };
            format!(
                "{is_hot}: {} ms since it was marked or last reported, {than} the threshold of {} ms",
                count(age_ms),
                count(threshold_ms)
            )
        }
    }
}

fn reported(source: HotSource, by: Option<NodeId>, accesses: u32, is_ready: bool) -> String {
    let source = match source {
        HotSource::Hardware => "hardware",
        HotSource::PageTableScan => "klruscand, which found its accessed bit set",
        HotSource::HintFault => "a hint fault",
        HotSource::MarkAccessed => "read(2)",
    };
    let from = by.map_or(String::new(), |by| format!(" from node {}", by.0));
    let then = if is_ready { "hot: kmigrated is to promote it" } else { "not hot yet" };
    let accesses =
        if accesses == 1 { "an access".to_string() } else { format!("{} accesses", count(accesses.into())) };
    format!("reported to hot-page tracking by {source}: {accesses}{from}; {then}")
}

fn migrated(from: u8, to: u8, why: MigrateReason) -> String {
    let why = match why {
        MigrateReason::HintFault => "promoted by a hint fault",
        MigrateReason::Kmigrated => "promoted by kmigrated",
        MigrateReason::PageCache => "promoted by its reader, as page cache in use",
        MigrateReason::Demotion => "demoted by reclaim",
        MigrateReason::Compaction => "compaction wants its place",
        MigrateReason::Offline => "its node goes offline",
    };
    if from == to {
        format!("moved within node {to}: {why}")
    } else {
        format!("migrated from node {from} to node {to}: {why}")
    }
}

fn not_migrated(to: u8, why: MigrateRefusal) -> String {
    let why = match why {
        MigrateRefusal::SharedCode => "several processes run this code, and no node is the right one",
        MigrateRefusal::DirtyFile => "it differs from its file, and would be written in the middle of it",
        MigrateRefusal::NoRoom => "that would be below its high mark then; kswapd is asked for room",
        MigrateRefusal::NoFrame => "no frame is free there",
        MigrateRefusal::NotOnList => "it is on no list: someone else has it",
        MigrateRefusal::RateLimit => "enough were promoted this second",
        MigrateRefusal::Governor => "the thrash governor lets no more go",
        MigrateRefusal::Held => "a device, an access or a batch holds its frame",
    };
    format!("not migrated to node {to}: {why}")
}

fn refault(rule: RefaultRule, recent: bool, workingset: bool, refs: u8, tier: u8, kind: LruType) -> String {
    match rule {
        RefaultRule::Distance { distance, room } if recent => {
            let thrashing = if workingset {
                "; in use when evicted, so this is thrashing, and costs its type"
            } else {
                ""
            };
            format!(
                "refault: distance {} within {} pages that were active or may make room: comes back active{thrashing}",
                count(distance),
                count(room)
            )
        }
        RefaultRule::Distance { distance, room } => format!(
            "refault: distance {} beyond the {} pages that were active or may make room: begins anew",
            count(distance),
            count(room)
        ),
        RefaultRule::OldestGeneration { evicted_from, restored_from, .. } if recent => {
            let restored = if refs >= restored_from { ", and read often enough to be restored" } else { "" };
            format!(
                "refault: evicted with generation {evicted_from} the oldest of {}, which it still is: counts against tier {tier}{restored}",
                type_name(kind)
            )
        }
        RefaultRule::OldestGeneration { evicted_from, oldest, .. } => format!(
            "refault: evicted with generation {evicted_from} the oldest of {}, now it is {oldest}: too long ago to count",
            type_name(kind)
        ),
        RefaultRule::AnyGeneration { evicted_from, youngest, count } => format!(
            "refault: evicted with generation {evicted_from} the oldest, {youngest} is the youngest now, {} than {count} apart: {}",
            if recent { "less" } else { "no less" },
            if recent { format!("counts against tier {tier}") } else { "too long ago to count".to_string() }
        ),
        RefaultRule::NoGenerations => {
            "refault: judged by generations, which its lists do not keep: begins anew".to_string()
        }
        RefaultRule::CountOnly => "refault: counted, without consequence under this policy".to_string(),
        RefaultRule::OtherGroup => {
            "refault: evicted from another group, whose generations say nothing here".to_string()
        }
        RefaultRule::RemovedGroup => {
            "refault: evicted for a group that is removed, whose clock says nothing any more".to_string()
        }
    }
}

fn placed(arrival: Arrival, rule: PlaceRule, state: &PageState) -> String {
    let to = whereabouts(state);
    match (rule, arrival) {
        (PlaceRule::Unevictable, _) => "locked into memory: counted as unevictable, on no list".to_string(),
        (PlaceRule::ByState, Arrival::Added) => format!("added at the head of {to}"),
        (PlaceRule::ByState, Arrival::PutBack) => format!("put back at the head of {to}"),
        (PlaceRule::ByState, Arrival::Rotated) => format!("rotated to the tail of {to}, to be taken next"),
        (PlaceRule::InUse, Arrival::PutBack) => format!("could not be freed: to {to}, out of the way"),
        (PlaceRule::InUse, _) => format!("added to {to}: known to be in use, by a fault or an activation"),
        (PlaceRule::NeedsWrite, _) => format!("to {to}: it needs a write before it can go"),
        (PlaceRule::Rotated, _) => {
            format!("rotated to the tail of {to}, to be taken next: its write has ended")
        }
        (PlaceRule::Oldest, Arrival::PutBack) => format!("put back in {to}"),
        (PlaceRule::Oldest, _) => format!("added to {to}: nobody has mapped it"),
        (PlaceRule::WindowFull, _) => {
            format!("added to {to}: nobody has mapped it, and the window of generations is full")
        }
        (PlaceRule::WasInUse, _) => format!("added to {to}: it was in use when it was evicted"),
        (PlaceRule::Accessed, Arrival::PutBack) => format!("put back in {to}: it was accessed"),
        (PlaceRule::Accessed, _) => format!("added to {to}: it was accessed as it came in"),
    }
}

/// `310 of 900`.
fn position(position: &Position) -> String {
    format!("{} of {}", count(position.refaulted), count(position.total))
}

fn protected(
    tier: u8,
    limit: &RefTierLimit,
    spared: &Position,
    at_top: bool,
    to: u64,
    kind: LruType,
) -> String {
    let above = usize::from(tier) > limit.highest;
    let why = match (&limit.reference, above) {
        (Some(reference), true) => {
            let (whose, mine) = if limit.is_other_type {
                let other = if kind == LruType::Anon { "file" } else { "anon" };
                (format!("{other}'s tier 0"), format!("{}'s tier {}", type_name(kind), limit.highest + 1))
            } else {
                ("tier 0".to_string(), format!("tier {}", limit.highest + 1))
            };
            format!(
                "{mine} refaulted {}, {whose} {}, gains {}:{}",
                position(spared),
                position(reference),
                reference.gain,
                limit.gain
            )
        }
        _ if at_top => "its count of reads is full, so the refaults of tiers don't matter".to_string(),
        _ => "as its tier is not taken".to_string(),
    };
    let own = if usize::from(tier) == limit.highest + 1 || !above {
        String::new()
    } else {
        format!("; it is of tier {tier}")
    };
    format!("protected: {why}{own}: to generation {to}, its count cleared")
}

fn judged(verdict: Verdict, because: Because) -> String {
    let why = match because {
        Because::BeingRead => "it is being read".to_string(),
        Because::Locked => "it is locked into memory".to_string(),
        Because::BeingWritten => "its write hasn't ended; it will go to the cold end when it has".to_string(),
        Because::NeighbourLooked => "a look around from a page of the same batch found it used".to_string(),
        Because::Used { young, was_referenced, executable } => {
            let seen = format!("{} used since the last look", counted(u64::from(young), "mapping"));
            match (was_referenced, executable, young) {
                (true, ..) => format!("{seen}, and it had been referenced before: second use"),
                (_, _, 2..) => format!("{seen}, which counts as two uses"),
                (_, true, _) => format!("{seen}, and it is a program's code"),
                _ => format!("{seen}, its first use: another round"),
            }
        }
        Because::Visited { young: 0 } => "used since the hand last came by".to_string(),
        Because::Visited { young } => {
            format!("used since the hand last came by ({} found so)", counted(u64::from(young), "mapping"))
        }
        Because::NoSwapSlot => "there is no free swap slot".to_string(),
        Because::NoRoomToCompress => "the compressed swap device has no memory for it".to_string(),
        Because::NoZswapWriteback => {
            "zswap has not taken it, and memory.zswap.writeback keeps its group from the device".to_string()
        }
        Because::WrittenSince => "it was to be forgotten, but has been written since".to_string(),
        Because::StillMapped => "somebody still maps it".to_string(),
        Because::Pinned => "a device or a buffer holds on to it".to_string(),
        Because::NotWorthAWrite => "read once before, and it would have to be written".to_string(),
        Because::MayNotEnterFileSystem => {
            "it must be written through a file system, and this reclaimer may not enter one".to_string()
        }
        Because::MayDoNoIo => "it must be written, and this reclaimer may start no I/O".to_string(),
        Because::Held { references } => {
            format!(
                "somebody holds it ({}): a batch, or an access",
                counted(u64::from(references), "reference")
            )
        }
        Because::Dirty => "it was written meanwhile".to_string(),
        Because::FlusherWrites => {
            "it is dirty, and to write files is the flusher's work; it will go to the cold end when it is written".to_string()
        }
        Because::MayNotWrite => "it would have to be written, and this reclaimer writes nothing itself".to_string(),
        Because::QueueCongested => {
            "it would have to be written, and its device has so much to do that whoever submits more may have to sleep".to_string()
        }
        Because::Redirtied => {
            "its file system was to write it, and marked it dirty again: it leaves what reclaim hands it to the flusher".to_string()
        }
        Because::WriteBegun => "its write has begun, and it can go when that has ended".to_string(),
        Because::SlowerMemory => "there is slower memory for what nobody uses".to_string(),
        Because::Forgettable => "its owner said that it may be forgotten".to_string(),
    };
    match verdict {
        Verdict::Free => format!("freed: {why}"),
        Verdict::Keep => format!("kept: {why}"),
        Verdict::Activate => format!("activated: {why}"),
        Verdict::Demote => format!("chosen for demotion: {why}"),
    }
}

fn deactivated(young: u32, why: Option<&Deactivation>, kind: LruType) -> String {
    let used = if young > 0 { ", though used: its second chance is the inactive list" } else { "" };
    let Some(why) = why else { return format!("deactivated{used}") };
    let reason = if why.forced {
        "the call has found nothing in any other way".to_string()
    } else if why.inactive_is_low() {
        let times = if why.ratio == 1 { String::new() } else { format!(" × {}", why.ratio) };
        format!("inactive pages are too few: {}{times} < {} active", count(why.inactive), count(why.active))
    } else {
        format!(
            "refaults have activated pages since the last call: {} then, {} now",
            count(why.refaults[1]),
            count(why.refaults[0])
        )
    };
    format!("deactivated{used}; active {} ages because {reason}", type_name(kind))
}

/// Why a type was taken.
fn type_reason(choice: &TypeChoice) -> String {
    let other = if choice.kind == LruType::Anon { LruType::File } else { LruType::Anon };
    match &choice.reason {
        TypeReason::NoSwap => "no free swap, or a swappiness of 0".to_string(),
        TypeReason::AnonIsOlder { oldest: [anon, file] } => {
            format!("the oldest generation of anon, {anon}, is older than that of file, {file}")
        }
        TypeReason::Swappiness(swappiness) => format!("a swappiness of {swappiness}"),
        TypeReason::Refaults { anon, file } if file.refaulted < Position::NOISE => format!(
            "file refaulted {}, and fewer than {} are chance (anon {})",
            position(file),
            Position::NOISE,
            position(anon)
        ),
        TypeReason::Refaults { anon, file } => {
            let is_dearer = choice.kind == LruType::Anon;
            format!(
                "file refaulted {}, anon {}, gains {}:{}: file is {} ({} × {} × {} {} {} × {} × {})",
                position(file),
                position(anon),
                file.gain,
                anon.gain,
                if is_dearer { "dearer" } else { "no dearer" },
                count(file.refaulted),
                count(anon.total + Position::NOISE),
                anon.gain,
                if file.is_cheaper_than(*anon) { "<=" } else { ">" },
                count(anon.refaulted + 1),
                count(file.total),
                file.gain
            )
        }
        TypeReason::Shares { taken: [anon, file], weights: [anon_weight, file_weight] } => format!(
            "behind its share: lately {} anon and {} file were taken, at weights {anon_weight}:{file_weight}",
            count(*anon),
            count(*file)
        ),
        TypeReason::OtherHadNothing { generations, oldest, youngest, all } => format!(
            "{} was to be taken but has nothing old: {} of its {} in its youngest generation, {} in the oldest of {}",
            type_name(other),
            count(*youngest),
            counted(*all, "page"),
            count(*oldest),
            generations
        ),
    }
}

/// Up to which tier, and why.
fn tier_limit(choice: &TypeChoice) -> String {
    let RefTierLimit { highest, reference, is_other_type, gain } = &choice.limit;
    let Some(reference) = reference else { return "all tiers".to_string() };
    let whose = match (is_other_type, choice.kind) {
        (false, _) => "its tier 0",
        (true, LruType::Anon) => "file's tier 0",
        (true, LruType::File) => "anon's tier 0",
    };
    let compared = |tier: usize| {
        format!(
            "tier {tier} {}, {whose} {}, gains {}:{gain}",
            position(&choice.tiers[tier]),
            position(reference),
            reference.gain
        )
    };
    match highest {
        3 => format!("all tiers (the last: {})", compared(3)),
        0 => format!("tier 0 only ({})", compared(1)),
        highest => format!("tiers 0 to {highest} ({})", compared(highest + 1)),
    }
}

fn balance(balance: &ScanBalance, priority: u8, targets: &[u64; 4]) -> String {
    let how = match balance {
        ScanBalance::NoSwap => "file only, for want of swap".to_string(),
        ScanBalance::SwappinessZero => "file only, as swappiness is 0".to_string(),
        ScanBalance::AnonOnly => "anon only, as was asked for".to_string(),
        ScanBalance::Nothing => "nothing: anon only was asked for, and there is no swap".to_string(),
        ScanBalance::Equal => "both types in full, at the last priority".to_string(),
        ScanBalance::FileIsTiny => {
            "anon only: with all its file pages the machine would be short of memory".to_string()
        }
        ScanBalance::CacheTrim => "file only: there is enough of it that nobody has used again".to_string(),
        ScanBalance::Fraction { weights: [anon, file], cost: [anon_cost, file_cost] } => format!(
            "anon and file {anon}:{file}, by swappiness and costs of {} and {}",
            count(*anon_cost),
            count(*file_cost)
        ),
    };
    let [inactive_anon, active_anon, inactive_file, active_file] = targets.map(count);
    format!(
        "{how}; to look at, at priority {priority}: anon {inactive_anon} inactive, {active_anon} active; \
         file {inactive_file}, {active_file}"
    )
}

/// What the lists went through, a line each. `briefly`: only what came last of each type of decision.
fn meanwhile(since: &Since, briefly: bool) -> Vec<String> {
    let mut lines = Vec::new();
    let mut generations = String::new();
    if since.opened > 0 {
        let first = since.youngest + 1 - since.opened;
        generations = if since.opened == 1 {
            format!("generation {first} opened")
        } else {
            format!("generations {first} to {} opened", since.youngest)
        };
    }
    for (closed, kind) in since.closed.iter().zip(["anon", "file"]).filter(|(closed, _)| **closed > 0) {
        let and = if generations.is_empty() { "" } else { ", " };
        let _ = write!(generations, "{and}{} of {kind} closed", counted(*closed, "generation"));
    }
    if !generations.is_empty() {
        lines.push(generations);
    }
    // Two lines say enough between steps; at the end there is room for all.
    for (times, _, event) in since.decisions.iter().take(if briefly { 2 } else { usize::MAX }) {
        let text = match event {
            ListsEvent::TypeChosen(choice) => {
                let limit = match gave_nothing(since, choice, *times) {
                    true => String::new(),
                    false => format!("; {}", tier_limit(choice)),
                };
                format!(
                    "{} of {}: {}{limit}",
                    counted(*times, "round"),
                    type_name(choice.kind),
                    type_reason(choice)
                )
            }
            ListsEvent::PassBegun { balance: how, priority, targets } => {
                format!("{}: {}", passes(*times), balance(how, *priority, targets))
            }
            ListsEvent::GenerationOpened { .. } | ListsEvent::GenerationsClosed { .. } => continue,
        };
        lines.push(text);
    }
    lines
}

/// All rounds in which this was chosen went on with the other type.
fn gave_nothing(since: &Since, choice: &TypeChoice, times: u64) -> bool {
    let had_nothing = |choice: &TypeChoice| matches!(choice.reason, TypeReason::OtherHadNothing { .. });
    !had_nothing(choice)
        && since.decisions.iter().any(|(others, _, event)| {
            matches!(event, ListsEvent::TypeChosen(other)
                if other.kind != choice.kind && had_nothing(other) && *others == times)
        })
}

fn passes(times: u64) -> String {
    if times == 1 { "a pass".to_string() } else { format!("{} passes", count(times)) }
}

/// Why the page is where it is.
fn summary(telling: &Telling, report: &PageReport, steps: &[&Step]) -> String {
    let decisive = steps.iter().enumerate().rev().find(|(_, step)| is_decisive(&step.event));
    let Some((at, step)) = decisive else { return "So: it is on its way to a list.".to_string() };
    let because = format!("{}: {}", seconds(step.at), phrase(telling, step, &steps[..at]));
    if report.eviction.is_some() {
        let back = report.back.map_or(String::new(), |at| format!(" It came back at {}.", seconds(at)));
        return format!("So, at {because}.{back}");
    }
    let mut text = match &report.now {
        Some(now) if now.place == Whereabouts::NoList => "So: it is in memory, on no list".to_string(),
        Some(now) => format!("So: it is in {}{}", whereabouts(now), on_node(telling, steps)),
        None => "So: it is not in memory".to_string(),
    };
    if let Some(head) = &report.head {
        let _ = write!(text, ", as part of the huge page that begins with {head} and goes where that goes");
    }
    let _ = write!(text, ", since {because}. The run ended at {}.", seconds(telling.end));
    let since = meanwhile(&report.since, false);
    if !since.is_empty() {
        text += "\nSince its last step:";
        for line in since {
            let _ = write!(text, "\n- {}", line);
        }
    } else if report.now.is_some() {
        text += " Nothing has looked at its lists since.";
    }
    text
}

/// The node of its last step, where there are several: none leaves its node without a step.
fn on_node(telling: &Telling, steps: &[&Step]) -> String {
    let last = steps.last().filter(|_| telling.has_nodes);
    last.map_or(String::new(), |step| format!(" of node {}", step.node.0))
}

/// A step that says where the page is.
fn is_decisive(event: &PageEvent) -> bool {
    matches!(
        event,
        PageEvent::Placed { .. }
            | PageEvent::MovedToHead
            | PageEvent::MadeYoungest { .. }
            | PageEvent::Promoted { .. }
            | PageEvent::Sorted
            | PageEvent::PassedOn { .. }
            | PageEvent::Protected { .. }
            | PageEvent::MovedUp { .. }
            | PageEvent::Evicted { .. }
            | PageEvent::Released
    )
}
