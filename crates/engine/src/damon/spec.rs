//! Kdamonds that a host adds next to the modules, and what each kdamond shows. [access-aware 3.1]

use crate::access::engine::Engine;
use crate::config::{ConfigError, check_range};
use crate::damon::DamonThread;
use crate::units::{MmId, Nanos, NodeId, TaskId};
use pageout_damon::modules::Stat;
use pageout_damon::{Action, Attrs, Metric, OpsFilter, Range, SchemeSpec, SchemeStats};

/// A kdamond with one context, as its directory in sysfs sets it.
#[derive(Clone, Debug, Default)]
pub struct KdamondSpec {
    /// The intervals and limits.
    pub attrs: Attrs,
    /// The processes that it monitors, each a target; none: physical memory.
    pub processes: Vec<MmId>,
    /// Ranges of physical addresses in order; empty: all memory.
    pub ranges: Vec<Range>,
    /// The schemes, in order.
    pub schemes: Vec<SchemeSpec>,
}

/// What a kdamond shows.
#[derive(Clone, Debug, Default)]
pub struct KdamondFigures {
    /// The task of its thread.
    pub task: Option<TaskId>,
    /// Processes that it monitors; none: it monitors physical memory.
    pub processes: Vec<MmId>,
    /// Ranges of addresses that it was given.
    pub ranges: Vec<Range>,
    /// The intervals and limits, as tuned.
    pub attrs: Attrs,
    /// Regions of the last window.
    pub regions: u64,
    /// Windows so far.
    pub windows: u64,
    /// The schemes, in order.
    pub schemes: Vec<SchemeFigures>,
    /// What DAMON_STAT shows; `None` with a scheme, or before the first window.
    pub stat: Option<Stat>,
}

/// What a scheme shows.
#[derive(Clone, Debug)]
pub struct SchemeFigures {
    /// Its settings.
    pub spec: SchemeSpec,
    /// What it has done.
    pub stats: SchemeStats,
    /// The size of its quota.
    pub effective_bytes: u64,
    /// The last value of each goal of its quota.
    pub goals: Vec<u64>,
    /// Bytes that it was tried on in its last application.
    pub tried_bytes: u64,
    /// Bytes that it was tried on before that.
    pub(super) tried_before: u64,
}

impl KdamondFigures {
    pub(super) fn new(spec: &KdamondSpec) -> KdamondFigures {
        let KdamondSpec { attrs, processes, ranges, schemes } = spec;
        let scheme = |spec: &SchemeSpec| SchemeFigures {
            spec: spec.clone(),
            stats: SchemeStats::default(),
            effective_bytes: 0,
            goals: spec.quota.goals.iter().map(|goal| goal.current_value).collect(),
            tried_bytes: 0,
            tried_before: 0,
        };
        let schemes = schemes.iter().map(scheme).collect();
        KdamondFigures {
            attrs: *attrs,
            processes: processes.clone(),
            ranges: ranges.clone(),
            schemes,
            ..KdamondFigures::default()
        }
    }

    /// Returns true if a goal of a scheme measures memory stalls, which only the host knows ([`Engine::set_memory_stall`]).
    pub fn needs_memory_stall(&self) -> bool {
        let mut goals = self.schemes.iter().flat_map(|scheme| &scheme.spec.quota.goals);
        goals.any(|goal| goal.metric == Metric::SomeMemPsiUs)
    }
}

impl Engine {
    /// Adds a kdamond. Its thread is started by the next [`Engine::start_kernel_threads`], and its number is the next one.
    ///
    /// # Errors
    /// If its attributes are invalid, if it names a node or a group that does not exist, or if a module of DAMON runs: that one is alone.
    pub fn kdamond_add(&mut self, spec: KdamondSpec) -> Result<(), ConfigError> {
        let config = &self.core.mm.config;
        if config.damon_reclaim || config.damon_lru_sort || config.damon_stat {
            return Err(ConfigError::Exists("a kdamond of a module of DAMON, which runs alone".to_owned()));
        }
        check_range("kdamonds", self.core.mm.damon.kdamonds.len() as u64 + 1, 1, 1 << 10)?;
        spec.attrs.check().map_err(|error| ConfigError::BadKdamond(error.to_string()))?;
        let memory = self.core.mm.system_ram();
        if let Some(range) =
            spec.ranges.iter().find(|range| !(memory.start..=memory.end).contains(&range.end))
        {
            return Err(ConfigError::BadKdamond(format!(
                "found physical addresses {} to {}, expected addresses from {} to {}, which is all memory",
                range.start, range.end, memory.start, memory.end
            )));
        }
        if !spec.processes.is_empty() && !spec.ranges.is_empty() {
            let what = "found ranges for processes, expected them for physical memory only";
            return Err(ConfigError::BadKdamond(what.to_owned()));
        }
        for scheme in &spec.schemes {
            self.check_scheme(scheme)?;
        }
        let number = self.core.mm.damon.kdamonds.len();
        let thread = DamonThread::new(&self.core.mm.config, number, spec.clone());
        self.core.mm.damon.kdamonds.push(KdamondFigures::new(&spec));
        self.core.threads_to_start.push(Box::new(thread));
        Ok(())
    }

    fn check_scheme(&self, scheme: &SchemeSpec) -> Result<(), ConfigError> {
        let node = |node: u8| match self.core.mm.memory.nodes().any(|known| known == NodeId(node)) {
            true => Ok(()),
            false => Err(ConfigError::Unknown(format!("node {node}"))),
        };
        let group = |memcg: u16| match self.core.mm.memcgs.contains(crate::units::MemcgId(memcg)) {
            true => Ok(()),
            false => Err(ConfigError::Unknown(format!("memcg {memcg}"))),
        };
        match scheme.action {
            Action::MigrateHot(to) | Action::MigrateCold(to) => node(to)?,
            Action::Stat | Action::Pageout | Action::Cold | Action::LruPrio | Action::LruDeprio => {}
        }
        for goal in &scheme.quota.goals {
            match goal.metric {
                Metric::NodeMemUsedBp(of) | Metric::NodeMemFreeBp(of) => node(of)?,
                Metric::NodeMemcgUsedBp(of, memcg) | Metric::NodeMemcgFreeBp(of, memcg) => {
                    node(of)?;
                    group(memcg)?;
                }
                Metric::UserInput | Metric::SomeMemPsiUs | Metric::ActiveMemBp | Metric::InactiveMemBp => {}
            }
        }
        scheme.ops_filters.iter().try_for_each(|filter| match filter.kind {
            OpsFilter::Memcg(memcg) => group(memcg),
            _ => Ok(()),
        })
    }

    /// What each kdamond shows, by its number.
    pub fn kdamonds(&self) -> &[KdamondFigures] {
        &self.core.mm.damon.kdamonds
    }

    /// Sets for how long some task of the machine was stalled on memory so far. Goals of schemes measure it.
    pub fn set_memory_stall(&mut self, some: Nanos) {
        self.core.mm.damon.stalled = some;
    }
}
