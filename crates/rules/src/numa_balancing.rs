//! Rules of NUMA balancing: which mappings are scanned, which pages move to the tasks that use them, which pages of slow memory are promoted.
//! [access-aware 6]

use crate::choice::choice;
use crate::declare::rules;

choice! {
    /// How hot a page must be to be promoted when fast memory is short.
    PromotionThreshold {
        /// By the rate limit: an eighth more or less of it in a `scan_period_max` (all kernels).
        RateLimit = "rate_limit",
        /// By capacity: within a second, the pages that count as hot do not exceed the free or inactive ones.
        Capacity = "capacity",
        /// By its list: one that faults while it is active; another becomes active (TPP).
        Active = "active",
    }
}

choice! {
    /// Treatment of a page of slow memory at a hint fault when tiers of memory are not balanced.
    SlowNode {
        /// It may move at its second hint fault, as any other page.
        SecondFault = "second_fault",
        /// It stays.
        Never = "never",
    }
}

choice! {
    /// Mappings that a scan skips because no thread here uses them.
    SkippedMappings {
        /// None.
        Nothing = "none",
        /// From its third pass on, each mapping without a hint fault of the scanning thread.
        Unused = "unused",
        /// The same, but an unused mapping has its turn after some passes, and one of them in each pass.
        UnusedInTurn = "unused_in_turn",
    }
}

choice! {
    /// Moves of hint faults that count as promotions (`pgpromote_success`).
    PromoteCount {
        /// Each from slow to fast memory.
        AnyMove = "any_move",
        /// Those only while tiers of memory are balanced.
        Tiering = "tiering",
    }
}

rules! {
    /// What NUMA balancing does.
    NumaBalancingRules at machine.numa_balancing as NUMA_BALANCING {
    }
    "numa_balancing.slow_node": slow_node: SlowNode = SlowNode::SecondFault,
        [SlowNode::SecondFault => ".." "A B C D", SlowNode::Never => "posted" ""],
        Some(("regressions/x8-promotion-without-tiering.toml", "never")),
        "What a hint fault does with a page of slow memory if kernel.numa_balancing has bit 1 but not bit 2. `second_fault`: the page may be promoted at its second hint fault. Neither its hotness nor the rate limit counts. `never`: it stays.";
    "numa_balancing.reset_counts": reset_counts: bool = true,
        [false => "..6.12.116" "A", true => "6.12.117..6.12" "B", false => "6.13..7.2" "C", true => "7.3.." "D"],
        Some(("regressions/x11-scan-period-that-stays-long.toml", "false")),
        "A thread's counts of local, remote and failed hint faults restart when a failed migration has doubled its scan period. Without it, one failed migration doubles the period at each pass until it is kernel.sched.numa_balancing.scan_period_max_ms.";
    "numa_balancing.skipped_mappings": skipped_mappings: SkippedMappings = SkippedMappings::UnusedInTurn,
        [SkippedMappings::Nothing => "..6.3" "A", SkippedMappings::Unused => "6.4..6.6" "S", SkippedMappings::UnusedInTurn => "6.7.." "B C D S"],
        Some(("regressions/x9-mappings-never-scanned-again.toml", "unused")),
        "Which mappings a scan skips. none: it marks all. unused: from its third pass on, it skips mappings without a hint fault of the scanning thread; without marks such a mapping never gets one. unused_in_turn: such a mapping has its turn after as many passes as the process has threads, and each pass scans one.";
    "numa_balancing.single_node_cpuset": single_node_cpuset: bool = false,
        [false => "..6.15" "A B", true => "6.16.." "C D S"],
        Some(("regressions/x10-scans-of-a-one-node-cpuset.toml", "true")),
        "Memory of a process whose cpuset.mems allows one node is not scanned. Without it, hint faults cost time although no page can be better placed.";
    "numa_balancing.promote_count": promote_count: PromoteCount = PromoteCount::Tiering,
        [PromoteCount::AnyMove => "..6.1" "A", PromoteCount::Tiering => "6.12.." "B C D"],
        Some(("regressions/x8-promotion-without-tiering.toml", "any_move")),
        "Which moves from slow to fast memory by hint faults count in pgpromote_success: all (any_move), or those while kernel.numa_balancing has bit 2 (tiering).";
}
