//! Rules of zswap that differ from kernel to kernel, and remedies: each a switch of the policy of groups that name none.
//! [reclaim 6; tiering-zswap-6.12 1]

use crate::choice::choice;

choice! {
    /// How the shrinker is kept from taking what will be wanted again.
    ZswapProtection {
        /// A number of entries, which each store and each swap-in raises and a long list halves. Linux 6.8.
        Size = "6.8",
        /// A second chance for each entry, and as many entries less as pages had to be read from the device. Linux 6.12.
        SecondChance = "6.12",
    }
}

choice! {
    /// What becomes of a page that does not shrink.
    Incompressible {
        /// The page goes to the device.
        Reject = "reject",
        /// The page is stored as it is, so that the order in which pages reach the device is that of their age. Linux 6.18.
        Store = "store",
    }
}

choice! {
    /// How the worker that empties a full pool goes through groups.
    WorkerWalk {
        /// From the first group each time, and no further than the first one that was removed; a group with nothing counts as a
        /// failure. Linux 6.10.
        Restart = "restart",
        /// On from where it was, an entry a node of each group. Linux 6.12.
        Cursor = "cursor",
        /// On from where it was, 32 entries a node of each group. Linux 6.18.
        Batch = "batch",
    }
}

choice! {
    /// What becomes of a page that was written back for the pool, when its write has ended.
    WritebackRotation {
        /// The page goes to the cold end of its list, if it is on one by then.
        Baseline = "baseline",
        /// The page is queued for that in any case, and goes there if it is on a list and inactive when the queue is drained. The fix of the
        /// RFC of February 2024.
        RotateUnlisted = "rotate_unlisted",
        /// The page is dropped (PG_dropbehind). Kernels after 6.18.
        Dropbehind = "dropbehind",
        /// The page is dropped, and its shadow stays: nobody asked for the page, so the shadow of its last use is not evaluated until somebody
        /// does. In no kernel.
        KeepShadow = "keep_shadow",
    }
}

/// The rules of one kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ZswapRules {
    /// How the shrinker is kept from taking what will be wanted again.
    pub protection: ZswapProtection,
    /// A page of one word repeated is kept as that word, without memory of the pool. Before 6.12.
    pub same_filled: bool,
    /// What becomes of a page that does not shrink.
    pub incompressible: Incompressible,
    /// How the worker goes through groups.
    pub worker: WorkerWalk,
    /// The worker begins before the limit is reached: 1 % above the accept threshold.
    pub proactive_shrink: bool,
    /// Where a page goes whose entry was written back.
    pub writeback_rotation: WritebackRotation,
}

impl ZswapRules {
    pub(crate) fn linux_6_8() -> ZswapRules {
        ZswapRules {
            protection: ZswapProtection::Size,
            same_filled: true,
            worker: WorkerWalk::Restart,
            ..ZswapRules::linux_6_12()
        }
    }

    pub(crate) fn linux_6_12() -> ZswapRules {
        ZswapRules {
            protection: ZswapProtection::SecondChance,
            same_filled: false,
            incompressible: Incompressible::Reject,
            worker: WorkerWalk::Cursor,
            proactive_shrink: false,
            writeback_rotation: WritebackRotation::Baseline,
        }
    }

    pub(crate) fn linux_7_1() -> ZswapRules {
        ZswapRules {
            incompressible: Incompressible::Store,
            worker: WorkerWalk::Batch,
            writeback_rotation: WritebackRotation::Dropbehind,
            ..ZswapRules::linux_6_12()
        }
    }
}
