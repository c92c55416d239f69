//! The live page cache next to other readers of files, on a real file with equal memory.
//!
//! ```text
//!   this process   load, file, group ─▶ "warm", "round", "time" ─▶ a process for each that reads ─▶ figures, a line each
//!                                                                  └ those that use the kernel's page cache: in the group
//! ```
//! Each reader has a process of its own, so that memory and CPU time are its own: threads of the page cache that read ahead or reclaim
//! count to it.

pub mod baselines; // third-party caches

#[cfg(target_os = "linux")]
mod equal; // a group with no more memory than the budget
#[cfg(target_os = "linux")]
mod load; // which pages are read
#[cfg(target_os = "linux")]
mod reader; // the process of one that reads
#[cfg(target_os = "linux")]
mod rounds; // who reads when
#[cfg(target_os = "linux")]
mod subject; // the file that is read
#[cfg(target_os = "linux")]
mod wanted; // who reads
#[cfg(target_os = "linux")]
mod ways; // how each of them reads

use std::ffi::OsString;
use std::path::PathBuf;

use pageout_sim::scenario::{Size, Table};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, json};

use crate::check::holds;
use baselines::Open;

#[cfg(target_os = "linux")]
pub use reader::serve;
#[cfg(target_os = "linux")]
pub use rounds::ask;

/// The reader that uses the live page cache.
pub const OURS: &str = "pageout";

/// The file, the readers, and the number of reads.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ask {
    /// The file to read. Default: a file is made.
    pub file: Option<PathBuf>,
    /// The load: `zipf`, `zipf:EXPONENT`, `uniform`, `sequential`, or the file of a trace. Default: `zipf`, with 0.99.
    pub load: String,
    /// The read options of the trace. Default: by name and content.
    pub read: Table,
    /// Memory for pages of each reader, in bytes. Default: 64 MiB.
    pub budget: Size,
    /// The size of the file that is made, in bytes. Default: four times the budget, or as the trace needs it.
    pub size: Option<Size>,
    /// The folder that a file is made in. Default: the system's for temporary files.
    pub folder: Option<PathBuf>,
    /// The kernel profile whose reclaim decides in the page cache. Default: `mglru@6.12`.
    pub policy: String,
    /// Other readers; `none` for pageout only. Default: all readers, memcpy if the file is at most 1 GiB.
    pub beside: Vec<String>,
    /// Reads per thread and round, 1 or more. Default: 100,000.
    pub reads: u64,
    /// Rounds in which each reads once, 1 or more. Default: 5.
    pub rounds: u32,
    /// Threads that read, 1 or more. Default: 1.
    pub threads: u16,
    /// Pages that one call reads, 1 or more. Default: 1.
    pub batch: u16,
    /// Look at one byte of each page in its place, and copy nothing. Default: no.
    pub in_place: bool,
    /// Begin each round with nothing in memory. Default: no.
    pub cold: bool,
    /// Let the page cache read through the kernel's. Default: no.
    pub buffered: bool,
    /// Fail if readers that use the kernel's page cache can't have as little memory. Default: no.
    pub equal_memory: bool,
    /// Seed of the random pages. Default: 1.
    pub seed: u64,
    /// Third-party caches, by their names. Default: none.
    #[serde(skip)]
    pub baselines: Vec<(&'static str, Open)>,
    /// The words of a command that calls [`serve`] with its standard streams: a process for each reader.
    #[serde(skip)]
    pub reader: Vec<OsString>,
}

impl Default for Ask {
    fn default() -> Ask {
        Ask {
            file: None,
            load: "zipf".to_string(),
            read: Table::default(),
            budget: Size(64 << 20),
            size: None,
            folder: None,
            policy: "mglru@6.12".to_string(),
            beside: Vec::new(),
            reads: 100_000,
            rounds: 5,
            threads: 1,
            batch: 1,
            in_place: false,
            cold: false,
            buffered: false,
            equal_memory: false,
            seed: 1,
            baselines: Vec::new(),
            reader: Vec::new(),
        }
    }
}

/// All that was measured.
#[derive(Debug, Default)]
pub struct Answer {
    /// The question.
    pub ask: Ask,
    /// The pages that were read, in words.
    pub load: String,
    /// The file, as it is called.
    pub file: String,
    /// Whole pages of it, in bytes.
    pub file_bytes: u64,
    /// True if readers that use the kernel's page cache had as little memory.
    pub has_limit: bool,
    /// Rounds that all readers have made.
    pub rounds: usize,
    /// Pages that one reader reads in a round.
    pub reads: u64,
    /// Figures by reader, pageout first. Empty if an interruption came before the first round.
    pub ways: Vec<ReaderFigures>,
    /// Notes that a reader of the figures needs.
    pub notes: Vec<String>,
    /// The signal that ended it early, and its time.
    pub interrupted: Option<String>,
}

/// The figures of one reader.
#[derive(Debug, Clone)]
pub struct ReaderFigures {
    /// Its name.
    pub name: String,
    /// The figures of its rounds.
    pub rounds: Vec<Round>,
    /// Quantiles and a histogram of how long calls took, in a round of their own.
    pub latency: Option<Value>,
    /// Memory that it used, in bytes.
    pub memory_bytes: Option<u64>,
    /// Its own counters.
    pub own: Value,
}

/// The figures of one round.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Round {
    /// Pages read, by all threads.
    pub reads: u64,
    /// The duration.
    pub wall_ns: u64,
    /// CPU time of all threads of the process.
    pub cpu_ns: u64,
    /// Bytes that the process read from devices, if the kernel tells.
    pub device_bytes: Option<u64>,
}

/// Median, minimum and maximum.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The median; the mean of the two in the middle if their number is even.
    pub median: f64,
    /// The minimum.
    pub least: f64,
    /// The maximum.
    pub most: f64,
}

impl Spread {
    fn of(figures: impl Iterator<Item = f64>) -> Option<Spread> {
        let mut figures: Vec<f64> = figures.collect();
        figures.sort_by(f64::total_cmp);
        let (least, most) = (*figures.first()?, *figures.last()?);
        let median = (figures[(figures.len() - 1) / 2] + figures[figures.len() / 2]) / 2.0;
        Some(Spread { median, least, most })
    }

    fn json(&self) -> Value {
        json!({ "median": self.median, "least": self.least, "most": self.most })
    }
}

impl ReaderFigures {
    /// A figure over the rounds; `None` without a round.
    pub fn spread(&self, of: fn(&Round) -> f64) -> Option<Spread> {
        Spread::of(self.rounds.iter().map(of))
    }

    /// pageout compared with this reader, round by round: throughput and CPU time.
    pub fn ratios(&self, ours: &ReaderFigures) -> (Option<Spread>, Option<Spread>) {
        let ratio = |of: fn(&Round) -> f64| {
            Spread::of(ours.rounds.iter().zip(&self.rounds).map(move |(ours, other)| of(ours) / of(other)))
        };
        (ratio(Round::per_second), ratio(Round::cpu))
    }

    /// Bytes from devices per read, over all rounds.
    pub fn device_bytes(&self) -> Option<f64> {
        let bytes: Option<u64> = self.rounds.iter().map(|round| round.device_bytes).sum();
        let reads: u64 = self.rounds.iter().map(|round| round.reads).sum();
        Some(bytes? as f64 / reads.max(1) as f64)
    }

    /// Returns the number of calls by time: the power of two of nanoseconds that they took at least, ascending, with their number.
    pub fn histogram(&self) -> Vec<(u64, u64)> {
        let bins = self.latency.as_ref().and_then(|latency| latency.get("histogram")?.as_array());
        let of = |bin: &Value, name: &str| bin.get(name).and_then(Value::as_u64);
        let bins = bins.into_iter().flatten();
        bins.filter_map(|bin| Some((of(bin, "from_ns")?, of(bin, "calls")?))).collect()
    }

    fn check(&self, answer: &Answer) -> Result<(), String> {
        let (name, made) = (&self.name, self.rounds.len());
        holds!(made == answer.rounds, "{name}: found {made} rounds, expected {}", answer.rounds);
        let other = self.rounds.iter().find(|round| round.reads != answer.reads);
        holds!(other.is_none(), "{name}: a round does not have {} reads", answer.reads);
        let Some(latency) = &self.latency else { return Ok(()) };
        let calls = latency.get("calls").and_then(Value::as_u64);
        let counted = self.histogram().iter().map(|(_, calls)| calls).sum::<u64>();
        holds!(calls == Some(counted), "{name}: found {calls:?} calls, but {counted} in the histogram");
        Ok(())
    }
}

impl Round {
    /// Reads per second.
    pub fn per_second(&self) -> f64 {
        self.reads as f64 * 1e9 / self.wall_ns.max(1) as f64
    }

    /// CPU time per read, in nanoseconds.
    pub fn cpu(&self) -> f64 {
        self.cpu_ns as f64 / self.reads.max(1) as f64
    }
}

impl Answer {
    /// Checks the sums that an answer satisfies. Errors: the first one that is wrong.
    pub fn check(&self) -> Result<(), String> {
        let (rounds, asked) = (self.rounds, self.ask.rounds as usize);
        let is_whole = self.interrupted.is_some() || rounds == asked;
        holds!(is_whole && rounds <= asked, "found {rounds} rounds, expected {asked}");
        holds!(
            self.ways.first().map_or(rounds == 0, |way| way.name == OURS),
            "the first reader is not {OURS}"
        );
        let twice =
            (1..self.ways.len()).find(|&at| self.ways[..at].iter().any(|way| way.name == self.ways[at].name));
        holds!(twice.is_none(), "the list has a reader twice");
        self.ways.iter().try_for_each(|way| way.check(self))
    }

    /// As JSON.
    pub fn json(&self) -> Value {
        let ways = self.ways.iter().map(|way| {
            let (throughput, cpu) = way.ratios(&self.ways[0]);
            let json = |spread: Option<Spread>| spread.map(|spread| spread.json());
            json!({
                "name": way.name,
                "reads_per_s": json(way.spread(Round::per_second)),
                "cpu_ns_per_read": json(way.spread(Round::cpu)),
                "times_its_throughput": json(throughput),
                "times_its_cpu": json(cpu),
                "device_bytes_per_read": way.device_bytes(),
                "memory_bytes": way.memory_bytes,
                "latency": way.latency,
                "own": way.own,
            })
        });
        json!({
            "load": self.load,
            "file": self.file,
            "file_bytes": self.file_bytes,
            "budget_bytes": self.ask.budget.0,
            "policy": self.ask.policy,
            "threads": self.ask.threads,
            "batch": self.ask.batch,
            "in_place": self.ask.in_place,
            "cold": self.ask.cold,
            "buffered": self.ask.buffered,
            "equal_memory": self.has_limit,
            "rounds": self.rounds,
            "reads_per_round": self.reads,
            "ways": ways.collect::<Vec<_>>(),
            "notes": self.notes,
        })
    }
}

impl Serialize for Answer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json().serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two readers with two rounds of 100 reads each.
    fn answer() -> Answer {
        let reader = |name: &str, wall_ns| {
            let round = Round { reads: 100, wall_ns, cpu_ns: 2_000, device_bytes: Some(4096) };
            let latency = json!({ "calls": 100, "histogram": [{ "from_ns": 8, "calls": 99 }, { "from_ns": 64, "calls": 1 }] });
            ReaderFigures {
                name: name.to_string(),
                rounds: vec![round; 2],
                latency: Some(latency),
                memory_bytes: None,
                own: Value::Null,
            }
        };
        Answer {
            ask: Ask { rounds: 2, reads: 100, ..Ask::default() },
            rounds: 2,
            reads: 100,
            ways: vec![reader(OURS, 4_000), reader("mmap", 8_000)],
            ..Answer::default()
        }
    }

    #[test]
    fn live_bench_answer_with_a_wrong_sum_is_refused() {
        assert_eq!(answer().check(), Ok(()));
        type Mutant = fn(&mut Answer);
        let mutants: [(Mutant, &str); 6] = [
            (|answer| answer.ask.rounds = 3, "found 2 rounds, expected 3"),
            (|answer| answer.ways.swap(0, 1), "the first reader is not pageout"),
            (|answer| answer.ways[1].name = OURS.to_string(), "the list has a reader twice"),
            (|answer| answer.ways[1].rounds.truncate(1), "mmap: found 1 rounds, expected 2"),
            (|answer| answer.ways[0].rounds[1].reads = 99, "pageout: a round does not have 100 reads"),
            (
                |answer| answer.ways[1].latency.as_mut().unwrap()["calls"] = 99.into(),
                "mmap: found Some(99) calls, but 100 in the histogram",
            ),
        ];
        for (mutate, told) in mutants {
            let mut mutant = answer();
            mutate(&mut mutant);
            assert_eq!(mutant.check().unwrap_err(), told);
        }
        let interrupted = Answer { interrupted: Some("SIGINT".to_string()), ..Answer::default() };
        assert_eq!((interrupted.check(), interrupted.json()["ways"].clone()), (Ok(()), json!([])));
    }

    #[test]
    fn ratio_of_readers_is_ours_divided_by_theirs() {
        let Answer { ways, .. } = answer();
        let (throughput, cpu) = ways[1].ratios(&ways[0]);
        assert_eq!(throughput, Some(Spread { median: 2.0, least: 2.0, most: 2.0 }));
        assert_eq!(cpu, Some(Spread { median: 1.0, least: 1.0, most: 1.0 }));
        assert_eq!(Spread::of([4.0, 1.0, 3.0, 2.0].into_iter()).unwrap().median, 2.5);
        assert_eq!(ways[0].device_bytes(), Some(40.96));
    }

    #[test]
    fn live_bench_ask_as_json_is_read_as_it_was_written() {
        let ask: Ask =
            serde_json::from_str(r#"{ "load": "uniform", "budget": "1MiB", "beside": ["mmap"] }"#).unwrap();
        assert_eq!((ask.budget, ask.reads, ask.rounds), (Size(1 << 20), 100_000, 5));
        let again: Ask = serde_json::from_value(serde_json::to_value(&ask).unwrap()).unwrap();
        assert_eq!(format!("{again:?}"), format!("{ask:?}"));
    }
}
