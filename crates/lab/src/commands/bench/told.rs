//! What came of it: a table with ratios, latencies and what limits them; JSON.

use std::fmt::Write;

use serde_json::{Map, Value, json};

use super::reader::Round;
use super::ways::OURS;
use crate::print::{figures, table};

/// All that was measured.
#[derive(Default)]
pub(super) struct Measured {
    pub(super) load: String,
    pub(super) file: String,
    pub(super) file_bytes: u64,
    pub(super) budget: u64,
    pub(super) policy: String,
    pub(super) threads: u64,
    pub(super) batch: u64,
    pub(super) is_in_place: bool,
    pub(super) is_cold: bool,
    pub(super) is_buffered: bool,
    /// Whether what uses the kernel's page cache had as little memory.
    pub(super) has_limit: bool,
    /// Rounds that all have made.
    pub(super) rounds: usize,
    /// In a round.
    pub(super) reads: u64,
    /// Ours first.
    pub(super) ways: Vec<OfWay>,
    pub(super) notes: Vec<String>,
    pub(super) interrupted: Option<i32>,
}

/// What one that reads has come to.
pub(super) struct OfWay {
    pub(super) name: String,
    pub(super) rounds: Vec<Round>,
    latency: Option<Value>,
    pub(super) memory_bytes: Option<u64>,
    own: Value,
}

/// Median, least and most.
struct Spread {
    median: f64,
    least: f64,
    most: f64,
}

impl Spread {
    fn of(figures: impl Iterator<Item = f64>) -> Option<Spread> {
        let mut figures: Vec<f64> = figures.collect();
        figures.sort_by(f64::total_cmp);
        let (least, most) = (*figures.first()?, *figures.last()?);
        // The mean of both where there are two in the middle.
        let median = (figures[(figures.len() - 1) / 2] + figures[figures.len() / 2]) / 2.0;
        Some(Spread { median, least, most })
    }

    fn json(&self) -> Value {
        json!({ "median": self.median, "least": self.least, "most": self.most })
    }

    fn text(&self, show: impl Fn(f64) -> String) -> String {
        format!("{} ({} to {})", show(self.median), show(self.least), show(self.most))
    }
}

impl OfWay {
    pub(super) fn new(name: &str) -> OfWay {
        OfWay {
            name: name.to_string(),
            rounds: Vec::new(),
            latency: None,
            memory_bytes: None,
            own: Value::Null,
        }
    }

    /// What it has answered to what it was told in a round, of so many that count.
    pub(super) fn note(
        &mut self,
        round: usize,
        rounds: usize,
        mut told: Map<String, Value>,
    ) -> anyhow::Result<()> {
        let answer = told.remove("answer").unwrap_or_default();
        match round {
            0 => {}
            round if round <= rounds => self.rounds.push(serde_json::from_value(answer)?),
            _ => self.latency = Some(answer),
        }
        let taken = told.get("taken_bytes").and_then(Value::as_u64);
        self.memory_bytes = self.memory_bytes.max(taken);
        self.own = told.remove("own").unwrap_or_default();
        Ok(())
    }

    fn per_second(round: &Round) -> f64 {
        round.reads as f64 * 1e9 / round.wall_ns.max(1) as f64
    }

    fn cpu(round: &Round) -> f64 {
        round.cpu_ns as f64 / round.reads.max(1) as f64
    }

    /// Ours beside this one's, round by round: throughput, and CPU time.
    fn ratios(&self, ours: &OfWay) -> (Option<Spread>, Option<Spread>) {
        let ratio = |of: fn(&Round) -> f64| {
            Spread::of(ours.rounds.iter().zip(&self.rounds).map(move |(ours, other)| of(ours) / of(other)))
        };
        (ratio(OfWay::per_second), ratio(OfWay::cpu))
    }

    fn device_bytes(&self) -> Option<f64> {
        let bytes: Option<u64> = self.rounds.iter().map(|round| round.device_bytes).sum();
        let reads: u64 = self.rounds.iter().map(|round| round.reads).sum();
        Some(bytes? as f64 / reads.max(1) as f64)
    }
}

impl Measured {
    /// Nothing, as a signal came before the first round.
    pub(super) fn interrupted(signal: i32) -> Measured {
        Measured { interrupted: Some(signal), ..Measured::default() }
    }

    pub(super) fn json(&self) -> Value {
        let ours = &self.ways[0];
        let ways = self.ways.iter().map(|way| {
            let (throughput, cpu) = way.ratios(ours);
            let spread =
                |of: fn(&Round) -> f64| Spread::of(way.rounds.iter().map(of)).map(|spread| spread.json());
            json!({
                "name": way.name,
                "reads_per_s": spread(OfWay::per_second),
                "cpu_ns_per_read": spread(OfWay::cpu),
                "times_its_throughput": throughput.map(|spread| spread.json()),
                "times_its_cpu": cpu.map(|spread| spread.json()),
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
            "budget_bytes": self.budget,
            "policy": self.policy,
            "threads": self.threads,
            "batch": self.batch,
            "in_place": self.is_in_place,
            "cold": self.is_cold,
            "buffered": self.is_buffered,
            "equal_memory": self.has_limit,
            "rounds": self.rounds,
            "reads_per_round": self.reads,
            "ways": ways.collect::<Vec<_>>(),
            "notes": self.notes,
        })
    }

    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        let what = match (self.is_in_place, self.batch) {
            (true, _) => "looks at a byte of a page".to_string(),
            (false, 1) => "reads of 4 KiB".to_string(),
            (false, batch) => format!("reads of 4 KiB, {batch} in a call"),
        };
        let _ = writeln!(
            text,
            "{} {what} by {} in each of {}{}: {}, over {} of {}, with {} for pages",
            figures::count(self.reads),
            figures::counted(self.threads, "thread"),
            figures::counted(self.rounds as u64, "round"),
            if self.is_cold { ", which begins with nothing in memory" } else { "" },
            self.load,
            figures::bytes(self.file_bytes),
            self.file,
            figures::bytes(self.budget),
        );
        if let Some(is) = self.ways[0].own.get("is").and_then(Value::as_str) {
            let _ = writeln!(text, "{OURS}: {is}");
        }
        let _ = writeln!(text, "\n{}", self.speed());
        text += "x: times as many reads a second, or as much CPU time, of pageout as of the one in the row; in parentheses least and most of the rounds.\n";
        let _ = writeln!(text, "\nhow long a call took, in a round of its own\n{}", self.latencies());
        if let Some(histogram) = self.histogram() {
            let _ = writeln!(text, "{histogram}");
        }
        let own = &self.ways[0].own;
        let of = |name: &str| own.get(name).and_then(Value::as_u64).unwrap_or(0);
        let _ = writeln!(
            text,
            "the engine's lock was taken {} times, and held {} by half of them, {} by 99 %, {} at most",
            figures::count(of("lock_times")),
            figures::time(of("lock_p50_ns")),
            figures::time(of("lock_p99_ns")),
            figures::time(of("lock_max_ns"))
        );
        self.notes.iter().for_each(|note| text += &format!("note: {note}\n"));
        text
    }

    fn speed(&self) -> String {
        let heading = ["", "reads/s", "CPU a read", "x reads/s", "x CPU", "from device a read", "memory"];
        let mut rows = vec![heading.map(str::to_string).to_vec()];
        for way in &self.ways {
            let spread = |of: fn(&Round) -> f64, show: &dyn Fn(f64) -> String| {
                Spread::of(way.rounds.iter().map(of)).map_or("-".to_string(), |spread| spread.text(show))
            };
            let (throughput, cpu) = if way.name == OURS { (None, None) } else { way.ratios(&self.ways[0]) };
            let ratio = |spread: Option<Spread>| {
                spread.map_or(String::new(), |spread| spread.text(|of| format!("{of:.2}")))
            };
            rows.push(vec![
                way.name.clone(),
                spread(OfWay::per_second, &figures::rate),
                spread(OfWay::cpu, &|nanos| figures::time(nanos.round() as u64)),
                ratio(throughput),
                ratio(cpu),
                way.device_bytes().map_or("-".to_string(), |bytes| figures::bytes(bytes.round() as u64)),
                way.memory_bytes.map_or("-".to_string(), figures::bytes),
            ]);
        }
        table::layout(&rows, 1)
    }

    fn latencies(&self) -> String {
        let heading = ["", "p50", "p90", "p99", "p99.9", "longest"];
        let mut rows = vec![heading.map(str::to_string).to_vec()];
        for way in &self.ways {
            let Some(latency) = &way.latency else { continue };
            let time =
                |name: &str| latency.get(name).and_then(Value::as_u64).map_or("-".to_string(), figures::time);
            let times = ["p50_ns", "p90_ns", "p99_ns", "p999_ns", "max_ns"].map(time);
            rows.push(std::iter::once(way.name.clone()).chain(times).collect());
        }
        table::layout(&rows, 1)
    }

    /// Shares of calls by powers of two of their time, a column each.
    fn histogram(&self) -> Option<String> {
        let bins = |way: &OfWay| -> Vec<(u64, u64)> {
            let bins = way.latency.as_ref().and_then(|latency| latency.get("histogram")?.as_array().cloned());
            let of = |bin: &Value, name: &str| bin.get(name).and_then(Value::as_u64);
            bins.into_iter()
                .flatten()
                .filter_map(|bin| Some((of(&bin, "from_ns")?, of(&bin, "calls")?)))
                .collect()
        };
        let all: Vec<Vec<(u64, u64)>> = self.ways.iter().map(bins).collect();
        let mut from: Vec<u64> = all.iter().flatten().map(|(from, _)| *from).collect();
        from.sort_unstable();
        from.dedup();
        let heading =
            std::iter::once("share of calls".to_string()).chain(self.ways.iter().map(|way| way.name.clone()));
        let mut rows = vec![heading.collect::<Vec<_>>()];
        for from in from.iter().copied() {
            let mut row = vec![format!("{} to {}", figures::time(from), figures::time(2 * from))];
            for bins in &all {
                let sum: u64 = bins.iter().map(|(_, calls)| calls).sum();
                let here = bins.iter().find(|(begin, _)| *begin == from).map(|(_, calls)| *calls);
                row.push(here.map_or(String::new(), |calls| figures::percent(figures::share(calls, sum))));
            }
            rows.push(row);
        }
        (!from.is_empty()).then(|| table::layout(&rows, 1))
    }
}
