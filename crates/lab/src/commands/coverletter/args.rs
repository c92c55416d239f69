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
  # a first look, in five minutes
  pageout coverletter --switch kernel.memcg.stat_flush=live --fast
  # until each interval is under 1 %
  pageout coverletter --switch kernel.memcg.stat_flush=live --repeat auto
  pageout coverletter --switch lru.tiers=false --set kernel.profile=mglru@6.12
  pageout coverletter --switch kernel.version=6.18 --kernel 6.12 --out letter.txt
  # two builds, the same scenarios
  pageout coverletter --against ../before/target/release/pageout
  pageout coverletter --switch kernel.memcg.stat_flush=live scenarios/regressions mine.toml
  pageout coverletter --switch kernel.memcg.stat_flush=live --format csv --out letter.csv
A row helps or hurts if the 95 % interval of its mean difference, over pairs of runs with the same seed, leaves out 0 and the change is 1 % or
more. How many rows would get there by chance is said, and rows that remain when that is corrected for (Holm) have a *.
Exit code 1: a run failed that its scenario does not expect to fail, such as a task killed for want of memory; 2: a scenario can't be read.
Both have a row, and all others are compared.";

/// The most seeds where their number is found out, unless another is given.
const SEEDS_MOST: u32 = 40;

/// What a change helps, what it hurts and what is noise, over all scenarios, as the cover letter of a patch has it.
///
/// The change is a rule at another value (--switch), or another build of this program (--against). Every scenario that the program brings along, or
/// each that is named, runs without it and with it, with the same seeds. The letter has 72 columns: base, patched, the change in percent with its
/// 95 % interval, a section for each group of scenarios with its geometric means, and how noise was judged. What could not be compared is named.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct CoverletterArgs {
    /// Scenario files, or folders of them; all that the program brings along if there are none
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) paths: Vec<PathBuf>,

    /// The change: a rule and its new value, as `ablate` and `keys kernel.` name it, or any key of a scenario; several are one change
    #[arg(long = "switch", value_name = "NAME=VALUE", value_parser = parse_switch, required_unless_present = "against")]
    pub(crate) switches: Vec<Setting>,

    /// Take another build of this program as the base, and run the same scenarios by it
    #[arg(long, value_name = "BINARY", value_hint = ValueHint::ExecutablePath)]
    pub(crate) against: Option<PathBuf>,

    /// Run everything with so many seeds, 2 at least; or `auto`: 5, and more of each scenario until the interval of each of its rows is under 1 %,
    /// up to 40 (auto:N up to N). 5 unless --fast, which takes 3
    #[arg(long, value_name = "N|auto[:N]", value_parser = parse_repeat)]
    pub(crate) repeat: Option<Repeat>,

    /// Take only as many scenarios, the shortest first, as run within some five minutes on two CPUs; what is left out is named
    #[arg(long)]
    pub(crate) fast: bool,

    /// Show rows that are noise, too
    #[arg(long)]
    pub(crate) all: bool,

    #[command(flatten)]
    pub(crate) parallel: ParallelOptions,

    #[command(flatten)]
    pub(crate) options: RunOptions,
}

impl CoverletterArgs {
    /// With how many seeds each scenario runs.
    pub(crate) fn repeat(&self) -> Repeat {
        self.repeat.unwrap_or(Repeat::Fixed(if self.fast { 3 } else { 5 }))
    }
}

/// A switch by its name, or any key by its path.
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
        // The scenario's reader says what is wrong with a key.
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
    repeat.ok_or(format!(
        "`{text}` is neither a number from 2 to 1000 nor auto or auto:N; one seed says nothing of noise"
    ))
}
