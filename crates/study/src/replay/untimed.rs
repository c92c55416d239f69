//! Replays without a clock: misses and counters of a kernel policy. The options that then have no meaning, and the parts that a result leaves out.
//!
//! `pageout_sim`'s run without a clock says how it differs from a timed run. Here it is put in words for the reader of a result.

use pageout_sim::scenario::Channel;
use serde_json::{Value, json};

use super::ask::Ask;
use super::point::Figures;
use crate::error::Error;
use crate::result::run_result::RunResult;

/// The kernel setting of a run without a clock: statistics that are always up to date.
pub(super) const STAT_FLUSH: (&str, &str) = ("memcg.stat_flush", "live");

/// Something of a timed run that a run without a clock leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeftOut {
    /// The part, in a word or two.
    pub what: &'static str,
    /// The difference to a timed run, in a clause.
    pub why: &'static str,
    /// The kernel setting that it is due to, as a scenario has it, if there is one.
    pub setting: Option<&'static str>,
}

impl LeftOut {
    const fn of(what: &'static str, why: &'static str) -> LeftOut {
        LeftOut { what, why, setting: None }
    }

    /// All of it in a line.
    pub fn says(&self) -> String {
        let LeftOut { what, why, setting } = self;
        let setting = setting.map(|setting| format!(" (`{setting}`)")).unwrap_or_default();
        format!("{what}: {why}{setting}")
    }
}

const TIMES: LeftOut =
    LeftOut::of("times", "nothing takes time, so there is no runtime, latency, CPU time or pressure");

const STATISTICS: LeftOut = LeftOut {
    what: "old statistics",
    why: "reclaim reads exact statistics of the group; in a timed run they are up to two seconds old, and the classic LRU then has other misses",
    setting: Some("kernel.memcg.stat_flush = live"),
};

const FREE_PAGES: LeftOut = LeftOut::of(
    "free pages",
    "no CPU gives its free pages back each second, so there is no nr_free_pages and no dirty threshold",
);

const IN_FLIGHT: LeftOut = LeftOut::of(
    "readahead in flight",
    "an access to a page that is still being read ahead is a hit; in a timed run it waits and counts as a miss",
);

const KSWAPD: LeftOut = LeftOut::of(
    "kswapd",
    "kswapd that was woken ran to its goal before the next access; in a timed run it shares the CPU",
);

/// Parts that replays in a memory of a group leave out: of all sizes, of which some have figures.
pub(super) fn left_out<'a>(
    ask: &Ask,
    has_neighbours: bool,
    mut figures: impl Iterator<Item = &'a Figures>,
) -> Vec<LeftOut> {
    if !ask.untimed {
        return Vec::new();
    }
    let in_flight = ask.reads_ahead(has_neighbours).then_some(IN_FLIGHT);
    let kswapd = figures.any(|of| of.kswapd_requests > 0).then_some(KSWAPD);
    [TIMES, STATISTICS, FREE_PAGES].into_iter().chain(in_flight).chain(kswapd).collect()
}

/// The same in a remark on several runs, of which some may read ahead.
pub(crate) fn remark() -> String {
    let says: Vec<String> =
        [TIMES, STATISTICS, FREE_PAGES, IN_FLIGHT, KSWAPD].iter().map(LeftOut::says).collect();
    format!("note: rows with untimed = true leave out:\n  {}", says.join("\n  "))
}

/// The same as JSON.
pub(super) fn left_out_json(left_out: &[LeftOut]) -> Value {
    let one = |&LeftOut { what, why, setting }: &LeftOut| match setting {
        Some(setting) => json!({ "what": what, "why": why, "setting": setting }),
        None => json!({ "what": what, "why": why }),
    };
    left_out.iter().map(one).collect()
}

impl Ask {
    /// Refuses options that have no meaning without a clock.
    pub(super) fn check_untimed(&self) -> Result<(), Error> {
        if !self.untimed {
            return Ok(());
        }
        let needs_time = [
            ("--timed", self.timed.is_some()),
            ("--device", self.device != Ask::default().device),
            ("--think-time", self.think_time != Ask::default().think_time),
            ("--by", self.by.is_some()),
            ("--live", !self.live.is_empty()),
            ("--print-scenario", self.print_scenario),
        ];
        if let Some((option, _)) = needs_time.iter().find(|(_, is_given)| *is_given) {
            return Err(Error::asked(format!(
                "--untimed: found {option} as well, which has no meaning without a clock\nhelp: remove one of them"
            )));
        }
        let found = match self.channel {
            Channel::Anonymous => "--channel anonymous",
            _ if self.swap.is_some() => "--swap",
            _ if self.writes => "--writes",
            _ => return Ok(()),
        };
        Err(Error::asked(format!(
            "--untimed: found {found}, expected reads of files: writeback and swap go by time\nhelp: remove one of them"
        )))
    }
}

/// Members of a result that are times, or made of them, and whose names do not say so.
const OF_TIME: [&str; 17] = [
    "context_switches",
    "cpus",
    "events_left_out",
    "events_not_reached",
    "kills",
    "nr_dirty_background_threshold",
    "nr_dirty_threshold",
    "nr_free_pages",
    "pressure",
    "reads",
    "reads_thinned",
    "reclaim",
    "reclaim_for_writes",
    "spent_by_tasks",
    "stale_decisions_compared",
    "threads",
    "writes",
];

/// A result without what depends on time: what is left are counts.
pub(super) fn result_json(result: &RunResult) -> Value {
    let mut json = json!(result);
    drop_times(&mut json);
    if let Some(devices) = json["devices"].as_array_mut() {
        for (device, of) in devices.iter_mut().zip(&result.devices) {
            for (name, requests) in [("reads", of.reads.count), ("writes", of.writes.count)] {
                device[name] = json!(requests);
            }
        }
    }
    json
}

fn drop_times(json: &mut Value) {
    match json {
        Value::Object(members) => {
            let is_of_time = |name: &str| {
                name.ends_with("_ns")
                    || name.ends_with("_per_s")
                    || name == "delayed_by"
                    || OF_TIME.contains(&name)
            };
            members.retain(|name, _| !is_of_time(name));
            members.values_mut().for_each(drop_times);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_times),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use pageout_engine::PROFILES;

    use super::*;
    use crate::replay::reading;
    use crate::replay::setup::Setup;
    use crate::result::simulate::{simulate, simulate_untimed};

    /// The shipped sequences of one task that reads a file.
    const SEQUENCES: [&str; 9] =
        ["zipf080", "zipf099", "zipf120", "uniform", "loop", "zipfscan", "twophase", "shift", "moved"];

    /// Results with a clock and without one, of the same scenario.
    fn both(sequence: &str, profile: &str, pages: u64, read_ahead_kb: u32) -> [Value; 2] {
        let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../ground-truth/sequences"));
        let trace = folder.join(format!("{sequence}.u32.zst"));
        let ask = Ask { untimed: true, read_ahead_kb: Some(read_ahead_kb), ..Ask::default() };
        let setup = Setup { ask: &ask, trace: &trace, profile, has_neighbours: true };
        let options = setup.read_options().unwrap();
        let accesses = reading::accesses(&ask, &trace, 2, &options, &()).unwrap().unwrap();
        let scenario = setup.replaying(&accesses, pages).unwrap();
        [simulate(&scenario, &()).unwrap(), simulate_untimed(&scenario, &()).unwrap()]
            .map(|result| result_json(&result))
    }

    #[test]
    fn shipped_reads_count_the_same_without_a_clock_under_every_profile() {
        for (at, profile) in PROFILES.iter().enumerate() {
            let sequence = SEQUENCES[at % SEQUENCES.len()];
            let [timed, untimed] = both(sequence, profile.name, 4_096, 0).map(|mut json| {
                // A note may have a rate.
                json["notes"] = Value::Null;
                json
            });
            assert_eq!(timed, untimed, "{sequence}, {}", profile.name);
            assert!(untimed["tasks"][0]["read_misses_io"].as_u64().unwrap() > 10_000, "{untimed}");
        }
    }

    #[test]
    fn result_without_a_clock_has_no_time() {
        let [_, untimed] = both("loop", "classic@6.12", 4_096, 128);
        let text = untimed.to_string();
        for of_time in ["_ns\"", "_per_s\"", "pressure", "reclaim_p99"] {
            assert!(!text.contains(of_time), "{of_time}: {text}");
        }
        assert!(untimed["devices"][0]["reads"].is_u64() && untimed["vmstat"]["pgpgin"].is_i64(), "{text}");
    }

    #[test]
    fn exact_statistics_are_named_with_the_setting_of_the_run() {
        let (name, value) = STAT_FLUSH;
        assert_eq!(STATISTICS.setting, Some(format!("kernel.{name} = {value}").as_str()));
        assert!(STATISTICS.says().contains(&format!("kernel.{name}")), "{}", STATISTICS.says());
        assert_eq!(left_out_json(&[STATISTICS])[0]["setting"], STATISTICS.setting.unwrap());
    }

    #[test]
    fn readahead_in_flight_is_named_where_pages_are_read_ahead() {
        let ask = |read_ahead_kb| Ask { untimed: true, read_ahead_kb: Some(read_ahead_kb), ..Ask::default() };
        let named = |ask: Ask| left_out(&ask, true, [].iter()).contains(&IN_FLIGHT);
        assert_eq!([named(ask(128)), named(ask(0))], [true, false]);
        assert_eq!(left_out(&Ask::default(), true, [].iter()), []);
    }
}
