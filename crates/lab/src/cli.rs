//! The command line of `pageout`: its commands and their options, and the help that teaches them.

mod options; // what commands have in common

mod run; // one file a command, as in commands/
mod compare;
mod predict;
mod ablate;
mod bisect;
mod coverletter;
mod crossover;
mod advise_tier;
mod reproduce;
mod tour;
mod replay;
mod bench;
mod sweep;
mod new_policy;
mod check_policy;
mod explain;
mod validate;
mod working_set;
mod vmscan_report;
mod diff;
mod record;
mod twin;
mod import;
mod trace;
mod keys;

use clap::{Parser, Subcommand};

use crate::own::OwnOptions;

pub(crate) use ablate::AblateArgs;
pub(crate) use advise_tier::AdviseTierArgs;
pub(crate) use bench::BenchArgs;
pub(crate) use bisect::BisectArgs;
pub(crate) use check_policy::CheckPolicyArgs;
pub(crate) use compare::CompareArgs;
pub(crate) use coverletter::CoverletterArgs;
pub(crate) use crossover::CrossoverArgs;
pub(crate) use diff::DiffArgs;
pub(crate) use explain::ExplainArgs;
pub(crate) use import::{ImportArgs, ImportFormat};
pub(crate) use keys::KeysArgs;
pub(crate) use new_policy::NewPolicyArgs;
pub(crate) use options::{OutputOptions, ReadingOptions, RunOptions, load};
pub(crate) use predict::PredictArgs;
pub(crate) use record::RecordArgs;
pub(crate) use replay::{ChannelArg, ReplayArgs, SwapArg};
pub(crate) use reproduce::ReproduceArgs;
pub(crate) use run::RunArgs;
pub(crate) use sweep::SweepArgs;
pub(crate) use tour::TourArgs;
pub(crate) use trace::{Compressor, TraceCommand};
pub(crate) use twin::TwinArgs;
pub(crate) use validate::ValidateArgs;
pub(crate) use vmscan_report::{ReportLayout, VmscanReportArgs};
pub(crate) use working_set::WorkingSetArgs;

const EXIT_CODES: &str = "\
Exit codes:
  0  done, and the result is complete
  1  the simulated workload failed: out of memory, an I/O error, a page beyond the file
  2  the input is no good: the command line, a scenario, a trace, a dump, a recording, a policy of one's own
  3  the result could not be written: disk full, no permission, no such directory
  4  the result is not what the scenario expects, or not what the real kernel did (validate)
  130, 143  interrupted (SIGINT, SIGTERM): simulations under way have ended, and what there is so far is printed
Of several runs that fail, one that was interrupted makes it 130 or 143, or else one with bad input 2.
A reader that goes away early (`pageout ... | head`) is no error.

With --json the first key of the result, or of each object of a list, is `format_version`: 1. It rises when a key goes or
means something else; keys that are added change nothing.";

const START: &str = "\
Start with:
  pageout run scenarios/zipf-under-limit.toml
  # five publications, their tables beside ours
  pageout tour --report tour.html
  pageout replay mytrace.csv --memory 10%,30%,50%
  pageout replay mytrace.csv --memory 1%..100%/50log --policy lru,s3-fifo,opt
  # what a scenario may contain
  pageout keys

More, with examples: `pageout help COMMAND`";

const COMPLETIONS: &str = "\
Examples:
  pageout completions bash > ~/.local/share/bash-completion/completions/pageout
  # into a folder of fpath
  pageout completions zsh > ~/.zfunc/_pageout
  pageout completions fish > ~/.config/fish/completions/pageout.fish";

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
    after_help = START
)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,

    #[command(flatten)]
    pub(crate) own: OwnOptions,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a scenario and summarise what happened.
    ///
    /// A scenario is a TOML file: machine, kernel settings, cgroups, devices, tasks, timed events. `pageout keys` lists
    /// everything that it may contain. The files in scenarios/ are examples, each with the question it answers.
    #[command(after_long_help = run::EXAMPLES)]
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
    #[command(after_long_help = compare::EXAMPLES)]
    Compare(CompareArgs),

    /// Write down what a kernel will do before it does: a page with ranges, time and commit, and the commands to check it.
    ///
    /// The scenario's variants, or combinations of --vary, are the columns. Each is run with several seeds and with all values of --unknown, which are
    /// of what nobody knows beforehand. A figure is the middle one of these runs, with the least and the most of them: a kernel outside of that
    /// range refutes it. What the scenario expects is a claim, with the share of runs in which it comes true.
    ///
    /// The page is Markdown. It ends with commands that set a kernel up as the scenario says and make the accesses, and with a table for what came of it.
    #[command(after_long_help = predict::EXAMPLES)]
    Predict(PredictArgs),

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
    #[command(after_long_help = ablate::EXAMPLES)]
    Ablate(AblateArgs),

    /// Which rule changed the result between two versions of the kernel.
    ///
    /// The scenario runs in both versions. Rules that differ between them are then turned one by one: each alone in the older version, and all but
    /// it in the newer one, each with several seeds. A rule that brings the change alone, and without which it is gone, did it. Where no
    /// single rule does, sets of rules are tried, smaller and smaller ones (delta debugging), until none of a set can be left out.
    /// What is not known of a version is said with the rule.
    #[command(after_long_help = bisect::EXAMPLES)]
    Bisect(BisectArgs),

    /// What a change helps, what it hurts and what is noise, over all scenarios, as the cover letter of a patch has it.
    ///
    /// The change is a rule at another value (--switch), or another build of this program (--against). Every scenario that the program brings along, or
    /// each that is named, runs without it and with it, with the same seeds. The letter has 72 columns: base, patched, the change in percent with its
    /// 95 % interval, a section for each group of scenarios with its geometric means, and how noise was judged. What could not be compared is named.
    #[command(after_long_help = coverletter::EXAMPLES)]
    Coverletter(CoverletterArgs),

    /// Exchange the mechanisms of classic reclaim and MGLRU in all 32 combinations.
    ///
    /// Two lists or generations; accessed bits by the reverse map alone, by page-table walks, with a Bloom filter, with
    /// look-around; refaults by distance or by the oldest generation; types balanced by cost or by feedback. Each cell is
    /// compared with both natural corners. Below that is what one step at one seam does alone: as the first step away from
    /// classic, and as the last step to MGLRU. Last comes the interaction: what the four do together beyond the sum of each
    /// alone.
    #[command(after_long_help = crossover::EXAMPLES)]
    Crossover(CrossoverArgs),

    /// How much of a workload's memory may be slower, what has to find its hot pages there, and which knobs matter.
    ///
    /// The workload runs with all its memory fast, and then with parts of it slower: at each ratio, on each class of memory,
    /// with each way to notice hot pages. The answer is the least fast memory that loses little enough, how far that is from
    /// a placement that knew all accesses beforehand, and what each knob changes there. What the scenario says of nodes,
    /// demotion and promotion is put aside.
    #[command(after_long_help = advise_tier::EXAMPLES)]
    AdviseTier(AdviseTierArgs),

    /// Run the experiments of a publication, and print its table beside ours, row by row.
    ///
    /// A chapter says what was published, which figures of ours are it, and which scenarios show it. Each scenario runs at every
    /// side of the comparison (such as the kernel before and after), with several seeds. A row is held if the sign of its change
    /// is right for nine seeds of ten, and the mean change is between half and twice the published one. What is not held is
    /// shown like the rest, with the command that shows why where that is known. Sizes and constants that a publication leaves
    /// open were fixed before any row was looked at.
    #[command(after_long_help = reproduce::EXAMPLES)]
    Reproduce(ReproduceArgs),

    /// Five publications on page reclaim and memory tiers, each with its table beside ours, in three minutes.
    ///
    /// A stop is an experiment of a chapter of `reproduce` at a size that fits: what was claimed, on which machine, the published rows beside ours,
    /// which of them hold, and the command for more. A row whose interval is too wide for a verdict is not decided at this size, and does not count as
    /// held. Nothing but the program is needed. Each stop is printed when it is done; a signal ends the tour with the stops that are.
    #[command(after_long_help = tour::EXAMPLES)]
    Tour(TourArgs),
    /// Replay traces against memory of one or several sizes under one or several policies, without a scenario file.
    ///
    /// Prints miss ratio, runtime, device reads and refaults for each size, and for several sizes the curve. Several policies stand in one
    /// table, those of textbooks and those of the machine; `opt` is the bound that none can pass.
    #[command(after_long_help = replay::EXAMPLES)]
    Replay(ReplayArgs),

    /// Read a real file through the live page cache, and beside it through the kernel's, with as little memory.
    ///
    /// The live page cache (the crate `pageout`) is this program's reclaim with real memory and direct I/O. Throughput and CPU time are told round by round beside
    /// those of buffered reads, a mapping, direct reads and plain memory, with latencies, bytes read from the device, and memory that was taken.
    #[command(after_long_help = bench::EXAMPLES)]
    Bench(BenchArgs),

    /// Run traces or scenarios times policies times sizes times seeds into a folder, on one machine or on many.
    ///
    /// A plan is a TOML file. Cells that are in the folder are not run again, so the same command goes on after whatever ended it. Parts of the
    /// folder are whole or not there. --shard I/N takes a part of the cells; all shards together are the whole. --collect makes one table of it.
    #[command(after_long_help = sweep::EXAMPLES)]
    Sweep(SweepArgs),

    /// Write a project for a policy of your own, which runs without a fork: beside the others in replay and sweep, and in the machine.
    ///
    /// It has a first-in-first-out policy to change, a test of the contract, and a README. In Rust it is a program of its own that has every command of
    /// pageout; in C a shared library for this one; in Python a class for the package `pageout`.
    #[command(after_long_help = new_policy::EXAMPLES)]
    NewPolicy(NewPolicyArgs),

    /// Check that a policy of your own keeps the contract, and say with call and slot what is wrong.
    ///
    /// Random traces with pages that go, stay, and cool down, in memories of one page, of two, and of all of them, which are resized. In each the policy must
    /// nominate what is there, once; do the same in two runs, with uses told one by one or 256 at once; find nothing wrong with itself; and miss no less
    /// often than who knows the future.
    #[command(after_long_help = check_policy::EXAMPLES)]
    CheckPolicy(CheckPolicyArgs),

    /// Why a page is where it is: step by step, with the rule that decided and the numbers it compared.
    ///
    /// Tells of one page (--page), or of the last evictions (--evictions). Runs are deterministic. So the scenario is run
    /// again, and what happens to these pages is noted. Memory does not grow with the run, and asking changes no result.
    #[command(after_long_help = explain::EXAMPLES)]
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
    /// Dumps of Linux 6.1 to 6.16 are read, lru_gen or lru_gen_full. One file that is no whole dump is an error for all,
    /// unless --skip-bad leaves it out. But a dump has no end mark: whole rows that are missing at its end are not noticed.
    #[command(after_long_help = working_set::EXAMPLES)]
    WorkingSet(WorkingSetArgs),

    /// Who reclaimed on a real kernel, how long tasks were stalled by it, and why: from the text of a trace.
    ///
    /// Reads events of vmscan as /sys/kernel/tracing/trace, `trace-cmd report` and `perf script` print them, from the kernel of 2010
    /// to today's: a file, one compressed with zstd, standard input (-), or a trace.dat, if trace-cmd is installed. Of each task it tells calls
    /// of direct reclaim and at a cgroup's limit, how long they took, pages scanned, reclaimed and written; the same of kswapd;
    /// whether what was freed was needed again, if events of filemap are there; the longest calls with what took the time, off the CPU
    /// surely if sched_switch is there; and the rows of the kernel's own trace-vmscan-postprocess. Several traces
    /// stand side by side.
    ///
    /// The trace is read once, in constant memory. Lines that cannot be read are counted by reason.
    #[command(after_long_help = vmscan_report::EXAMPLES)]
    VmscanReport(VmscanReportArgs),

    /// What happened between two snapshots of /proc/vmstat, or of a cgroup's memory.stat, and what that means.
    ///
    /// Counters (what happened) and gauges (what there is) are told apart, counters with rates if the time is known. Sentences say
    /// what they mean: how hard reclaim works, who waits for it, how much of what it frees is needed again, swapping, huge pages,
    /// compaction, tiers; each with the figures that it rests on. Counters that went back and names that are not known are named.
    #[command(after_long_help = diff::EXAMPLES)]
    Diff(DiffArgs),

    /// Record what programs of this machine do with their files, hits too, and all that a twin of it needs.
    ///
    /// Reads the kernel's tracepoints of the page cache, through an instance of tracefs of its own that nobody else sees and that goes at the end.
    /// Filters are in the kernel: only the tasks of the cgroup, processes or command are told of, and those that they make. Linux 6.12 and later tells each
    /// buffered read with its pages; earlier ones tell what comes in. Of mapped files faults are told, of anonymous memory how much there is.
    /// Contents are never read. Needs root; --check says what this machine gives, and what is lost by what it lacks.
    #[command(after_long_help = record::EXAMPLES)]
    Record(RecordArgs),

    /// A recorded machine, simulated: its counters beside the recorded ones, and what if it had less memory, another policy, another disk.
    ///
    /// Plays what `pageout record` has recorded on a machine with its limit, settings and disk. Each counter stands beside the recorded one, with the
    /// difference; what could not be modelled is named. What is not known (what else the group holds from moment to moment, when statistics are flushed) is
    /// varied, and figures have the interval that it makes. With --ask the same accesses meet another machine. Which answers the recording can't carry
    /// is said with the reason.
    #[command(after_long_help = twin::EXAMPLES)]
    Twin(TwinArgs),

    /// Turn what other tools recorded into a trace to replay: text of ftrace and perf, blkparse, lackey, lines of bpftrace.
    ///
    /// What the source does not tell (hits, writes) is said with the result. Lines that can't be read are counted, with the first of them.
    #[command(after_long_help = import::EXAMPLES)]
    Import(ImportArgs),

    /// Look into traces, and convert them.
    #[command(subcommand)]
    Trace(TraceCommand),

    /// The reference of all keys a scenario may contain, and of textbook policies: meaning, unit, range, default, and why that default.
    #[command(
        after_long_help = keys::EXAMPLES
    )]
    Keys(KeysArgs),

    /// Print shell completions.
    #[command(
        after_long_help = COMPLETIONS
    )]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },

    /// Print the manual page (for packagers).
    #[command(hide = true)]
    Man,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
