//! Rules of migration to choose from: what becomes of a huge page for which the target node has no free block.

use crate::choice::choice;

choice! {
    /// What becomes of a huge page for which no block is free on the node that it is to be promoted to.
    MisplacedHuge {
        /// The huge page stays where it is.
        Whole = "whole",
        /// The huge page goes page by page.
        Split = "split",
    }
}
