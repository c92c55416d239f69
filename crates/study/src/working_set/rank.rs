//! The machine on which a new job of a known size evicts the smallest amount of memory in use.
//!
//! ```text
//!   memory  ├─ reserved ─┼─ free ──────┼─ idle ────────┼─ in use ───────────────┤
//!   job                  ├─ no cost ───┼─ evicted ─────┼─ pushed out ──▶
//!                                                      headroom: what is left of free and idle
//! ```
//! A dump has the two parts on the right. The user must give the memory size. All memory outside of generations counts as free, including
//! the kernel's own, mlocked and huge pages, unless they are reserved. Without swap anonymous pages cannot be evicted, so idle ones do not
//! count as space.

use std::cmp::Reverse;

use pageout_kerneltext::lru_gen::working_set::{Bracket, Estimate};

/// The job to place, in pages.
#[derive(Debug, Clone, Copy)]
pub struct Job {
    /// Its size.
    pub pages: u64,
    /// True if anonymous pages can leave.
    pub has_swap: bool,
}

/// The memory of a machine, in pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// All of it.
    pub memory: u64,
    /// Free pages of the machine.
    pub reserved: u64,
}

impl Room {
    /// Pages other than those `listed` in generations; below 0 if these reach into the reserved part.
    fn left(&self, listed: u64) -> i64 {
        to_signed(self.memory) - to_signed(self.reserved) - to_signed(listed)
    }

    /// Pages in no generation, and not reserved.
    pub fn free(&self, estimate: &Estimate) -> u64 {
        self.left(estimate.total().listed).max(0) as u64
    }
}

/// The effect of placing it on one machine, in pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Landing {
    /// The machine's name.
    pub machine: String,
    /// The size of its memory.
    pub memory: u64,
    /// In no generation, and not reserved.
    pub free: u64,
    /// Idle pages that can leave.
    pub idle: Bracket,
    /// Pages in use.
    pub used: Bracket,
    /// Pages that must leave for the job.
    pub evicted: u64,
    /// Pages that would have to go although they are in use.
    pub pushed_out: Bracket,
    /// Free and idle pages that are left afterwards; what is pushed out counts below 0.
    pub headroom: (i64, i64),
    /// Pages that the job lacks even with everything evicted.
    pub lacking: u64,
}

impl Landing {
    /// The job on a machine with this amount of memory.
    pub fn of(machine: &str, estimate: &Estimate, room: Room, job: Job) -> Landing {
        let total = estimate.total();
        let evictable = if job.has_swap { total } else { estimate.file };
        // Lists that reach into what is reserved have to shrink for that alone.
        let wanted = to_signed(job.pages) - room.left(total.listed);
        let idle = evictable.idle();
        let headroom = (to_signed(idle.at_least) - wanted, to_signed(idle.at_most) - wanted);
        let evicted = wanted.max(0) as u64;
        let pushed_out =
            Bracket { at_least: (-headroom.1).max(0) as u64, at_most: (-headroom.0).max(0) as u64 };
        Landing {
            machine: machine.to_string(),
            memory: room.memory,
            free: room.free(estimate),
            idle,
            used: total.used,
            evicted,
            pushed_out,
            headroom,
            lacking: evicted.saturating_sub(evictable.listed),
        }
    }

    /// Returns true if the job fits, with all evictable memory evicted.
    pub fn fits(&self) -> bool {
        self.lacking == 0
    }
}

/// Puts the best machine first: where the job fits, pushes out the least at worst, leaves the most headroom, and
/// evicts the least for it.
pub fn rank(landings: &mut [Landing]) {
    landings.sort_by(|a, b| {
        let key = |landing: &Landing| {
            let pushed_out = (landing.pushed_out.at_most, landing.pushed_out.at_least);
            (landing.lacking, pushed_out, Reverse(landing.headroom), landing.evicted)
        };
        key(a).cmp(&key(b)).then_with(|| a.machine.cmp(&b.machine))
    });
}

/// Page counts are far from the end of either range: dumps hold at most `PAGES_MAX`, sizes are divided by that of a page.
fn to_signed(pages: u64) -> i64 {
    i64::try_from(pages).expect("no memory has as many pages")
}

#[cfg(test)]
mod tests {
    use super::*;
    use pageout_kerneltext::lru_gen::working_set::Pages;

    fn pages(at_least: u64, at_most: u64, listed: u64) -> Pages {
        Pages { used: Bracket { at_least, at_most }, listed }
    }

    /// 300 to 350 of 600 anonymous and 100 to 120 of 300 file pages are in use.
    fn estimate() -> Estimate {
        Estimate { anon: pages(300, 350, 600), file: pages(100, 120, 300), ..Estimate::default() }
    }

    fn landing(memory: u64, reserved: u64, job: u64, has_swap: bool) -> Landing {
        Landing::of("m", &estimate(), Room { memory, reserved }, Job { pages: job, has_swap })
    }

    #[track_caller]
    fn check(landing: &Landing, evicted: u64, pushed_out: (u64, u64), headroom: (i64, i64), lacking: u64) {
        let found = (landing.pushed_out.at_least, landing.pushed_out.at_most);
        assert_eq!(
            (landing.evicted, found, landing.headroom, landing.lacking),
            (evicted, pushed_out, headroom, lacking)
        );
    }

    #[test]
    fn free_memory_is_taken_first_then_idle_then_what_is_in_use() {
        check(&landing(1000, 0, 100, true), 0, (0, 0), (430, 500), 0);
        check(&landing(1000, 0, 400, true), 300, (0, 0), (130, 200), 0);
        check(&landing(1000, 0, 550, true), 450, (0, 20), (-20, 50), 0);
        check(&landing(1000, 0, 700, true), 600, (100, 170), (-170, -100), 0);
        check(&landing(1000, 0, 1001, true), 901, (401, 471), (-471, -401), 1);
    }

    #[test]
    fn what_is_reserved_is_nobodys() {
        check(&landing(1000, 100, 100, true), 100, (0, 0), (330, 400), 0);
        let over = landing(1000, 150, 100, true);
        check(&over, 150, (0, 0), (280, 350), 0);
        assert_eq!(over.free, 0);
    }

    #[test]
    fn without_swap_idle_anonymous_pages_make_no_room() {
        check(&landing(1000, 0, 300, false), 200, (0, 20), (-20, 0), 0);
        check(&landing(1000, 0, 500, false), 400, (200, 220), (-220, -200), 100);
    }

    #[test]
    fn the_best_machine_pushes_out_the_least_at_worst_and_then_has_the_most_headroom() {
        let named = |name: &str, memory| Landing { machine: name.into(), ..landing(memory, 0, 550, true) };
        let mut landings = [
            named("small", 500),
            named("b", 1100),
            named("tight", 1000),
            named("large", 2000),
            named("a", 1100),
        ];
        rank(&mut landings);
        assert_eq!(
            landings.each_ref().map(|landing| landing.machine.as_str()),
            ["large", "a", "b", "tight", "small"]
        );
    }
}
