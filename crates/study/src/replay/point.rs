//! A size of memory, replayed in the machine, and its figures.

use pageout_sim::Cause;
use pageout_sim::scenario::keys::Limit;
use serde_json::{Value, json};

use super::ask::Ask;
use crate::error::Failed;
use crate::figures;
use crate::result::run_result::{RefaultDistanceResult, RunResult, TaskResult, counter};
use crate::result::user_policies;
use crate::result::variants::Runs;

/// A size of memory with its run.
#[derive(Debug)]
pub struct Point {
    /// The memory, in pages.
    pub pages: u64,
    /// The memory, as it was asked for.
    pub limit: Limit,
    /// One run, unless a signal came before it.
    pub runs: Runs,
}

impl Point {
    /// Why it has no result, with what helps.
    pub(super) fn failures(&self, ask: &Ask) -> Vec<Failed> {
        let size = figures::bytes(self.pages * 4096);
        let advice = match ask.lacks_swap() {
            true => "\nhelp: only swap can evict anonymous pages, so add --swap disk or --swap zram",
            false => "",
        };
        let failures = self.runs.failures_of(&format!("with {size} of memory")).into_iter();
        failures.map(|failure| Failed { message: failure.message + advice, ..failure }).collect()
    }

    /// All that is known of its run, if it succeeded.
    pub fn result(&self) -> Option<&RunResult> {
        self.runs.results.first()
    }

    /// The figures of its run, if it succeeded.
    pub fn figures(&self) -> Option<Figures> {
        self.result().map(Figures::of)
    }
}

/// Figures of a run.
#[derive(Debug)]
pub struct Figures {
    /// Accesses that did not find their page.
    pub misses: u64,
    /// Misses as a share of the accesses.
    pub miss_ratio: f64,
    /// Refaults, of file and anonymous pages.
    pub refaults: u64,
    /// Refaults by their distance.
    pub refault_distances: Vec<RefaultDistanceResult>,
    /// Pages read from all devices.
    pub device_pages_read: u64,
    /// Accesses per second.
    pub throughput_per_s: f64,
    /// Simulated time, in nanoseconds.
    pub end_ns: u64,
    /// 99th percentile of the time that direct reclaim took, in nanoseconds.
    pub reclaim_p99_ns: u64,
    /// Allocations that asked kswapd for more free memory.
    pub kswapd_requests: u64,
    /// Times of accesses, in an open loop.
    pub open_loop: Option<OpenLoop>,
    /// Figures that a custom policy reports, by name.
    pub own: Vec<(String, f64)>,
}

impl Figures {
    /// Sums over the tasks, cgroups and devices of a run.
    pub(crate) fn of(result: &RunResult) -> Figures {
        let sum = |name: &str| -> u64 {
            result.memcgs.iter().map(|memcg| counter(&memcg.counters, name).max(0) as u64).sum()
        };
        let misses = result.tasks.iter().map(TaskResult::misses).sum();
        Figures {
            misses,
            miss_ratio: figures::share(misses, result.accesses),
            refaults: sum("workingset_refault_file") + sum("workingset_refault_anon"),
            refault_distances: result.refault_distances.clone(),
            device_pages_read: result.devices.iter().map(|device| device.pages_read).sum(),
            throughput_per_s: result.tasks.iter().map(|task| task.throughput_per_s).sum(),
            end_ns: result.end_ns,
            reclaim_p99_ns: result.reclaim.p99_ns,
            kswapd_requests: result.kswapd.requests,
            open_loop: OpenLoop::of(result),
            own: user_policies::named(&result.own_policies),
        }
    }
}

impl Figures {
    /// Returns the distance in pages that this share of refaults has at most, as the upper end of its step; none if no distance is known.
    pub fn refault_distance(&self, share: f64) -> Option<u64> {
        let all: u64 = self.refault_distances.iter().map(|of| of.refaulted_pages).sum();
        let mut left = (share * all as f64).ceil() as u64;
        let is_it = |of: &&RefaultDistanceResult| {
            let is_within = left <= of.refaulted_pages;
            left = left.saturating_sub(of.refaulted_pages);
            is_within
        };
        self.refault_distances.iter().find(is_it).map(|of| of.to_pages)
    }
}

/// Times that only an open loop has: how long accesses took from the time at which they arrived.
#[derive(Debug)]
pub struct OpenLoop {
    /// Median, in nanoseconds.
    pub p50_ns: u64,
    /// 99th percentile, in nanoseconds.
    pub p99_ns: u64,
    /// 99.9th percentile, in nanoseconds.
    pub p999_ns: u64,
    /// Share of accesses that waited for their turn.
    pub waited_share: f64,
    /// Time that accesses waited for their turn, over all of them, in nanoseconds.
    pub wait_mean_ns: f64,
    /// Time that the task was busy with accesses, in nanoseconds.
    pub busy_ns: u64,
    /// The same as a share of the simulated time.
    pub busy_share: f64,
}

impl OpenLoop {
    /// Figures of the only task of a replay. None in a closed loop, which does not measure the duration of accesses.
    fn of(result: &RunResult) -> Option<OpenLoop> {
        let [task] = &result.tasks[..] else { return None };
        let access = task.access.as_ref()?;
        let (waited, wait_ns) =
            access.by_cause.get(Cause::Turn).map_or((0, 0), |turn| (turn.count, turn.total_ns));
        let busy_ns = access.all.total_ns - wait_ns;
        Some(OpenLoop {
            p50_ns: access.all.p50_ns,
            p99_ns: access.all.p99_ns,
            p999_ns: access.all.p999_ns,
            waited_share: figures::share(waited, access.all.count),
            wait_mean_ns: wait_ns as f64 / access.all.count.max(1) as f64,
            busy_ns,
            busy_share: figures::share(busy_ns, result.end_ns),
        })
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "p50_ns": self.p50_ns,
            "p99_ns": self.p99_ns,
            "p999_ns": self.p999_ns,
            "waited_share": self.waited_share,
            "wait_mean_ns": self.wait_mean_ns,
            "busy_ns": self.busy_ns,
            "busy_share": self.busy_share,
        })
    }
}

/// Figures that a policy reports, as JSON.
pub(super) fn own_json(own: &[(String, f64)]) -> Value {
    own.iter().map(|(name, of)| (name.clone(), json!(of))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refault_distance_of_a_share_is_the_end_of_its_step() {
        let step = |from_pages, to_pages, refaulted_pages| RefaultDistanceResult {
            from_pages,
            to_pages,
            refaulted_pages,
        };
        let of = |refault_distances: Vec<RefaultDistanceResult>| Figures {
            misses: 0,
            miss_ratio: 0.0,
            refaults: 10,
            refault_distances,
            device_pages_read: 0,
            throughput_per_s: 0.0,
            end_ns: 0,
            reclaim_p99_ns: 0,
            kswapd_requests: 0,
            open_loop: None,
            own: Vec::new(),
        };
        let some = of(vec![step(4, 7, 5), step(8, 15, 4), step(64, 127, 1)]);
        let distances = [0.1, 0.5, 0.51, 0.9, 0.91, 1.0].map(|share| some.refault_distance(share));
        assert_eq!(distances, [7, 7, 15, 15, 127, 127].map(Some));
        assert_eq!(of(Vec::new()).refault_distance(0.5), None);
    }
}
