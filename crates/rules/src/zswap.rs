//! Rules of zswap that differ from kernel to kernel, and remedies: each a switch of the policy of groups that name none.
//! [reclaim 6; tiering-zswap-6.12 1]

use crate::choice::choice;
use crate::switch::rules;

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
        /// The two oldest entries of one group each time that a page finds the pool full, which is what a page of the pool held at most. No
        /// further, so a pool that was full stays nearly so. Up to Linux 6.4.
        OnePage = "one_page",
        /// From the first group each time, and no further than the first one that was removed; a group with nothing counts as a
        /// failure. Linux 6.10.
        Restart = "restart",
        /// On from where it was, an entry a node of each group. Linux 6.12 to 7.2.
        Cursor = "cursor",
        /// On from where it was, 32 entries a node of each group. Since Linux 7.3.
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
        /// The page is dropped (PG_dropbehind). Posted, and in no version up to 7.3.
        Dropbehind = "dropbehind",
        /// The page is dropped, and its shadow stays: nobody asked for the page, so the shadow of its last use is not evaluated until somebody
        /// does. In no kernel.
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
        "How the dynamic shrinker is kept from writing back what will be wanted again: by a number of entries (6.8), or by a second chance for each and as many less as pages had to be read from the device (6.12).";
    "zswap.same_filled": same_filled: bool = false,
        [true => "4.16..6.11" "A", false => "6.12.." "B"],
        Some(("zswap.toml", "true")),
        "A page of one word repeated is kept as that word and takes nothing of the pool (before 6.12).";
    "zswap.incompressible": incompressible: Incompressible = Incompressible::Reject,
        [Incompressible::Reject => "..6.17" "A B", Incompressible::Store => "6.18.." "C"],
        Some(("regressions/z3-pool-full.toml", "store")),
        "A page that does not shrink goes to the device, or is stored as it is (6.18), so that it is not swapped out before older ones.";
    "zswap.worker": worker: WorkerWalk = WorkerWalk::Cursor,
        [WorkerWalk::OnePage => "..6.4" "A m", WorkerWalk::Restart => "6.6..6.10" "m", WorkerWalk::Cursor => "6.11..7.2" "B C m",
            WorkerWalk::Batch => "7.3.." "D"],
        Some(("regressions/z2-first-groups-only.toml", "restart")),
        "How far the worker empties a full pool, and how it goes through groups: a page of the pool for each page that found it full, so that what is evicted goes past it until others leave it (one_page, up to 6.4), and since then down to the accept threshold: from the first group each time and no further than a removed one (restart, 6.10), on from where it was (cursor, 6.12), or 32 entries at a time (batch, 7.3).";
    "zswap.proactive_shrink": proactive_shrink: bool = false,
        [false => ".." "A B C D", true => "posted" ""],
        Some(("regressions/z3-pool-full.toml", "true")),
        "The worker begins 1 % above the accept threshold, so that the pool hardly ever is full and hot pages need not pass cold ones on the way to the device. Proposed, in no kernel.";
    "zswap.writeback_rotation": writeback_rotation: WritebackRotation = WritebackRotation::Baseline,
        [WritebackRotation::Baseline => ".." "A B C D", WritebackRotation::RotateUnlisted => "posted" "",
            WritebackRotation::Dropbehind => "posted" "", WritebackRotation::KeepShadow => "never" ""],
        Some(("regressions/z1-written-back-at-the-head.toml", "rotate_unlisted")),
        "A page that was written back goes to the cold end of its list if it is on one when its write ends (baseline), is queued for that in any case (the fix of February 2024), is dropped (posted), or is dropped and leaves the shadow of its last use, which nobody has come back to yet (in no kernel).";
}
