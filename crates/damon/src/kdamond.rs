//! The loop of a kdamond, as steps between which the host sleeps and acts. [access-aware 1.2, 2.1]
//!
//! ```text
//!   Begin ─▶ Prepare ─▶ (sleep) ─▶ Check ─▶ Window: merge ─▶ Serve ─▶ Due: quotas ─▶ Visit ◀──▶ host applies
//!     ▲                                                                               │
//!     └────────────────── Update: ranges ◀─ Split: reset, split ◀─ (aggregated) ◀─────┘
//! ```
//! Schemes see the finished window: they run after the merge, and before the reset and the split. A scheme that cuts a region changes the list while
//! it is visited; the right part is visited next.

mod visit; // schemes over regions

use crate::attrs::{Attrs, AttrsError};
use crate::draws::Draws;
use crate::goal::Metric;
use crate::merge::Merge;
use crate::quota::QuotaRules;
use crate::region::{PARTS, Region};
use crate::rules::Rules;
use crate::scheme::{Scheme, SchemeSpec};
use crate::split::{Split, SplitHistory};
use crate::target::{Range, Target};
use crate::tune::tuned;
use visit::Place;

/// Regions that are prepared or tested within one step.
const REGIONS_PER_STEP: usize = 128;

/// Nanoseconds of a microsecond.
const NS_PER_US: u64 = 1_000;

/// The memory that is watched.
pub trait Memory {
    /// Makes the page at an address old.
    fn prepare(&mut self, target: usize, address: u64);

    /// Returns whether the page at an address was accessed since it was made old.
    fn is_young(&mut self, target: usize, address: u64) -> bool;

    /// The present address ranges of a target; `None`: they are as before.
    fn ranges(&mut self, target: usize) -> Option<Vec<Range>>;

    /// Returns whether a target exists.
    fn is_valid(&self, target: usize) -> bool;

    /// Free pages over all pages, in 1/1,000.
    fn free_mem_rate(&self) -> u64;

    /// The present value of a goal's metric. A stall is the sum since boot.
    fn measure(&mut self, metric: Metric) -> u64;
}

/// What the host does next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// It calls again after this number of nanoseconds.
    Sleep(u64),
    /// It calls again: a batch of regions is done.
    Again,
    /// It may read the regions of a finished window, and calls again.
    Aggregated,
    /// It may change attributes and schemes, as it has asked, and calls again.
    Serve,
    /// It applies an action, reports with [`Kdamond::applied`], and calls again.
    Apply(Apply),
    /// It ends the thread: no target is left.
    Ended,
}

/// An action on a region.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Apply {
    /// The number of the scheme.
    pub scheme: usize,
    /// The number of the target.
    pub target: usize,
    /// The region.
    pub range: Range,
    /// Its accesses, as the scheme sees them.
    pub nr_accesses: u32,
    /// Its age in windows.
    pub age: u32,
    /// Filters by folio are asked.
    pub asks_ops_filters: bool,
}

/// What an action has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Applied {
    /// Bytes that it had an effect on.
    pub bytes: u64,
    /// Bytes that the filters by folio have passed.
    pub passed_bytes: u64,
}

/// Where the loop is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Begin,
    Prepare(Cursor),
    Check(Cursor),
    Window,
    Serve,
    Due,
    Visit(Place),
    Applying(Place, u64),
    Aggregate,
    Split,
    Update,
}

/// A region by its target and number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Cursor {
    target: usize,
    region: usize,
}

/// A kernel thread that monitors targets and applies schemes.
#[derive(Clone, Debug)]
pub struct Kdamond {
    attrs: Attrs,
    rules: Rules,
    targets: Vec<Target>,
    schemes: Vec<Scheme>,
    draws: Draws,
    /// Nanoseconds of a tick of the clock by which schemes are charged.
    jiffy_ns: u64,
    phase: Phase,
    is_started: bool,
    is_service_asked: bool,
    /// Samples so far.
    passed: u64,
    window_end: u64,
    window_began_ns: u64,
    next_update: u64,
    size_limit: u64,
    /// The largest count of the last check.
    max_nr: u32,
    is_window_over: bool,
    /// Windows since the intervals were tuned.
    untuned: u64,
}

impl Kdamond {
    /// A kdamond without targets and schemes. `jiffy_ns`: nanoseconds of a tick of the clock.
    ///
    /// # Errors
    /// If the attributes are invalid.
    pub fn new(attrs: Attrs, rules: Rules, seed: u64, jiffy_ns: u64) -> Result<Kdamond, AttrsError> {
        attrs.check()?;
        Ok(Kdamond {
            attrs,
            rules,
            targets: Vec::new(),
            schemes: Vec::new(),
            draws: Draws::new(seed),
            jiffy_ns: jiffy_ns.max(1),
            phase: Phase::Begin,
            is_started: false,
            is_service_asked: false,
            passed: 0,
            window_end: 0,
            window_began_ns: 0,
            next_update: 0,
            size_limit: 0,
            max_nr: 0,
            is_window_over: false,
            untuned: 0,
        })
    }

    /// Adds a target with these ranges. The regions of a process are cut evenly at the start in all versions.
    pub fn add_target(&mut self, ranges: &[Range], is_process: bool) {
        let mut target = Target::default();
        target.set_ranges(ranges, self.attrs.min_region_size);
        if is_process || self.rules.strict_min_regions {
            let limit = self.attrs.size_limit(target.size());
            target.cut_evenly(limit, self.attrs.min_region_size, true);
        }
        self.targets.push(target);
        self.renew_size_limit();
    }

    /// Adds a scheme.
    pub fn add_scheme(&mut self, spec: SchemeSpec) {
        let mut scheme = Scheme::new(spec);
        scheme.next = self.passed + scheme.interval(&self.attrs);
        self.schemes.push(scheme);
    }

    /// Its intervals and limits, as tuned.
    pub fn attrs(&self) -> &Attrs {
        &self.attrs
    }

    /// The rules that it follows.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Its targets.
    pub fn targets(&self) -> &[Target] {
        &self.targets
    }

    /// Its schemes.
    pub fn schemes(&self) -> &[Scheme] {
        &self.schemes
    }

    /// Regions of all targets.
    pub fn regions(&self) -> usize {
        self.targets.iter().map(|target| target.regions.len()).sum()
    }

    /// A region's accesses as schemes see them now.
    pub fn accesses(&self, region: &Region) -> u32 {
        let left = u32::try_from(self.window_end.saturating_sub(self.passed)).unwrap_or(u32::MAX);
        let samples = self.attrs.samples();
        region.accesses(self.rules.between, samples, left.min(samples))
    }

    /// Asks for a [`Step::Serve`], which comes before schemes are applied.
    pub fn ask_service(&mut self) {
        self.is_service_asked = true;
    }

    /// Replaces the attributes; results are converted. The patterns of schemes are not: they count windows and samples.
    ///
    /// # Errors
    /// If the attributes are invalid: then nothing changes.
    pub fn set_attrs(&mut self, attrs: Attrs) -> Result<(), AttrsError> {
        attrs.check()?;
        self.replace_attrs(attrs);
        self.renew_size_limit();
        Ok(())
    }

    /// Replaces what a scheme is set to. The charge of its quota stays.
    ///
    /// # Panics
    /// If there is no such scheme.
    pub fn set_scheme(&mut self, at: usize, spec: SchemeSpec) {
        let scheme = &mut self.schemes[at];
        scheme.quota.limits = spec.quota.clone();
        scheme.spec = spec;
        scheme.next = self.passed + scheme.interval(&self.attrs);
    }

    /// Goes on until the host has something to do. `history` belongs to all kdamonds, `now_ns` is the host's time.
    ///
    /// # Panics
    /// If an action was to be applied, and the host has not reported on it.
    pub fn step(&mut self, memory: &mut impl Memory, history: &mut SplitHistory, now_ns: u64) -> Step {
        self.start(now_ns);
        loop {
            match self.phase {
                Phase::Begin => {
                    let targets = 0..self.targets.len();
                    if !targets.is_empty() && targets.clone().all(|target| !memory.is_valid(target)) {
                        return Step::Ended;
                    }
                    if let Some(us) = self.inactive_us(memory) {
                        return Step::Sleep(us.saturating_mul(NS_PER_US));
                    }
                    self.phase = Phase::Prepare(Cursor::default());
                }
                Phase::Prepare(cursor) => {
                    if let Some(cursor) = self.prepare(cursor, memory) {
                        self.phase = Phase::Prepare(cursor);
                        return Step::Again;
                    }
                    self.phase = Phase::Check(Cursor::default());
                    return Step::Sleep(self.attrs.sample_us.saturating_mul(NS_PER_US));
                }
                Phase::Check(cursor) => {
                    if cursor == Cursor::default() {
                        self.passed += 1;
                        self.max_nr = 0;
                    }
                    if let Some(cursor) = self.check(cursor, memory) {
                        self.phase = Phase::Check(cursor);
                        return Step::Again;
                    }
                    self.phase = Phase::Window;
                }
                Phase::Window => {
                    let aggr_ns = self.attrs.aggr_us.saturating_mul(NS_PER_US);
                    self.is_window_over = match self.rules.window_by_clock {
                        true => now_ns - self.window_began_ns >= aggr_ns,
                        false => self.passed >= self.window_end,
                    };
                    if self.is_window_over {
                        self.merge();
                    }
                    self.phase = Phase::Serve;
                }
                Phase::Serve => {
                    self.phase = Phase::Due;
                    if std::mem::take(&mut self.is_service_asked) {
                        return Step::Serve;
                    }
                }
                Phase::Due => {
                    let is_any_due = self.find_due(memory, now_ns);
                    self.phase = if is_any_due { Phase::Visit(Place::default()) } else { Phase::Aggregate };
                }
                Phase::Visit(place) => match self.visit(place) {
                    Some((place, apply)) => {
                        self.phase = Phase::Applying(place, now_ns);
                        return Step::Apply(apply);
                    }
                    None => {
                        self.end_visit();
                        self.phase = Phase::Aggregate;
                    }
                },
                Phase::Applying(..) => panic!("an action was to be applied, and nothing was reported"),
                Phase::Aggregate => {
                    if !self.is_window_over {
                        self.phase = Phase::Update;
                        continue;
                    }
                    self.tune();
                    self.phase = Phase::Split;
                    return Step::Aggregated;
                }
                Phase::Split => {
                    self.split(history, now_ns);
                    self.phase = Phase::Update;
                }
                Phase::Update => {
                    if self.attrs.update_us > 0 && self.passed >= self.next_update {
                        self.update(memory);
                    }
                    self.phase = Phase::Begin;
                }
            }
        }
    }

    /// Reports on the action of the last [`Step::Apply`].
    ///
    /// # Panics
    /// If there was none.
    pub fn applied(&mut self, applied: Applied, now_ns: u64) {
        let Phase::Applying(place, began_ns) = self.phase else {
            panic!("no action was to be applied, and one is reported");
        };
        let coarse = |ns: u64| ns / self.jiffy_ns * self.jiffy_ns;
        let ns = coarse(now_ns) - coarse(began_ns);
        self.phase = Phase::Visit(self.end_apply(place, applied, ns));
    }

    fn start(&mut self, now_ns: u64) {
        if std::mem::replace(&mut self.is_started, true) {
            return;
        }
        self.window_began_ns = now_ns;
        self.window_end = self.passed + u64::from(self.attrs.samples());
        self.next_update = self.passed + self.samples_of_update();
    }

    fn samples_of_update(&self) -> u64 {
        (self.attrs.update_us / self.attrs.sample_us).max(1)
    }

    fn renew_size_limit(&mut self) {
        self.size_limit = self.attrs.size_limit(self.targets.iter().map(Target::size).sum());
    }

    /// Microseconds until the watermarks are checked again, if no scheme is active.
    fn inactive_us(&mut self, memory: &impl Memory) -> Option<u64> {
        for scheme in &mut self.schemes {
            scheme.is_active = scheme.spec.watermarks.is_active(scheme.is_active, || memory.free_mem_rate());
        }
        if self.schemes.iter().any(|scheme| scheme.is_active) {
            return None;
        }
        // An interval of 0 would never let time pass.
        self.schemes.iter().map(|scheme| scheme.spec.watermarks.interval_us.max(1)).min()
    }

    /// Prepares regions from a place on; where it goes on, if some are left.
    fn prepare(&mut self, from: Cursor, memory: &mut impl Memory) -> Option<Cursor> {
        let mut left = REGIONS_PER_STEP;
        for target in from.target..self.targets.len() {
            let first = if target == from.target { from.region } else { 0 };
            let regions = &mut self.targets[target].regions;
            for (number, region) in regions.iter_mut().enumerate().skip(first) {
                if left == 0 {
                    return Some(Cursor { target, region: number });
                }
                left -= 1;
                region.sampled = self.draws.within(region.start, region.end);
                memory.prepare(target, region.sampled);
            }
        }
        None
    }

    /// Tests what was prepared.
    fn check(&mut self, from: Cursor, memory: &mut impl Memory) -> Option<Cursor> {
        let (mut left, samples) = (REGIONS_PER_STEP, self.attrs.samples());
        for target in from.target..self.targets.len() {
            let first = if target == from.target { from.region } else { 0 };
            let regions = &mut self.targets[target].regions;
            for (number, region) in regions.iter_mut().enumerate().skip(first) {
                if left == 0 {
                    return Some(Cursor { target, region: number });
                }
                left -= 1;
                region.sampled(memory.is_young(target, region.sampled), samples);
                self.max_nr = self.max_nr.max(region.nr_accesses);
            }
        }
        None
    }

    fn merge(&mut self) {
        let merge = Merge {
            threshold: self.max_nr / 10,
            samples: self.attrs.samples(),
            size_limit: self.size_limit,
            max_regions: self.attrs.max_regions,
            age_zero: self.rules.age_zero,
        };
        merge.run(&mut self.targets);
        if self.rules.strict_min_regions {
            self.renew_size_limit();
            for target in &mut self.targets {
                target.cut_evenly(self.size_limit, self.attrs.min_region_size, true);
            }
        }
        for region in self.targets.iter_mut().flat_map(|target| &mut target.regions) {
            region.moving = u64::from(region.nr_accesses) * PARTS;
        }
    }

    fn tune(&mut self) {
        self.untuned += 1;
        let aggrs = self.attrs.intervals_goal.aggrs;
        if aggrs == 0 || self.untuned < aggrs {
            return;
        }
        self.untuned = 0;
        let attrs = tuned(&self.attrs, &self.targets);
        if attrs != self.attrs {
            self.replace_attrs(attrs);
        }
    }

    fn replace_attrs(&mut self, attrs: Attrs) {
        let old = std::mem::replace(&mut self.attrs, attrs);
        for region in self.targets.iter_mut().flat_map(|target| &mut target.regions) {
            self.attrs.convert(&old, region, self.is_window_over);
        }
        self.window_end = self.passed + if self.is_window_over { 0 } else { u64::from(self.attrs.samples()) };
        self.next_update = self.passed + self.samples_of_update();
        for scheme in &mut self.schemes {
            scheme.next = self.passed + scheme.interval(&self.attrs);
        }
    }

    fn split(&mut self, history: &mut SplitHistory, now_ns: u64) {
        self.targets.iter_mut().flat_map(|target| &mut target.regions).for_each(Region::reset);
        let split = Split {
            max_regions: self.attrs.max_regions,
            min_region_size: self.attrs.min_region_size,
            over_half: self.rules.over_half,
            copies_count: self.rules.cut_copies_count,
        };
        split.run(&mut self.targets, history, &mut self.draws);
        self.window_end = self.passed + u64::from(self.attrs.samples());
        self.window_began_ns = now_ns;
        self.is_window_over = false;
    }

    fn update(&mut self, memory: &mut impl Memory) {
        self.next_update = self.passed + self.samples_of_update();
        for (number, target) in self.targets.iter_mut().enumerate() {
            if let Some(ranges) = memory.ranges(number) {
                target.set_ranges(&ranges, self.attrs.min_region_size);
            }
        }
        self.renew_size_limit();
    }

    fn quota_rules(&self) -> QuotaRules {
        QuotaRules {
            first_window: self.rules.first_window,
            zero_is_nothing: self.rules.zero_is_nothing,
            full_below_region: self.rules.full_below_region,
            psi_since_boot: self.rules.psi_since_boot,
            min_region_size: self.attrs.min_region_size,
        }
    }
}

#[cfg(test)]
mod tests;
