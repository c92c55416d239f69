//! What differs between versions of Linux. [access-aware 1.2, 1.4, 1.5, 2.3, 2.6]

use crate::filter::FilterOrder;
use crate::quota::FirstWindow;
use crate::region::Between;
use crate::split::OverHalf;

/// The rules of one version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rules {
    /// A window ends at a time, and not after a number of samples.
    pub window_by_clock: bool,
    /// Each scheme has an apply interval; otherwise schemes are applied at the end of a window.
    pub apply_intervals: bool,
    /// The count that schemes see between two window ends.
    pub between: Between,
    /// A region's age restarts when it begins or ceases to be idle, however small the change is.
    pub age_zero: bool,
    /// The split when there are more than half of the allowed regions.
    pub over_half: OverHalf,
    /// Regions above the size limit are cut at the start and in each window, and the limit is renewed in each window.
    pub strict_min_regions: bool,
    /// The right part of a cut region has the count of the left one.
    pub cut_copies_count: bool,
    /// The limit of a quota in its first window.
    pub first_window: FirstWindow,
    /// An effective quota of 0 allows nothing; otherwise it sets no limit.
    pub zero_is_nothing: bool,
    /// A quota is full when less than the smallest region is left.
    pub full_below_region: bool,
    /// How filters combine.
    pub filter_order: FilterOrder,
    /// Regions that a filter rejects count when the lowest priority is chosen.
    pub rejected_fill_quota: bool,
    /// A piece that a quota has cut off is joined to its left neighbour again.
    pub joins_pieces: bool,
    /// The first PSI value of a goal is all stall since boot; otherwise it is neutral.
    pub psi_since_boot: bool,
}

impl Rules {
    /// Those of 6.1.
    pub const V6_1: Rules = Rules {
        window_by_clock: true,
        apply_intervals: false,
        between: Between::Finished,
        age_zero: false,
        over_half: OverHalf::Nothing,
        strict_min_regions: false,
        cut_copies_count: false,
        first_window: FirstWindow::Computed,
        zero_is_nothing: false,
        full_below_region: false,
        filter_order: FilterOrder::AnyRejects,
        rejected_fill_quota: true,
        joins_pieces: false,
        psi_since_boot: true,
    };

    /// Those of 6.12.
    pub const V6_12: Rules = Rules {
        window_by_clock: false,
        apply_intervals: true,
        between: Between::MovingSum,
        cut_copies_count: true,
        first_window: FirstWindow::Unlimited,
        ..Rules::V6_1
    };

    /// Those of 7.2.
    pub const V7_2: Rules = Rules {
        age_zero: true,
        strict_min_regions: true,
        first_window: FirstWindow::Computed,
        zero_is_nothing: true,
        full_below_region: true,
        filter_order: FilterOrder::FirstFit,
        rejected_fill_quota: false,
        joins_pieces: true,
        ..Rules::V6_12
    };

    /// Those of 7.3.
    pub const V7_3: Rules = Rules {
        between: Between::Weighted,
        over_half: OverHalf::Rotating,
        psi_since_boot: false,
        ..Rules::V7_2
    };

    /// All of the above, in order.
    #[cfg(test)]
    pub(crate) const ALL: [Rules; 4] = [Rules::V6_1, Rules::V6_12, Rules::V7_2, Rules::V7_3];
}
