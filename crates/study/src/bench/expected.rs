//! What a question is expected to take: time by what simulations took on one machine, memory by what they keep of each page.

use std::num::NonZero;
use std::thread;

use pageout_cache::Choice;

use super::run::MARKS_MAX;
use super::{Question, Trace};

/// What a question takes, roughly.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Expected {
    /// Simulations, or readings of all sizes at once.
    pub runs: usize,
    /// How long they take, in nanoseconds.
    pub ns: u64,
    /// How much memory, with the trace's.
    pub bytes: u64,
}

/// What a simulation takes.
#[derive(Clone, Copy)]
struct Cost {
    ns_an_access: f64,
    bytes_a_page: f64,
}

impl Cost {
    /// Of a policy at a size.
    fn of(policy: &Choice) -> Cost {
        let (ns_an_access, bytes_a_page) = match policy.name() {
            "fifo" | "clock" | "sieve" | "mru" => (20.0, 25.0),
            "lru" | "random" => (25.0, 25.0),
            "opt" => (100.0, 12.0),
            "lfu" | "lru-2" | "lirs" | "w-tinylfu" => (60.0, 40.0),
            _ => (45.0, 25.0),
        };
        Cost { ns_an_access, bytes_a_page }
    }

    /// Of LRU at so many sizes in one reading.
    fn of_curve(sizes: usize) -> Cost {
        match sizes <= MARKS_MAX {
            true => Cost { ns_an_access: 30.0 + 0.75 * sizes as f64, bytes_a_page: 12.0 },
            false => Cost { ns_an_access: 170.0, bytes_a_page: 40.0 },
        }
    }
}

impl Question<'_> {
    /// What counting each access takes.
    pub fn expected(&self, trace: &Trace) -> Expected {
        let sizes = self.sizes.len();
        let (mut runs, mut ns, mut costs) = (0, 0.0, Vec::new());
        let accesses = trace.accesses as f64;
        for policy in self.policies {
            let (times, cost) = match policy.name() {
                "lru" if sizes > 1 => (1, Cost::of_curve(sizes)),
                _ => (sizes, Cost::of(policy)),
            };
            runs += times;
            ns += times as f64 * cost.ns_an_access * accesses;
            costs.extend((0..times).map(|_| cost.bytes_a_page));
        }
        let cpus = thread::available_parallelism().map_or(1, NonZero::get);
        let jobs = if self.jobs == 0 { cpus } else { self.jobs.min(cpus) }.clamp(1, runs.max(1));
        // What is not in memory goes through all of them at once.
        let at_once = if trace.pages.is_some() { jobs } else { runs };
        costs.sort_by(|one, next| next.total_cmp(one));
        let of_pages: f64 =
            costs[..at_once].iter().map(|bytes| bytes * f64::from(trace.distinct_pages)).sum();
        let has_bound = self.policies.iter().any(Choice::is_bound);
        let of_accesses = match (&trace.pages, has_bound) {
            (Some(_), true) => 8.0,
            (Some(_), false) => 4.0,
            (None, _) => 0.0,
        };
        let bytes = of_pages + of_accesses * accesses;
        Expected { runs, ns: (ns / jobs as f64) as u64, bytes: bytes as u64 }
    }
}
