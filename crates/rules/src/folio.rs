//! Rules of large folios in the page cache: which file systems have them, and which orders a write chooses. [folios 1.1, 1.2, 1.5, 2.6]

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
    /// The parts of a folio that a truncation or a hole cuts.
    TruncateSplit {
        /// Single pages.
        All = "all",
        /// Folios as large as possible on both sides of the cut.
        AtCut = "at_cut",
    }
}

choice! {
    /// The mount option `huge=` of tmpfs: which pages of its files may be in large folios. [folios 2.6]
    TmpfsHuge {
        /// None. It is the kernel's default, because unused pages of a folio cannot be reclaimed without swap.
        Never = "never",
        /// All.
        Always = "always",
        /// Those of folios that end within the file, or within the write that makes it longer.
        WithinSize = "within_size",
        /// Those that are faulted in through a mapping with the hint MADV_HUGEPAGE.
        Advise = "advise",
    }
}

choice! {
    /// The orders of the folios of tmpfs, if its mount option allows large ones. A fault has a huge page or a single one in each. [folios 2.6]
    TmpfsOrders {
        /// A write has a huge page or a single one, too.
        Huge = "huge",
        /// At most the order that the length of the rest of the write has.
        Length = "length",
        /// The largest folio around the page that is allowed, and has no page yet.
        Highest = "highest",
    }
}
