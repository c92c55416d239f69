//! Rules of large folios: which file systems have them, which orders a write or a fault chooses, and what swap does with them.
//! [folios 1.1, 1.2, 1.5, 2, 3.4 to 3.6]

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

choice! {
    /// The value of `hugepages-<N>kB/enabled`: which anonymous memory may have folios of a size. [folios 2.1]
    SizeEnabled {
        /// None.
        Never = "never",
        /// Mappings that ask for it by `madvise(MADV_HUGEPAGE)`.
        Madvise = "madvise",
        /// What `transparent_hugepage/enabled` says.
        Inherit = "inherit",
        /// All mappings except those that ask for none by `madvise(MADV_NOHUGEPAGE)`.
        Always = "always",
    }
}

choice! {
    /// The orders of anonymous folios. [folios 2.1, 2.2]
    AnonOrders {
        /// A huge page or single ones, by the switch of the machine.
        Huge = "huge",
        /// Orders 2 to 9, each by its own switch.
        All = "all",
    }
}

choice! {
    /// Which swapped pages come back as a large folio. [folios 2.5]
    SwapInLarge {
        /// None.
        Never = "never",
        /// Pages of a synchronous device whose slots follow each other and are aligned like the pages, if zswap was never enabled.
        Synchronous = "sync",
        /// The same if one group pays for all slots. Refusals are counted.
        SameGroup = "sync_same_group",
    }
}

choice! {
    /// How a large folio finds slots in a row. [folios 3.5]
    SwapClusters {
        /// A huge page takes a free cluster. Smaller folios find none.
        HugeOnly = "huge_only",
        /// From a free cluster, which a CPU fills with folios of one order. Used ones are not searched.
        FreeOnly = "free_only",
        /// The same, and then from used clusters of the order.
        ByOrder = "by_order",
        /// From used clusters of the order before a free one.
        NonfullFirst = "nonfull_first",
    }
}

choice! {
    /// What zswap does with a large folio. [folios 3.6]
    ZswapLarge {
        /// The folio goes to the device.
        Device = "device",
        /// zswap stores it page by page. If one is refused, all go to the device.
        Pages = "pages",
    }
}

choice! {
    /// How a large folio of tmpfs is swapped out. [folios 2.6]
    TmpfsSwapOut {
        /// As single pages.
        Split = "split",
        /// As a whole, if slots in a row are free and no page of it lies beyond the end of the file.
        Whole = "whole",
    }
}

choice! {
    /// How pages of tmpfs come back that went to swap together. [folios 2.6]
    TmpfsSwapIn {
        /// As single pages.
        Single = "single",
        /// As a large folio from a synchronous device, if zswap was never enabled. If it is refused, one page comes alone, and the others stay together in
        /// smaller parts.
        Whole = "whole",
    }
}

choice! {
    /// Which anonymous folios are split before swap-out, whether slots in a row are free or not. [folios 3.4]
    SplitFirst {
        /// All but huge pages that one entry maps.
        ByEntries = "by_entries",
        /// Those of which some pages are not mapped.
        PartlyMapped = "partly_mapped",
    }
}

choice! {
    /// Whose the queues of partly mapped folios are. [folios 2.7]
    DeferredQueue {
        /// A group's, over all nodes.
        Group = "group",
        /// A group's on a node.
        GroupAndNode = "group_and_node",
    }
}
