//! Arguments of `pageout record`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::cli::options::OutputOptions;

const EXAMPLES: &str = "\
Examples, as root:
  # available sources on this machine
  pageout record --check
  # a minute of a service
  pageout record --into rec --cgroup system.slice/db.service --for 60s
  # a command, in a cgroup with its limit
  pageout record --into rec --cgroup job -- ./run-queries
  # an eighth of the pages of some files
  pageout record --into rec --file '/srv/db/*.ibd' --sample 1/8 --for 10min
  # counters only, without tracefs
  pageout record --into rec --cgroup job --events none --for 10min
  # a command at three limits
  pageout record --into rec --limits 48M,64M,96M -- ./run-queries";

/// Record the page cache accesses of programs on this machine
///
/// Events need root. `record` reads the page cache tracepoints through a private tracefs instance, which it removes at the end. The kernel
/// filters by cgroup, process or command, including their children. Linux 6.12 and later reports each buffered read with its pages; older
/// kernels report insertions. Recorded are also faults on mapped files, and the amount of anonymous memory; contents are never read.
///
/// Without tracefs, `record` reads counters: memory.stat, /proc/PID/io and smaps_rollup, and pages of named files in memory. --check prints
/// which ways are open, and how to open the others. Its exit code is 0 for events, 4 for counters only, 2 for nothing.
///
/// A recording ends with the command, whose exit code is passed on, or with the tasks, the duration, or Ctrl-C (SIGINT, SIGTERM, SIGHUP), with
/// exit code 0; it is complete in each case. Without --cgroup a command shares the recorder's cgroup, whose files then count, too. Lost events
/// are counted here and in recording.toml, which lists all that the recording depends on.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct RecordArgs {
    /// List the ways to record here, record nothing
    #[arg(long, conflicts_with_all = ["into", "cgroup", "pid", "command"])]
    pub(crate) check: bool,

    /// Folder of the recording, new or empty
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, required_unless_present = "check")]
    pub(crate) into: Option<PathBuf>,

    /// Cgroup to record, or to run COMMAND in
    #[arg(long, value_name = "PATH", conflicts_with = "pid")]
    pub(crate) cgroup: Option<String>,

    /// Processes to record, including their children
    #[arg(long, value_name = "PID", value_delimiter = ',', conflicts_with = "command")]
    pub(crate) pid: Vec<u32>,

    /// Events to record; `none` is counters only
    ///
    /// Kinds: reads, faults, insertions, writes; touches (every page fault: first touches of memory, up to 10 % more CPU time); alone: none,
    /// regions (counters and DAMON). Default: the first four, or counters if this machine or user has no events
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    pub(crate) events: Vec<String>,

    /// Files to record: about 70 that exist at the start
    #[arg(long, value_name = "GLOB", value_delimiter = ',')]
    pub(crate) file: Vec<String>,

    /// Record one page of 2, 4, 8 ...
    ///
    /// The kernel selects by page index. Strided reads bias the sample, and of a read of several pages only the first is recorded
    #[arg(long, value_name = "1/N", default_value = "1/1", hide_short_help = true)]
    pub(crate) sample: String,

    /// Stop after DURATION
    #[arg(long = "for", value_name = "DURATION")]
    pub(crate) duration: Option<String>,

    /// Stop at this size of the accesses (2 to 3 bytes each)
    #[arg(long, value_name = "SIZE", default_value = "4GiB", hide_short_help = true)]
    pub(crate) max_size: String,

    /// Interval of counter samples, 10ms or more
    ///
    /// Reading memory.stat updates the counters that reclaim uses, so a twin reads them at the same interval
    #[arg(long, value_name = "DURATION", default_value = "1s", hide_short_help = true)]
    pub(crate) stat_every: String,

    /// Record COMMAND once per limit, each into a folder of DIR
    ///
    /// Sets the limit of --cgroup and restores it at the end; without --cgroup in a new cgroup. Between runs the cgroup's pages are reclaimed
    #[arg(long, value_name = "SIZE", value_delimiter = ',', requires = "command", conflicts_with = "pid")]
    pub(crate) limits: Vec<String>,

    /// Files and folders whose pages leave memory before each run
    #[arg(long, value_name = "GLOB", value_delimiter = ',', requires = "command", hide_short_help = true)]
    pub(crate) cold: Vec<String>,

    /// Folder with /proc and /sys of another machine, for tests
    #[arg(long, value_name = "DIR", hide = true, conflicts_with_all = ["command", "limits"])]
    pub(crate) root: Option<PathBuf>,

    /// Write file-1, file-2 for names; omit inodes, command, cgroup
    #[arg(long, hide_short_help = true)]
    pub(crate) anonymize: bool,

    /// Command to record, with its arguments
    #[arg(last = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<String>,

    #[command(flatten)]
    pub(crate) output: OutputOptions,
}
