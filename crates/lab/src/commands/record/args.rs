//! Arguments of `pageout record`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::cli::options::OutputOptions;

const EXAMPLES: &str = "\
Examples, as root:
  # which sources there are, and what each tells
  pageout record --check
  # a minute of a service
  pageout record --into rec --cgroup system.slice/db.service --for 60s
  # a command, in a cgroup that has its limit
  pageout record --into rec --cgroup job -- ./run-queries
  pageout record --into rec --pid 812,813 --events reads,insertions
  pageout record --into rec --file '/srv/db/*.ibd' --sample 1/8 --for 10min --max-size 4GiB
  # counters alone; no tracefs needed
  pageout record --into rec --cgroup job --events none --for 10min
It ends when the command has, or the tasks, or the time is over, or at the first Ctrl-C (SIGINT, SIGTERM, SIGHUP), with exit code 0: what there
is by then is a whole recording. Without a cgroup a command shares the one of the recorder, whose own files then count as well.
The folder: recording.toml (what it depends on; read it), accesses.pgt (`pageout replay` reads it), before.pgt (what was in memory
already), file_calls.csv (where files were synced, truncated and deleted, and what kswapd or DAMON took), evictions.csv (since when mapped
pages were missed), rooms.csv (how many pages files had whenever the group was full), samples.csv (what the group held). Names of files are in it: --anonymize leaves them out.
Losses are counted, here and in recording.toml.";

/// Record what programs of this machine do with their files, hits too, and all that a twin of it needs.
///
/// Reads the kernel's tracepoints of the page cache, through an instance of tracefs of its own that nobody else sees and that goes at the end.
/// Filters are in the kernel: only the tasks of the cgroup, processes or command are told of, and those that they make. Linux 6.12 and later tells each
/// buffered read with its pages; earlier ones tell what comes in. Of mapped files faults are told, of anonymous memory how much there is.
/// Contents are never read. Needs root; --check says what this machine gives, and what is lost by what it lacks.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct RecordArgs {
    /// Try each source and say whether it is there; record nothing
    #[arg(long, conflicts_with_all = ["into", "cgroup", "pid", "command"])]
    pub(crate) check: bool,

    /// The folder to record into: a new or empty one
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, required_unless_present = "check")]
    pub(crate) into: Option<PathBuf>,

    /// Follow the tasks of this cgroup, by its folder or its path; with a command the group that it runs in
    #[arg(long, value_name = "PATH", conflicts_with = "pid")]
    pub(crate) cgroup: Option<String>,

    /// Follow these processes and those that they make
    #[arg(long, value_name = "PID", value_delimiter = ',', conflicts_with = "command")]
    pub(crate) pid: Vec<u32>,

    /// Kinds of events: reads, faults, insertions, writes; or none, for counters alone
    #[arg(
        long,
        value_name = "KIND",
        value_delimiter = ',',
        default_value = "reads,faults,insertions,writes"
    )]
    pub(crate) events: Vec<String>,

    /// Only files whose names match, some 70 at most: those that there are when it begins
    #[arg(long, value_name = "GLOB", value_delimiter = ',')]
    pub(crate) file: Vec<String>,

    /// Record one page of 2, 4, 8 ..., chosen in the kernel by its number in the file
    ///
    /// Cheaper by what is not told. Biased for files that are read in strides, and of reads of several pages only the first is told.
    #[arg(long, value_name = "1/N", default_value = "1/1")]
    pub(crate) sample: String,

    /// End after so long
    #[arg(long = "for", value_name = "DURATION")]
    pub(crate) duration: Option<String>,

    /// End when the accesses take so much; 2 to 3 bytes each
    #[arg(long, value_name = "SIZE", default_value = "4GiB")]
    pub(crate) max_size: String,

    /// Read the cgroup's counters so often, 10ms or more
    ///
    /// Whoever reads memory.stat brings the counters up to date that reclaim decides by, so that a twin reads them as often.
    #[arg(long, value_name = "DURATION", default_value = "1s")]
    pub(crate) stat_every: String,

    /// Leave out names: files become file-1, file-2; inodes, command and cgroup are not told
    #[arg(long)]
    pub(crate) anonymize: bool,

    /// The command to record, with its arguments
    #[arg(last = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<String>,

    #[command(flatten)]
    pub(crate) output: OutputOptions,
}
