//! The direction in which each figure is better, for the colours of charts. A figure that is not listed here stays uncoloured.

/// The direction in which a figure is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// Time, misses, work.
    Less,
    /// Hit ratios, throughput.
    More,
    /// More of it can be good or bad: pages promoted, pages activated.
    Neither,
}

/// The effect of a change on a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is better after it.
    Better,
    /// It is worse after it.
    Worse,
    /// It differs, or the figure has no better way.
    Neither,
}

/// Counts of which less is better, by the beginning of their names: losses, and work because of a shortage of memory.
const COSTS: [&str; 32] = [
    "allocstall",
    "bytes moved per useful byte",
    "compact_fail",
    "compact_stall",
    "direct reclaim calls",
    "errors",
    "kswapd requests",
    "kswapd wake-ups",
    "major faults",
    "memory.events high",
    "memory.events max",
    "memory.events oom",
    "misses",
    "oom_kill",
    "pages read",
    "pages written",
    "pgmajfault",
    "pgmigrate_fail",
    "pgscan",
    "ping-pong",
    "pswpin",
    "pswpout",
    "read ahead, never used",
    "read misses",
    "reclaim for writes",
    "records a GiB",
    "records of hot pages",
    "rmap_steps",
    "thp_fault_fallback",
    "thp_swpout_fallback",
    "workingset_nodereclaim",
    "workingset_refault",
];

/// A prefix of [`COSTS`] that says something else.
const NO_COSTS: [&str; 1] = ["pages read ahead"];

impl Better {
    /// That of a figure by its full name, `task reader: runtime_ns`, or by its name alone.
    pub fn of(name: &str) -> Better {
        let name = name.rsplit(": ").next().unwrap_or(name);
        let is_cost = || COSTS.iter().any(|cost| name.starts_with(cost)) && !NO_COSTS.contains(&name);
        match name {
            _ if name.ends_with("hit ratio") || name.ends_with("_per_s") => Better::More,
            _ if name.ends_with("_ns") || is_cost() => Better::Less,
            _ => Better::Neither,
        }
    }

    /// Returns the effect of a change of that sign.
    pub fn verdict(self, change: f64) -> Verdict {
        match (self, change < 0.0) {
            (Better::Neither, _) => Verdict::Neither,
            (Better::Less, true) | (Better::More, false) => Verdict::Better,
            (Better::Less, false) | (Better::More, true) => Verdict::Worse,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_better_hit_ratio_is_better_and_a_longer_runtime_is_worse() {
        let verdicts = [
            ("task server: hit ratio", 3.0, Verdict::Better),
            ("task server: throughput_per_s", -3.0, Verdict::Worse),
            ("task server: runtime_ns", 3.0, Verdict::Worse),
            ("thread kswapd0: CPU time_ns", -3.0, Verdict::Better),
            ("memcg /host: workingset_refault_file", 3.0, Verdict::Worse),
            ("device nvme: pages read", -3.0, Verdict::Better),
            ("run: pages read ahead", 3.0, Verdict::Neither),
            ("run: read ahead, never used", 3.0, Verdict::Worse),
            ("tiers: pages promoted", 3.0, Verdict::Neither),
            ("memcg /host: memory.current_bytes", 3.0, Verdict::Neither),
            ("what nobody knows", 3.0, Verdict::Neither),
        ];
        for (name, change, verdict) in verdicts {
            assert_eq!(Better::of(name).verdict(change), verdict, "{name}");
        }
    }
}
