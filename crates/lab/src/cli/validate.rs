//! Arguments of `pageout validate`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use super::options::{OutputOptions, ParallelOptions};

/// Arguments of `validate`.
#[derive(Debug, Args)]
pub(crate) struct ValidateArgs {
    /// The directory with the recorded runs
    #[arg(value_hint = ValueHint::DirPath)]
    pub(crate) dir: PathBuf,

    /// Only these runs, by id or pattern (`fr-*.classic.*`); all of them without any
    pub(crate) run: Vec<String>,

    /// A run known to fall short: it is shown, but is no failure. If it passes, that is one, so no list grows stale
    #[arg(long, value_name = "RUN")]
    pub(crate) expect_short: Vec<String>,

    /// How close is close enough; the directory's tolerances.toml if absent
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) tolerances: Option<PathBuf>,

    /// Leave these recorded inputs out, as if nobody had recorded them, so that the figures show what each is worth
    #[arg(long, value_name = "INPUT", value_delimiter = ',')]
    pub(crate) without: Vec<Input>,

    /// How often to simulate a run where something was not recorded, each time with another value of it, spread evenly; as often as its class says
    /// if absent
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(2..))]
    pub(crate) simulations: Option<u16>,

    /// Name the first access at which simulation and kernel part, and tell what the simulator did with a page that it is about
    #[arg(long)]
    pub(crate) first_difference: bool,

    /// Show every figure of the runs that pass, too
    #[arg(long, short)]
    pub(crate) verbose: bool,

    #[command(flatten)]
    pub(crate) parallel: ParallelOptions,

    #[command(flatten)]
    pub(crate) output: OutputOptions,
}

/// An input of a recorded run that can be left out, by the name of its field. Accesses, limits and settings can't be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Input {
    /// What the group held before the first access; `base_pages` are in its place
    #[value(name = "group_at_start")]
    GroupAtStart,
    /// The same as far as kinds of pages say it; what such runs mostly hold is in its place
    #[value(name = "base_pages")]
    BasePages,
    /// When statistics were flushed; every two seconds in their place
    #[value(name = "flushes")]
    Flushes,
    /// Which pages each fault mapped; all that are cached around it, and in no transfer, in their place
    #[value(name = "mapped_file")]
    MappedFile,
    /// Which agings walked the address space; nothing else ran within a call of reclaim in their place
    #[value(name = "agings")]
    Agings,
    /// When each access began; the ends of windows, evenly divided, in their place
    #[value(name = "access_times")]
    AccessTimes,
    /// What of a whole machine was free, and what was on its lists; kernel memory that lies dense, and memory of others by its amount alone, in
    /// its place
    #[value(name = "start_state")]
    StartState,
    /// Of `start_state`, where memory was free and what CPUs held; kernel memory that lies dense, and as much that is free, in its place
    #[value(name = "free_memory")]
    FreeMemory,
    /// Of `start_state`, what each CPU held of free memory, and how much it may hold; nothing, and as little as it begins with, in its place
    #[value(name = "per_cpu_lists")]
    PerCpuLists,
    /// Of `start_state`, on which lists or in which generations pages were, with `costs` and `tiers`; where their first touch brings them in its
    /// place
    #[value(name = "lru_lists")]
    LruLists,
    /// Of `start_state`, what waited in the add batches of CPUs; on its list, or in the youngest generation, in its place
    #[value(name = "add_batches")]
    AddBatches,
    /// Of `start_state`, what refaults of each tier have taught the generations; nothing in its place
    #[value(name = "tiers")]
    Tiers,
    /// Of `start_state`, what reclaiming each type has cost lately; nothing in its place
    #[value(name = "costs")]
    Costs,
    /// Of `start_state`, how long statistics say that lists are, and whether refaults have activated pages of files since the last call of reclaim;
    /// as long as they are, and none, in its place
    #[value(name = "statistics")]
    Statistics,
    /// Of `start_state`, when the statistics worker runs next; another time in each simulation in its place
    #[value(name = "statistics_due")]
    StatisticsDue,
    /// How long kswapd took to run each time that it was woken, by the trace of a whole machine; the same each time in its place
    #[value(name = "kswapd_wakes")]
    KswapdWakes,
    /// What the kernel took for itself and gave back, by the trace of a whole machine whose `start_state` is played; what the engine follows of it,
    /// nodes of indexes, page tables and buffers of readers, in its place
    #[value(name = "kernel_allocations")]
    KernelAllocations,
}

impl Input {
    /// Parts of `start_state`.
    pub(crate) const PARTS: &[Input] = &[
        Input::FreeMemory,
        Input::PerCpuLists,
        Input::LruLists,
        Input::AddBatches,
        Input::Tiers,
        Input::Costs,
        Input::Statistics,
        Input::StatisticsDue,
    ];

    /// The name of its field.
    pub(crate) fn field(self) -> String {
        self.to_possible_value().expect("none is hidden").get_name().to_string()
    }
}
