//! The result of a run in words and tables a newcomer understands, with the kernel's own names where it counts things.

use std::fmt::Write;

use pageout_engine::{CgroupFile, Holds};
use pageout_sim::Cause;
use pageout_sim::scenario::{Channel, Percentage, Scenario};
use pageout_study::result::caveats;
use pageout_study::result::events::{ConditionResult, ReadResult};
use pageout_study::result::metrics::STORY;
use pageout_study::result::outdated::OutdatedResult;
use pageout_study::result::run_result::{
    Counters, DeviceResult, KillResult, Latency, MemcgResult, PressureResult, ReadaheadResult, RunResult,
    TaskResult, ThreadResult, TiersResult, counter,
};
use pageout_study::result::user_policies::OwnPolicyResult;
use pageout_study::result::writeback::WritebackResult;

use crate::print::{Layout, access, damon, figures};

/// Sizes in `memory.stat`, in bytes, that say what the memory is full of.
const SIZES: &[&str] =
    &["anon", "file", "inactive_anon", "active_anon", "inactive_file", "active_file", "unevictable"];

/// The whole summary.
pub(crate) fn summary(scenario: &Scenario, result: &RunResult, layout: Layout) -> String {
    let mut text = String::new();
    if !result.question.is_empty() {
        text += &layout.wrap(&result.question, "");
        text.push('\n');
    }
    let memory: u64 = scenario.machine.node_sizes().iter().map(|size| size.0).sum();
    let prices = scenario.machine.price.iter().count();
    let other_prices = match prices {
        0 => String::new(),
        _ => format!(" but for {}", figures::counted(prices as u64, "price")),
    };
    let _ = writeln!(
        text,
        "{} in {} of simulated time, until {}\nmachine: {}, {} of memory, costs {}{other_prices}; kernel: {}; seed {}\n",
        result.accesses_told(),
        figures::time(result.end_ns),
        result.ended,
        figures::counted(scenario.machine.cpus.into(), "CPU"),
        figures::bytes(memory),
        scenario.machine.costs,
        result.profile,
        result.seed
    );
    if let Some(says) = caveats::nothing_accessed(std::iter::once(result)) {
        let _ = writeln!(text, "{}", layout.wrap(&says, ""));
    }
    text += &tasks(&result.tasks, layout);
    text += &access::text(scenario, result, layout);
    text += &kills(&result.kills, layout);
    for memcg in result.memcgs.iter().take(LINES_MAX) {
        text.push('\n');
        text += &memcg_text(memcg, result, layout);
    }
    if !result.percentages.is_empty() {
        text.push('\n');
        text += &percentages(&result.percentages);
    }
    if result.memcgs.len() > LINES_MAX {
        let _ = writeln!(
            text,
            "\n... and {} cgroups more; --json has them all",
            figures::count((result.memcgs.len() - LINES_MAX) as u64)
        );
    }
    if result.memcgs.is_empty() {
        text.push('\n');
        text += "whole machine\n";
        text += &story(&result.vmstat, layout);
        let for_writes = &result.reclaim_for_writes;
        text += &reclaim_line(
            "direct reclaim",
            &result.reclaim,
            if for_writes.count > 0 { " by tasks" } else { "" },
        );
        if for_writes.count > 0 {
            text += &reclaim_line("reclaim for writes to kernel files", for_writes, "");
        }
        text += &pressure_line(&result.pressure, result.end_ns);
        text += &throttled_line("tasks", result.tasks.iter());
    }
    text += &own_policies(&result.own_policies, layout);
    text += &threads_line(&result.threads, result.end_ns, layout);
    text += &damon::lines(&result.kdamonds, layout);
    text += &compaction_line(result, layout);
    text += &writeback_lines(&result.writeback);
    text += &outdated_lines(result, layout);
    text += &swap_line(result);
    text += &result.tiers.as_ref().map_or_else(String::new, |tiers| tiers_lines(tiers, layout));
    text += &readahead_line(scenario, &result.readahead);
    for device in result.devices.iter().filter(|device| device.reads.count + device.writes.count > 0) {
        text.push('\n');
        text += &device_text(device, result.end_ns);
    }
    text += &conditions(result, layout);
    text += &writes(result, layout);
    text += &reads(scenario, &result.reads, layout);
    if result.events_not_reached > 0 {
        let _ = writeln!(
            text,
            "\n{} not due yet when the run ended",
            figures::counted(result.events_not_reached as u64, "event")
        );
    }
    if result.events_left_out > 0 {
        let _ = writeln!(
            text,
            "\n{} of an event that repeats left out, as the time before still waited for its shell",
            figures::counted(result.events_left_out, "time")
        );
    }
    if !result.notes.is_empty() {
        text.push('\n');
        text += &layout.notes(&result.notes);
    }
    if !scenario.look_at.is_empty() {
        text.push('\n');
        text += &layout.wrap(&format!("Look at: {}", scenario.look_at), "");
    }
    text
}

/// Copies of a task that would fill more lines than this are summed up in one.
const LINES_MAX: usize = 24;

/// What parentheses around a runtime say.
pub(crate) const TRUNCATED: &str = "A runtime in parentheses: the task was not done when the run ended.\n";

fn tasks(tasks: &[TaskResult], layout: Layout) -> String {
    // The kind of miss is printed if there are several.
    let faults = tasks.iter().any(|task| task.minor + task.major > 0);
    let both = faults && tasks.iter().any(|task| task.read_misses > 0);
    let mut heading = vec!["task", "memcg", "accesses", "hit ratio", "misses"];
    heading.extend(faults.then_some("major faults"));
    heading.extend(both.then_some("read misses"));
    heading.extend(["runtime", "accesses/s", "in reclaim", "waiting for I/O"]);
    let mut rows = vec![heading.iter().map(ToString::to_string).collect::<Vec<String>>()];
    for task in tasks.iter().take(LINES_MAX) {
        let runtime = if task.finished {
            figures::time(task.runtime_ns)
        } else {
            format!("({})", figures::time(task.runtime_ns))
        };
        let mut row = vec![
            task.name.clone(),
            task.memcg.clone(),
            figures::count(task.accesses),
            task.hit_ratio.map_or("-".to_string(), figures::percent),
            figures::count(task.misses()),
        ];
        row.extend(faults.then(|| figures::count(task.major)));
        row.extend(both.then(|| figures::count(task.read_misses)));
        row.extend([
            runtime,
            figures::rate(task.throughput_per_s).trim_end_matches("/s").trim_end().to_string(),
            figures::percent(figures::share(task.reclaim_time_ns, task.thread_time_ns)),
            figures::percent(figures::share(task.io_wait_ns, task.thread_time_ns)),
        ]);
        rows.push(row);
    }
    let mut text = layout.table(&rows, 2);
    if tasks.len() > LINES_MAX {
        let _ = writeln!(
            text,
            "... and {} more; --json has them all",
            figures::count((tasks.len() - LINES_MAX) as u64)
        );
    }
    if tasks.iter().any(|task| !task.finished) {
        text += TRUNCATED;
    }
    text
}

/// When, who and why, in a sentence.
pub(crate) fn kill_told(kill: &KillResult) -> String {
    let why = match (&kill.with_group, &kill.limited_memcg, kill.min_ttl_ms) {
        (Some(group), ..) => format!("with all of {group} (memory.oom.group)"),
        (None, Some(limited), _) => format!("{limited} at its limit"),
        (None, None, Some(ttl)) => format!("nothing older than min_ttl_ms = {ttl} was left to reclaim"),
        (None, None, None) => "the machine had no page to spare".to_string(),
    };
    let has = [
        ("anon", kill.anon_pages),
        ("file", kill.file_pages),
        ("shmem", kill.shmem_pages),
        ("swap", kill.swap_pages),
        ("page tables", kill.page_table_pages),
    ];
    let has: Vec<String> = has
        .iter()
        .filter(|(_, pages)| *pages > 0)
        .map(|(name, pages)| format!("{name} {}", figures::bytes(pages * 4096)))
        .collect();
    let rest = if kill.was_at_rest { ", which had made all its accesses" } else { "" };
    let adj = if kill.oom_score_adj == 0 {
        String::new()
    } else {
        format!(", oom_score_adj {}", kill.oom_score_adj)
    };
    format!(
        "at {}: killed {} of {}{rest}: {why}; {} ran out of memory; it had {}{adj}",
        figures::time(kill.at_ns),
        kill.task,
        kill.memcg,
        kill.invoked_by,
        has.join(", ")
    )
}

/// The killed processes and the reasons, one paragraph each.
fn kills(kills: &[KillResult], layout: Layout) -> String {
    let mut text = String::new();
    for kill in kills.iter().take(LINES_MAX) {
        text += &layout.wrap(&kill_told(kill), "  ");
    }
    if !kills.is_empty() {
        text = format!(
            "\nout of memory: {} killed\n{text}{}",
            figures::count(kills.len() as u64),
            more(kills.len())
        );
    }
    text
}

/// The base of percentages in limits.
pub(crate) fn percentages(percentages: &[Percentage]) -> String {
    let mut text = String::new();
    for of in percentages.iter().take(LINES_MAX) {
        let share = figures::share_of_pages(of.percent, of.distinct_pages, of.pages);
        let _ = writeln!(text, "{} of {}: {share}", of.file, of.memcg);
    }
    text + &more(percentages.len())
}

fn memcg_text(memcg: &MemcgResult, result: &RunResult, layout: Layout) -> String {
    let current = memcg.files.get("memory.current").and_then(|bytes| bytes.parse().ok()).unwrap_or(0);
    let removed = memcg.removed_at_ns.map(|at| format!("removed at {}, with ", figures::time(at)));
    let mut text = format!(
        "memcg {} ({}): {}{} in use",
        memcg.path,
        memcg.policy,
        removed.unwrap_or_default(),
        figures::bytes(current)
    );
    for (name, value) in memcg.files.iter().filter(|(name, value)| is_told(name, value)) {
        let _ = write!(text, ", {name} {}", file_value(name, value));
    }
    text.push('\n');
    text += &story(&memcg.counters, layout);
    let sizes: Vec<String> = SIZES
        .iter()
        .filter_map(|name| Some((name, counter(&memcg.counters, name))).filter(|(_, bytes)| *bytes > 0))
        .map(|(name, bytes)| format!("{name} {}", figures::bytes(bytes as u64)))
        .collect();
    if !sizes.is_empty() {
        text += &layout.wrap(&format!("memory.stat: {}", sizes.join(", ")), "  ");
    }
    let events: Vec<String> = memcg
        .events
        .iter()
        .filter_map(|(name, value)| Some((name, value.as_i64()?)).filter(|(_, count)| *count > 0))
        .map(|(name, count)| format!("{name} {}", figures::count(count as u64)))
        .collect();
    if !events.is_empty() {
        text += &layout.wrap(&format!("memory.events: {}", events.join(", ")), "  ");
    }
    let others_reclaimed = counter(&memcg.counters, "pgscan_direct") > 0;
    let whose = if others_reclaimed { " by its own tasks" } else { "" };
    text += &reclaim_line("direct reclaim", &memcg.reclaim, whose);
    text += &pressure_line(&memcg.pressure, result.end_ns);
    text += &throttled_line("its tasks", result.tasks.iter().filter(|task| task.memcg == memcg.path));
    text
}

/// The figures that custom policies report, one line each.
fn own_policies(policies: &[OwnPolicyResult], layout: Layout) -> String {
    let mut text = String::new();
    for of in policies.iter().take(LINES_MAX) {
        let figures: Vec<String> = of.figures.iter().map(|(name, value)| format!("{name} {value}")).collect();
        let says = format!("policy {} of {} tells: {}", of.policy, of.place(policies), figures.join(", "));
        text += &layout.wrap(&says, "");
    }
    if !text.is_empty() {
        text.insert(0, '\n');
    }
    text + &more(policies.len())
}

/// For how long tasks were made to wait, and why.
fn throttled_line<'a>(whose: &str, tasks: impl Iterator<Item = &'a TaskResult>) -> String {
    let mut by_reason: Vec<(&str, u64)> = Vec::new();
    for (at, (reason, ns)) in tasks.flat_map(|task| task.delayed_by.told().into_iter().enumerate()) {
        match by_reason.get_mut(at) {
            Some((_, sum)) => *sum += ns,
            None => by_reason.push((reason, ns)),
        }
    }
    let told = by_reason.iter().filter(|(_, ns)| *ns > 0);
    let told: Vec<String> = told.map(|(reason, ns)| format!("{} {reason}", figures::time(*ns))).collect();
    if told.is_empty() {
        return String::new();
    }
    format!("  {whose}, all together, were throttled: {}\n", told.join(", "))
}

/// The content of a file: an amount with its unit, or a switch.
fn file_value(name: &str, value: &str) -> String {
    let is_amount =
        CgroupFile::by_name(name).is_some_and(|file| matches!(file.holds, Holds::Usage | Holds::Limit(_)));
    let amount = value.parse().ok().filter(|_| is_amount);
    amount.map_or(value.to_string(), figures::bytes)
}

/// Returns true if a file says more than that there is nothing, and no limit.
fn is_told(name: &str, value: &str) -> bool {
    let untold = match CgroupFile::by_name(name).map(|file| file.holds) {
        Some(Holds::Limit(initial) | Holds::Switch(initial)) => initial,
        _ => "0",
    };
    // What is in use stands before them all.
    name != "memory.current" && value != untold
}

/// Counters in two columns, as many as are not zero.
fn story(counters: &Counters, layout: Layout) -> String {
    let value = |name: &str| counter(counters, name).max(0) as u64;
    // If all reclaim was direct, `pgscan_direct` repeats `pgscan`.
    let repeats = |name: &str| name.strip_suffix("_direct").is_some_and(|total| value(total) == value(name));
    let told: Vec<(&str, u64)> = STORY
        .iter()
        .map(|name| (*name, value(name)))
        .filter(|(name, value)| *value > 0 && !repeats(name))
        .collect();
    let mut text = String::new();
    let side_by_side = if layout.columns.is_some_and(|columns| columns < 86) { 1 } else { 2 };
    for pair in told.chunks(side_by_side) {
        let cells: Vec<String> =
            pair.iter().map(|(name, value)| format!("{name:<26}{:>14}", figures::count(*value))).collect();
        let _ = writeln!(text, "  {}", cells.join("    "));
    }
    text
}

/// The share of time in which some task, or all tasks, were stalled by a shortage (PSI).
fn pressure_line(pressure: &PressureResult, end_ns: u64) -> String {
    let resources = [("memory", pressure.memory), ("io", pressure.io), ("cpu", pressure.cpu)];
    let stalled: Vec<String> = resources
        .iter()
        .filter(|(_, stall)| stall.some_ns > 0)
        .map(|(name, stall)| {
            let share = |time| figures::percent(figures::share(time, end_ns));
            format!("{name} some {} full {}", share(stall.some_ns), share(stall.full_ns))
        })
        .collect();
    if stalled.is_empty() { String::new() } else { format!("  pressure: {}\n", stalled.join(", ")) }
}

/// The writers of file pages with their reasons, the writes of reclaim, and its waits.
fn writeback_lines(writeback: &WritebackResult) -> String {
    let said = |counters: &Counters| {
        let pages = counters.keys().map(|name| (name, counter(counters, name).unsigned_abs()));
        let some = pages.filter(|&(_, pages)| pages > 0);
        some.map(|(name, pages)| format!("{} {name}", figures::count(pages))).collect::<Vec<_>>().join(", ")
    };
    let mut by_reclaim = said(&writeback.pages_by_reclaim);
    if writeback.redirtied > 0 {
        by_reclaim += &format!("; file systems left {} of them dirty", figures::count(writeback.redirtied));
    }
    let cancelled = match writeback.cancelled {
        0 => String::new(),
        pages => format!("{}, never written", figures::count(pages)),
    };
    let lines = [
        ("pages of files written", said(&writeback.pages_by_reason)),
        ("dirty pages that went with their files", cancelled),
        ("pages written by reclaim", by_reclaim),
        ("waits of reclaim", said(&writeback.waits_of_reclaim)),
        ("rotations of written pages", said(&writeback.rotations)),
    ];
    let lines: Vec<String> = lines
        .iter()
        .filter(|(_, what)| !what.is_empty())
        .map(|(name, what)| format!("{name}: {what}\n"))
        .collect();
    if lines.is_empty() { String::new() } else { format!("\n{}", lines.concat()) }
}

/// Decisions of reclaim or a throttle that used outdated statistics.
fn outdated_lines(result: &RunResult, layout: Layout) -> String {
    if !result.stale_decisions_compared {
        return "\noutdated statistics: their effect on decisions was not measured (machine.access_times = false)\n".to_string();
    }
    let told: Vec<String> = result.stale_decisions.values().filter_map(OutdatedResult::told).collect();
    if told.is_empty() {
        return String::new();
    }
    let lines = told.iter().map(|told| layout.wrap(told, "  "));
    format!(
        "\ndecisions that up-to-date statistics would have changed (kernel.memcg.stat_flush)\n{}",
        lines.collect::<String>()
    )
}

/// The number of compactions by tasks, their results and their time.
fn compaction_line(result: &RunResult, layout: Layout) -> String {
    let of = |name| counter(&result.vmstat, name).unsigned_abs();
    let stalls = of("compact_stall");
    let timed = result.tasks.iter().filter_map(|task| Some((task, task.access.as_ref()?)));
    let (took, time) = timed.fold((0, 0), |(took, time), (task, access)| {
        let lost = access.by_cause.get(Cause::Compaction).map_or(0, |lost| lost.total_ns);
        (took + lost, time + task.thread_time_ns)
    });
    if stalls + took == 0 {
        return String::new();
    }
    let mut text = format!(
        "compaction by tasks: {} (compact_stall), {} of them gave a block (compact_success), {} did not (compact_fail)",
        figures::counted(stalls, "stall"),
        figures::count(of("compact_success")),
        figures::count(of("compact_fail")),
    );
    if time > 0 {
        let (took, share) = (figures::time(took), figures::percent(figures::share(took, time)));
        let _ = write!(text, "; {took} total, {share} of the tasks' time");
    }
    format!("\n{}", layout.wrap(&text, ""))
}

/// The maximum number of kernel threads that are printed one by one; a machine of many nodes has several per node.
const THREADS_MAX: usize = 12;

/// What kernel threads did on CPUs, of those that did anything.
fn threads_line(threads: &[ThreadResult], end_ns: u64, layout: Layout) -> String {
    let mut busy: Vec<&ThreadResult> = threads.iter().filter(|thread| thread.cpu_time_ns > 0).collect();
    let left_out = busy.len().saturating_sub(THREADS_MAX);
    if left_out > 0 {
        busy.sort_by_key(|thread| std::cmp::Reverse(thread.cpu_time_ns));
        busy.truncate(THREADS_MAX);
    }
    let mut told: Vec<String> = busy
        .iter()
        .map(|thread| {
            let share = figures::percent(figures::share(thread.cpu_time_ns, end_ns));
            format!("{} {} ({share} of a CPU)", thread.name, figures::time(thread.cpu_time_ns))
        })
        .collect();
    if left_out > 0 {
        told.push(format!("and {left_out} less busy; --json has them all"));
    }
    match told.is_empty() {
        true => String::new(),
        false => format!("\n{}", layout.wrap(&format!("kernel threads: {}", told.join(", ")), "")),
    }
}

/// `whose`: who did none, where others did. Pages of a group are scanned by tasks of other groups, too, at a limit that they share.
fn reclaim_line(name: &str, reclaim: &Latency, whose: &str) -> String {
    if reclaim.count == 0 {
        return format!("  no {name}{whose}\n");
    }
    format!(
        "  {name}: {} calls, p50 {}, p99 {}, max {}, {} total\n",
        figures::count(reclaim.count),
        figures::time(reclaim.p50_ns),
        figures::time(reclaim.p99_ns),
        figures::time(reclaim.max_ns),
        figures::time(reclaim.total_ns)
    )
}

/// Swapping is counted for the machine as a whole.
fn swap_line(result: &RunResult) -> String {
    let (pages_in, pages_out) = (counter(&result.vmstat, "pswpin"), counter(&result.vmstat, "pswpout"));
    if pages_in + pages_out == 0 || result.memcgs.is_empty() {
        return String::new();
    }
    let show = |pages: i64| figures::count(pages.max(0) as u64);
    format!("\nswap: pswpin {}, pswpout {}\n", show(pages_in), show(pages_out))
}

/// Where accesses found their pages.
fn tiers_lines(tiers: &TiersResult, layout: Layout) -> String {
    let fast = tiers.fast_hit_ratio.map_or("-".to_string(), figures::percent);
    let mut found = format!("tiers: {fast} of accesses in the top tier");
    if let Some(best) = tiers.offline_fast_hit_ratio {
        let how = if tiers.promoted > 0 { "offline" } else { "offline, without promotion" };
        let _ = write!(found, ", {} at best ({how})", figures::percent(best));
    }
    // Without promotion there is no end that it comes to.
    if tiers.promoted > 0 {
        found += &convergence(tiers);
    }
    let (p50, p99) = (figures::time(tiers.access.p50_ns), figures::time(tiers.access.p99_ns));
    let _ = write!(found, "; access p50 {p50}, p99 {p99}");
    let (promoted, demoted) = (figures::count(tiers.promoted), figures::count(tiers.demoted));
    let mut moved = format!("{promoted} pages promoted to the top tier, {demoted} demoted from it");
    if tiers.promoted > 0 {
        let back = figures::percent(tiers.ping_pong_ratio());
        let bytes = tiers.moved_per_useful_byte;
        let _ = write!(moved, ", {back} of them back within 10 s; {bytes:.2} bytes moved per useful byte");
    }
    if tiers.hotness_bytes > 0 {
        let of_slow = figures::bytes(tiers.hotness_bytes_per_slow_gib);
        let all = figures::bytes(tiers.hotness_bytes);
        let _ = write!(moved, "; records of hot pages take {all}, {of_slow} for each GiB of slow memory");
    }
    if tiers.tracker_ns > 0 {
        let parts = tiers.tracker_by_part_ns.keys();
        let parts = parts.map(|part| (part, counter(&tiers.tracker_by_part_ns, part).unsigned_abs()));
        let parts = parts.filter(|&(_, time)| time > 0);
        let parts: Vec<String> =
            parts.map(|(part, time)| format!("{} {}", part.replace('_', " "), figures::time(time))).collect();
        let all = figures::time(tiers.tracker_ns);
        let _ = write!(moved, "; to find pages in use took {all} of CPU time ({})", parts.join(", "));
    }
    let (found, moved) = (layout.wrap(&found, ""), layout.wrap(&moved, "  "));
    format!("\n{found}{moved}")
}

/// When the share of the top tier had come to where it ended.
fn convergence(tiers: &TiersResult) -> String {
    let mut text = match tiers.converged_ns {
        Some(at) => format!(", nine tenths of where it ended by {}", figures::time(at)),
        None if tiers.converged_from_start => ", nine tenths of where it ended from the start".to_string(),
        None => return String::new(),
    };
    // Without a fall since it is the same time.
    if let Some(below) = tiers.longest_below_ns.filter(|&below| below > tiers.converged_ns.unwrap_or(0)) {
        let _ = write!(text, ", once below that for {}", figures::time(below));
    }
    text
}

/// The useful part of readahead.
/// The readahead of files, and its result.
fn readahead_line(scenario: &Scenario, readahead: &ReadaheadResult) -> String {
    let objects = scenario.task.iter().flat_map(|task| &task.object);
    if !objects.into_iter().any(|object| matches!(object.channel, Channel::File | Channel::Mapped)) {
        return String::new();
    }
    let windows: Vec<(&str, u32)> =
        readahead.read_ahead_kb.iter().map(|(device, kib)| (device.as_str(), *kib)).collect();
    let window = |kib: u32| match kib {
        0 => "off".to_string(),
        kib => format!("up to {}", figures::bytes(u64::from(kib) << 10)),
    };
    let is_one = windows.iter().all(|(_, kib)| *kib == windows[0].1);
    let told = match is_one {
        true => window(windows[0].1),
        false => {
            let each = windows.iter().map(|(device, kib)| format!("{} on {device}", window(*kib)));
            each.collect::<Vec<_>>().join(", ")
        }
    };
    if readahead.pages == 0 {
        return format!("\nreadahead: {told}; no page before it was asked for\n");
    }
    let unused = readahead.never_used();
    format!(
        "\nreadahead: {told}; {} pages before they were asked for, {} of them never used ({})\n",
        figures::count(readahead.pages),
        figures::count(unused),
        figures::percent(figures::share(unused, readahead.pages))
    )
}

fn device_text(device: &DeviceResult, end_ns: u64) -> String {
    let busy = figures::percent(figures::share(device.busy_ns, end_ns));
    let mut text = format!("device {}: busy {busy} of the time", device.name);
    if device.merged > 0 {
        let _ = write!(text, ", {} requests joined one that waited", figures::count(device.merged));
    }
    if device.errors > 0 {
        let _ = write!(text, ", {} requests failed", figures::count(device.errors));
    }
    text.push('\n');
    for (name, latency, pages) in
        [("reads", &device.reads, device.pages_read), ("writes", &device.writes, device.pages_written)]
    {
        if latency.count > 0 {
            let _ = writeln!(
                text,
                "  {} {name} ({}), p50 {}, p99 {}, max {}",
                figures::count(latency.count),
                figures::bytes(pages * 4096),
                figures::time(latency.p50_ns),
                figures::time(latency.p99_ns),
                figures::time(latency.max_ns)
            );
        }
    }
    text
}

/// What events waited for.
fn conditions(result: &RunResult, layout: Layout) -> String {
    if result.conditions.is_empty() {
        return String::new();
    }
    let heading = ["condition", "file", "looks", "held"].map(str::to_string).to_vec();
    let row = |of: &ConditionResult| {
        vec![of.condition.clone(), of.path.clone(), figures::count(of.looks), figures::count(of.held)]
    };
    let rows: Vec<_> = std::iter::once(heading).chain(result.conditions.iter().map(row)).collect();
    format!("\n{}", layout.table(&rows, 2))
}

fn writes(result: &RunResult, layout: Layout) -> String {
    if result.writes.is_empty() {
        return String::new();
    }
    let is_proactive = result.writes.iter().any(|write| write.refaulted_pages_since.is_some());
    let mut heading = ["written", "at", "value", "reclaimed", "took"].map(str::to_string).to_vec();
    if is_proactive {
        heading.push("group's refaults to the end".to_string());
    }
    let mut rows = vec![heading];
    for write in result.writes.iter().take(LINES_MAX) {
        let (reclaimed, took) = match (write.reclaimed_pages, write.took_ns) {
            (Some(0), Some(0)) if write.error.is_none() => (String::new(), String::new()),
            (Some(_), Some(took)) if write.is_sync() => (String::new(), figures::time(took)),
            (Some(pages), Some(took)) => (figures::bytes(pages * 4096), figures::time(took)),
            _ if write.error.is_some() => ("refused".to_string(), String::new()),
            _ => ("not done".to_string(), String::new()),
        };
        let mut row = vec![
            write.path.clone(),
            figures::time(write.at_ns),
            value(&write.path, &write.value),
            reclaimed,
            took,
        ];
        if is_proactive {
            row.push(write.refaulted_pages_since.map_or(String::new(), |pages| figures::bytes(pages * 4096)));
        }
        rows.push(row);
    }
    let mut text = format!("\n{}{}", layout.table(&rows, 1), more(result.writes.len()));
    for write in result.writes.iter().take(LINES_MAX) {
        if let Some(error) = &write.error {
            text += &layout.wrap(&format!("at {}: {error}", figures::time(write.at_ns)), "  ");
        }
    }
    text
}

/// A written value; a plain number is bytes in files of a cgroup and in knobs that say so.
fn value(path: &str, text: &str) -> String {
    let takes_bytes = path.starts_with("/sys/fs/cgroup/") || path.ends_with("_bytes");
    match text.parse::<u64>() {
        Ok(bytes) if takes_bytes && bytes >= 4096 => figures::bytes(bytes),
        Ok(number) => figures::count(number),
        _ => text.to_string(),
    }
}

fn more(count: usize) -> String {
    if count > LINES_MAX {
        format!("... and {} more; --json has them all\n", figures::count((count - LINES_MAX) as u64))
    } else {
        String::new()
    }
}

/// Files that were read, one table a file: a line a reading, a column for each line to show.
fn reads(scenario: &Scenario, reads: &[ReadResult], layout: Layout) -> String {
    let mut text = String::new();
    let mut shown: Vec<&str> = Vec::new();
    for event in scenario.event.iter() {
        let Some(path) = event.read.as_deref().filter(|path| !shown.contains(path)) else { continue };
        shown.push(path);
        let of_file: Vec<&ReadResult> = reads.iter().filter(|read| read.path == path).collect();
        if of_file.is_empty() {
            continue;
        }
        let wanted = scenario
            .event
            .iter()
            .filter(|other| other.read.as_deref() == Some(path))
            .flat_map(|other| &other.show);
        let names: Vec<&String> = wanted.collect();
        let _ = writeln!(text, "\n{path}");
        if names.iter().any(|name| *name == "*") {
            for read in of_file.iter().take(LINES_MAX) {
                let _ = writeln!(text, "at {}\n{}", figures::time(read.at_ns), read.text.trim_end());
            }
            text += &more(of_file.len());
            continue;
        }
        let is_single = of_file.iter().all(|read| read.text.lines().count() <= 1);
        if names.is_empty() && !is_single {
            let _ = writeln!(
                text,
                "  read {} times; `show` in the event picks lines, or with \"*\" all of them; --json has all",
                of_file.len()
            );
            continue;
        }
        let matches: Vec<Vec<Match>> =
            of_file.iter().take(LINES_MAX).map(|read| matches(&read.text, &names)).collect();
        let has_parts = matches.iter().any(|of_read| of_read.len() > 1);
        let mut heading = vec!["at".to_string()];
        if has_parts {
            heading.push("of".to_string());
        }
        if is_single {
            heading.push("value".to_string());
        }
        heading.extend(names.iter().map(|name| name.to_string()));
        let mut rows = vec![heading];
        for (read, of_read) in of_file.iter().zip(matches) {
            for (at, Match { part, values }) in of_read.into_iter().enumerate() {
                let mut row = vec![if at == 0 { figures::time(read.at_ns) } else { String::new() }];
                if has_parts {
                    row.push(part.to_string());
                }
                if is_single {
                    row.push(grouped(read.text.trim()));
                }
                row.extend(values.into_iter().map(|value| value.map_or("-".to_string(), grouped)));
                rows.push(row);
            }
        }
        text += &layout.table(&rows, 0);
        text += &more(of_file.len());
    }
    text
}

/// The values of the names in one part of a reading.
struct Match<'a> {
    /// The line that begins the part, as `Node 0, zone   Normal` of zoneinfo; empty in a file without parts.
    part: &'a str,
    /// A value of each name, if the part has it.
    values: Vec<Option<&'a str>>,
}

/// All matches of the names in a reading, a row each: every part of the file that has any, and in it as often as a name comes. One row of
/// nothing if there is none.
fn matches<'a>(text: &'a str, names: &[&String]) -> Vec<Match<'a>> {
    let mut parts: Vec<(&str, Vec<&str>)> = vec![("", Vec::new())];
    for line in text.lines() {
        match line.starts_with("Node ") {
            true => parts.push((line, Vec::new())),
            false => parts.last_mut().expect("there is one from the beginning").1.push(line),
        }
    }
    let mut rows = Vec::new();
    for (part, lines) in parts {
        let found: Vec<Vec<&str>> =
            names.iter().map(|name| lines.iter().filter_map(|line| behind(line, name)).collect()).collect();
        let most = found.iter().map(Vec::len).max().unwrap_or(0);
        rows.extend(
            (0..most).map(|at| Match {
                part,
                values: found.iter().map(|values| values.get(at).copied()).collect(),
            }),
        );
    }
    if rows.is_empty() {
        rows.push(Match { part: "", values: vec![None; names.len()] });
    }
    rows
}

/// The value of a name in a line. Lines of zoneinfo are indented, and those of meminfo have a colon.
fn behind<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    Some(line.trim_start().strip_prefix(name)?.strip_prefix([' ', ':'])?.trim())
}

fn grouped(value: &str) -> String {
    value.parse().map_or(value.to_string(), figures::count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_number_is_bytes_where_its_file_takes_bytes() {
        assert_eq!(value("/sys/fs/cgroup/web/memory.max", "1048576"), "1 MiB");
        assert_eq!(value("/proc/sys/vm/dirty_bytes", "8192"), "8 KiB");
        assert_eq!(value("/sys/kernel/mm/lru_gen/min_ttl_ms", "60000"), "60,000");
        assert_eq!(value("/proc/sys/vm/min_free_kbytes", "5000"), "5,000");
        assert_eq!(value("/sys/fs/cgroup/web/memory.max", "max"), "max");
    }
}
