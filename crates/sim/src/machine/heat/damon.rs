//! The addresses that kdamonds monitor, with the accesses to them and the regions that DAMON found, for a chart.
//!
//! A kdamond of physical memory has one map, by address of frames; one of processes has a map for each.

use pageout_engine::{Access, Engine, MmId, Nanos, ObjectId, PAGE_SIZE, TaskId, Touched};

use super::super::Machine;
use crate::report::{DamonMap, DamonWindow};

/// Rows of a map, and columns at most.
const ROWS: usize = 48;
const COLUMNS: u64 = 64;
/// The first columns are so long.
const SPAN: u64 = 1_000_000;

/// Accesses to what one target of a kdamond monitors.
#[derive(Clone, Debug)]
pub(super) struct Counts {
    kdamond: usize,
    target: usize,
    mm: Option<MmId>,
    first: u64,
    row_bytes: u64,
    span: u64,
    /// By column and row.
    counts: Vec<[u64; ROWS]>,
}

impl Counts {
    /// One for each target of each kdamond.
    pub(super) fn all(engine: &Engine) -> Vec<Counts> {
        let kdamonds = 0..engine.kdamonds().len();
        let targets = kdamonds.flat_map(|kdamond| {
            engine
                .damon_targets(kdamond)
                .into_iter()
                .enumerate()
                .map(move |(target, of)| (kdamond, target, of))
        });
        let counts = targets.filter_map(|(kdamond, target, (mm, ranges))| {
            let first = ranges.iter().map(|range| range.start).min()?;
            let end = ranges.iter().map(|range| range.end).max()?;
            let row_bytes = (end - first).div_ceil(ROWS as u64).next_multiple_of(PAGE_SIZE);
            Some(Counts { kdamond, target, mm, first, row_bytes, span: SPAN, counts: Vec::new() })
        });
        counts.collect()
    }

    /// An access of a task was made.
    pub(super) fn note(&mut self, engine: &Engine, task: TaskId, access: Access, at: Nanos) {
        let address = match self.mm {
            None => match engine.touched(task, access) {
                Touched::Frame(pfn) => u64::from(pfn.0) * PAGE_SIZE,
                Touched::Zeroes | Touched::Gone => return,
            },
            Some(mm) => match engine.figures().mapped_page(task, access) {
                Some((of, page)) if of == mm => page * PAGE_SIZE,
                _ => return,
            },
        };
        let Some(offset) = address.checked_sub(self.first) else { return };
        let row = (offset / self.row_bytes) as usize;
        if row >= ROWS {
            return;
        }
        while at.0 / self.span >= COLUMNS {
            let both = |pair: &[[u64; ROWS]]| -> [u64; ROWS] {
                std::array::from_fn(|row| pair.iter().map(|column| column[row]).sum())
            };
            self.counts = self.counts.chunks(2).map(both).collect();
            self.span *= 2;
        }
        let column = (at.0 / self.span) as usize;
        if self.counts.len() <= column {
            self.counts.resize(column + 1, [0; ROWS]);
        }
        self.counts[column][row] += 1;
    }
}

impl Machine {
    /// The maps of all kdamonds; none if nothing is watched.
    pub(in super::super) fn damon_maps(&self) -> Vec<DamonMap> {
        let Some(counts) = self.heat.as_deref().and_then(|heat| heat.watched.as_ref()) else {
            return Vec::new();
        };
        counts.iter().map(|of| self.damon_map(of)).collect()
    }

    fn damon_map(&self, of: &Counts) -> DamonMap {
        let what = match of.mm {
            None => "physical memory".to_string(),
            Some(mm) => self.name_of_process(mm).unwrap_or_else(|| format!("process {}", of.target)),
        };
        let windows = self.engine.damon_windows(of.kdamond).iter().map(|window| DamonWindow {
            at: window.at,
            samples: window.samples,
            regions: window.targets.get(of.target).cloned().unwrap_or_default(),
        });
        DamonMap {
            name: format!("kdamond.{}, {what}", of.kdamond),
            span: Nanos(of.span),
            first: of.first,
            row_bytes: of.row_bytes,
            accesses: (0..ROWS).map(|row| of.counts.iter().map(|column| column[row]).collect()).collect(),
            windows: windows.collect(),
        }
    }

    fn name_of_process(&self, mm: MmId) -> Option<String> {
        let task = self.tasks.iter().find(|task| {
            (0..task.objects()).any(|object| {
                let access = Access::new(ObjectId(object as u32), 0, false);
                let page = self.engine.figures().mapped_page(task.runner.id, access);
                page.is_some_and(|(of, _)| of == mm)
            })
        })?;
        Some(task.name.clone())
    }
}
