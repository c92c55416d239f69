//! kdamond.N: the thread that runs a kdamond. [access-aware 1.2]

use super::action::Acting;
use super::module;
use super::spec::{KdamondFigures, KdamondSpec};
use super::watched::Watched;
use crate::config::Config;
use crate::core::Core;
use crate::kthread::{KernelThread, ThreadStep};
use crate::machine::step::{DelayReason, Wait};
use crate::story::{TracedRegion, Tracepoint};
use crate::units::{Nanos, NodeId, TaskId};
use pageout_damon::{Apply, FilterOrder, Kdamond, Step, modules};

/// The first random number: the same in each run, as a scenario's seed chooses accesses.
const SEED: u64 = 0xda30;

/// The thread of a kdamond.
#[doc(alias = "kdamond_fn")]
pub(crate) struct DamonThread {
    number: usize,
    kdamond: Kdamond,
    spec: KdamondSpec,
    filter_order: FilterOrder,
    acting: Option<Acting>,
}

impl DamonThread {
    /// The thread of the enabled module; `None` if no module is enabled.
    pub(crate) fn of_module(config: &Config) -> Option<DamonThread> {
        let (attrs, schemes) = module::of(config)?;
        Some(DamonThread::new(config, 0, KdamondSpec { attrs, schemes, ..KdamondSpec::default() }))
    }

    /// The thread of the kdamond with this number.
    pub(super) fn new(config: &Config, number: usize, spec: KdamondSpec) -> DamonThread {
        let rules = module::rules(&config.policy.machine.damon);
        let jiffy = Nanos::from_ticks(1, config.hz).0;
        let kdamond = Kdamond::new(spec.attrs, rules, SEED + number as u64, jiffy)
            .expect("a configuration was checked, and the rest are constants");
        DamonThread { number, kdamond, spec, filter_order: rules.filter_order, acting: None }
    }

    /// Shows what a window or an action has changed.
    fn publish(&self, core: &mut Core) {
        let shown = &mut core.mm.damon.kdamonds[self.number];
        shown.regions = self.kdamond.regions() as u64;
        shown.attrs = *self.kdamond.attrs();
        for (shown, scheme) in shown.schemes.iter_mut().zip(self.kdamond.schemes()) {
            if shown.stats.nr_snapshots < scheme.stats.nr_snapshots {
                shown.tried_bytes = scheme.stats.sz_tried - shown.tried_before;
                shown.tried_before = scheme.stats.sz_tried;
            }
            shown.stats = scheme.stats;
            shown.effective_bytes = scheme.quota.effective_bytes();
            for (shown, goal) in shown.goals.iter_mut().zip(&scheme.quota.limits.goals) {
                *shown = goal.current_value;
            }
        }
    }

    /// Shows a window that is over.
    fn aggregated(&self, core: &mut Core) {
        self.publish(core);
        if core.is_traced() {
            self.trace_window(core);
        }
        if let Some(pictures) = &mut core.mm.damon.pictures {
            pictures.resize_with(pictures.len().max(self.number + 1), Default::default);
            let samples = self.kdamond.attrs().samples();
            pictures[self.number].add(core.by.now, samples, self.kdamond.targets());
        }
        let shown = &mut core.mm.damon.kdamonds[self.number];
        shown.windows += 1;
        if self.spec.schemes.is_empty() {
            shown.stat = Some(modules::stat(self.kdamond.targets(), self.kdamond.attrs(), true));
        }
    }
}

impl DamonThread {
    #[cold]
    fn trace_window(&self, core: &mut Core) {
        for (number, target) in self.kdamond.targets().iter().enumerate() {
            for region in target.regions() {
                let region = TracedRegion {
                    target: number as u32,
                    nr_regions: target.regions().len() as u32,
                    start: region.start,
                    end: region.end,
                    nr_accesses: region.nr_accesses,
                    age: region.age,
                };
                core.trace(NodeId(0), |_| Tracepoint::DamonAggregated { region });
            }
        }
    }

    fn trace_apply(&self, core: &mut Core, apply: &Apply) {
        core.trace(NodeId(0), |_| Tracepoint::DamosBeforeApply {
            scheme: apply.scheme as u32,
            region: TracedRegion {
                target: apply.target as u32,
                nr_regions: self.kdamond.targets()[apply.target].regions().len() as u32,
                start: apply.range.start,
                end: apply.range.end,
                nr_accesses: apply.nr_accesses,
                age: apply.age,
            },
        });
    }
}

impl KernelThread for DamonThread {
    fn name(&self) -> String {
        format!("kdamond.{}", self.number)
    }

    fn first_wait(&self) -> Wait {
        Wait::WokenOr(Nanos::ZERO, DelayReason::Nap)
    }

    fn started(&mut self, core: &mut Core, task: TaskId) {
        match (&self.spec.processes[..], &self.spec.ranges[..]) {
            ([], []) => self.kdamond.add_target(std::slice::from_ref(&core.mm.system_ram()), false),
            ([], ranges) => self.kdamond.add_target(ranges, false),
            (processes, _) => {
                for &mm in processes {
                    self.kdamond.add_target(&core.mm.ranges_of_process(mm), true);
                }
            }
        }
        self.spec.schemes.iter().for_each(|scheme| self.kdamond.add_scheme(scheme.clone()));
        let kdamonds = &mut core.mm.damon.kdamonds;
        if kdamonds.len() == self.number {
            // That of a module.
            kdamonds.push(KdamondFigures::new(&self.spec));
        }
        kdamonds[self.number].task = Some(task);
    }

    fn step(&mut self, core: &mut Core, _: bool) -> ThreadStep {
        let now_ns = core.by.now.0;
        if let Some(acting) = &mut self.acting {
            // The time of the last batch is known in the step after it.
            if !acting.is_done {
                acting.is_done = core.damos_step(acting);
                return ThreadStep::Again;
            }
            self.kdamond.applied(acting.applied, now_ns);
            self.acting = None;
            self.publish(core);
        }
        let mut history = std::mem::take(&mut core.mm.damon.history);
        let mut watched = Watched { core: &mut *core, processes: &self.spec.processes };
        let step = self.kdamond.step(&mut watched, &mut history, now_ns);
        core.mm.damon.history = history;
        match step {
            Step::Sleep(ns) => return ThreadStep::Wait(Wait::WokenOr(Nanos(ns), DelayReason::Nap)),
            Step::Apply(apply) => {
                self.trace_apply(core, &apply);
                let scheme = &self.spec.schemes[apply.scheme];
                let process = self.spec.processes.get(apply.target).copied();
                self.acting = Some(Acting::new(&apply, scheme, self.filter_order, process));
            }
            Step::Aggregated => self.aggregated(core),
            Step::Again | Step::Serve => {}
            // All processes have ended. The thread has as well, and nothing wakes it.
            Step::Ended => return ThreadStep::Wait(Wait::Woken),
        }
        ThreadStep::Again
    }
}
