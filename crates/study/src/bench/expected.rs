//! The expected cost of a question: time from simulations measured on one machine, memory from the data kept per page.
//!
//! ```text
//!   the trace is in memory    its accesses, and what `jobs` simulations at a time keep        bounds: the next use of each access as well
//!   it is not                 it is read once for all simulations, which are there together   bounds: a second reading, for samples of it
//! ```

use std::num::NonZero;
use std::thread;

use pageout_cache::Choice;

use pageout_cache::curve::sampling::SALTS;

use super::run::MARKS_MAX;
use super::{Question, Sampled, Trace};

/// Reading a trace that is not in memory, and finding the pages of its accesses.
const READING_NS_AN_ACCESS: f64 = 45.0;
/// Up to this size the data of a simulation fit in the processor's caches.
const CACHED_BYTES: f64 = 16e6;
/// An access to what is not.
const FAR_NS_AN_ACCESS: f64 = 65.0;
/// What knows the ids of a trace's pages, while it is read.
const IDS_BYTES_A_PAGE: f64 = 24.0;

/// The estimated cost of a question.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Expected {
    /// Number of simulations, or of passes that simulate all sizes at the same time.
    pub runs: usize,
    /// The time, in nanoseconds.
    pub ns: u64,
    /// The memory in bytes, including the trace's.
    pub bytes: u64,
}

/// What a simulation takes.
#[derive(Clone, Copy)]
struct Cost {
    ns_an_access: f64,
    bytes_a_page: f64,
}

impl Cost {
    /// Cost of an access, with this number of pages.
    fn ns(self, pages: f64) -> f64 {
        let far = 1.0 - (CACHED_BYTES / (self.bytes_a_page * pages).max(CACHED_BYTES));
        self.ns_an_access + FAR_NS_AN_ACCESS * far
    }

    /// Of a policy at a size.
    fn of(policy: &Choice) -> Cost {
        let (ns_an_access, bytes_a_page) = match policy.name() {
            "clock" => (20.0, 4.0),
            "fifo" | "sieve" | "mru" => (20.0, 13.0),
            "lru" | "random" => (25.0, 13.0),
            "opt" => (100.0, 7.0),
            "lfu" => (60.0, 13.0),
            "lirs" => (60.0, 20.0),
            "lru-2" | "lru-k" => (60.0, 48.0),
            "lfu-da" => (120.0, 36.0),
            "mq" => (60.0, 25.0),
            "qd-lp" => (45.0, 10.0),
            "clock-pro" => (60.0, 26.0),
            "hyperbolic" => (400.0, 20.0),
            "lhd" => (600.0, 28.0),
            "lecar" | "cacheus" => (160.0, 49.0),
            "w-tinylfu" => (60.0, 27.0),
            _ => (45.0, 13.0),
        };
        Cost { ns_an_access, bytes_a_page }
    }

    /// Cost of LRU at this number of sizes in one pass.
    fn of_curve(sizes: usize) -> Cost {
        match sizes <= MARKS_MAX {
            true => Cost { ns_an_access: 30.0 + 0.75 * sizes as f64, bytes_a_page: 12.0 },
            false => Cost { ns_an_access: 170.0, bytes_a_page: 40.0 },
        }
    }
}

impl Question<'_> {
    /// Estimates the cost of an answer if up to `bytes_max` of a trace are kept in memory.
    pub fn expected(&self, trace: &Trace, bytes_max: u64) -> Expected {
        let (accesses, pages, sizes) =
            (trace.accesses as f64, f64::from(trace.distinct_pages), self.sizes.len());
        let is_in_memory = trace.pages.is_some();
        let (mut runs, mut ns, mut costs) = (0, 0.0, Vec::new());
        let mut share_of_bounds = None;
        for policy in self.policies {
            let (times, cost) = match policy.name() {
                "lru" if sizes > 1 && !trace.has_removals() => (1, Cost::of_curve(sizes)),
                _ => (sizes, Cost::of(policy)),
            };
            runs += times;
            let ns_of_all = times as f64 * cost.ns(pages) * accesses;
            if policy.is_bound() && !is_in_memory {
                let share = Sampled::rate_within(trace, bytes_max).map_or(0.0, |rate| rate * SALTS as f64);
                share_of_bounds = Some(share);
                ns += share * ns_of_all;
            } else {
                ns += ns_of_all;
                costs.extend((0..times).map(|_| cost.bytes_a_page));
            }
        }
        let cpus = thread::available_parallelism().map_or(1, NonZero::get);
        let jobs = if self.jobs == 0 { cpus } else { self.jobs.min(cpus) }.clamp(1, runs.max(1));
        let ns = ns / jobs as f64;
        costs.sort_by(|one, next| next.total_cmp(one));
        let at_once = if is_in_memory { jobs.min(costs.len()) } else { costs.len() };
        let of_pages = costs[..at_once].iter().sum::<f64>() * pages;
        let of_access = 4.0 + 4.0 * f64::from(u8::from(self.policies.iter().any(Choice::is_bound)));
        let (ns, bytes) = if is_in_memory {
            (ns, of_pages + of_access * accesses)
        } else {
            let readings =
                f64::from(u8::from(!costs.is_empty())) + f64::from(u8::from(share_of_bounds.is_some()));
            let of_bounds = share_of_bounds.unwrap_or(0.0) * of_access * accesses;
            (
                ns + readings * READING_NS_AN_ACCESS * accesses,
                of_pages.max(of_bounds) + IDS_BYTES_A_PAGE * pages,
            )
        };
        Expected { runs, ns: ns as u64, bytes: bytes as u64 }
    }
}
