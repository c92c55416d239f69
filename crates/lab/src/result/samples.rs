//! A run over time, kept in memory for a picture: at most 1024 rows, of which every other one goes when they are used up.
//!
//! What is counted is kept as it stands, so a row that goes takes nothing along: the next one has it.

use pageout_engine::{MemcgId, Nanos, PAGE_SIZE, Stat};
use pageout_sim::{Machine, Resource};

/// Rows at most.
const ROWS_MAX: usize = 1024;

/// What a row holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sampled {
    /// A size or counter of `/proc/vmstat`; sizes are in pages.
    Vmstat(Stat),
    /// Time in all that some task has waited for it, in nanoseconds.
    Pressure(Resource),
}

/// What is sampled.
pub(crate) const SAMPLED: [Sampled; 13] = [
    Sampled::Vmstat(Stat::NrActiveAnon),
    Sampled::Vmstat(Stat::NrInactiveAnon),
    Sampled::Vmstat(Stat::NrActiveFile),
    Sampled::Vmstat(Stat::NrInactiveFile),
    Sampled::Vmstat(Stat::PgscanDirect),
    Sampled::Vmstat(Stat::PgscanKswapd),
    Sampled::Vmstat(Stat::PgstealDirect),
    Sampled::Vmstat(Stat::PgstealKswapd),
    Sampled::Vmstat(Stat::WorkingsetRefaultAnon),
    Sampled::Vmstat(Stat::WorkingsetRefaultFile),
    Sampled::Vmstat(Stat::Pswpout),
    Sampled::Pressure(Resource::Memory),
    Sampled::Pressure(Resource::Io),
];

/// Rows at equal distances.
#[derive(Debug)]
pub(crate) struct Samples {
    rows: Vec<(Nanos, [i64; SAMPLED.len()])>,
    /// One in so many is kept.
    stride: u64,
    seen: u64,
}

impl Samples {
    pub(crate) fn new() -> Samples {
        Samples { rows: Vec::new(), stride: 1, seen: 0 }
    }

    pub(crate) fn add(&mut self, at: Nanos, machine: &Machine) {
        let is_kept = self.seen.is_multiple_of(self.stride);
        self.seen += 1;
        if !is_kept {
            return;
        }
        self.rows.push((at, SAMPLED.map(|sampled| sampled.value(machine))));
        if self.rows.len() == ROWS_MAX {
            let mut nth = 0;
            self.rows.retain(|_| {
                nth += 1;
                nth % 2 == 1
            });
            self.stride *= 2;
        }
    }

    /// When each row was taken, in seconds.
    pub(crate) fn times(&self) -> Vec<f64> {
        self.rows.iter().map(|(at, _)| at.0 as f64 / 1e9).collect()
    }

    /// A size in pages as bytes, in each row.
    pub(crate) fn bytes(&self, of: Stat) -> Vec<f64> {
        self.column(Sampled::Vmstat(of)).map(|pages| (pages.max(0) as u64 * PAGE_SIZE) as f64).collect()
    }

    /// How fast something grew from each row to the next, in its unit a second; the last repeats the one before.
    pub(crate) fn rates(&self, of: Sampled) -> Vec<f64> {
        let times = self.times();
        let values: Vec<i64> = self.column(of).collect();
        let steps = values.windows(2).zip(times.windows(2));
        let mut rates: Vec<f64> =
            steps.map(|(value, time)| (value[1] - value[0]).max(0) as f64 / (time[1] - time[0])).collect();
        rates.extend(rates.last().copied());
        rates
    }

    fn column(&self, of: Sampled) -> impl Iterator<Item = i64> + '_ {
        let at = SAMPLED.iter().position(|known| *known == of).expect("only what is sampled is asked for");
        self.rows.iter().map(move |(_, row)| row[at])
    }
}

impl Sampled {
    fn value(self, machine: &Machine) -> i64 {
        match self {
            Sampled::Vmstat(stat) => machine.engine().vmstat(stat),
            Sampled::Pressure(resource) => machine.stall_totals(MemcgId::ROOT, resource)[0].0 as i64,
        }
    }
}
