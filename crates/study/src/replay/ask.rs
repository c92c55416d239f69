//! The question of a replay: traces, policies, sizes of memory, and the machine that kernel policies run in.

use std::path::PathBuf;

use crate::result::requests::Deletes;
use pageout_sim::scenario::{Channel, Device, SEED_MAX, Size, SwapKind, Table};
use pageout_workload::ReadOptions;
use serde::{Deserialize, Deserializer, Serialize};

use crate::bench::{Policy, WarmUp, parse_policies};
use crate::error::Error;
use crate::scenario::traces::TRACE_MEMORY;

/// Device that misses are read from, unless another is asked for.
const DEVICE: &str = "nvme";
/// Time between two accesses, unless another is asked for.
const THINK_TIME: &str = "0s";

/// A replay to be made. Messages name the options of `pageout replay`, which have the names of these fields.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ask {
    /// Trace files, one or more. Default: none, which is an error.
    #[serde(deserialize_with = "crate::json::one_or_more")]
    pub traces: Vec<PathBuf>,
    /// Sizes of memory for the pages of a trace: `64MiB`, `30%` of its distinct pages, `1%..100%/50log`. Default: `30%`.
    #[serde(deserialize_with = "crate::json::words")]
    pub memory: Vec<String>,
    /// Textbook policies (`lru`, `s3-fifo:small=0.1`) and kernel policies (`classic@6.12`, `lru@machine`). Default: `classic@6.12`.
    #[serde(deserialize_with = "crate::json::words")]
    pub policy: Vec<String>,
    /// The channel of the accesses: file, mapped or anonymous. Default: file.
    pub channel: Channel,
    /// True if writes of the trace dirty pages of the file; else they are replayed as reads. Default: no.
    pub writes: bool,
    /// The column whose values are tenants, by its name or as `#2`. Default: none, and all accesses are of one reader.
    pub by: Option<String>,
    /// Speed of an open loop, in times of the trace's own, from 1e-9 to 1e9; as data also `true`, which is 1, and `false`, which is none.
    /// Default: none, a closed loop.
    #[serde(deserialize_with = "speed")]
    pub timed: Option<f64>,
    /// True if a kernel policy is replayed without a clock, for misses and counters. Default: no.
    pub untimed: bool,
    /// Accesses, or percent of them, that textbook policies see before the first that counts. Default: none.
    pub warm_up: Option<WarmUp>,
    /// Share of pages from which misses of textbook policies are estimated, above 0 up to 1. Default: none, every access is counted.
    pub sample: Option<f64>,
    /// True if a long simulation begins without an estimate of its outcome. Default: no.
    pub exact: bool,
    /// Real files that the live page cache reads, one for each object of the trace. Default: none, and all is simulated.
    #[serde(deserialize_with = "crate::json::one_or_more")]
    pub live: Vec<PathBuf>,
    /// True if missing files of `live` are made. Default: no.
    pub make: bool,
    /// True if the accesses are made on a region, anonymous memory, and not on a file. Its swap file is in the folder that `live` names. Default: no.
    pub region: bool,
    /// The preset of the device that misses are read from. Default: `nvme`.
    pub device: String,
    /// The largest readahead window in KiB. Default: 128, or 0 for a trace of opaque ids.
    pub read_ahead_kb: Option<u32>,
    /// Swap for anonymous memory. Default: none.
    pub swap: Option<SwapKind>,
    /// Computing time between two accesses, as a duration with its unit. Default: `0s`.
    pub think_time: String,
    /// The read options of the traces, as the `read` table of a scenario. Default: by content and name.
    pub read: Table,
    /// Seed of the device's random numbers, and of policies that draw. Default: 1.
    pub seed: u64,
    /// Memory for a trace that is kept; a larger one is read again. Default: 1 GiB.
    pub trace_memory: Size,
    /// Runs at the same time; 0 is one for each CPU. Default: 0.
    pub jobs: usize,
    /// True if the answer is the scenario of the replay, and nothing is run. Default: no.
    pub print_scenario: bool,
}

impl Default for Ask {
    fn default() -> Ask {
        Ask {
            traces: Vec::new(),
            memory: vec!["30%".to_string()],
            policy: vec!["classic@6.12".to_string()],
            channel: Channel::File,
            writes: false,
            by: None,
            timed: None,
            untimed: false,
            warm_up: None,
            sample: None,
            exact: false,
            live: Vec::new(),
            make: false,
            region: false,
            device: DEVICE.to_string(),
            read_ahead_kb: None,
            swap: None,
            think_time: THINK_TIME.to_string(),
            read: Table::default(),
            seed: 1,
            trace_memory: TRACE_MEMORY,
            jobs: 0,
            print_scenario: false,
        }
    }
}

/// A speed as data, where `true` is the trace's own.
fn speed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected a speed such as 2, or true for the trace's own")]
    enum Speed {
        Own(bool),
        Times(f64),
    }
    let speed: Option<Speed> = Deserialize::deserialize(deserializer)?;
    Ok(speed.and_then(|speed| match speed {
        Speed::Own(is_timed) => is_timed.then_some(1.0),
        Speed::Times(speed) => Some(speed),
    }))
}

/// Returns the speed of an open loop. Errors: it is out of range.
pub fn parse_speed(text: &str) -> Result<f64, String> {
    let speed = text.parse().ok().filter(|speed| (1e-9..=1e9).contains(speed));
    speed.ok_or(format!("found `{text}`, expected a speed from 1e-9 to 1e9 (2 is twice as fast)"))
}

impl Ask {
    /// The policies of the list. Errors: there is no such policy.
    pub fn policies(&self) -> Result<Vec<Policy>, Error> {
        parse_policies(&self.policy)
    }

    /// How the traces are read. Errors: an option of the reader is wrong.
    pub(super) fn read_options(&self) -> Result<ReadOptions, Error> {
        self.read.options().map_err(|error| Error::asked(format!("--read: {}", error.message)))
    }

    /// Returns true if one kernel policy replays one trace: the answer then has all figures of each run.
    pub(super) fn is_alone(&self, policies: &[Policy]) -> bool {
        let is_one = matches!((&self.traces[..], policies), ([_], [Policy::Machine { .. }]));
        is_one && self.by.is_none() && self.warm_up.is_none() && self.sample.is_none()
    }

    /// The largest readahead window in KiB of a trace whose pages have neighbours, or have none.
    pub fn window_kb(&self, has_neighbours: bool) -> u32 {
        let usual = if has_neighbours { Device::READ_AHEAD_KB } else { 0 };
        self.read_ahead_kb.unwrap_or(usual)
    }

    /// The effect of deletes: files can be truncated, and textbook policies drop a page.
    pub fn deletes(&self, has_machine: bool, has_textbook: bool) -> Deletes {
        match (has_machine && self.channel == Channel::Anonymous, has_textbook) {
            (false, _) => Deletes::Played,
            (true, false) => Deletes::Kept,
            (true, true) => Deletes::KeptByMachine,
        }
    }

    /// Returns true if anonymous pages have nowhere to go.
    pub fn lacks_swap(&self) -> bool {
        self.channel == Channel::Anonymous && self.swap.is_none()
    }

    /// Returns true if kernel policies read ahead: files, or swap.
    pub(super) fn reads_ahead(&self, has_neighbours: bool) -> bool {
        !self.lacks_swap() && self.window_kb(has_neighbours) > 0
    }

    /// Options that differ from their default and concern the machine alone, in the order of the help.
    pub(super) fn of_machine(&self) -> Vec<&'static str> {
        let given = [
            ("--channel", self.channel != Channel::File),
            ("--writes", self.writes),
            ("--device", self.device != DEVICE),
            ("--read-ahead-kb", self.read_ahead_kb.is_some()),
            ("--swap", self.swap.is_some()),
            ("--think-time", self.think_time != THINK_TIME),
            ("--timed", self.timed.is_some()),
            ("--untimed", self.untimed),
        ];
        given.into_iter().filter(|(_, is_given)| *is_given).map(|(option, _)| option).collect()
    }

    /// Refuses what no command line can ask for, as that checks its options itself.
    pub(super) fn check(&self) -> Result<(), Error> {
        let lists = [("traces", self.traces.is_empty()), ("memory", self.memory.is_empty())];
        let lists = lists.into_iter().chain([("policy", self.policy.is_empty())]);
        for (field, is_empty) in lists {
            if is_empty {
                return Err(Error::asked(format!(
                    "{field}: found an empty list, expected one element or more"
                )));
            }
        }
        if let Some(speed) = self.timed {
            parse_speed(&speed.to_string()).map_err(|why| Error::asked(format!("timed: {why}")))?;
        }
        if self.channel == Channel::Tmpfs {
            return Err(Error::asked("channel: found `tmpfs`, expected file, mapped or anonymous"));
        }
        if let Some(WarmUp::Percent(percent)) = self.warm_up
            && !(0.0..100.0).contains(&percent)
        {
            return Err(Error::asked(format!("warm_up: found {percent}%, expected 0% to below 100%")));
        }
        if self.seed > SEED_MAX {
            let seed = self.seed;
            return Err(Error::asked(format!("seed: found {seed}, expected a number from 0 to {SEED_MAX}")));
        }
        if self.region && self.live.is_empty() {
            return Err(Error::asked("region: its swap file is in the folder of live, and there is none"));
        }
        if self.region && self.make {
            return Err(Error::asked("make: it makes files of live, and with region that is a folder"));
        }
        if self.make && self.live.is_empty() {
            return Err(Error::asked("make: it makes files of live, and there are none"));
        }
        if self.exact && self.sample.is_some() {
            return Err(Error::asked("exact and sample: found both, expected one\nhelp: remove one of them"));
        }
        self.check_untimed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ask_as_json_comes_back_and_lacks_nothing() {
        let asked = Ask {
            traces: vec!["a.pgt".into()],
            warm_up: Some(WarmUp::Percent(12.5)),
            swap: Some(SwapKind::Zram),
            timed: Some(2.0),
            ..Ask::default()
        };
        let json = serde_json::to_string(&asked).unwrap();
        assert_eq!(serde_json::from_str::<Ask>(&json).unwrap(), asked);
        let few = r#"{ "traces": ["a.pgt"], "warm_up": "12.5%", "swap": "zram", "timed": 2.0 }"#;
        assert_eq!(serde_json::from_str::<Ask>(few).unwrap(), asked);
        assert!(serde_json::from_str::<Ask>(r#"{ "trace": "a.pgt" }"#).is_err());
    }

    #[test]
    fn ask_without_meaning_is_refused_with_the_field() {
        let whole = Ask { traces: vec!["a.pgt".into()], ..Ask::default() };
        assert!(whole.check().is_ok());
        for (wrong, told) in [
            (Ask { traces: Vec::new(), ..whole.clone() }, "traces: found an empty list"),
            (Ask { memory: Vec::new(), ..whole.clone() }, "memory: found an empty list"),
            (Ask { policy: Vec::new(), ..whole.clone() }, "policy: found an empty list"),
            (Ask { timed: Some(f64::NAN), ..whole.clone() }, "timed: found `NaN`, expected a speed"),
            (Ask { channel: Channel::Tmpfs, ..whole.clone() }, "channel: found `tmpfs`"),
            (Ask { exact: true, sample: Some(0.1), ..whole.clone() }, "exact and sample"),
            (Ask { untimed: true, timed: Some(1.0), ..whole.clone() }, "--untimed: found --timed as well"),
            (
                Ask { untimed: true, device: "hdd".into(), ..whole.clone() },
                "--untimed: found --device as well",
            ),
            (Ask { untimed: true, by: Some("#2".into()), ..whole.clone() }, "--untimed: found --by as well"),
            (
                Ask { untimed: true, writes: true, ..whole.clone() },
                "--untimed: found --writes, expected reads",
            ),
            (
                Ask { untimed: true, channel: Channel::Anonymous, ..whole.clone() },
                "found --channel anonymous",
            ),
            (Ask { warm_up: Some(WarmUp::Percent(f64::NAN)), ..whole.clone() }, "warm_up: found NaN%"),
            (Ask { warm_up: Some(WarmUp::Percent(100.0)), ..whole.clone() }, "warm_up: found 100%"),
            (Ask { make: true, ..whole.clone() }, "make: it makes files of live"),
            (Ask { region: true, ..whole.clone() }, "region: its swap file is in the folder"),
            (Ask { seed: u64::MAX, ..whole.clone() }, "seed: found 18446744073709551615, expected"),
        ] {
            let error = wrong.check().unwrap_err().to_string();
            assert!(error.contains(told), "{error}");
        }
    }

    #[test]
    fn numbers_and_flags_are_read_where_they_are_plain() {
        let read = |text: &str| serde_json::from_str::<Ask>(text);
        for (text, timed) in [("true", Some(1.0)), ("false", None), ("null", None), ("2", Some(2.0))] {
            assert_eq!(read(&format!(r#"{{ "timed": {text} }}"#)).unwrap().timed, timed, "{text}");
        }
        assert_eq!(read(r#"{ "warm_up": 500 }"#).unwrap().warm_up, Some(WarmUp::Accesses(500)));
        for (text, told) in [
            (r#"{ "timed": "2x" }"#, "expected a speed such as 2, or true"),
            (r#"{ "warm_up": -1 }"#, "expected a number of accesses, or a text"),
            (r#"{ "warm_up": "x" }"#, "found `x`, expected a number or a percentage"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(told), "{error}");
        }
    }
}
