//! Options that commands share: how a scenario is changed, how a trace is read, where results go.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use pageout_engine::{Lists, Version};
use pageout_sim::scenario::SEED_MAX;
use pageout_sim::scenario::Scenario;
use pageout_study::scenario::load::{self, Changes};
use pageout_study::scenario::own_variants;
use pageout_study::scenario::source::{Setting, Source};
use pageout_study::{Error, Watcher};
use pageout_workload::trace::Format;

pub(crate) use crate::print::options::OutputOptions;

/// Options of everything that runs scenarios.
#[derive(Debug, Args)]
pub(crate) struct RunOptions {
    /// Change one key of the scenario; may be given several times
    ///
    /// Elements of lists are named by their name, a cgroup's path, their number from 0, or * for all:
    /// memcg./web.memory.max=64MiB, task.reader.think_time=1us, task.*.copies=2, swap.0.size=1GiB. The value is read as
    /// TOML, or as a text if it is no TOML. So sizes and durations need no quotes.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = parse_setting)]
    pub(crate) settings: Vec<Setting>,

    /// The kernel's version, 2.6.35 to 7.3: 6.12.117, or 6.12 for the newest of a series. The same as --set kernel.version=...
    #[arg(long, value_name = "VERSION", value_parser = parse_kernel)]
    pub(crate) kernel: Option<Setting>,

    /// Seed of every random choice, instead of the scenario's
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(..=SEED_MAX))]
    pub(crate) seed: Option<u64>,

    #[command(flatten)]
    pub(crate) output: OutputOptions,
}

/// How many runs go on at a time.
#[derive(Debug, Args)]
pub(crate) struct ParallelOptions {
    /// Runs at the same time; 0 is one for each CPU
    #[arg(long, short, value_name = "N", default_value_t = 0, allow_negative_numbers = true)]
    pub(crate) jobs: usize,
}

/// Unless another number is asked for, everything runs with one seed.
pub(crate) const ONE_SEED: bool = false;
/// Unless another number is asked for, everything runs with five seeds: small effects are told from noise.
pub(crate) const FIVE_SEEDS: bool = true;

/// With how many seeds everything runs: [`ONE_SEED`] or [`FIVE_SEEDS`].
#[derive(Debug, Args)]
pub(crate) struct RepeatOptions<const HAS_FIVE: bool> {
    /// Run everything with so many seeds, counted up from the scenario's
    #[arg(long, value_name = "N", default_value = if HAS_FIVE { "5" } else { "1" }, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) repeat: u32,

    #[command(flatten)]
    pub(crate) parallel: ParallelOptions,
}

/// The variant of a scenario that is meant.
#[derive(Debug, Args)]
pub(crate) struct VariantOption {
    /// Take this variant of the scenario, one of its `[[variant]]`
    #[arg(long = "variant", value_name = "NAME")]
    pub(crate) name: Option<String>,
}

/// The page that a result may be written to as well.
#[derive(Debug, Args)]
pub(crate) struct PageOptions {
    /// Write the result as a page with pictures, too: one HTML file that needs no network. FILE.svg has its curves and bars alone, for a paper. A file
    /// of that name is replaced
    #[arg(long, value_name = "FILE.html|.svg", value_hint = ValueHint::FilePath)]
    pub(crate) report: Option<PathBuf>,
}

/// How a trace is to be read.
#[derive(Debug, Args)]
pub(crate) struct ReadingOptions {
    /// The trace's format, when neither content nor name tell it
    #[arg(long, value_name = "FORMAT", long_help = format!("The trace's format, when neither content nor name tell it\n\n{}", Format::LIST))]
    pub(crate) trace_format: Option<String>,

    /// One id is one page, whatever its size, as cache simulators often have it
    #[arg(long)]
    pub(crate) ignore_size: bool,

    /// More options of the trace reader, as in a scenario's `read` table: csv.offset=lba, csv.offset_unit=512, csv.delimiter=tab
    ///
    /// csv.object=["host","disk"] names the columns that keep pages apart, csv.object=[] none. csv.op_read, csv.op_write, csv.op_delete and csv.op_skip
    /// name operations by their values, csv.skip_unknown_ops=true skips the others; csv.count is a column that multiplies. `pageout keys read.` lists all.
    #[arg(long = "read", value_name = "KEY=VALUE", value_parser = parse_setting)]
    pub(crate) read: Vec<Setting>,
}

/// A version of the kernel.
pub(crate) fn parse_version(text: &str) -> Result<Version, String> {
    Version::parse(text)
        .ok_or_else(|| format!("`{text}` is no version of the kernel known here; {}", Version::KNOWN))
}

/// The word for a kind of lists.
pub(crate) fn parse_lists(text: &str) -> Result<Lists, String> {
    Lists::by_name(text).ok_or_else(|| format!("`{text}` is neither `classic` nor `mglru`"))
}

/// `--kernel` as the setting that it stands for.
fn parse_kernel(text: &str) -> Result<Setting, String> {
    let (key, value) = ("kernel.version".to_string(), parse_version(text)?.to_string());
    Ok(Setting { key, value, option: "--kernel", written_at: None })
}

/// The scenario of a file with all options applied, ready to be built.
pub(crate) fn load(
    source: &Source,
    options: &RunOptions,
    more: &[Setting],
    watcher: &dyn Watcher,
) -> Result<Scenario, Error> {
    load::load(source, &options.changes(), more, watcher)
}

impl VariantOption {
    /// The variant of a scenario, with `more` settings on top of its own; the scenario as it is where none is asked for.
    pub(crate) fn of(
        &self,
        source: &Source,
        options: &RunOptions,
        scenario: Scenario,
        more: &[Setting],
        watcher: &dyn Watcher,
    ) -> Result<Scenario, Error> {
        let Some(name) = &self.name else { return Ok(scenario) };
        own_variants::one(source, &options.changes(), &scenario, name, more, watcher)
    }
}

impl RunOptions {
    /// What they change in a scenario.
    pub(crate) fn changes(&self) -> Changes {
        Changes { settings: self.all_settings().cloned().collect(), seed: self.seed }
    }

    /// All settings, in the order in which they are made: the kernel first.
    pub(crate) fn all_settings(&self) -> impl Iterator<Item = &Setting> {
        self.kernel.iter().chain(&self.settings)
    }
}

fn parse_setting(text: &str) -> Result<Setting, String> {
    text.parse()
}
