//! The command line: what can be asked for, and the help that teaches it.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use pageout_sim::scenario::{SEED_MAX, Size, TimeSpan};

use crate::result::timeline::DEFAULT_COLUMNS;
use crate::scenario::source::Setting;
use crate::scenario::switches::Wanted;
use crate::scenario::traces::TRACE_MEMORY;

const EXIT_CODES: &str = "\
Exit codes:
  0  done, and the result is complete
  1  the simulated workload failed: out of memory, an I/O error, a page beyond the file
  2  the input is no good: the command line, a scenario, a trace, a dump, a recording
  3  the result could not be written: disk full, no permission
  4  the result is not what the scenario expects, or not what the real kernel did (validate)
Of several runs that fail, one with bad input makes it 2.
A reader that goes away early (`pageout ... | head`) is no error.";

/// Which program this is: figures of speed mean nothing without its profile, nor bug reports without its commit.
const VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (profile ",
    env!("PAGEOUT_PROFILE"),
    ", commit ",
    env!("PAGEOUT_COMMIT"),
    ")"
);

/// Linux page reclaim, out of the kernel.
///
/// Plays the kernel's reclaim rules (the LRU lists, direct reclaim, refaults, cgroup limits, swap) on a simulated machine
/// of any shape: deterministic, observable, in seconds. Results carry the kernel's own counter names.
#[derive(Debug, Parser)]
#[command(
    name = "pageout",
    version = VERSION,
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true
)]
#[command(
    after_help = "Start with:\n  pageout run scenarios/zipf-under-limit.toml\n  pageout replay mytrace.csv --memory 10%,30%,50%\n  pageout keys                          what a scenario may contain\n\nMore, with examples: pageout help COMMAND"
)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a scenario and summarise what happened.
    ///
    /// A scenario is a TOML file: machine, kernel settings, cgroups, devices, tasks, timed events. `pageout keys` lists
    /// everything that it may contain. The files in scenarios/ are examples, each with the question it answers.
    #[command(after_long_help = RUN_EXAMPLES)]
    Run(RunArgs),

    /// Run variants of a scenario side by side.
    ///
    /// Every --vary gives one key several values. Each combination is a column, and the first is the base. The others are
    /// compared with it in percent, as kernel cover letters do, or in percentage points (pp) where figures are percentages.
    /// Variants run in parallel; results do not depend on that.
    ///
    /// Copies of a task count as one. Their accesses, misses and throughput are added up; runtime, time in direct reclaim and
    /// waiting are means.
    ///
    /// Without --vary the scenario's own variants (`[[variant]]`) are run, and its expectations (`[[expect]]`) are checked.
    #[command(after_long_help = COMPARE_EXAMPLES)]
    Compare(CompareArgs),

    /// Turn every mechanism of the reclaim policy alone, and say what that changes.
    ///
    /// A policy is a set of switches in four seams: harvest (how accessed bits are found), lru (which lists, who is next),
    /// workingset (what a refault means), balance (anonymous against file memory). The scenario runs as it is, and once more
    /// for every other value of every switch, each with several seeds. The table has a line for each value. A mechanism that
    /// can be turned off without harm has not earned its place in this scenario. It may in another, or in this one with more
    /// memory: --over shows for which values of a key an effect keeps its sign.
    ///
    /// "Looked at" counts every page that reclaim takes into its hands or sorts. pgscan counts fewer: it leaves out active
    /// pages, and under generations pages that are only sorted.
    #[command(after_long_help = ABLATE_EXAMPLES)]
    Ablate(AblateArgs),

    /// Exchange the mechanisms of classic reclaim and MGLRU in all 32 combinations.
    ///
    /// Two lists or generations; accessed bits by the reverse map alone, by page-table walks, with a Bloom filter, with
    /// look-around; refaults by distance or by the oldest generation; types balanced by cost or by feedback. Each cell is
    /// compared with both natural corners. Below that is what one step at one seam does alone: as the first step away from
    /// classic, and as the last step to MGLRU. Last comes the interaction: what the four do together beyond the sum of each
    /// alone.
    #[command(after_long_help = CROSSOVER_EXAMPLES)]
    Crossover(CrossoverArgs),

    /// Replay a trace against memory of one or several sizes, without a scenario file.
    ///
    /// Prints miss ratio, runtime, device reads and refaults for each size, and for several sizes the curve.
    #[command(after_long_help = REPLAY_EXAMPLES)]
    Replay(ReplayArgs),

    /// Why a page is where it is: step by step, with the rule that decided and the numbers it compared.
    ///
    /// Tells of one page (--page), or of the last evictions (--evictions). Runs are deterministic. So the scenario is run
    /// again, and what happens to these pages is noted. Memory does not grow with the run, and asking changes no result.
    #[command(after_long_help = EXPLAIN_EXAMPLES)]
    Explain(ExplainArgs),

    /// Check the simulator against counters recorded on a real kernel.
    Validate(ValidateArgs),

    /// What machines have in use, from their dumps of /sys/kernel/debug/lru_gen, and where a new job would fit.
    ///
    /// A generation says between which two moments the use of its pages was last seen. So the memory in use within a window
    /// has a lower and an upper bound. Both are printed, or one figure when they agree, by type and by cgroup (its own pages,
    /// without those of its children). Idle is the rest. Several dumps of a machine show where it is heading; the latest one
    /// counts.
    ///
    /// Use since the last aging is not counted, nor is use by read(2): it makes no page younger, so such files look idle.
    /// Dumps of Linux 6.12 to 6.16 are read, lru_gen or lru_gen_full. One file that is no whole dump is an error for all,
    /// unless --skip-bad leaves it out. But a dump has no end mark: whole rows that are missing at its end are not noticed.
    #[command(after_long_help = WORKING_SET_EXAMPLES)]
    WorkingSet(WorkingSetArgs),

    /// Who reclaimed on a real kernel, how long tasks were stalled by it, and why: from the text of a trace.
    ///
    /// Reads events of vmscan as /sys/kernel/tracing/trace and `trace-cmd report` print them, from the kernel of 2010 to today's:
    /// a file, one compressed with zstd, standard input (-), or a trace.dat, if trace-cmd is installed. Of each task it tells calls
    /// of direct reclaim and at a cgroup's limit, how long they took, pages scanned, reclaimed and written; the same of kswapd;
    /// then the longest calls with what took the time, and the rows of the kernel's own trace-vmscan-postprocess. Several traces
    /// stand side by side.
    ///
    /// The trace is read once, in constant memory. Lines that cannot be read are counted by reason.
    #[command(after_long_help = VMSCAN_REPORT_EXAMPLES)]
    VmscanReport(VmscanReportArgs),

    /// Look into traces, and convert them.
    #[command(subcommand)]
    Trace(TraceCommand),

    /// The reference of all keys a scenario may contain: meaning, unit, range, default, and why that default.
    #[command(
        after_long_help = "Examples:\n  pageout keys                    all keys\n  pageout keys memory.high        those whose name contains this\n  pageout keys device --json"
    )]
    Keys(KeysArgs),

    /// Print shell completions.
    #[command(
        after_long_help = "Examples:\n  pageout completions bash > ~/.local/share/bash-completion/completions/pageout\n  pageout completions zsh > \"${fpath[1]}/_pageout\"\n  pageout completions fish > ~/.config/fish/completions/pageout.fish"
    )]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },

    /// Print the manual page (for packagers).
    #[command(hide = true)]
    Man,
}

const RUN_EXAMPLES: &str = "\
Examples:
  pageout run scenarios/zipf-under-limit.toml
  pageout run web.toml --set memcg./web.memory.max=64MiB
  pageout run web.toml --set sysctl.vm.swappiness=10 --set task.reader.object.0.workload.alpha=0.8
  pageout run web.toml --set 'task.*.think_time=1us' --seed 7
  pageout run web.toml --json | jq .memcgs[0].counters.workingset_refault_file
  pageout run web.toml --report web.html   the same with pictures, to look at in a browser
  pageout run web.toml --check             only check the file";

const COMPARE_EXAMPLES: &str = "\
Examples:
  pageout compare web.toml --vary kernel.profile=classic@6.12,lru
  pageout compare web.toml --vary memcg./web.memory.max=64MiB,128MiB,256MiB
  pageout compare web.toml --vary sysctl.vm.swappiness=0,60,200 --vary swap.0.kind=disk,zram
  pageout compare web.toml --vary kernel.memcg.stat_flush=periodic,live --repeat 5
  pageout compare scenarios/regressions/m12-idle-memory-out-of-reach.toml
With --repeat N every variant runs with N seeds; a value is then mean ± standard deviation. Runs are compared seed by seed:
a difference is marked `~` if the 95 % confidence interval of its mean contains 0, so that it may be noise. One seed has no marks.";

const ABLATE_EXAMPLES: &str = "\
Examples:
  pageout ablate web.toml                                           all switches of the scenario's profile
  pageout ablate web.toml --set kernel.profile=mglru@6.12
  pageout ablate web.toml --switch harvest.bloom_filter --switch balance
  pageout ablate web.toml --switch lru.generations=2,3,8,16 --repeat 20
  pageout ablate scenarios/zipf-under-limit.toml --switch balance --switch lru.tiers --repeat 3 \
      --set kernel.profile=mglru@6.12 --over memcg./web.memory.max=10%,25%,50%
  pageout ablate web.toml --json | jq '.variants[] | {switch, value, e: .effects.throughput.difference_percent}'
  pageout keys kernel.lru                                           what the switches of a seam do
Runs are compared seed by seed. An effect is marked `~` if the 95 % confidence interval of its mean contains 0: it may be
noise. More seeds (--repeat) narrow it. A value with which the scenario fails is shown as failed, and the exit code is 1.";

const CROSSOVER_EXAMPLES: &str = "\
Examples:
  pageout crossover web.toml
  pageout crossover web.toml --set kernel.lru.executable_protection=false --repeat 10
  pageout crossover web.toml --all                                  all figures, also those that reclaim costs
  pageout crossover scenarios/zipf-under-limit.toml --repeat 3 --over memcg./web.memory.max=10%,25%,50%
  pageout crossover web.toml --json | jq '.cells[] | select(.corner == null) | .against_classic.pages_read'
Two lists have no oldest generation. There `oldest_generation` means that refaults are only counted.";

const REPLAY_EXAMPLES: &str = "\
Examples:
  pageout replay w92.oracleGeneral.zst --memory 30%
  pageout replay io.csv --memory 5%,10%,20%,40%,80%
  pageout replay prxy_0.csv --format msr --memory 10%,30%
  pageout replay pages.u32 --memory 64MiB --channel anonymous --swap zram
  pageout replay w92.oracleGeneral.zst --ignore-size --memory 512pages,8192pages --policy lru
A percentage is of the distinct pages that the trace touches, as in a scenario. The replaying task runs in a cgroup, and
memory is the limit of that cgroup (memory.max).";

const EXPLAIN_EXAMPLES: &str = "\
FILE:PAGE is a page of a [[file]]. TASK/OBJECT:PAGE is a page of a task's object, such as server/0:17.
Objects are numbered in the order of the scenario. Copies of a task are TASK.0, TASK.1 ...
Objects and pages are counted from 0.

Examples:
  pageout explain scenarios/scan-and-hot-set.toml --page server/0:17
  pageout explain scenarios/scan-and-hot-set.toml --evictions 3 --memcg /host
  pageout explain web.toml --page data.db:1024 --set kernel.profile=mglru@6.12
  pageout explain web.toml --evictions 100 --json | jq '.pages[] | .page'";

const WORKING_SET_EXAMPLES: &str = "\
A file's name names its machine: web1@2026-11-22T10:00.lru_gen is one of several dumps of web1,
in the order of their names (9:00 is before 10:00); web1.lru_gen is of web1, too. Files of different
names are different machines. Only if the name is the kernel's own or a time, the directory names the
machine: web1/lru_gen, web1/10:00.lru_gen. In a directory all files are read.

Examples:
  ssh web1 cat /sys/kernel/debug/lru_gen > web1@$(date +%FT%T).lru_gen
  pageout working-set web1@*.lru_gen
  pageout working-set fleet/*.lru_gen --within 5m --json | jq '.machines[].total.in_use'
  pageout working-set fleet --memory 16GiB --skip-bad
  pageout working-set fleet --job 4GiB --memory 16GiB,db1=64GiB --reserve 5%
  cat /sys/kernel/debug/lru_gen | pageout working-set -
Generations are only as young as the last aging. For a window of 2 minutes let each group age every
minute; if it ages more often, the oldest of its four generations is within the window, and that one
also holds everything older.";

const VMSCAN_REPORT_EXAMPLES: &str = "\
Examples:
  pageout vmscan-report ground-truth/ftrace/ft-global.classic.t.txt.zst
  pageout vmscan-report ground-truth/ftrace/ft-global.mglru.t.txt.zst --report reclaim.html
  pageout vmscan-report before.txt after.txt.zst --cpu-time 2818.5,2821.9
  pageout vmscan-report trace.txt --json | jq '.traces[0].longest_calls[0]'
  trace-cmd report | pageout vmscan-report -
Record a trace, as root:
  cd /sys/kernel/tracing; echo 1 > events/vmscan/enable; cat trace_pipe > /var/tmp/trace.txt
A call's time is from its begin to its end, so it contains waiting for the CPU. Percentages of the seed of 2010:
direct reclaim's share of user + system + stalled time (say --cpu-time), and kswapd's of the elapsed time.
Exit code 2 with a report: lines were skipped, so the figures are not all there is.";

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

    /// Seed of every random choice, instead of the scenario's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=SEED_MAX))]
    pub(crate) seed: Option<u64>,

    #[command(flatten)]
    pub(crate) output: OutputOptions,
}

/// Options of everything that prints results.
#[derive(Debug, Args)]
pub(crate) struct OutputOptions {
    /// Print the result as JSON, with everything in it; if the workload fails, with `complete` false and the `error`
    #[arg(long)]
    pub(crate) json: bool,

    /// Show no progress; without a terminal on stderr none is shown anyway
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// The page that a result may be written to as well.
#[derive(Debug, Args)]
pub(crate) struct PageOptions {
    /// Write the result as a page with pictures, too: one HTML file that needs no network. A file of that name is replaced
    #[arg(long, value_name = "FILE.html", value_hint = ValueHint::FilePath)]
    pub(crate) report: Option<PathBuf>,
}

/// Arguments of `run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The scenario file
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) scenario: PathBuf,

    #[command(flatten)]
    pub(crate) options: RunOptions,

    /// Run this variant of the scenario, one of its `[[variant]]`
    #[arg(long, value_name = "NAME")]
    pub(crate) variant: Option<String>,

    /// Only check the scenario and that its traces can be opened, run nothing
    #[arg(long)]
    pub(crate) check: bool,

    /// Write figures over time, a row every 10 ms of simulated time, for plotting: FILE.csv, FILE.jsonl, or `-` for a table on
    /// standard output, the summary then going to standard error
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) timeline: Option<PathBuf>,

    /// Simulated time between two rows of --timeline
    #[arg(long, value_name = "TIME", default_value = "10ms", requires = "timeline")]
    pub(crate) timeline_every: TimeSpan,

    /// What the rows of --timeline show, separated by commas
    ///
    /// Names of /proc/vmstat (nr_free_pages, pgscan_kswapd, ...), accesses, pressure.memory.some and its like (microseconds in all);
    /// of a cgroup, /web:memory.current (bytes), /web:pressure.io.full or a live counter in pages, /web:nr_active_file; of a task,
    /// task.NAME.accesses, misses, cpu_ns, cpu_wait_ns, io_wait_ns, reclaim_ns; of a kernel thread, thread.kswapd0.cpu_ns.
    #[arg(long, value_name = "COLUMNS", default_value = DEFAULT_COLUMNS, hide_default_value = true, requires = "timeline")]
    pub(crate) timeline_columns: String,

    #[command(flatten)]
    pub(crate) page: PageOptions,
}

/// Arguments of `explain`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("question").required(true).args(["page", "evictions"]))]
pub(crate) struct ExplainArgs {
    /// The scenario file
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) scenario: PathBuf,

    /// The page to tell of: FILE:PAGE, or TASK/OBJECT:PAGE
    #[arg(long, value_name = "PAGE")]
    pub(crate) page: Option<String>,

    /// Tell of the last N evictions, each from the page's last read to its end
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) evictions: Option<u32>,

    /// Only evictions from this cgroup and those below it
    #[arg(long, value_name = "PATH", requires = "evictions", conflicts_with = "page")]
    pub(crate) memcg: Option<String>,

    /// Show so many steps of a page from its beginning, and so many up to its end
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) steps: u32,

    #[command(flatten)]
    pub(crate) options: RunOptions,
}

/// Arguments of `compare`.
#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// The scenario file
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) scenario: PathBuf,

    /// A key and its values, separated by commas; may be given several times, and then all combinations are run. Without
    /// it the scenario's own variants are
    #[arg(long, value_name = "KEY=A,B[,C]", value_parser = parse_variation)]
    pub(crate) vary: Vec<Variation>,

    /// Run every variant with so many seeds, counted up from the scenario's
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) repeat: u32,

    /// Runs at the same time; 0 is one for each CPU
    #[arg(long, short, value_name = "N", default_value_t = 0)]
    pub(crate) jobs: usize,

    /// Print every counter, not only those that tell a story
    #[arg(long)]
    pub(crate) all: bool,

    #[command(flatten)]
    pub(crate) options: RunOptions,

    #[command(flatten)]
    pub(crate) page: PageOptions,
}

/// Arguments of `ablate`.
#[derive(Debug, Args)]
pub(crate) struct AblateArgs {
    /// The scenario file
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) scenario: PathBuf,

    /// Turn only this switch, or those of this seam; may be given several times
    ///
    /// harvest.bloom_filter turns it the other way, lru.generations=2,8 tries these values, balance is a whole seam.
    /// `pageout keys kernel.` lists all switches.
    #[arg(long = "switch", value_name = "NAME[=VALUE,..]")]
    pub(crate) switches: Vec<Wanted>,

    /// A key and its values, separated by commas: all is done at each of them, and shown is which way each effect points
    /// there; may be given several times, and then at all combinations
    #[arg(long, value_name = "KEY=A,B[,C]", value_parser = parse_variation)]
    pub(crate) over: Vec<Variation>,

    /// Run everything with so many seeds, counted up from the scenario's
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) repeat: u32,

    /// Runs at the same time; 0 is one for each CPU
    #[arg(long, short, value_name = "N", default_value_t = 0)]
    pub(crate) jobs: usize,

    #[command(flatten)]
    pub(crate) options: RunOptions,

    #[command(flatten)]
    pub(crate) page: PageOptions,
}

/// Arguments of `crossover`.
#[derive(Debug, Args)]
pub(crate) struct CrossoverArgs {
    /// The scenario file
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) scenario: PathBuf,

    /// Print every figure, not only those that tell the story
    #[arg(long)]
    pub(crate) all: bool,

    /// A key and its values, separated by commas: all is done at each of them, and shown is which way each effect points
    /// there; may be given several times, and then at all combinations
    #[arg(long, value_name = "KEY=A,B[,C]", value_parser = parse_variation)]
    pub(crate) over: Vec<Variation>,

    /// Run every combination with so many seeds, counted up from the scenario's
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) repeat: u32,

    /// Runs at the same time; 0 is one for each CPU
    #[arg(long, short, value_name = "N", default_value_t = 0)]
    pub(crate) jobs: usize,

    #[command(flatten)]
    pub(crate) options: RunOptions,
}

/// One `--vary`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Variation {
    /// The key.
    pub(crate) key: String,
    /// Its values; at least two.
    pub(crate) values: Vec<String>,
}

/// Arguments of `replay`.
#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// The trace file
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) trace: PathBuf,

    /// Memory: a size, or a percentage of the distinct pages in the trace; several separated by commas make a curve
    #[arg(long, short, value_name = "SIZE|PERCENT", value_delimiter = ',', default_value = "30%")]
    pub(crate) memory: Vec<String>,

    /// How the pages are accessed
    #[arg(long, value_enum, default_value_t = ChannelArg::File)]
    pub(crate) channel: ChannelArg,

    /// Let writes in the trace dirty pages of the file, which have to be written back, rather than read them
    #[arg(long)]
    pub(crate) writes: bool,

    /// The reclaim policy
    #[arg(long, value_name = "PROFILE", default_value = "classic@6.12")]
    pub(crate) policy: String,

    /// The device that misses are read from: a preset (see `pageout keys device[].preset`)
    #[arg(long, value_name = "PRESET", default_value = "nvme")]
    pub(crate) device: String,

    /// Swap for anonymous memory
    #[arg(long, value_enum, default_value_t = SwapArg::None)]
    pub(crate) swap: SwapArg,

    /// Time the task computes between two accesses
    #[arg(long, value_name = "DURATION", default_value = "0s")]
    pub(crate) think_time: String,

    #[command(flatten)]
    pub(crate) reading: ReadingOptions,

    /// Seed of the device's random numbers
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(..=SEED_MAX))]
    pub(crate) seed: u64,

    /// Keep the trace in memory up to this size, and read it once; a longer one is read again for each size of --memory
    #[arg(long, value_name = "SIZE", default_value_t = TRACE_MEMORY)]
    pub(crate) trace_memory: Size,

    /// Sizes replayed at the same time; 0 is one for each CPU
    #[arg(long, short, value_name = "N", default_value_t = 0)]
    pub(crate) jobs: usize,

    /// Run nothing, but print the replay as a scenario, to go on from with --set and compare
    #[arg(long)]
    pub(crate) print_scenario: bool,

    #[command(flatten)]
    pub(crate) output: OutputOptions,

    #[command(flatten)]
    pub(crate) page: PageOptions,
}

/// Channels by their names in scenarios.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ChannelArg {
    /// read(2) of a file; writes in the trace are replayed as reads without --writes
    File,
    /// A shared mapping of a file; writes in the trace are replayed as reads without --writes
    Mapped,
    /// Private anonymous memory; needs --swap when it does not fit
    Anonymous,
}

/// Kinds of swap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SwapArg {
    /// No swap
    None,
    /// On the device
    Disk,
    /// Compressed in memory
    Zram,
}

/// How a trace is to be read.
#[derive(Debug, Args)]
pub(crate) struct ReadingOptions {
    /// The trace's format, when neither content nor name tell it
    ///
    /// pgt, oracle-general (libCacheSim), csv (columns by their usual names: timestamp, volume, disk, host, file, offset, size, op,
    /// ...), csv of known columns, with a header line or without: msr (MSR Cambridge), alibaba (block traces), tencent (CBS), spc
    /// (UMass); fio-iolog, words (u32: bit 31 write, 30..28 object, 27..0 page; what .u32
    /// means, unless they can hardly be words), pages-u32 (page numbers alone, which from 2^28 on are no words), pages-u64; each also as .zst.
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<String>,

    /// One id is one page, whatever its size, as cache simulators often have it
    #[arg(long)]
    pub(crate) ignore_size: bool,

    /// More options of the trace reader, as in a scenario's `read` table: csv.offset=lba, csv.offset_unit=512
    ///
    /// csv.object=["host","disk"] names the columns that keep pages apart, csv.object=[] none. `pageout keys read.` lists all.
    #[arg(long = "read", value_name = "KEY=VALUE", value_parser = parse_setting)]
    pub(crate) read: Vec<Setting>,
}

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

    /// Show every figure of the runs that pass, too
    #[arg(long, short)]
    pub(crate) verbose: bool,

    /// Simulations at the same time; 0 is one for each CPU
    #[arg(long, short, value_name = "N", default_value_t = 0)]
    pub(crate) jobs: usize,

    #[command(flatten)]
    pub(crate) output: OutputOptions,
}

/// Arguments of `working-set`.
#[derive(Debug, Args)]
pub(crate) struct WorkingSetArgs {
    /// Dumps of lru_gen, directories of them, or - for standard input
    #[arg(required = true, value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub(crate) files: Vec<PathBuf>,

    /// What was used within this time before the dump is in use
    ///
    /// Pages that are not used for 2 minutes cost little when they must be read again. A window much longer than the four
    /// generations reach back, or shorter than the time since the last aging, tells less; the output says so.
    #[arg(long, value_name = "DURATION", default_value = "2min")]
    pub(crate) within: String,

    /// Rank the machines for a job that needs so much memory: first where it pushes out the least that is in use
    #[arg(long, value_name = "SIZE")]
    pub(crate) job: Option<String>,

    /// The memory of every machine, or of one; several separated by commas
    ///
    /// With it the output says what of a machine's memory is free; a --job needs that of all machines.
    #[arg(long, value_name = "SIZE|MACHINE=SIZE", value_delimiter = ',')]
    pub(crate) memory: Vec<String>,

    /// Memory of each machine that a job can't have: the kernel's own, mlocked and huge pages, a margin
    #[arg(long, value_name = "SIZE|PERCENT", requires = "memory")]
    pub(crate) reserve: Option<String>,

    /// Go on without files that are no whole dumps, and name them
    #[arg(long)]
    pub(crate) skip_bad: bool,

    /// The machines have no swap. Their anonymous generations say nothing about use, and idle anonymous pages make no room
    #[arg(long)]
    pub(crate) no_swap: bool,

    /// The size of the machines' pages: 16KiB or 64KiB on some arm64
    #[arg(long, value_name = "SIZE", default_value = "4KiB")]
    pub(crate) page_size: String,

    /// Generations that a machine keeps at most
    ///
    /// Linux keeps four, so a fifth row of a node is an error: it belongs to another node. A simulated machine may keep 2 to 64,
    /// as its scenario's kernel.lru.generations says.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(2..=64))]
    pub(crate) generations: u32,

    /// Print every cgroup and every dump, also with --job
    #[arg(long)]
    pub(crate) all: bool,

    #[command(flatten)]
    pub(crate) output: OutputOptions,
}

/// Arguments of `vmscan-report`.
#[derive(Debug, Args)]
pub(crate) struct VmscanReportArgs {
    /// Texts of traces, or - for standard input
    #[arg(required = true, value_name = "TRACE", value_hint = ValueHint::FilePath)]
    pub(crate) traces: Vec<PathBuf>,

    /// Tasks of one name are one row
    #[arg(long)]
    pub(crate) ignore_pid: bool,

    /// User and system CPU time of what was traced, in seconds (`/usr/bin/time` tells it); one for each trace
    #[arg(long, value_name = "SECONDS", value_delimiter = ',')]
    pub(crate) cpu_time: Vec<f64>,

    /// How long what was traced took, in seconds, if not from the first event to the last; one for each trace
    #[arg(long, value_name = "SECONDS", value_delimiter = ',')]
    pub(crate) elapsed: Vec<f64>,

    /// How the text is laid out
    #[arg(long, value_enum, default_value_t = ReportLayout::Tables)]
    pub(crate) layout: ReportLayout,

    /// Lines that cannot be read are no error; they are counted by reason all the same
    #[arg(long)]
    pub(crate) skip_bad: bool,

    /// Show every task and every one of the 200 longest calls
    #[arg(long)]
    pub(crate) all: bool,

    #[command(flatten)]
    pub(crate) output: OutputOptions,

    #[command(flatten)]
    pub(crate) page: PageOptions,
}

/// Layouts of `vmscan-report`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportLayout {
    /// Tables to read
    Tables,
    /// That of the kernel's trace-vmscan-postprocess, for programs that read it; it leaves cgroups out
    Script,
}

/// What to do with traces.
#[derive(Debug, Subcommand)]
pub(crate) enum TraceCommand {
    /// Read a trace to its end and say what is in it.
    #[command(
        after_long_help = "Examples:\n  pageout trace info w92.oracleGeneral.zst\n  pageout trace info blocks.csv --read csv.offset=lba --read csv.offset_unit=512 --json\n  pageout trace info io_traces.csv --format alibaba"
    )]
    Info {
        /// The trace files
        #[arg(required = true, value_hint = ValueHint::FilePath)]
        trace: Vec<PathBuf>,

        #[command(flatten)]
        reading: ReadingOptions,

        #[command(flatten)]
        output: OutputOptions,
    },

    /// Convert a trace to .pgt, which is compact, checked block by block, and replayed without hashing.
    #[command(
        after_long_help = "Examples:\n  pageout trace convert w92.oracleGeneral.zst w92.pgt\n  pageout trace convert blocks.csv blocks.pgt --read csv.id=key --read csv.size=bytes\nThe output appears under its name only when it is whole. Into a pipe or device it goes as it comes,\nand what is said about it to standard error."
    )]
    Convert {
        /// The trace file
        #[arg(value_hint = ValueHint::FilePath)]
        from: PathBuf,

        /// The file to write; must not exist unless --force
        #[arg(value_hint = ValueHint::FilePath)]
        to: PathBuf,

        /// Overwrite the output; never the trace itself
        #[arg(long, short)]
        force: bool,

        #[command(flatten)]
        reading: ReadingOptions,

        #[command(flatten)]
        output: OutputOptions,
    },
}

/// Arguments of `keys`.
#[derive(Debug, Args)]
pub(crate) struct KeysArgs {
    /// Only keys whose path contains this
    pub(crate) filter: Option<String>,

    #[command(flatten)]
    pub(crate) output: OutputOptions,
}

fn parse_setting(text: &str) -> Result<Setting, String> {
    text.parse()
}

fn parse_variation(text: &str) -> Result<Variation, String> {
    let setting: Setting = text.parse().map_err(|_| {
        format!("`{text}` has no key and values; write KEY=A,B, for example kernel.profile=classic@6.12,lru")
    })?;
    let values = split_values(&setting.value);
    if values.len() < 2 || values.iter().any(String::is_empty) {
        return Err(format!(
            "`{text}` names fewer than two values; write KEY=A,B (to change one key everywhere use --set)"
        ));
    }
    if let Some(twice) = values.iter().enumerate().find(|(at, value)| values[..*at].contains(value)) {
        return Err(format!("`{text}` names the value `{}` twice", twice.1));
    }
    Ok(Variation { key: setting.key, values })
}

/// The values between commas; a comma within braces, brackets or quotes is part of its value.
fn split_values(text: &str) -> Vec<String> {
    let mut values = vec![String::new()];
    let (mut depth, mut quote) = (0u32, None);
    for c in text.chars() {
        match (c, quote) {
            (c, Some(open)) => quote = Some(open).filter(|&open| open != c),
            ('"' | '\'', None) => quote = Some(c),
            ('{' | '[', None) => depth += 1,
            ('}' | ']', None) => depth = depth.saturating_sub(1),
            (',', None) if depth == 0 => {
                values.push(String::new());
                continue;
            }
            _ => {}
        }
        values.last_mut().expect("there is one from the start").push(c);
    }
    values.iter().map(|value| value.trim().to_string()).collect()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_variation_has_at_least_two_different_values() {
        let variation = parse_variation("memcg./a.memory.max=1MiB, 2MiB").unwrap();
        assert_eq!((variation.key.as_str(), variation.values.len()), ("memcg./a.memory.max", 2));
        let variation = parse_variation("a={b = [1, 2], c = 'x,y'}, {b = []}, \",\"").unwrap();
        assert_eq!(variation.values, ["{b = [1, 2], c = 'x,y'}", "{b = []}", "\",\""]);
        for bad in ["a", "a=", "a=1", "a=1,", "a=1,1", "a={b=1,c=2}"] {
            assert!(parse_variation(bad).is_err(), "{bad}");
        }
    }
}
