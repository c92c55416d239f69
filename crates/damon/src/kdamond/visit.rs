//! Schemes that are due, over all regions: region by region, in each the schemes in order. [access-aware 2.1 to 2.3]

use super::{Applied, Apply, Kdamond, Memory};
use crate::filter::{CoreVerdict, Fit, core_verdict};
use crate::priority::Histogram;
use crate::quota::Resume;
use crate::region::Region;
use crate::scheme::Action;

/// A region, and the scheme that is next for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Place {
    target: usize,
    region: usize,
    scheme: usize,
    /// The region was cut by a scheme.
    is_piece: bool,
}

/// What a scheme does with a region.
enum Found {
    Skipped,
    /// It was cut, and its right part is visited next.
    Cut,
    Apply {
        was_cut: bool,
        asks_ops_filters: bool,
    },
}

impl Kdamond {
    /// Finds the schemes that are due, and begins windows of their quotas. Returns whether there is one.
    pub(super) fn find_due(&mut self, memory: &mut impl Memory, now_ns: u64) -> bool {
        let rules = self.quota_rules();
        for at in 0..self.schemes.len() {
            let is_time = match self.rules.apply_intervals {
                true => self.passed >= self.schemes[at].next,
                false => self.is_window_over,
            };
            let scheme = &mut self.schemes[at];
            scheme.is_due = is_time;
            if !is_time || !scheme.is_active {
                continue;
            }
            let was_full = scheme.quota.adjust(&rules, now_ns, |goal| memory.measure(goal.metric));
            scheme.stats.qt_exceeds += u64::from(was_full);
            let goes_on = !scheme.quota.is_full(&rules);
            scheme.skip_to = if goes_on { scheme.quota.resume.take() } else { None };
            let min_score = match self.schemes[at].quota.limits_now(&rules) {
                true => self.min_score(at),
                false => 0,
            };
            self.schemes[at].quota.min_score = min_score;
        }
        self.schemes.iter().any(|scheme| scheme.is_due && scheme.is_active)
    }

    /// The lowest priority at which a scheme's quota suffices for all regions.
    fn min_score(&self, at: usize) -> u32 {
        let (scheme, mut histogram) = (&self.schemes[at], Histogram::new());
        for (number, target) in self.targets.iter().enumerate() {
            for region in &target.regions {
                let nr_accesses = self.accesses(region);
                if !scheme.spec.pattern.fits(region.size(), nr_accesses, region.age) {
                    continue;
                }
                let is_rejected = !self.rules.rejected_fill_quota
                    && matches!(self.core_filters(at, number, region), Ok(CoreVerdict::Rejected));
                if !is_rejected {
                    histogram.add(scheme.score(&self.attrs, nr_accesses, region.age), region.size());
                }
            }
        }
        histogram.min_score(scheme.quota.effective_bytes())
    }

    /// The verdict of the filters by address on a region. Errors: where it must be cut first.
    fn core_filters(&self, scheme: usize, target: usize, region: &Region) -> Result<CoreVerdict, u64> {
        let spec = &self.schemes[scheme].spec;
        let mut cut = None;
        let verdict =
            core_verdict(self.rules.filter_order, &spec.core_filters, !spec.ops_filters.is_empty(), |kind| {
                match kind.fit(target, &(region.start..region.end), self.attrs.min_region_size) {
                    Fit::Whole(matches) => matches,
                    Fit::CutAt(at) => {
                        cut = cut.or(Some(at));
                        false
                    }
                }
            });
        cut.map_or(Ok(verdict), Err)
    }

    /// Visits regions until a scheme is applied to one.
    pub(super) fn visit(&mut self, mut place: Place) -> Option<(Place, Apply)> {
        while place.target < self.targets.len() {
            if place.region >= self.targets[place.target].regions.len() {
                place = Place { target: place.target + 1, ..Place::default() };
                continue;
            }
            if place.scheme >= self.schemes.len() {
                place = self.next_region(place);
                continue;
            }
            match self.try_scheme(place) {
                Found::Skipped => place.scheme += 1,
                Found::Cut => {
                    place.is_piece = true;
                    place.scheme += 1;
                }
                Found::Apply { was_cut, asks_ops_filters } => {
                    place.is_piece |= was_cut;
                    let region = self.targets[place.target].regions[place.region];
                    let apply = Apply {
                        scheme: place.scheme,
                        target: place.target,
                        range: region.start..region.end,
                        nr_accesses: self.accesses(&region),
                        age: region.age,
                        asks_ops_filters,
                    };
                    let stats = &mut self.schemes[place.scheme].stats;
                    stats.nr_tried += 1;
                    stats.sz_tried += region.size();
                    return Some((place, apply));
                }
            }
        }
        None
    }

    /// All schemes have seen a region.
    fn next_region(&mut self, place: Place) -> Place {
        let next = Place { region: place.region + 1, scheme: 0, ..place };
        if !place.is_piece {
            return next;
        }
        // The part behind it is a piece as well, until the next one that was not cut.
        let next = Place { is_piece: false, ..next };
        let regions = &mut self.targets[place.target].regions;
        if !self.rules.joins_pieces || place.region == 0 {
            return next;
        }
        let (left, region) = (regions[place.region - 1], regions[place.region]);
        let is_alike = left.end == region.start
            && left.age == region.age
            && left.nr_accesses == region.nr_accesses
            && left.last_nr_accesses == region.last_nr_accesses
            && left.size() + region.size() <= self.size_limit;
        if !is_alike {
            return next;
        }
        regions[place.region - 1].join(&region);
        regions.remove(place.region);
        Place { region: place.region, ..next }
    }

    fn try_scheme(&mut self, place: Place) -> Found {
        let rules = self.quota_rules();
        let region = self.targets[place.target].regions[place.region];
        let scheme = &self.schemes[place.scheme];
        let most = scheme.spec.max_nr_snapshots;
        let is_over = most > 0 && scheme.stats.nr_snapshots >= most;
        if is_over || !scheme.is_due || !scheme.is_active || scheme.quota.is_full(&rules) {
            return Found::Skipped;
        }
        if let Some(to) = scheme.skip_to {
            match self.skipped(place, &region, to) {
                Some(found) => return found,
                None => self.schemes[place.scheme].skip_to = None,
            }
        }
        let scheme = &self.schemes[place.scheme];
        let nr_accesses = self.accesses(&region);
        let is_wanted = scheme.spec.pattern.fits(region.size(), nr_accesses, region.age)
            && (!scheme.quota.limits_now(&rules)
                || scheme.score(&self.attrs, nr_accesses, region.age) >= scheme.quota.min_score);
        if !is_wanted {
            return Found::Skipped;
        }
        let mut was_cut = false;
        if let Some(left) = scheme.quota.left(&rules)
            && left < region.size()
        {
            let size = left / self.attrs.min_region_size * self.attrs.min_region_size;
            if size == 0 {
                return Found::Skipped;
            }
            self.cut(place, size);
            was_cut = true;
        }
        loop {
            let region = self.targets[place.target].regions[place.region];
            let verdict = match self.core_filters(place.scheme, place.target, &region) {
                Ok(verdict) => verdict,
                Err(at) => {
                    self.cut(place, at - region.start);
                    was_cut = true;
                    continue;
                }
            };
            let asks_ops_filters = match verdict {
                CoreVerdict::Rejected if was_cut => return Found::Cut,
                CoreVerdict::Rejected => return Found::Skipped,
                CoreVerdict::Passed => true,
                CoreVerdict::Allowed => false,
            };
            return Found::Apply { was_cut, asks_ops_filters };
        }
    }

    /// The region that the last window of a quota has handled; a part of it is cut off. `None`: it has not.
    fn skipped(&mut self, place: Place, region: &Region, to: Resume) -> Option<Found> {
        if place.target != to.target {
            return (place.target < to.target).then_some(Found::Skipped);
        }
        if region.end <= to.address {
            return Some(Found::Skipped);
        }
        if region.start >= to.address {
            return None;
        }
        let size = self.attrs.min_region_size;
        let handled = ((to.address - region.start) / size * size).max(size);
        if region.size() <= handled {
            return Some(Found::Skipped);
        }
        self.cut(place, handled);
        self.schemes[place.scheme].skip_to = None;
        Some(Found::Cut)
    }

    fn cut(&mut self, place: Place, left_size: u64) {
        let regions = &mut self.targets[place.target].regions;
        let right = regions[place.region].cut(left_size, self.rules.cut_copies_count);
        regions.insert(place.region + 1, right);
    }

    /// An action was applied. Returns what is visited next.
    pub(super) fn end_apply(&mut self, place: Place, applied: Applied, ns: u64) -> Place {
        let rules = self.quota_rules();
        let is_last = place.target + 1 == self.targets.len()
            && place.region + 1 == self.targets[place.target].regions.len();
        let region = &mut self.targets[place.target].regions[place.region];
        let scheme = &mut self.schemes[place.scheme];
        scheme.quota.charge(region.size(), applied.bytes, ns);
        if scheme.quota.is_full(&rules) {
            // Behind the last region the next window begins at the first one.
            let resume = Resume { target: place.target, address: region.end };
            scheme.quota.resume = (!is_last).then_some(resume);
        }
        if scheme.spec.action != Action::Stat {
            region.age = 0;
        }
        scheme.stats.nr_applied += u64::from(applied.bytes > 0);
        scheme.stats.sz_applied += applied.bytes;
        scheme.stats.sz_ops_filter_passed += applied.passed_bytes;
        Place { scheme: place.scheme + 1, ..place }
    }

    /// All regions were visited.
    pub(super) fn end_visit(&mut self) {
        for scheme in self.schemes.iter_mut().filter(|scheme| scheme.is_due) {
            scheme.next = self.passed + scheme.interval(&self.attrs);
            scheme.stats.nr_snapshots += u64::from(scheme.is_active);
            scheme.is_due = false;
        }
    }
}
