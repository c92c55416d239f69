//! Rules of zswap that differ from kernel to kernel, and remedies: each a switch of the policy of groups that name none.
//! [reclaim 6; tiering-zswap-6.12 1]

use crate::choice::choice;
use crate::declare::rules;

choice! {
    /// How the shrinker is kept from taking pages that will be needed again.
    ZswapProtection {
        /// A number of entries is protected. Each store and each swap-in raises the number, and a long list
        /// halves it.
        Size = "6.8",
        /// Each entry gets a second chance, and as many entries fewer are taken as pages had to be read from
        /// the device.
        SecondChance = "6.12",
    }
}

choice! {
    /// Treatment of a page that does not shrink.
    Incompressible {
        /// The page goes to the device.
        Reject = "reject",
        /// The page is stored uncompressed, so that pages reach the device in the order of their age.
        Store = "store",
    }
}

choice! {
    /// How the worker that empties a full pool goes through groups.
    WorkerWalk {
        /// The worker evicts the two oldest entries of one group each time that a page finds the pool full. A
        /// page of the pool held no more. The worker goes no further, so a pool that was full stays nearly
        /// full.
        OnePage = "one_page",
        /// The worker starts at the first group each time, and goes no further than the first one that was
        /// removed. A group without entries counts as a failure.
        Restart = "restart",
        /// The worker continues where it was, one entry per node of each group.
        Cursor = "cursor",
        /// The worker continues where it was, 32 entries per node of each group.
        Batch = "batch",
    }
}

choice! {
    /// Treatment of a page that was written back for the pool, when its write has ended.
    WritebackRotation {
        /// The page goes to the cold end of its list, if it is on one by then.
        Baseline = "baseline",
        /// The page is queued for that in any case, and goes there if it is on a list and inactive when the queue is drained. The fix of the
        /// RFC of February 2024.
        RotateUnlisted = "rotate_unlisted",
        /// The page is dropped (PG_dropbehind), as posted.
        Dropbehind = "dropbehind",
        /// The page is dropped, and its shadow stays: no task asked for the page, so the shadow of its last use
        /// is not evaluated until one does. In no kernel.
        KeepShadow = "keep_shadow",
    }
}

rules! {
    /// What zswap does.
    ZswapRules at machine.zswap as ZSWAP {
    }
    "zswap.protection": protection: ZswapProtection = ZswapProtection::SecondChance,
        [ZswapProtection::Size => "rests ..6.7" "A", ZswapProtection::Size => "6.8..6.11" "m", ZswapProtection::SecondChance => "6.12.." "B C m"],
        Some(("zswap.toml", "6.8")),
        "How the dynamic shrinker avoids writing back pages that will be needed again. `6.8`: a number of entries is protected. `6.12`: each entry gets a second chance, and the number taken is reduced by the number of pages that had to be read from the device.";
    "zswap.same_filled": same_filled: bool = false,
        [true => "4.16..6.11" "A", false => "6.12.." "B"],
        Some(("zswap.toml", "true")),
        "A page of one repeated word is stored as that word and takes no memory of the pool.";
    "zswap.incompressible": incompressible: Incompressible = Incompressible::Reject,
        [Incompressible::Reject => "..6.17" "A B", Incompressible::Store => "6.18.." "C"],
        Some(("regressions/z3-pool-full.toml", "store")),
        "A page that does not shrink goes to the device (reject), or is stored uncompressed (store), so that it is not swapped out before older ones.";
    "zswap.worker": worker: WorkerWalk = WorkerWalk::Cursor,
        [WorkerWalk::OnePage => "..6.4" "A m", WorkerWalk::Restart => "6.6..6.10" "m", WorkerWalk::Cursor => "6.11..7.2" "B C m",
            WorkerWalk::Batch => "7.3.." "D"],
        Some(("regressions/z2-first-groups-only.toml", "restart")),
        "How far the worker empties a full pool, and in which order it visits groups. `one_page`: by one page of the pool for each page that found it full, so that evicted pages bypass the pool until others leave it. The other values empty it down to the accept threshold. `restart`: from the first group each time and no further than a removed one. `cursor`: on from its last position. `batch`: on from its last position, 32 entries at a time.";
    "zswap.proactive_shrink": proactive_shrink: bool = false,
        [false => ".." "A B C D", true => "posted" ""],
        Some(("regressions/z3-pool-full.toml", "true")),
        "The worker begins 1 % above the accept threshold, so that the pool is seldom full and hot pages need not pass cold ones on the way to the device. Proposed, in no kernel.";
    "zswap.writeback_rotation": writeback_rotation: WritebackRotation = WritebackRotation::Baseline,
        [WritebackRotation::Baseline => ".." "A B C D", WritebackRotation::RotateUnlisted => "posted" "",
            WritebackRotation::Dropbehind => "posted" "", WritebackRotation::KeepShadow => "never" ""],
        Some(("regressions/z1-written-back-at-the-head.toml", "rotate_unlisted")),
        "What happens to a page after it was written back. `baseline`: it moves to the cold end of its list if it is on one when the write ends. `rotate_unlisted`: it is queued for that in any case (the fix of February 2024). `dropbehind`: it is dropped. `keep_shadow`: it is dropped and leaves the shadow of its last use, which no task has refaulted yet (in no kernel).";
}
