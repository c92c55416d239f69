//! Filters: which pages a scheme spares. Those of the core look at addresses, the others at each folio, which the host does. [access-aware 2.6]

use crate::target::Range;

/// How filters combine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FilterOrder {
    /// A filter that fits rejects.
    AnyRejects,
    /// The first one that fits decides.
    FirstFit,
}

/// A filter: it fits what it matches, or what it does not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Filter<K> {
    /// What it looks at.
    pub kind: K,
    /// It fits what matches; otherwise it fits what does not match.
    pub matching: bool,
    /// It allows what it fits; otherwise it rejects that.
    pub allow: bool,
}

/// What a filter of the core looks at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CoreFilter {
    /// Addresses within a range.
    Addresses(Range),
    /// The target of this number.
    Target(usize),
}

/// What a filter looks at in a folio.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpsFilter {
    /// An anonymous folio.
    Anon,
    /// A folio that is charged to this cgroup.
    Memcg(u16),
    /// A folio that was accessed since the last look. One that matches is made old.
    Young,
    /// A folio with at least and at most so many bytes.
    HugepageSize(u64, u64),
    /// A folio that is mapped nowhere.
    Unmapped,
    /// A folio with the active flag.
    Active,
}

/// The verdict of the filters of the core on a region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CoreVerdict {
    /// The action is applied, and no filter of the operations is asked.
    Allowed,
    /// The filters of the operations decide.
    Passed,
    /// No action, and the region does not count as tried.
    Rejected,
}

/// How a range lies to a filter of addresses.
pub(crate) enum Fit {
    /// It matches or does not, as a whole.
    Whole(bool),
    /// It must be cut at this address first.
    CutAt(u64),
}

impl CoreFilter {
    pub(crate) fn fit(&self, target: usize, range: &Range, min_region_size: u64) -> Fit {
        let filter = match self {
            CoreFilter::Target(of) => return Fit::Whole(*of == target),
            CoreFilter::Addresses(filter) => filter,
        };
        let inner = |at: u64| {
            let at = at / min_region_size * min_region_size;
            (range.start < at && at < range.end).then_some(at)
        };
        match inner(filter.start).or_else(|| inner(filter.end)) {
            Some(at) => Fit::CutAt(at),
            None => {
                let start = filter.start / min_region_size * min_region_size;
                let end = filter.end / min_region_size * min_region_size;
                Fit::Whole(start <= range.start && range.end <= end)
            }
        }
    }
}

/// The verdict of filters of the core on a region. `matches`: whether a filter matches it.
pub fn core_verdict(
    order: FilterOrder,
    core: &[Filter<CoreFilter>],
    has_ops: bool,
    mut matches: impl FnMut(&CoreFilter) -> bool,
) -> CoreVerdict {
    let fit = core.iter().find(|filter| matches(&filter.kind) == filter.matching);
    match (order, fit, core.last()) {
        (FilterOrder::AnyRejects, Some(_), _) => CoreVerdict::Rejected,
        (FilterOrder::FirstFit, Some(filter), _) if filter.allow => CoreVerdict::Allowed,
        (FilterOrder::FirstFit, Some(_), _) => CoreVerdict::Rejected,
        (FilterOrder::FirstFit, None, Some(last)) if !has_ops && last.allow => CoreVerdict::Rejected,
        (_, None, _) => CoreVerdict::Passed,
    }
}

/// Returns whether a folio passes the filters of the operations. `matches`: whether a filter matches it; it is called in order, up to the first fit.
pub fn ops_passes(
    order: FilterOrder,
    ops: &[Filter<OpsFilter>],
    mut matches: impl FnMut(OpsFilter) -> bool,
) -> bool {
    let fit = ops.iter().find(|filter| matches(filter.kind) == filter.matching);
    match (order, fit, ops.last()) {
        (FilterOrder::AnyRejects, fit, _) => fit.is_none(),
        (FilterOrder::FirstFit, Some(filter), _) => filter.allow,
        (FilterOrder::FirstFit, None, last) => last.is_none_or(|last| !last.allow),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter<K>(kind: K, matching: bool, allow: bool) -> Filter<K> {
        Filter { kind, matching, allow }
    }

    #[test]
    fn any_fitting_filter_rejects_in_the_old_order() {
        let ops = [filter(OpsFilter::Anon, true, true), filter(OpsFilter::Unmapped, false, true)];
        let passes = |anon, unmapped| {
            ops_passes(FilterOrder::AnyRejects, &ops, |kind| match kind {
                OpsFilter::Anon => anon,
                _ => unmapped,
            })
        };
        assert!(passes(false, true));
        assert!(!passes(true, true) && !passes(false, false), "`allow` is not known");
    }

    #[test]
    fn first_fit_decides_and_the_rest_is_the_opposite() {
        let allows = [filter(OpsFilter::Anon, true, false), filter(OpsFilter::Young, true, true)];
        let passes = |ops: &[Filter<OpsFilter>], anon, young| {
            ops_passes(FilterOrder::FirstFit, ops, |kind| if kind == OpsFilter::Anon { anon } else { young })
        };
        assert!(!passes(&allows, true, true), "the first one rejects");
        assert!(passes(&allows, false, true));
        assert!(!passes(&allows, false, false), "the last one allows, so the rest is rejected");
        assert!(passes(&allows[..1], false, false), "the last one rejects, so the rest is allowed");
        assert!(passes(&[], true, true));
    }

    #[test]
    fn core_filter_that_allows_skips_the_others() {
        let core = [filter(CoreFilter::Target(1), true, true)];
        let verdict = |order, has_ops, fits| core_verdict(order, &core, has_ops, |_| fits);
        assert_eq!(verdict(FilterOrder::FirstFit, true, true), CoreVerdict::Allowed);
        assert_eq!(verdict(FilterOrder::FirstFit, true, false), CoreVerdict::Passed);
        assert_eq!(verdict(FilterOrder::FirstFit, false, false), CoreVerdict::Rejected);
        assert_eq!(verdict(FilterOrder::AnyRejects, true, true), CoreVerdict::Rejected);
        assert_eq!(verdict(FilterOrder::AnyRejects, false, false), CoreVerdict::Passed);
        assert_eq!(core_verdict(FilterOrder::FirstFit, &[], false, |_| true), CoreVerdict::Passed);
    }

    #[test]
    fn range_across_the_border_of_a_filter_is_cut() {
        let kind = CoreFilter::Addresses(100..200);
        let fit = |range: Range| match kind.fit(0, &range, 10) {
            Fit::Whole(matches) => Err(matches),
            Fit::CutAt(at) => Ok(at),
        };
        assert_eq!([fit(0..300), fit(100..300), fit(150..200)], [Ok(100), Ok(200), Err(true)]);
        assert_eq!([fit(0..100), fit(200..210)], [Err(false), Err(false)]);
    }
}
