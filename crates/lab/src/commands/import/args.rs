//! Arguments of `pageout import`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use crate::cli::options::OutputOptions;

const EXAMPLES: &str = "\
Examples:
  # text of ftrace, `trace-cmd report` or `perf script`
  pageout import trace.txt -o reads.pgt
  # requests of a disk
  blkparse -i sda | tee blk.txt; \\
      pageout import blk.txt --source blkparse -o blk.pgt
  # record the memory accesses of a program
  valgrind --tool=lackey --trace-mem=yes --log-file=mem.txt ls
  # import them
  pageout import mem.txt --source lackey -o mem.pgt
  # lines of bpftrace
  pageout import bpf.txt --source lines -o bpf.pgt \\
      --pattern '{pid} {op} {file} {offset} {bytes}'
  # regions that DAMON watched
  pageout import damon.data --source damo -o damon.pgt";

/// Convert recordings of other tools to a trace
///
/// The result lists what a source lacks (hits, writes). Lines that cannot be read are counted, and the first one is printed. For events, record
/// filemap:mm_filemap_get_pages (Linux 6.12) and filemap:mm_filemap_add_to_page_cache. The formats that `replay` reads need no import.
///
/// Sources: `events` is text of ftrace, `trace-cmd report` or `perf script`; `blkparse` has queued requests, below the page cache and
/// without its hits; `lackey` is Valgrind's, with all memory accesses. `lines` follow --pattern. `damo` records rates
/// of regions: the trace has random accesses at these rates. Exit code 2 with a trace: the text reports
/// lost events, so accesses are missing.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ImportArgs {
    /// The file to read
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) from: PathBuf,

    /// New .pgt file
    #[arg(long, short, value_name = "FILE.pgt", value_hint = ValueHint::FilePath)]
    pub(crate) output_file: PathBuf,

    /// Source of the file
    #[arg(long, value_name = "NAME", value_enum, default_value_t = ImportFormat::Events)]
    pub(crate) source: ImportFormat,

    /// Format of `lines`: text and fields in braces
    ///
    /// The fields are {file}, {page} or {offset}, {bytes}, {op}, {pid}, {time}
    #[arg(long, value_name = "PATTERN")]
    pub(crate) pattern: Option<String>,

    /// Sample interval of `damo` as text, which lacks it [default: 5ms]
    #[arg(long, value_name = "DURATION", hide_short_help = true)]
    pub(crate) sample_interval: Option<String>,

    /// Replace an existing file
    #[arg(long)]
    pub(crate) force: bool,

    #[command(flatten)]
    pub(crate) output: OutputOptions,
}

/// Formats of `import`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ImportFormat {
    /// Kernel events as text: ftrace, `trace-cmd report`, `perf script`
    Events,
    /// `blkparse`: queued requests, below the page cache and without its hits
    Blkparse,
    /// Valgrind's lackey: all memory accesses of a program
    Lackey,
    /// Lines with a custom pattern, for example of bpftrace
    Lines,
    /// `damo record`: accesses that DAMON would have found so (JSON, compressed or not, perf script, ftrace)
    Damo,
}
