//! Options that several commands share: changes of a scenario, reading of traces, number of runs, reports.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use pageout_engine::{Lists, Version};
use pageout_sim::scenario::SEED_MAX;
use pageout_study::scenario::load::Changes;
use pageout_study::scenario::source::Setting;

pub(crate) use crate::print::options::OutputOptions;

/// The heading of the options that read traces.
const TRACE_HEADING: &str = "Trace format";

/// The heading of the options of custom policies.
pub(crate) const POLICY_HEADING: &str = "Custom policies";

/// Options of commands that run scenarios.
#[derive(Debug, Args)]
pub(crate) struct RunOptions {
    /// Change a key of the scenario; repeatable
    ///
    /// A name, path, index or * selects elements of a list: memcg./web.memory.max=64MiB, task.*.copies=2, swap.0.size=1GiB
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = parse_setting)]
    pub(crate) settings: Vec<Setting>,

    /// Kernel version, from 2.6.35 to 7.3
    ///
    /// 6.12 is the newest of its series. The same as --set kernel.version=VERSION
    #[arg(long, value_name = "VERSION", value_parser = parse_kernel)]
    pub(crate) kernel: Option<Setting>,

    /// Seed of all random choices [default: the scenario's]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(..=SEED_MAX))]
    pub(crate) seed: Option<u64>,

    #[command(flatten)]
    pub(crate) output: OutputOptions,
}

/// The number of parallel runs.
#[derive(Debug, Args)]
pub(crate) struct ParallelOptions {
    /// Parallel runs; 0 is one per CPU
    #[arg(long, short, value_name = "N", default_value_t = 0, allow_negative_numbers = true)]
    pub(crate) jobs: usize,
}

/// The default is one seed.
pub(crate) const ONE_SEED: bool = false;
/// The default is five seeds, which distinguish small effects from noise.
pub(crate) const FIVE_SEEDS: bool = true;

/// The number of seeds, with the default [`ONE_SEED`] or [`FIVE_SEEDS`].
#[derive(Debug, Args)]
pub(crate) struct RepeatOptions<const HAS_FIVE: bool> {
    /// Number of seeds, starting at the scenario's seed
    #[arg(long, value_name = "N", default_value = if HAS_FIVE { "5" } else { "1" }, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) repeat: u32,

    #[command(flatten)]
    pub(crate) parallel: ParallelOptions,
}

/// The selected variant of a scenario.
#[derive(Debug, Args)]
pub(crate) struct VariantOption {
    /// Variant of the scenario, a `[[variant]]`
    #[arg(long = "variant", value_name = "NAME")]
    pub(crate) name: Option<String>,
}

/// The report that a command writes in addition to its result.
#[derive(Debug, Args)]
pub(crate) struct PageOptions {
    /// Write an HTML report; FILE.svg has only its charts
    ///
    /// An existing file is replaced
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) report: Option<PathBuf>,
}

/// Options that define how a trace is read.
#[derive(Debug, Args)]
pub(crate) struct ReadingOptions {
    /// Trace format, if neither content nor name shows it
    ///
    /// See `pageout keys read.format`
    #[arg(long, value_name = "FORMAT", hide_short_help = true, help_heading = TRACE_HEADING)]
    pub(crate) trace_format: Option<String>,

    /// Make one page of each id, as many cache simulators do
    #[arg(long, hide_short_help = true, help_heading = TRACE_HEADING)]
    pub(crate) ignore_size: bool,

    /// Set an option of the trace reader; repeatable
    ///
    /// For example csv.offset=lba or csv.object=["host","disk"]; see `pageout keys read.`
    #[arg(long = "read", value_name = "KEY=VALUE", value_parser = parse_setting, hide_short_help = true, help_heading = TRACE_HEADING)]
    pub(crate) read: Vec<Setting>,
}

/// Parses a kernel version.
pub(crate) fn parse_version(text: &str) -> Result<Version, String> {
    Version::parse(text).ok_or_else(|| format!("unknown kernel version; {}", Version::KNOWN))
}

/// Parses the name of an LRU implementation.
pub(crate) fn parse_lists(text: &str) -> Result<Lists, String> {
    Lists::by_name(text).ok_or_else(|| "expected `classic` or `mglru`".to_string())
}

/// Parses `--kernel` as a setting of `kernel.version`.
fn parse_kernel(text: &str) -> Result<Setting, String> {
    let (key, value) = ("kernel.version".to_string(), parse_version(text)?.to_string());
    Ok(Setting { key, value, option: "--kernel", written_at: None })
}

impl RunOptions {
    /// The changes of a scenario.
    pub(crate) fn changes(&self) -> Changes {
        Changes { settings: self.all_settings().cloned().collect(), seed: self.seed }
    }

    /// All settings in the order in which they are applied: `--kernel` first.
    pub(crate) fn all_settings(&self) -> impl Iterator<Item = &Setting> {
        self.kernel.iter().chain(&self.settings)
    }
}

fn parse_setting(text: &str) -> Result<Setting, String> {
    text.parse()
}
