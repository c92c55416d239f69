//! Arguments of `pageout coverletter`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use pageout_sim::scenario::keys::KEYS;
use pageout_study::cover_letter::Repeat;
use pageout_study::scenario::source::Setting;
use pageout_study::scenario::switches::{Knob, Turn};

use crate::cli::options::{ParallelOptions, RunOptions};

const EXAMPLES: &str = "\
Examples:
  # a first result in five minutes
  pageout coverletter --switch kernel.memcg.stat_flush=live --fast
  # add seeds until each interval is below 1 %
  pageout coverletter --switch kernel.memcg.stat_flush=live --repeat auto
  # a switch of MGLRU
  pageout coverletter --switch lru.tiers=false --set kernel.profile=mglru@6.12
  # two kernel versions, into a file
  pageout coverletter --switch kernel.version=6.18 --kernel 6.12 \\
      --out letter.txt
  # two builds
  pageout coverletter --against ../before/target/release/pageout
  # a folder and a file of scenarios
  pageout coverletter --switch kernel.memcg.stat_flush=live \\
      scenarios/regressions mine.toml";

/// The default maximum of `--repeat auto`.
const SEEDS_MOST: u32 = 40;

/// Write a cover letter: what a change helps and hurts
///
/// The change is a rule with another value (--switch), or another build of this program (--against). All bundled scenarios, or those that
/// you name, run without it and with it, with the same seeds. The cover letter has 72 columns: base, patched, the change in percent with its 95 %
/// interval, a section with geometric means per group of scenarios, and the judgement of noise. It lists scenarios that are not comparable.
///
/// A row helps or hurts if the change is at least 1 %, and the 95 % interval of the mean difference over pairs of equal seeds excludes 0.
/// The cover letter states how many rows to expect by chance. A * marks rows that remain after correction (Holm). Exit code 1: a run failed that
/// its scenario expects to pass. Exit code 2: a scenario is invalid. Both are rows of the cover letter.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct CoverletterArgs {
    /// Scenario files or folders [default: the bundled ones]
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) paths: Vec<PathBuf>,

    /// Change: a switch or key, with its value; repeatable
    ///
    /// `pageout keys kernel.` lists the switches. Several are one change
    #[arg(long = "switch", value_name = "NAME=VALUE", value_parser = parse_switch, required_unless_present = "against")]
    pub(crate) switches: Vec<Setting>,

    /// Base: another build of this program
    #[arg(long, value_name = "BINARY", value_hint = ValueHint::ExecutablePath)]
    pub(crate) against: Option<PathBuf>,

    /// Number of seeds, 2 or more [default: 5; 3 with --fast]
    ///
    /// `auto` starts with 5, and adds seeds until each interval of a scenario is below 1 %, up to 40 (auto:N: up to N)
    #[arg(long, value_name = "N|auto", value_parser = parse_repeat)]
    pub(crate) repeat: Option<Repeat>,

    /// Run the shortest scenarios, for about five minutes
    ///
    /// This is the time on two CPUs. The cover letter lists the others
    #[arg(long)]
    pub(crate) fast: bool,

    /// Print rows that are noise, too
    #[arg(long)]
    pub(crate) all: bool,

    #[command(flatten)]
    pub(crate) parallel: ParallelOptions,

    #[command(flatten)]
    pub(crate) options: RunOptions,
}

impl CoverletterArgs {
    /// The number of seeds of each scenario.
    pub(crate) fn repeat(&self) -> Repeat {
        self.repeat.unwrap_or(Repeat::Fixed(if self.fast { 3 } else { 5 }))
    }
}

/// Parses a switch by its name, or a key by its path.
fn parse_switch(text: &str) -> Result<Setting, String> {
    const OPTION: &str = "--switch";
    let is_key = || {
        let table = text.split_once('.').map_or("", |(table, _)| table);
        let tables =
            ["kernel", "sysctl", "machine", "memcg", "device", "swap", "task", "file", "event", "zswap"];
        text.contains('=') && tables.contains(&table)
    };
    let name = text.split_once('=').map_or(text, |(name, _)| name.trim());
    let is_rule = || ["kernel.", "sysctl."].iter().any(|table| name.starts_with(table));
    let is_any_key = || KEYS.iter().any(|key| key.path == name);
    match text.parse::<Turn>() {
        Ok(turn) => Ok(Setting { key: turn.key(), value: turn.value, option: OPTION, written_at: None }),
        Err(why) if is_rule() && Knob::called(name).is_none() && !is_any_key() => Err(why),
        // The scenario's reader reports errors of a key.
        Err(_) if is_key() => Ok(Setting { option: OPTION, ..text.parse()? }),
        Err(why) => Err(why),
    }
}

fn parse_repeat(text: &str) -> Result<Repeat, String> {
    let number = |text: &str| text.parse::<u32>().ok().filter(|number| (2..=1000).contains(number));
    let repeat = match text.split_once(':') {
        None if text == "auto" => Some(Repeat::Auto(SEEDS_MOST)),
        Some(("auto", most)) => number(most).map(Repeat::Auto),
        _ => number(text).map(Repeat::Fixed),
    };
    repeat.ok_or("expected 2 to 1000, `auto` or `auto:N`: one seed does not show noise".to_string())
}
