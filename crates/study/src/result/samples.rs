//! Samples of a run over time, kept in memory for charts: at most 1024 rows. When they are used up, every other row is dropped.
//!
//! Counters are kept as totals, so a dropped row loses nothing: the next row includes it.

use pageout_engine::{MemcgId, Nanos, PAGE_SIZE, Stat};
use pageout_sim::{Machine, Observer, Resource, TraceRecord};

use super::marks::{Mark, Marks};

/// Rows at most.
const ROWS_MAX: usize = 1024;

/// A sampled quantity: a column of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampled {
    /// A size or counter of `/proc/vmstat`; sizes are in pages.
    Vmstat(Stat),
    /// A mark of all zones together, in pages.
    Watermark(Level),
    /// A size of zswap, in pages.
    Zswap(ZswapSize),
    /// Time in all that some task, or all of them, waited for it, in nanoseconds.
    Pressure(Resource, Extent),
    /// Time in all that a device was busy, in nanoseconds, and pages that it has read and written.
    Device(usize, Load),
}

/// A watermark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Below it only those who free memory, and others in need, may allocate.
    Min,
    /// Below it kswapd is woken.
    Low,
    /// At it kswapd sleeps again.
    High,
}

/// One of zswap's sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZswapSize {
    /// What the pool takes.
    Pool,
    /// The pages in it, as large as they are elsewhere.
    Stored,
    /// What it may take, and down to what it shrinks when it is full.
    Limit,
    /// What the pool shrinks to when it is full, before it takes pages again.
    Accept,
}

/// The extent of a wait: some tasks, or all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// At least one.
    Some,
    /// All that could have run.
    Full,
}

/// The load of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// It was at work.
    Busy,
    /// Pages were read.
    Read,
    /// Pages were written.
    Written,
}

/// What is sampled of every machine.
const STATS: [Stat; 17] = [
    Stat::NrFreePages,
    Stat::NrActiveAnon,
    Stat::NrInactiveAnon,
    Stat::NrActiveFile,
    Stat::NrInactiveFile,
    Stat::NrDirty,
    Stat::NrWriteback,
    Stat::NrDirtyThreshold,
    Stat::NrDirtyBackgroundThreshold,
    Stat::WorkingsetRefaultAnon,
    Stat::WorkingsetRefaultFile,
    Stat::Pswpin,
    Stat::Pswpout,
    Stat::Zswpin,
    Stat::Zswpout,
    Stat::Zswpwb,
    Stat::OomKill,
];

/// Rows at equal distances.
#[derive(Debug, Default)]
pub struct Samples {
    columns: Vec<Sampled>,
    devices: Vec<String>,
    rows: Vec<(Nanos, Vec<i64>)>,
    /// One in so many is kept, less one.
    skipped: u64,
    seen: u64,
    /// Kills so far.
    kills: i64,
    /// Moments that charts mark.
    pub marks: Marks,
}

impl Samples {
    /// Makes the samples of a machine.
    pub fn new(machine: &Machine) -> Samples {
        let devices: Vec<String> =
            machine.devices_by(Nanos::ZERO).into_iter().map(|device| device.name).collect();
        let mut columns: Vec<Sampled> = STATS.map(Sampled::Vmstat).to_vec();
        columns.extend([Level::Min, Level::Low, Level::High].map(Sampled::Watermark));
        let of_zswap = [ZswapSize::Pool, ZswapSize::Stored, ZswapSize::Limit, ZswapSize::Accept];
        columns.extend(of_zswap.map(Sampled::Zswap));
        for resource in Resource::ALL {
            columns.extend([Extent::Some, Extent::Full].map(|extent| Sampled::Pressure(resource, extent)));
        }
        for device in 0..devices.len() {
            columns.extend([Load::Busy, Load::Read, Load::Written].map(|load| Sampled::Device(device, load)));
        }
        Samples { columns, devices, ..Samples::default() }
    }

    fn add(&mut self, at: Nanos, machine: &Machine) {
        let kills = machine.engine().figures().vmstat(Stat::OomKill);
        if kills > self.kills {
            self.marks.add(Mark::OomKill, at, Nanos::ZERO, (kills - self.kills) as u64);
            self.kills = kills;
        }
        let is_kept = self.seen.is_multiple_of(self.skipped + 1);
        self.seen += 1;
        if !is_kept {
            return;
        }
        self.rows.push((at, self.row(at, machine)));
        if self.rows.len() == ROWS_MAX {
            let mut nth = 0;
            self.rows.retain(|_| {
                nth += 1;
                nth % 2 == 1
            });
            self.skipped = 2 * self.skipped + 1;
        }
    }

    fn row(&self, at: Nanos, machine: &Machine) -> Vec<i64> {
        let engine = machine.engine();
        let marks = engine.figures().zones().fold([0; 3], |sum, zone| {
            [sum[0] + zone.min as i64, sum[1] + zone.low as i64, sum[2] + zone.high as i64]
        });
        let devices = machine.devices_by(at);
        let zswap = engine.figures().zswap_pool();
        let stalls = machine.stall_totals(MemcgId::ROOT);
        let value = |sampled: &Sampled| match *sampled {
            Sampled::Vmstat(stat) => engine.figures().vmstat(stat),
            Sampled::Watermark(level) => marks[level as usize],
            Sampled::Zswap(ZswapSize::Pool) => zswap.pages as i64,
            Sampled::Zswap(ZswapSize::Stored) => zswap.stored as i64,
            Sampled::Zswap(ZswapSize::Limit) => zswap.limit as i64,
            Sampled::Zswap(ZswapSize::Accept) => zswap.accept as i64,
            Sampled::Pressure(resource, extent) => stalls[resource as usize][extent as usize].0 as i64,
            Sampled::Device(device, Load::Busy) => devices[device].busy.0 as i64,
            Sampled::Device(device, Load::Read) => devices[device].pages_read as i64,
            Sampled::Device(device, Load::Written) => devices[device].pages_written as i64,
        };
        self.columns.iter().map(value).collect()
    }

    /// The devices, in the order of their numbers.
    pub fn devices(&self) -> &[String] {
        &self.devices
    }

    /// Returns the time of each row, in seconds.
    pub fn times(&self) -> Vec<f64> {
        self.rows.iter().map(|(at, _)| at.0 as f64 / 1e9).collect()
    }

    /// A size in pages as bytes, in each row.
    pub fn bytes(&self, of: Sampled) -> Vec<f64> {
        self.column(of).map(|pages| (pages.max(0) as u64 * PAGE_SIZE) as f64).collect()
    }

    /// Returns the growth from each row to the next, in its unit per second; the last repeats the one before.
    pub fn rates(&self, of: Sampled) -> Vec<f64> {
        let times = self.times();
        let values: Vec<i64> = self.column(of).collect();
        let steps = values.windows(2).zip(times.windows(2));
        let mut rates: Vec<f64> =
            steps.map(|(value, time)| (value[1] - value[0]).max(0) as f64 / (time[1] - time[0])).collect();
        rates.extend(rates.last().copied());
        rates
    }

    fn column(&self, of: Sampled) -> impl Iterator<Item = i64> + '_ {
        let at =
            self.columns.iter().position(|known| *known == of).expect("only what is sampled is asked for");
        self.rows.iter().map(move |(_, row)| row[at])
    }
}

impl Observer for Samples {
    fn sample(&mut self, at: Nanos, machine: &Machine) {
        self.add(at, machine);
    }

    /// A tracepoint may be worth a mark.
    fn tracepoint(&mut self, record: &TraceRecord, _: &Machine) {
        if let Some((mark, lasts)) = Mark::of(&record.event) {
            self.marks.add(mark, record.at, lasts, 1);
        }
    }
}
