//! Events of a page's story in words: what happened, and the rule that decided, with the numbers that were compared.

use std::fmt::Write;

use pageout_engine::{
    Arrival, Batch, Because, Deactivation, Filled, FoundBy, Heat, HotSource, Locality, LruType,
    MigrateReason, MigrateRefusal, NodeId, PageEvent, PageState, PlaceRule, Position, RefTierLimit,
    RefaultRule, Stamp, TypeChoice, TypeReason, Unrotated, Verdict, Whereabouts, WritebackReason,
};

use super::text::{generation, whereabouts};
use super::{Run, Step, type_name};
use crate::figures::{count, counted};

/// What happened and why. `before`: the steps before it, for what a step leaves unsaid.
pub(super) fn phrase(run: &Run, step: &Step, before: &[&Step]) -> String {
    let state = &step.state;
    match &step.event {
        PageEvent::Filled { with, task, reclaim_calls, reclaimed } => {
            let task = run.tasks.get(&task.0).map_or("a task", String::as_str);
            let mut text = match with {
                Filled::File => format!("missing; read from its file for {task}"),
                Filled::Readahead => format!("read ahead for {task}, before its first access"),
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
                    format!("read back from swap with a page that {task} needed (readahead)")
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
        PageEvent::ZswapLoaded => "filled from zswap, which frees it".to_string(),
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
        PageEvent::OutOfReach { to } => {
            format!("the reclaiming task cannot use its zone: moved to generation {to}")
        }
        PageEvent::Truncated { dirty: true } => {
            "its file was truncated: dropped, and its dirty content is never written".to_string()
        }
        PageEvent::Truncated { dirty: false } => {
            "its file was truncated: dropped, and no shadow stays".to_string()
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
                Batch::LazyFree => "to become droppable (MADV_FREE)",
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
        PageEvent::Nominated { why } => format!("the policy nominates it: {why}"),
        PageEvent::UseTold => "accessed: the policy is notified".to_string(),
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
        PageEvent::LocalityJudged { to, locality } => judged_locality(to.0, *locality),
        PageEvent::Reported { source, by, accesses, is_ready } => {
            reported(*source, *by, *accesses, *is_ready)
        }
        PageEvent::SetAside { to } => {
            format!("isolated by its reader, for promotion to node {} at the end of the call", to.0)
        }
        PageEvent::Migrated { from, to, why } => migrated(from.0, to.0, *why),
        PageEvent::NotMigrated { to, why } => not_migrated(to.0, *why),
        PageEvent::SplitOff => {
            "its huge page was made single pages: a page of its own from now on".to_string()
        }
        PageEvent::Judged { verdict, because } => judged(*verdict, *because),
        PageEvent::Deactivated { young, why } => deactivated(*young, why.as_ref(), state.kind),
        PageEvent::KeptActive => "stays active: a program's code, used since the last scan".to_string(),
        PageEvent::Dirtied => "dirty: it differs from its file from now on".to_string(),
        PageEvent::FileWriteBegun { reason } => {
            let why = match reason {
                WritebackReason::Background => "more is dirty than the background threshold",
                WritebackReason::Vmscan => "reclaim met nothing but dirty pages",
                WritebackReason::LaptopTimer => "its disk is awake, as something was read (laptop mode)",
                WritebackReason::Sync => "a task has asked for all that is dirty to be written",
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

/// The phrase for the judgement of a page in use: hot or not.
fn judged_heat(to: u8, heat: Heat) -> String {
    match heat {
        Heat::RoomToSpare => format!("hot: node {to} has enough free memory for any page in use"),
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

/// The phrase for the judgement of a page on another node than the thread that uses it.
fn judged_locality(to: u8, locality: Locality) -> String {
    let why = match locality {
        Locality::SlowStays => "slow memory is not balanced",
        Locality::FirstOnSlow => "it is on slow memory, and this is its first hint fault",
        Locality::LastUsedOn(node) => {
            return format!("not moved to node {to}: its last hint fault was on node {}", node.0);
        }
        Locality::OfNewThread => "its thread is new, and no other has used it",
        Locality::UsedHere => "its last hint fault was on that node, too",
    };
    let verdict = if locality.belongs_here() { "belongs on" } else { "not moved to" };
    format!("{verdict} node {to}: {why}")
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
        MigrateReason::Misplaced => "a hint fault found its user there",
        MigrateReason::Kmigrated => "promoted by kmigrated",
        MigrateReason::PageCache => "promoted by its reader, as page cache in use",
        MigrateReason::Demotion => "demoted by reclaim",
        MigrateReason::Compaction => "compaction needs its frame",
        MigrateReason::Offline => "its node goes offline",
        MigrateReason::ContigRange => "the host takes its frame back",
        MigrateReason::Damon => "a scheme of DAMON asks for it",
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
        MigrateRefusal::NoRoom => "the node would be below its high watermark; kswapd is woken",
        MigrateRefusal::NoFrame => "no frame is free there",
        MigrateRefusal::NotOnList => "it is on no list: another task has it",
        MigrateRefusal::RateLimit => "enough were promoted this second",
        MigrateRefusal::Governor => "the thrash governor allows no more",
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
            "refault: distance {} beyond the {} pages that were active or can be evicted: starts again",
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
            "refault: judged by generations, which its lists do not keep: starts again".to_string()
        }
        RefaultRule::CountOnly => "refault: counted, without consequence under this policy".to_string(),
        RefaultRule::OtherGroup => {
            "refault: evicted from another group, whose generations do not apply here".to_string()
        }
        RefaultRule::RemovedGroup => {
            "refault: evicted from a group that was removed, so its age is unknown".to_string()
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
        (PlaceRule::Oldest, _) => format!("added to {to}: not mapped"),
        (PlaceRule::WindowFull, _) => {
            format!("added to {to}: not mapped, and the window of generations is full")
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
            let seen = format!("{} used since the last scan", counted(u64::from(young), "mapping"));
            match (was_referenced, executable, young) {
                (true, ..) => format!("{seen}, and it had been referenced before: second use"),
                (_, _, 2..) => format!("{seen}, which counts as two uses"),
                (_, true, _) => format!("{seen}, and it is a program's code"),
                _ => format!("{seen}, its first use: another round"),
            }
        }
        Because::Visited { young: 0 } => "used since it was last nominated".to_string(),
        Because::Visited { young } => {
            format!("used since it was last nominated ({} found so)", counted(u64::from(young), "mapping"))
        }
        Because::NoSwapSlot => "there is no free swap slot".to_string(),
        Because::NoRoomToCompress => "the compressed swap device has no memory for it".to_string(),
        Because::SwapFails => "its swap device fails all writes, and is tried seldom".to_string(),
        Because::NoZswapWriteback => {
            "zswap has rejected it, and memory.zswap.writeback keeps its group from the device".to_string()
        }
        Because::WrittenSince => "it was to be forgotten, but has been written since".to_string(),
        Because::StillMapped => "it is still mapped".to_string(),
        Because::Pinned => "a device or a buffer has pinned it".to_string(),
        Because::NotWorthAWrite => "read once before, and it would have to be written".to_string(),
        Because::MayNotEnterFileSystem => {
            "it must be written through a file system, and this reclaimer may not enter one".to_string()
        }
        Because::MayDoNoIo => "it must be written, and this reclaimer may start no I/O".to_string(),
        Because::Held { references } => {
            format!(
                "it has references ({}): a batch, or an access",
                counted(u64::from(references), "reference")
            )
        }
        Because::Dirty => "it was written meanwhile".to_string(),
        Because::FlusherWrites => {
            "it is dirty, and only the flusher writes files; it will go to the cold end when it is written".to_string()
        }
        Because::MayNotWrite => "it would have to be written, and this reclaimer writes nothing itself".to_string(),
        Because::QueueCongested => {
            "it would have to be written, and the queue of its device is so long that the task might have to wait".to_string()
        }
        Because::Redirtied => {
            "its file system was to write it, and marked it dirty again: it leaves what reclaim hands it to the flusher".to_string()
        }
        Because::WriteBegun => "its write has begun, and it can go when that has ended".to_string(),
        Because::SlowerMemory => "there is slower memory for unused pages".to_string(),
        Because::Forgettable => "its owner allows the kernel to drop it (MADV_FREE)".to_string(),
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
        "the call has found nothing else".to_string()
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
pub(super) fn type_reason(choice: &TypeChoice) -> String {
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
            let costs_more = choice.kind == LruType::Anon;
            format!(
                "file refaulted {}, anon {}, gains {}:{}: file costs {} ({} × {} × {} {} {} × {} × {})",
                position(file),
                position(anon),
                file.gain,
                anon.gain,
                if costs_more { "more" } else { "no more" },
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
            "{} was chosen but has no old pages: {} of its {} in its youngest generation, {} in the oldest of {}",
            type_name(other),
            count(*youngest),
            counted(*all, "page"),
            count(*oldest),
            generations
        ),
    }
}

/// Up to which tier, and why.
pub(super) fn tier_limit(choice: &TypeChoice) -> String {
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
