//! Rules of migration to choose from: the treatment of a huge page for which the target node has no free block.

use crate::choice::choice;

choice! {
    /// Treatment of a huge page when the node that it would be promoted to has no free block.
    MisplacedHuge {
        /// The huge page stays where it is.
        Whole = "whole",
        /// The huge page goes page by page.
        Split = "split",
    }
}
