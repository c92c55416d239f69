//! The scenario of a replay, made in memory: a task that replays the trace, in a cgroup whose limit is the memory asked about.

use std::path::Path;
use std::sync::Arc;

use pageout_sim::Pace;
use pageout_sim::scenario::keys::Limit;
use pageout_sim::scenario::{
    Advice, Channel, Device, File, FileKind, FirstThread, Kernel, Knobs, Lifetime, Machine, Memcg, Object,
    OpenedBy, Problem, Scalar, Scenario, Session, Size, Swap, SwapKind, Task, TimeSpan, TmpfsHuge,
};
use pageout_workload::ReadOptions;
use pageout_workload::trace::{Footprint, Loaded};

use super::ask::Ask;
use super::untimed::STAT_FLUSH;
use crate::error::{Error, told};
use crate::figures;
use crate::scenario::nearest::nearest;

/// The smallest memory that the machine simulates: one batch of reclaim and the page being read.
pub const PAGES_MIN: u64 = 64;

/// The cgroup that the replaying task runs in.
const MEMCG: &str = "/replay";

/// The common part of all sizes of a trace under a policy.
#[derive(Clone, Copy)]
pub(crate) struct Setup<'a> {
    /// The question.
    pub(crate) ask: &'a Ask,
    /// The trace.
    pub(crate) trace: &'a Path,
    /// The policy, as `kernel.profile` calls it.
    pub(crate) profile: &'a str,
    /// True if page numbers are places, so that consecutive numbers are neighbours.
    pub(crate) has_neighbours: bool,
}

/// A trace's accesses, or a tenant's.
pub(crate) struct Accesses {
    /// What they touch, and the accesses themselves.
    pub(crate) loaded: Arc<Loaded>,
    /// When they start, where the scenario's task has not to find it out.
    pub(crate) pace: Option<Pace>,
}

impl Setup<'_> {
    /// The scenario that replays these accesses in a memory of N pages.
    pub(crate) fn replaying(&self, accesses: &Accesses, pages: u64) -> Result<Scenario, Error> {
        let mut scenario = self.scenario(&accesses.loaded.footprint, pages)?;
        replay(&mut scenario.task[0], accesses);
        Ok(scenario)
    }

    /// The scenario of tenants that share a memory of so many pages, and touch all of this: each has a cgroup below the one that has the limit.
    pub(crate) fn together(
        &self,
        all: &Footprint,
        tenants: &[Accesses],
        pages: u64,
    ) -> Result<Scenario, Error> {
        let mut scenario = self.scenario(all, pages)?;
        let alone = scenario.task.remove(0);
        if self.ask.channel != Channel::Anonymous {
            scenario.file = (0..)
                .zip(&all.objects)
                .map(|(at, of)| File {
                    name: format!("object-{at}"),
                    size: Size::from_pages(of.pages.max(1)),
                    kind: FileKind::Regular,
                    device: None,
                    huge: TmpfsHuge::Never,
                })
                .collect();
        }
        for (number, tenant) in tenants.iter().enumerate() {
            let memcg = format!("{MEMCG}/{number}");
            scenario.memcg.push(Memcg { path: memcg.clone(), policy: None, files: Knobs(Vec::new()) });
            let mut task = Task { name: format!("tenant-{number}"), memcg, ..alone.clone() };
            task.object.truncate(tenant.loaded.footprint.objects.len());
            for (object, file) in task.object.iter_mut().zip(&scenario.file) {
                (object.file, object.size) = (Some(file.name.clone()), None);
            }
            replay(&mut task, tenant);
            scenario.task.push(task);
        }
        Ok(scenario)
    }

    /// How the trace is read. Errors: an option of the reader is wrong.
    pub(super) fn read_options(&self) -> Result<ReadOptions, Error> {
        self.object(Some(1)).read_options().map_err(|error| Error::asked(error.to_string()))
    }

    /// An object of the task, with N pages.
    pub(super) fn object(&self, pages: Option<u64>) -> Object {
        let Setup { ask, trace, has_neighbours, .. } = *self;
        Object {
            channel: ask.channel,
            file: None,
            size: pages.map(|pages| Size::from_pages(pages.max(1))),
            device: None,
            request_size: None,
            advice: Advice::Normal,
            // An explicit window enables readahead of opaque ids too.
            read_ahead: (!has_neighbours && ask.window_kb(has_neighbours) > 0).then_some(true),
            populate_node: None,
            hugepage: None,
            locked: false,
            executable: false,
            opened_by: OpenedBy::Process,
            per_copy: false,
            copies_per_file: None,
            end_fsync: false,
            fsync_every: None,
            truncate_every: None,
            delete_every: None,
            share: 1,
            read_only: ask.channel != Channel::Anonymous && !ask.writes,
            partial_writes: false,
            write_first: None,
            contents: None,
            compressed_deciles: None,
            compressed_min: None,
            compressed_max: None,
            same_filled: None,
            zero_filled: None,
            workload: None,
            // A scenario's paths start at its file, whose place is not known yet.
            trace: Some(std::path::absolute(trace).unwrap_or_else(|_| trace.to_path_buf()).into()),
            read: Some(ask.read.clone()),
            file_calls: None,
        }
    }

    /// The scenario of one size.
    pub(crate) fn scenario(&self, footprint: &Footprint, pages: u64) -> Result<Scenario, Error> {
        let Setup { ask, profile, has_neighbours, .. } = *self;
        let window_kb = ask.window_kb(has_neighbours);
        let think_time: TimeSpan = ask
            .think_time
            .parse()
            .map_err(|error| Error::asked(format!("--think-time: {}", told(&error))))?;
        let mut objects: Vec<Object> = footprint
            .objects
            .iter()
            .map(|of| Object { trace: None, read: None, ..self.object(Some(of.pages)) })
            .collect();
        if let Some(first) = objects.first_mut() {
            *first = Object { size: first.size, ..self.object(None) };
        }
        let limit = Size::from_pages(pages);
        // The cgroup is to be what is short of memory, not the machine.
        let touched = Size::from_pages(footprint.distinct_pages());
        let compressed = if ask.swap == Some(SwapKind::Zram) { touched.0 } else { 0 };
        // With memory for the nodes of indexes and page tables that lead to all touched pages.
        let memory =
            Size((limit.0 * 2).max(limit.0 + (256 << 20)) + touched.0 / 64 / 4096 * 4096 + compressed);
        let swap = |kind| Swap {
            size: Size::from_pages(footprint.distinct_pages() * 2 + 1024),
            kind,
            device: None,
            priority: None,
            contents: None,
            compressed_deciles: None,
            compressed_min: None,
            compressed_max: None,
            same_filled: None,
            zero_filled: None,
            memory_limit: None,
        };
        Ok(Scenario {
            question: String::new(),
            look_at: String::new(),
            seed: ask.seed,
            until: None,
            // The output has misses, except in an open loop.
            machine: Machine {
                cpus: 1,
                memory: Some(memory),
                access_times: ask.timed.is_some(),
                ..Machine::default()
            },
            // The memory asked about is that of the trace's pages.
            kernel: Kernel {
                profile: profile.to_string(),
                version: None,
                lists: None,
                switches: Knobs(switches(ask)),
            },
            sysctl: Knobs(match window_kb {
                0 => vec![("vm.page-cluster".to_string(), Scalar::Integer(0))],
                _ => Vec::new(),
            }),
            memcg: vec![Memcg {
                path: MEMCG.to_string(),
                policy: None,
                files: Knobs(vec![("memory.max".to_string(), Scalar::Text(limit.to_string()))]),
            }],
            damon: Vec::new(),
            device: vec![Device {
                read_ahead_kb: Some(window_kb),
                ..Device::of_preset(&ask.device, &ask.device)
            }],
            swap: ask.swap.map(swap).into_iter().collect(),
            file: Vec::new(),
            task: vec![Task {
                name: "replay".to_string(),
                memcg: MEMCG.to_string(),
                cpu: None,
                start: TimeSpan(0),
                think_time,
                migrates: false,
                nice: 0,
                rt_priority: 0,
                oom_score_adj: 0,
                io_flusher: false,
                preferred_node: None,
                membind: None,
                interleave: None,
                weighted_interleave: None,
                cpunodebind: None,
                after: None,
                stands_for: 1,
                copies: 1,
                threads: 1,
                first_thread: FirstThread::Works,
                depth: 1,
                lifetime: Lifetime::Run,
                loops: 1,
                background: false,
                timed: ask.timed.unwrap_or(0.0),
                session: Session::default(),
                recorded: None,
                object: objects,
            }],
            event: Vec::new(),
            variant: Vec::new(),
            expect: Vec::new(),
        })
    }
}

/// Settings of the kernel that differ from a profile's.
fn switches(ask: &Ask) -> Vec<(String, Scalar)> {
    let kmem = ("memcg.kmem".to_string(), Scalar::Bool(false));
    let (name, value) = STAT_FLUSH;
    let stat_flush = ask.untimed.then(|| (name.to_string(), Scalar::Text(value.to_string())));
    std::iter::once(kmem).chain(stat_flush).collect()
}

/// Has a task replay these accesses.
fn replay(task: &mut Task, accesses: &Accesses) {
    let trace = task.object[0].trace.as_mut().expect("the first object has the trace");
    trace.loaded = Some(Arc::clone(&accesses.loaded));
    trace.pace = accesses.pace.clone();
}

/// A limit in pages, `least` or more; a percentage is of the distinct pages that the trace touches. Errors: it is less.
pub(crate) fn pages(limit: Limit, distinct_pages: u64, least: u64) -> Result<u64, Error> {
    let pages = limit.pages(distinct_pages).expect("no limit was refused when the option was read");
    if pages >= least {
        return Ok(pages);
    }
    let given = match limit {
        Limit::Percent(percent) => format!("{percent}%"),
        Limit::Size(size) => size.to_string(),
        Limit::Max => "max".to_string(),
    };
    Err(Error::asked(format!(
        "--memory {given}: too small: found {} of the trace's {} distinct pages, expected at least {} ({})",
        figures::counted(pages, "page"),
        figures::count(distinct_pages),
        figures::counted(least, "page"),
        Size::from_pages(least)
    )))
}

/// Checks a generated scenario. Errors: its first problem, in terms of the options that it was made of.
pub(crate) fn check(scenario: &Scenario) -> Result<(), Error> {
    let problems = scenario.validate();
    let Some(problem) = problems.first() else { return Ok(()) };
    let Problem { message, candidates, .. } = problem;
    let option = match problem.key.as_str() {
        "kernel.profile" => "--policy",
        "device[0].preset" => "--device",
        "device[0].read_ahead_kb" => "--read-ahead-kb",
        "task[0].think_time" => "--think-time",
        key if key.contains(".read") => "--read",
        key if key.ends_with(".size") => "the trace's pages (try --read page_ids=dense)",
        key if key.contains("memory") => "--memory",
        key => key,
    };
    let hint =
        problem.given.as_deref().and_then(|given| nearest(given, candidates.iter().map(String::as_str)));
    let hint = hint.map(|name| format!("did you mean `{name}`?"));
    let help: Vec<String> = hint.into_iter().chain(problem.help.clone()).collect();
    let help = if help.is_empty() { String::new() } else { format!("\nhelp: {}", help.join(" ")) };
    Err(Error::asked(format!("{option}: {message}{help}")))
}
