//! The scenario, which is what is to be simulated as plain data: machine, kernel, sysctls, cgroups, devices, files, tasks and events.
//!
//! ```text
//!   scenario.toml ──(lab: file, spans, --set)──▶ Scenario ──validate()──▶ problems, each with its key
//!                                                   └──────build──────▶ engine configuration + simulated machine
//! ```
//!
//! A scenario holds no behaviour and no defaults that depend on anything but itself, so two equal scenarios with equal seeds are the same run.
//! Reading files, line numbers and "did you mean" belong to the caller. This module reports *which key* is wrong and its allowed values
//! ([`Problem`]). [`keys`] documents every key (meaning, unit, range, default, why). The checks read their ranges from it, so text and check can't
//! drift apart.
//!
//! ```toml
//! question = "Does a hot set survive a scan twice the size of memory?"
//!
//! [machine]
//! memory = "256MiB"
//!
//! [[memcg]]
//! path = "/web"
//! memory.max = "64MiB"
//!
//! [[task]]
//! name = "reader"
//! memcg = "/web"
//!
//! [[task.object]]
//! channel = "file"
//! size = "128MiB"
//! workload = { pattern = "zipf", alpha = 0.99, ops = 200_000 }
//! ```

use std::collections::BTreeSet;

mod quantity; // quantities as people write them: sizes, durations, bandwidths, shares
mod knobs; // settings under dotted kernel names
mod foreign; // tables that another crate defines: access patterns, trace options
mod section; // how a table is declared: fields, defaults, rows of the reference and checks in one place
mod scale; // the same machine with pages that stand for half as many

mod machine; // [machine] and [kernel]
mod memcg; // [[memcg]]
mod storage; // [[device]], [[swap]], [[file]]
mod task; // [[task]] and [[task.object]]
mod damon; // [[damon]], its schemes
mod compressed; // how well pages compress
mod condition; // what a kernel file has to show for an event to happen
mod event; // [[event]], and the kernel files an event may name
mod expect; // [[variant]] and [[expect]]

/// The reference of all keys, and what each accepts.
pub mod keys;
mod files; // what objects refer to by name, and how large objects are
mod read_ahead; // which files are read ahead, and how far
mod validate; // checks that need more than one key at a time, or a range

mod measure; // what percentages of a limit are percentages of
mod visits; // from a session to when each copy makes its accesses
mod room; // whether anything can run in a machine's memory
mod streams; // from a task's workloads and traces to its stream of accesses
mod populate; // memory that is there before a run begins
mod build; // from a scenario to a machine that is ready to run it

use keys::{Accepts, TIME_MAX, sysctl_keys};
use pageout_workload::rng::SplitMix64;
use section::section;

pub use compressed::{CONTENTS, Contents, Deciles};
pub(crate) use condition::figure;
pub use condition::{Bound, Condition, ConditionError, Order};
pub use damon::{Damon, DamonState, Scheme, SchemeAction};
pub use event::{Event, KernelFile, PageAdvice};
pub use expect::{Expect, Relation, RelationError, Sign, Term, Variant};
pub use files::Files;
pub use foreign::{Table, TableError};
pub use knobs::{Knobs, Scalar};
pub use machine::{Hints, Kernel, Machine, MemoryFigure, Migration, Node, OomRule};
pub use measure::Percentage;
pub use memcg::Memcg;
pub use quantity::{Bandwidth, PAGE_SIZE, QuantityError, Share, Size, TimeSpan};
pub use scale::Scale;
pub use section::Section;
pub use storage::{Device, File, FileKind, PresetFigure, Swap, SwapKind, TmpfsHuge};
pub use task::{
    Advice, CallsFile, Channel, FirstThread, Lifetime, Object, OpenedBy, Session, Task, TraceFile,
};
pub use validate::Problem;

/// Name of the device that files and swap live on when a scenario lists none.
pub const DEFAULT_DEVICE: &str = "nvme";

/// The largest seed: the largest whole number that a scenario file can hold.
pub const SEED_MAX: u64 = i64::MAX as u64;

section! {
    /// One scenario. Every part but the tasks has a default that is worth simulating.
    pub struct Scenario {
        question: String, [default String::new()] in Accepts::Text => Same,
            "The question that the scenario answers; printed above the result.";
        look_at: String, [unless String::new()] in Accepts::Text => Same,
            "What to look at in the result; printed below it.";
        seed: u64, [default 1] in Accepts::Integer(0, SEED_MAX as i64) => Same,
            "Seed of every random choice. The same scenario with the same seed gives the same bytes. The default is fixed, so that a run without a seed is repeatable, too.";
        until: Option<TimeSpan>, [absent "when the last task is done"] in Accepts::Time(1, TIME_MAX) => Same,
            "Simulated time at which the run ends even if tasks still run. Needed if every task is in the background or a workload has no end.";
        machine: Machine, [default Machine::default()] table Machine,
            "CPUs, memory, costs.";
        kernel: Kernel, [default Kernel::default()] table Kernel,
            "The kernel's rules: a profile or version, and single switches on top of it.";
        sysctl: Knobs, [default Knobs::default()] knobs sysctl_keys,
            "Sysctls under the kernel's names, such as `vm.swappiness`.";
        memcg: Vec<Memcg>, [unless Vec::new()] each Memcg,
            "Memory cgroups. Parents that are not listed exist, without limits.";
        device: Vec<Device>, [unless Vec::new()] each Device,
            "Block devices. Without any, there is one `nvme`.";
        swap: Vec<Swap>, [unless Vec::new()] each Swap,
            "Swap areas. Without any, there is no swap.";
        file: Vec<File>, [unless Vec::new()] each File,
            "Files that several objects share. An object of its own size needs no entry here.";
        damon: Vec<Damon>, [unless Vec::new()] each Damon,
            "Kdamonds: threads that monitor accesses and apply schemes.";
        task: Vec<Task>, [required] each Task,
            "What runs.";
        event: Vec<Event>, [unless Vec::new()] each Event,
            "What is written or read during the run.";
        variant: Vec<Variant>, [unless Vec::new()] each Variant,
            "The variants that `compare` compares.";
        expect: Vec<Expect>, [unless Vec::new()] each Expect,
            "Expected relations between figures of the result.";
    }
}

impl Scenario {
    /// The seed of all that a task draws.
    fn task_seed(&self, index: usize) -> u64 {
        SplitMix64::derive_seed(self.seed, index as u64)
    }

    /// The files that objects refer to, to be looked up by name.
    pub fn files(&self) -> Files<'_> {
        Files::of(&self.file)
    }

    /// Returns true if NUMA balancing is to promote pages of slow memory.
    pub fn balances_tiers(&self) -> bool {
        self.balancing().is_some_and(|bits| bits & 2 != 0)
    }

    /// Returns true if NUMA balancing has nothing else to do.
    pub(crate) fn balances_tiers_only(&self) -> bool {
        self.balancing() == Some(2)
    }

    fn balancing(&self) -> Option<u8> {
        self.sysctl.get("kernel.numa_balancing")?.to_string().parse().ok()
    }

    /// Paths of all cgroups, including those that only exist as parents; the root is `/`. If there are more than a machine can have, only enough to
    /// show that.
    pub fn memcg_paths(&self) -> Vec<String> {
        let mut paths = vec!["/".to_string()];
        let mut known = BTreeSet::from(["/"]);
        let named = self.memcg.iter().filter(|memcg| memcg.path.len() <= memcg::PATH_MAX);
        for memcg in named {
            if paths.len() > memcg::GROUPS_MAX {
                break;
            }
            let parents = memcg.path.match_indices('/').skip(1).map(|(at, _)| &memcg.path[..at]);
            for path in parents.chain([memcg.path.as_str()]) {
                if known.insert(path) {
                    paths.push(path.to_string());
                }
            }
        }
        paths
    }
}
