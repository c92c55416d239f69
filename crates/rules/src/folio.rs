//! Rules of large folios in the page cache: which file systems have them, and which orders a write chooses. [folios 1.1, 1.2, 1.5]

use crate::choice::choice;

choice! {
    /// The orders of the folios in which a write(2) creates pages.
    WriteOrder {
        /// Single pages.
        Single = "single",
        /// The largest order that the length of the rest of the call has, at most; smaller ones if there is no such block.
        Length = "length",
    }
}

choice! {
    /// What becomes of a folio that a truncation or a hole cuts.
    TruncateSplit {
        /// Single pages.
        All = "all",
        /// Folios as large as possible on both sides of the cut.
        AtCut = "at_cut",
    }
}
