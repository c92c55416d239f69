//! kdamond.0: the thread that runs the kdamond of a module. [access-aware 1.2]

use super::action::Acting;
use super::module;
use super::paddr::Paddr;
use crate::config::Config;
use crate::core::Core;
use crate::kthread::{KernelThread, ThreadStep};
use crate::machine::step::{DelayReason, Wait};
use crate::units::{Nanos, TaskId};
use pageout_damon::{Attrs, Kdamond, SchemeSpec, Step, modules};

/// The first random number: the same in each run, as a scenario's seed chooses accesses.
const SEED: u64 = 0xda30;

/// The thread of a kdamond.
#[doc(alias = "kdamond_fn")]
pub(crate) struct DamonThread {
    kdamond: Kdamond,
    schemes: Vec<SchemeSpec>,
    acting: Option<Acting>,
}

impl DamonThread {
    /// The thread of the enabled module; `None` if no module is enabled.
    pub(crate) fn of_module(config: &Config) -> Option<DamonThread> {
        let (attrs, schemes) = module::of(config)?;
        Some(DamonThread::new(config, attrs, schemes))
    }

    fn new(config: &Config, attrs: Attrs, schemes: Vec<SchemeSpec>) -> DamonThread {
        let rules = module::rules(&config.policy.machine.damon);
        let jiffy = Nanos::from_ticks(1, config.hz).0;
        let kdamond = Kdamond::new(attrs, rules, SEED, jiffy)
            .expect("a configuration was checked, and the rest are constants");
        DamonThread { kdamond, schemes, acting: None }
    }

    /// Shows what a window or an action has changed.
    fn publish(&self, core: &mut Core) {
        let damon = &mut core.mm.damon;
        damon.regions = self.kdamond.regions() as u64;
        damon.aggr_us = self.kdamond.attrs().aggr_us;
        damon.schemes = self.kdamond.schemes().iter().map(|scheme| scheme.stats).collect();
        if self.schemes.is_empty() {
            damon.stat = Some(modules::stat(self.kdamond.targets(), self.kdamond.attrs(), true));
        }
    }
}

impl KernelThread for DamonThread {
    fn name(&self) -> String {
        "kdamond.0".to_owned()
    }

    fn first_wait(&self) -> Wait {
        Wait::WokenOr(Nanos::ZERO, DelayReason::Nap)
    }

    fn started(&mut self, core: &mut Core, _: TaskId) {
        let memory = core.mm.system_ram();
        self.kdamond.add_target(std::slice::from_ref(&memory), false);
        self.schemes.iter().for_each(|scheme| self.kdamond.add_scheme(scheme.clone()));
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
        let step = self.kdamond.step(&mut Paddr { core }, &mut history, now_ns);
        core.mm.damon.history = history;
        match step {
            Step::Sleep(ns) => return ThreadStep::Wait(Wait::WokenOr(Nanos(ns), DelayReason::Nap)),
            Step::Apply(apply) => {
                let spec = &self.schemes[apply.scheme];
                self.acting = Some(Acting::new(&apply, spec.action, &spec.ops_filters));
            }
            Step::Aggregated => self.publish(core),
            Step::Again | Step::Serve => {}
            Step::Ended => unreachable!("physical memory always exists"),
        }
        ThreadStep::Again
    }
}
