//! The story of a trace in sentences: which tasks were stalled, when and why, whether freed pages refaulted, and what to record next
//! where the events leave that open.

use pageout_kerneltext::ftrace::{CallKind, Dialect};
use pageout_kerneltext::vmscan::{EventKind, OffCpuTime, Process, Reclaimer, Sums};

use super::Reading;
use super::summary::{KSWAPD_EDGES, edges, ratio, seconds, verdict};
use super::why::why;
use crate::basis::Verdict;
use crate::figures;

/// Kinds of calls in which tasks wait; a soft limit's are within others.
const STALLS: [CallKind; 3] = [CallKind::Direct, CallKind::Memcg, CallKind::Node];

/// The stalled tasks, the times and the reasons: a summary for a quick reader.
pub fn story(reading: &Reading) -> Vec<String> {
    let mut says = Vec::new();
    let sums = &reading.sums;
    let told: Vec<Verdict<CallKind>> =
        STALLS.iter().map(|kind| verdict(sums, edges(*kind), |_| *kind)).collect();
    let known: Vec<CallKind> = told.iter().filter_map(|kind| kind.clone().ok()).collect();
    let stalled = |process: &Process, kind: CallKind| process.calls(kind).latency.total_ns();
    let all =
        |process: &Process| STALLS.iter().map(|kind| stalled(process, *kind)).fold(0, u64::saturating_add);
    let total = sums.processes.iter().map(all).fold(0, u64::saturating_add);
    let Some(worst) =
        sums.processes.iter().max_by_key(|process| all(process)).filter(|process| all(process) > 0)
    else {
        let names: Vec<&str> = known.iter().map(|kind| what(*kind)).collect();
        match names.len() {
            0 => {}
            count if count == STALLS.len() => {
                says.push("The trace shows no task stalled in reclaim.".to_string());
            }
            _ => says.push(format!("The trace shows no task stalled {}.", names.join(" or "))),
        }
        says.extend(untold(&told));
        says.extend(again(reading, CallKind::Direct));
        says.extend(kswapd_story(reading));
        return says;
    };
    let kind = STALLS.into_iter().max_by_key(|kind| stalled(worst, *kind)).expect("there are some");
    let since = match kind {
        CallKind::Memcg => "because its cgroup was at its limit",
        CallKind::Node => "because its node was short of memory",
        _ => "because the machine was short of memory",
    };
    let calls = worst.calls(kind);
    let share = figures::percent(ratio(all(worst) as f64, reading.elapsed_ns()));
    let others = sums.processes.iter().filter(|process| all(process) > 0).count() - 1;
    let others = match others {
        0 if known.len() < STALLS.len() => {
            "No other task was stalled in the recorded kinds of calls.".to_string()
        }
        0 => "No other task was stalled.".to_string(),
        1 => format!("One other task was stalled too; total of both: {}.", figures::time(total)),
        more => format!(
            "{} other tasks were stalled too; total of all: {}.",
            figures::count(more as u64),
            figures::time(total)
        ),
    };
    says.push(format!(
        "Who: {} was stalled longest, {} in {} of reclaim ({share} of the time), {since}. {others}",
        worst.name(),
        figures::time(all(worst)),
        figures::counted(calls.begun.total(), "call"),
    ));
    says.extend(untold(&told));
    if let Some(longest) = sums.stalls.first() {
        let lasted = figures::time(longest.lasted_ns);
        let half = half_of_the_stalls(reading).map_or(String::new(), |(from, to)| {
            format!(" Half of the stall time is between {from:.2} and {to:.2} s.")
        });
        says.push(format!(
            "When: the longest call lasted {}{lasted}, from {} s ({}): {}. Half of all calls took less than {}.{half}",
            if longest.is_over { "" } else { "more than " },
            seconds(longest.begin_ns),
            sums.processes[longest.process].name(),
            why(longest),
            figures::time(sums.latency(kind.into()).summary().p50_ns),
        ));
    }
    says.push(format!("Why: {}", causes(sums, kind)));
    says.extend(again(reading, kind));
    says.extend(kswapd_story(reading));
    says
}

/// Where tasks wait, in words.
fn what(kind: CallKind) -> &'static str {
    match kind {
        CallKind::Direct => "in direct reclaim",
        CallKind::Memcg => "at a cgroup's limit",
        CallKind::SoftLimit => "at a soft limit",
        CallKind::Node => "in node reclaim",
    }
}

/// The kinds of calls of which the trace does not say how long tasks were stalled. Node reclaim is rare: it is left out.
fn untold(told: &[Verdict<CallKind>]) -> Option<String> {
    let unknown = STALLS.iter().zip(told).filter(|(kind, _)| **kind != CallKind::Node);
    let unknown: Vec<String> = unknown
        .filter_map(|(kind, told)| {
            let unknown = told.as_ref().err()?;
            Some(format!("the stall time of tasks {} is {unknown}", what(*kind)))
        })
        .collect();
    let mut letters = unknown.join("; ");
    (!letters.is_empty()).then(|| {
        letters.replace_range(..1, "T");
        letters + "."
    })
}

/// The shortest time into which half of all waiting fell, in seconds.
fn half_of_the_stalls(reading: &Reading) -> Option<(f64, f64)> {
    let timeline = &reading.sums.timeline;
    let begin_ns = timeline.begin_ns?;
    let stalled = timeline.steps.iter().map(|step| {
        let of_step = STALLS.iter().map(|kind| step[Reclaimer::from(*kind) as usize].busy_ns);
        of_step.fold(0, u64::saturating_add)
    });
    let stalled: Vec<u64> = stalled.collect();
    let half = stalled.iter().map(|ns| u128::from(*ns)).sum::<u128>().div_ceil(2);
    let (mut from, mut within, mut shortest) = (0, 0, None::<(usize, usize)>);
    for (to, ns) in stalled.iter().enumerate() {
        within += u128::from(*ns);
        while within - u128::from(stalled[from]) >= half && from < to {
            within -= u128::from(stalled[from]);
            from += 1;
        }
        if half > 0 && within >= half && shortest.is_none_or(|(first, last)| to - from < last - first) {
            shortest = Some((from, to));
        }
    }
    let at = |step: usize| (begin_ns as f64 + step as f64 * timeline.step_ns as f64) / 1e9;
    shortest.map(|(first, last)| (at(first), at(last + 1)))
}

/// What calls of a kind spent their time on, by what the events show.
fn causes(sums: &Sums, kind: CallKind) -> String {
    let class = Reclaimer::from(kind);
    let (work, calls) = (sums.work(class), sums.calls(kind));
    let stalled_ns = calls.stalled_ns;
    if !sums.has_work_events {
        let unknown = verdict(sums, [EventKind::Scans], |_| ())
            .map_or_else(|unknown| unknown.to_string(), |()| "unknown".to_string());
        return format!(
            "the reasons for the stall time are {unknown}{}.",
            sums.off_cpu(class).map_or(String::new(), |off| format!(
                "; tasks were off the CPU for {} of this time",
                figures::time(off.total_ns())
            ))
        );
    }
    let share_of = |ns: u64| figures::percent(ratio(ns as f64, stalled_ns as f64));
    let mut says = Vec::new();
    let scanned = work.scanned.total();
    let throttled_ns = work.throttled_us.saturating_mul(1000);
    if throttled_ns > 0 {
        says.push(format!(
            "reclaim throttled tasks for {} ({} of the stall time)",
            figures::time(throttled_ns),
            share_of(throttled_ns)
        ));
    }
    if work.written() > 0 {
        let anon = work.written_async.anon + work.written_sync.anon;
        let what = if anon == work.written() { "to swap" } else { "to disk" };
        says.push(format!("the tasks themselves wrote {} {what}", figures::counted(work.written(), "page")));
    }
    if let Some(off) = sums.off_cpu(class) {
        let (asleep, waiting) = (figures::time(off.asleep_ns), figures::time(off.waiting_ns));
        says.push(format!(
            "the tasks were off the CPU for {} of the stall time ({asleep} asleep, {waiting} waiting for a CPU)",
            share_of(off.total_ns())
        ));
    } else {
        says.extend(probable_absence(sums, class));
    }
    let freed = sums.freed(kind).ok();
    if let Some(freed) = freed.filter(|_| scanned > 0) {
        let share = figures::percent(figures::share(freed.min(scanned), scanned));
        let kept = work.kept();
        let kept = [
            (kept[0], "were made active"),
            (kept[1], "were in use"),
            (kept[2], "were dirty"),
            (kept[3], "were being written"),
        ];
        let kept = kept.into_iter().filter_map(|(pages, what)| Some((pages?, what)));
        let most = kept.max_by_key(|(pages, _)| *pages).filter(|(pages, _)| *pages * 20 > scanned);
        let most = most.map_or(String::new(), |(pages, what)| format!("; {} {what}", figures::count(pages)));
        let scanned_text = figures::counted(scanned, "page");
        says.push(match freed.saturating_mul(10) >= scanned.saturating_mul(9) {
            true => format!("pages were easy to find: {share} of {scanned_text} scanned were freed{most}"),
            false => format!("{share} of {scanned_text} scanned were freed{most}"),
        });
    }
    if says.is_empty() {
        return "the events do not show the reasons for the stall time.".to_string();
    }
    let mut text = says.join(", and ");
    text.push('.');
    text
}

/// Calls among the longest for whose time nothing accounts that they did.
fn probable_absence(sums: &Sums, class: Reclaimer) -> Option<String> {
    let of_class = sums.stalls.iter().filter(|stall| stall.reclaimer == class);
    let absent: Vec<u64> = of_class
        .filter_map(|stall| match stall.off_cpu_time()? {
            OffCpuTime::Inferred(ns) => Some(ns),
            OffCpuTime::Measured(_) => None,
        })
        .collect();
    let ns = absent.iter().copied().fold(0, u64::saturating_add);
    let ns = figures::time(ns);
    match absent.len() {
        0 => None,
        1 => Some(format!(
            "one of the longest calls did little work for its time and was probably off the CPU for {ns}"
        )),
        more => Some(format!(
            "{more} of the longest calls did little work for their time and were probably off the CPU for {ns}"
        )),
    }
}

/// A larger share of pages that come back than this says that they should have stayed, a smaller one than the other that they were
/// not needed.
const NEEDED: f64 = 0.25;
const NOT_NEEDED: f64 = 0.05;

/// A sentence on freed pages that were needed again, if the events show it.
fn again(reading: &Reading, kind: CallKind) -> Option<String> {
    let refaults = &reading.sums.refaults;
    let what = match kind {
        CallKind::Memcg => "the cgroup's limit",
        CallKind::Node => "the node's memory",
        _ => "the machine's memory",
    };
    if refaults.is_known() {
        let share = figures::share(refaults.refaulted, refaults.reclaimed);
        let forgotten = match refaults.forgotten {
            0 => String::new(),
            pages => {
                format!(
                    " (at least: the first {} evicted pages were no longer tracked)",
                    figures::count(pages)
                )
            }
        };
        let away = refaults.away.summary().p50_ns;
        let verdict = if share >= NEEDED {
            format!("Freed pages are needed again: {what} is too small for the pages in use.")
        } else if share < NOT_NEEDED {
            format!(
                "Few of the freed pages were needed again: {what} is large enough for the pages in use. The cost is that tasks reclaim themselves."
            )
        } else {
            format!(
                "Some of the freed pages are needed again: a larger {what} would avoid these reads.",
                what = &what[4..]
            )
        };
        let after = if refaults.refaulted > 0 {
            format!(", half of them within {}", figures::time(away))
        } else {
            String::new()
        };
        let of_all = figures::percent(figures::share(refaults.refaulted, refaults.added));
        return Some(format!(
            "Again: reclaim removed {} from the page cache, and {} ({}) of them returned during the \
             trace{after}{forgotten}. They are {of_all} of all insertions. {verdict}",
            figures::counted(refaults.reclaimed, "page"),
            figures::count(refaults.refaulted),
            figures::percent(share),
        ));
    }
    if refaults.refault_events > 0 {
        let freed =
            Reclaimer::ALL.iter().map(|class| reading.sums.work(*class).reclaimed.total()).sum::<u64>();
        let refaulted = figures::counted(refaults.refault_events, "refault");
        let says = verdict(&reading.sums, [EventKind::Batches], |_| {
            let share = figures::share(refaults.refault_events, freed);
            let verdict = if share >= NEEDED {
                format!(" Freed pages are needed again: {what} is too small for the pages in use.")
            } else {
                String::new()
            };
            format!(
                "Again: the trace has {refaulted}, compared with {} freed ({}).{verdict}",
                figures::counted(freed, "page"),
                figures::percent(share)
            )
        });
        return Some(says.unwrap_or_else(|unknown| {
            format!("Again: the trace has {refaulted}; the number of freed pages is {unknown}.")
        }));
    }
    None
}

/// Events that this trace lacks, and what they would tell.
pub(super) struct Lack {
    pub(super) events: Vec<&'static str>,
    tells: &'static str,
}

/// All that this trace lacks: exactly those events, of the ones that its kernel has.
pub(super) fn lacking(reading: &Reading) -> Vec<Lack> {
    let (sums, mut lacks) = (&reading.sums, Vec::new());
    let is_early = reading.totals.dialect() == Some(Dialect::Early.name());
    let has_calls = sums.stalls.iter().any(|stall| stall.reclaimer != Reclaimer::Kswapd);
    if !reading.is_recorded || reading.totals.events == 0 {
        return lacks;
    }
    let mut ask = |needs: &[EventKind], tells: &'static str| {
        let missing = needs.iter().filter(|need| sums.coverage.count_of(need).is_err());
        let events: Vec<&str> = missing.map(|need| need.event()).collect();
        if !events.is_empty() {
            lacks.push(Lack { events, tells });
        }
    };
    let calls = [edges(CallKind::Direct), edges(CallKind::Memcg)].concat();
    ask(&calls, "the stall time of tasks");
    ask(&KSWAPD_EDGES, "the times when kswapd was awake");
    ask(&[EventKind::WakeRequests], "the number of kswapd wake-up requests");
    match is_early {
        true => ask(&[EventKind::Scans], "the pages that calls scanned"),
        false => ask(&[EventKind::Scans, EventKind::Batches], "the pages that calls scanned and freed"),
    }
    ask(&[EventKind::Writes], "the pages that calls wrote");
    if is_early {
        return lacks;
    }
    ask(&[EventKind::Throttles], "the throttling of calls");
    if !sums.refaults.is_known() && sums.refaults.refault_events == 0 {
        lacks.push(Lack {
            events: vec!["filemap:mm_filemap_add_to_page_cache", "filemap:mm_filemap_delete_from_page_cache"],
            tells: "the freed pages that are needed again, a sign that memory or a limit is too small",
        });
    }
    if has_calls && Reclaimer::ALL.iter().all(|class| sums.off_cpu(*class).is_none()) {
        let events = vec!["sched:sched_switch", "sched:sched_wakeup"];
        lacks.push(Lack { events, tells: "the time that calls were off the CPU" });
    }
    lacks
}

/// Returns a sentence about the recording to make next.
pub fn next(reading: &Reading) -> Option<String> {
    let lacking = lacking(reading);
    if lacking.is_empty() {
        return None;
    }
    let says = lacking.iter().map(|lack| {
        let names: Vec<&str> =
            lack.events.iter().map(|event| event.rsplit(':').next().unwrap_or(event)).collect();
        format!("{} would show {}", names.join(" and "), lack.tells)
    });
    let says = says.collect::<Vec<_>>().join("; ");
    Some(format!("Next: {says}. Recorded with {}", record_with_trace_cmd(&lacking)))
}

/// Returns the events to record next and the commands, one per line.
pub fn how_to_record(reading: &Reading) -> String {
    let lacking = lacking(reading);
    if lacking.is_empty() {
        return String::new();
    }
    let mut text = "Record these events too for more details\n".to_string();
    for lack in &lacking {
        text += &format!("{}: {}\n", lack.events.join(", "), lack.tells);
    }
    let events = beside_vmscan(&lacking);
    let files: Vec<String> =
        events.iter().map(|event| format!("{}/enable", event.replace(':', "/"))).collect();
    text += &format!("  {}\n", record_with_trace_cmd(&lacking));
    let all: Vec<&str> = std::iter::once("vmscan:*").chain(events.iter().copied()).collect();
    text += &format!("  perf record -a -e '{}'; perf script > trace.txt\n", all.join(","));
    // Kernels before 4.1 have it below debugfs alone.
    let tracing = match reading.totals.dialect() == Some(Dialect::Early.name()) {
        true => "/sys/kernel/debug/tracing",
        false => "/sys/kernel/tracing",
    };
    text += &format!("  cd {tracing}/events; echo 1 | tee vmscan/enable {}\n", files.join(" "));
    text
}

fn record_with_trace_cmd(lacking: &[Lack]) -> String {
    let events = beside_vmscan(lacking);
    let more: String = events.iter().map(|event| format!(" -e {event}")).collect();
    format!("trace-cmd record -e vmscan{more}")
}

/// Events that those of vmscan, which are recorded in any case, are not.
fn beside_vmscan(lacking: &[Lack]) -> Vec<&'static str> {
    let events = lacking.iter().flat_map(|lack| lack.events.iter().copied());
    events.filter(|event| !event.starts_with("vmscan:")).collect()
}

fn kswapd_story(reading: &Reading) -> Option<String> {
    let sums = &reading.sums;
    let kswapd = sums.kswapd();
    if kswapd.threads == 0 {
        return None;
    }
    let work = sums.work(Reclaimer::Kswapd);
    // A time awake that is not over when the trace ends counts up to there.
    let lasting = sums.processes.iter().filter_map(|process| process.kswapd.as_ref()?.since);
    let lasting: u64 = lasting.map(|(since_ns, _)| sums.end_ns.saturating_sub(since_ns)).sum();
    let awake = (kswapd.awake_ns + lasting) as f64 / kswapd.threads as f64;
    let share = figures::percent(ratio(awake, reading.elapsed_ns()));
    let times = |count: u64| match count {
        1 => "once".to_string(),
        count => format!("{} times", figures::count(count)),
    };
    let awake = verdict(sums, KSWAPD_EDGES, |_| {
        format!(
            "kswapd, for which no task waits, was awake {share} of the time (woken {}, {} times more while awake)",
            times(kswapd.wakes),
            figures::count(kswapd.rewakes)
        )
    });
    let mut text = awake.unwrap_or_else(|unknown| format!("The time that kswapd was awake is {unknown}"));
    let needs = [EventKind::Batches, EventKind::Begins(CallKind::Direct), EventKind::Begins(CallKind::Memcg)];
    let freed = verdict(sums, needs, |_| {
        let by_tasks: u64 =
            STALLS.iter().map(|kind| sums.work(Reclaimer::from(*kind)).reclaimed.total()).sum();
        let all = by_tasks + work.reclaimed.total();
        (all > 0 && work.batches > 0).then(|| figures::percent(figures::share(work.reclaimed.total(), all)))
    });
    if let Ok(Some(share)) = freed {
        text += &format!(" and freed {share} of all pages freed");
    }
    text.push('.');
    Some(text)
}
