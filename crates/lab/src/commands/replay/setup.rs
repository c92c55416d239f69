//! The scenario of a replay, made in memory: a task that replays the trace, in a cgroup whose limit is the memory asked about.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use pageout_sim::Pace;
use pageout_sim::scenario::{
    Advice, Channel, Device, File, FileKind, FirstThread, Kernel, Knobs, Lifetime, Machine, Memcg, Object,
    OpenedBy, Scalar, Scenario, Session, Size, Swap, SwapKind, Table, Task, TimeSpan,
};
use pageout_workload::trace::{Footprint, Loaded};

use crate::commands::replay::args::{ChannelArg, ReplayArgs, SwapArg};

/// The cgroup that the replaying task runs in.
const MEMCG: &str = "/replay";

/// What all sizes of a trace under a policy have in common.
#[derive(Clone, Copy)]
pub(in crate::commands) struct Setup<'a> {
    pub(in crate::commands) args: &'a ReplayArgs,
    pub(in crate::commands) trace: &'a Path,
    /// The policy, as `kernel.profile` calls it.
    pub(in crate::commands) profile: &'a str,
    /// How the trace is read.
    pub(in crate::commands) read: &'a Table,
    /// Whether the numbers of its pages are places, so that those beside each other are neighbours.
    pub(in crate::commands) has_neighbours: bool,
}

/// A trace's accesses, or a tenant's.
pub(in crate::commands) struct Accesses {
    pub(in crate::commands) loaded: Arc<Loaded>,
    /// When they start, where the scenario's task has not to find it out.
    pub(in crate::commands) pace: Option<Pace>,
}

impl Setup<'_> {
    /// The scenario in which these accesses are replayed, in a memory of so many pages.
    pub(in crate::commands) fn replaying(&self, accesses: &Accesses, pages: u64) -> anyhow::Result<Scenario> {
        let mut scenario = self.scenario(&accesses.loaded.footprint, pages)?;
        replay(&mut scenario.task[0], accesses);
        Ok(scenario)
    }

    /// The scenario of tenants that share a memory of so many pages, and touch all of this: each has a cgroup below the one that has the limit.
    pub(in crate::commands) fn together(
        &self,
        all: &Footprint,
        tenants: &[Accesses],
        pages: u64,
    ) -> anyhow::Result<Scenario> {
        let mut scenario = self.scenario(all, pages)?;
        let alone = scenario.task.remove(0);
        if self.args.channel != ChannelArg::Anonymous {
            scenario.file = (0..)
                .zip(&all.objects)
                .map(|(at, of)| File {
                    name: format!("object-{at}"),
                    size: Size::from_pages(of.pages.max(1)),
                    kind: FileKind::Regular,
                    device: None,
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
    pub(in crate::commands) fn object(&self, pages: Option<u64>) -> Object {
        let Setup { args, trace, read, has_neighbours, .. } = *self;
        let channel = match args.channel {
            ChannelArg::File => Channel::File,
            ChannelArg::Mapped => Channel::Mapped,
            ChannelArg::Anonymous => Channel::Anonymous,
        };
        Object {
            channel,
            file: None,
            size: pages.map(|pages| Size::from_pages(pages.max(1))),
            device: None,
            request_size: None,
            advice: Advice::Normal,
            // Who asks for it has it.
            read_ahead: (!has_neighbours && args.window_kb(has_neighbours) > 0).then_some(true),
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
            read_only: channel != Channel::Anonymous && !args.writes,
            partial_writes: false,
            write_first: None,
            contents: None,
            compressed_deciles: None,
            compressed_min: None,
            compressed_max: None,
            same_filled: None,
            zero_filled: None,
            workload: None,
            // A scenario's paths start where its file is, and nobody knows yet where this one will be.
            trace: Some(std::path::absolute(trace).unwrap_or_else(|_| trace.to_path_buf()).into()),
            read: Some(read.clone()),
            file_calls: None,
        }
    }

    /// The scenario of one size.
    pub(in crate::commands) fn scenario(
        &self,
        footprint: &Footprint,
        pages: u64,
    ) -> anyhow::Result<Scenario> {
        let Setup { args, profile, has_neighbours, .. } = *self;
        let window_kb = args.window_kb(has_neighbours);
        let think_time: TimeSpan = args.think_time.parse().with_context(|| "--think-time".to_string())?;
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
        let compressed = if args.swap == SwapArg::Zram { touched.0 } else { 0 };
        // With room for the nodes of indexes and page tables that lead to all that was ever touched.
        let memory =
            Size((limit.0 * 2).max(limit.0 + (256 << 20)) + touched.0 / 64 / 4096 * 4096 + compressed);
        let swap = |kind| {
            vec![Swap {
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
            }]
        };
        Ok(Scenario {
            question: String::new(),
            look_at: String::new(),
            seed: args.seed,
            until: None,
            // What is printed are misses, but for an open loop.
            machine: Machine {
                cpus: 1,
                memory: Some(memory),
                access_times: args.timed.is_some(),
                ..Machine::default()
            },
            // The memory asked about is that of the trace's pages.
            kernel: Kernel {
                profile: profile.to_string(),
                version: None,
                lists: None,
                switches: Knobs(vec![("memcg.kmem".to_string(), Scalar::Bool(false))]),
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
            device: vec![Device {
                read_ahead_kb: Some(window_kb),
                ..Device::of_preset(&args.device, &args.device)
            }],
            swap: match args.swap {
                SwapArg::None => Vec::new(),
                SwapArg::Disk => swap(SwapKind::Disk),
                SwapArg::Zram => swap(SwapKind::Zram),
            },
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
                timed: args.timed.unwrap_or(0.0),
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

/// Has a task replay these accesses.
fn replay(task: &mut Task, accesses: &Accesses) {
    let trace = task.object[0].trace.as_mut().expect("the first object has the trace");
    trace.loaded = Some(Arc::clone(&accesses.loaded));
    trace.pace = accesses.pace.clone();
}
