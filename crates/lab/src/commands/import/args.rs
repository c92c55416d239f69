//! Arguments of `pageout import`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use crate::cli::options::OutputOptions;

const EXAMPLES: &str = "\
Examples:
  # text of ftrace, of `trace-cmd report` or of `perf script`
  pageout import trace.txt -o reads.pgt
  blkparse -i sda | tee blk.txt; pageout import blk.txt --source blkparse -o blk.pgt
  valgrind --tool=lackey --trace-mem=yes --log-file=mem.txt ls
  pageout import mem.txt --source lackey -o mem.pgt
  pageout import bpf.txt --source lines --pattern '{pid} {op} {file} {offset} {bytes}' -o bpf.pgt
  pageout replay reads.pgt --memory 20%,50%
For text of the kernel record `filemap:mm_filemap_get_pages` (Linux 6.12), and `filemap:mm_filemap_add_to_page_cache` with it.
Formats that `replay` reads by itself (pageout help replay) need no import.
Exit code 2 with a trace: the text says that events were lost, so accesses are missing in it.";

/// Turn what other tools recorded into a trace to replay: text of ftrace and perf, blkparse, lackey, lines of bpftrace.
///
/// What the source does not tell (hits, writes) is said with the result. Lines that can't be read are counted, with the first of them.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ImportArgs {
    /// The file to read
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) from: PathBuf,

    /// The .pgt file to write; must not exist unless --force
    #[arg(long, short, value_name = "FILE.pgt", value_hint = ValueHint::FilePath)]
    pub(crate) output_file: PathBuf,

    /// What the file is
    #[arg(long, value_enum, default_value_t = ImportFormat::Events)]
    pub(crate) source: ImportFormat,

    /// How a line is made, for --source lines: text as it stands, and {file}, {page} or {offset}, {bytes}, {op}, {pid}, {time}
    #[arg(long, value_name = "PATTERN")]
    pub(crate) pattern: Option<String>,

    /// Replace a file of that name
    #[arg(long)]
    pub(crate) force: bool,

    #[command(flatten)]
    pub(crate) output: OutputOptions,
}

/// Formats of `import`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ImportFormat {
    /// Events of the kernel as text: ftrace, `trace-cmd report`, `perf script`
    Events,
    /// `blkparse`: requests as they were queued, so below the page cache, without its hits
    Blkparse,
    /// Valgrind's lackey: every access of a program's memory
    Lackey,
    /// Lines of a pattern of your own, as bpftrace prints them
    Lines,
}
