//! The working-set estimate: how many pages are in use, as far as the ages of generations can tell.
//!
//! A generation is born when aging has looked at the pages. Pages used since the look before go into the generation that was the
//! youngest until then. So a page's generation says between which two births its use was last seen:
//!
//! ```text
//!             seq 4          seq 5          seq 6       seq 7
//!   ...───────┼──────────────┼──────────────┼───────────┼──────────▶ now
//!   use seen  └─ pages of 4 ─┘─ pages of 5 ─┘─ of 6 ────┘─ of 7 ───
//!                                     └───────── window ──────────┘
//!   at least   no             no             yes         yes          born within the window
//!   at most    no             yes            yes         yes          the next one is born within the window
//! ```
//!
//! Three things make the bracket wider:
//!
//! - **The oldest generation is a drain.** The kernel keeps four. To make a fifth, it moves the pages of the oldest to the next
//!   one, used or not. So the oldest generation that has pages of a type says until when they may have been used, not since when.
//!   Generation 0 is the exception: before it the group had nothing.
//! - **Accessed bits are not looked at between two births.** If the youngest generation is older than the window, they were not
//!   looked at within it: at least none, at most all.
//! - **Without swap the generations of anonymous memory go round.** Aging moves no page that can't be evicted, so the oldest
//!   generation's pages find themselves in the youngest without having been used. Nothing about them is certain.
//!
//! Use that it can't see: since the youngest birth, other than by faults; and by read(2). That moves no page to a younger
//! generation (it counts in tiers, and eviction protects by them), so a file in use by read(2) counts as idle.
//!
//! Moves that it takes for use: eviction moves pages, too, without looking at their entries. If a tier refaults, its pages go to the
//! second oldest generation. Pages that could not be freed (locked, held, dirty, being written) go to the youngest ones. So "at
//! least" is a true bound where little is evicted. When eviction is busy, it may be too high by the pages that eviction has put
//! back since.
//!
//! Source: the seed multigenerational-lru-v4, "working set estimation", and the rules of aging in Linux 6.12.

use std::ops::{Add, AddAssign};

use super::{Dump, Memcg, Node, PageType};

/// A number of pages, known to lie between two bounds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bracket {
    /// Lower bound.
    pub at_least: u64,
    /// Upper bound.
    pub at_most: u64,
}

impl Add for Bracket {
    type Output = Bracket;

    fn add(self, other: Bracket) -> Bracket {
        Bracket { at_least: self.at_least + other.at_least, at_most: self.at_most + other.at_most }
    }
}

/// The pages of one type.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pages {
    /// Pages in use within the window.
    pub used: Bracket,
    /// Pages in any generation.
    pub listed: u64,
}

impl Pages {
    /// Pages not in use within the window.
    pub fn idle(&self) -> Bracket {
        Bracket { at_least: self.listed - self.used.at_most, at_most: self.listed - self.used.at_least }
    }
}

impl Add for Pages {
    type Output = Pages;

    fn add(self, other: Pages) -> Pages {
        Pages { used: self.used + other.used, listed: self.listed + other.listed }
    }
}

/// Pages in use of a cgroup or a machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Estimate {
    /// Anonymous pages.
    pub anon: Pages,
    /// Pages of files.
    pub file: Pages,
    /// Pages whose accessed bits were not looked at within the window: between none and all of them are in use.
    pub not_looked_at: u64,
    /// Pages in an oldest generation that was created within the window: some may have been used before it.
    pub in_drain: u64,
}

impl Estimate {
    /// Both types together.
    pub fn total(&self) -> Pages {
        self.anon + self.file
    }
}

impl AddAssign for Estimate {
    fn add_assign(&mut self, other: Estimate) {
        self.anon = self.anon + other.anon;
        self.file = self.file + other.file;
        self.not_looked_at += other.not_looked_at;
        self.in_drain += other.in_drain;
    }
}

/// The window before a dump within which pages count as in use.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    /// Length in milliseconds, up to the dump.
    pub within_ms: u64,
    /// True if the machine can swap. Without swap, aging never closes a generation of anonymous pages.
    pub has_swap: bool,
}

/// Pages in use of a cgroup on one node.
pub fn of_node(node: &Node, window: Window) -> Estimate {
    let Window { within_ms, has_swap } = window;
    let mut estimate = Estimate::default();
    let is_looked_at = node.youngest().age_ms <= within_ms;
    for kind in PageType::ALL {
        let listed = node.generations.iter().map(|generation| generation.pages[kind as usize]).sum();
        let open = Pages { used: Bracket { at_least: 0, at_most: listed }, listed };
        let pages = if !is_looked_at {
            estimate.not_looked_at += listed;
            open
        } else if kind == PageType::Anon && !has_swap {
            open
        } else {
            of_type(node, kind, within_ms, &mut estimate.in_drain)
        };
        match kind {
            PageType::Anon => estimate.anon = pages,
            PageType::File => estimate.file = pages,
        }
    }
    estimate
}

fn of_type(node: &Node, kind: PageType, within_ms: u64, in_drain: &mut u64) -> Pages {
    let mut result = Pages::default();
    let first = &node.generations[0];
    let births = node.generations.iter().skip(1).map(|generation| generation.age_ms).chain([0]);
    let youngest = node.youngest().seq;
    for (generation, until_ms) in node.generations.iter().zip(births) {
        let pages = generation.pages[kind as usize];
        // Aging never makes the youngest generation the oldest one of a type.
        let is_drain = result.listed == 0 && generation.seq < youngest;
        let since_ms = match is_drain {
            false => Some(generation.age_ms),
            true => (first.seq == 0).then_some(first.age_ms),
        };
        result.listed += pages;
        let is_certain = since_ms.is_some_and(|since_ms| since_ms <= within_ms);
        if is_certain {
            result.used.at_least += pages;
        } else if generation.age_ms <= within_ms {
            *in_drain += pages;
        }
        // A generation may be as old as the next one, and then lies within a window that ends there.
        if is_certain || until_ms < within_ms {
            result.used.at_most += pages;
        }
    }
    result
}

/// Pages in use of a cgroup on all nodes.
pub fn of_memcg(memcg: &Memcg, window: Window) -> Estimate {
    let mut sum = Estimate::default();
    memcg.nodes.iter().for_each(|node| sum += of_node(node, window));
    sum
}

/// Estimates the pages in use of all cgroups.
pub fn of_dump(dump: &Dump, window: Window) -> Estimate {
    let mut sum = Estimate::default();
    dump.memcgs.iter().for_each(|memcg| sum += of_memcg(memcg, window));
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lru_gen::tests::parse;

    /// The file column of a group with generations of these (age, pages), from generation `seq` on.
    fn check(seq: u64, rows: &[(u64, u64)], within_ms: u64, expected: (u64, u64)) -> Estimate {
        let rows = rows.iter().zip(seq..).map(|((age, pages), seq)| format!(" {seq} {age} 0 {pages}\n"));
        let text = format!("memcg 1 /\n node 0\n{}", rows.collect::<String>());
        let estimate = of_dump(&parse(&text).unwrap(), Window { within_ms, has_swap: true });
        let used = estimate.total().used;
        assert_eq!((used.at_least, used.at_most), expected, "{text} within {within_ms} ms");
        estimate
    }

    #[test]
    fn generations_born_within_the_window_count_and_the_one_it_cuts_may() {
        let rows = [(90_000, 1), (60_000, 10), (30_000, 100), (5_000, 1000)];
        check(4, &rows, 30_000, (1100, 1100));
        check(4, &rows, 40_000, (1100, 1110));
        check(4, &rows, 59_999, (1100, 1110));
        check(4, &rows, 60_000, (1110, 1110));
        check(4, &rows, 61_000, (1110, 1111));
    }

    #[test]
    fn the_oldest_generation_never_says_since_when_it_was_used() {
        let rows = [(90_000, 1), (60_000, 10), (30_000, 100), (5_000, 1000)];
        assert_eq!(check(4, &rows, 600_000, (1110, 1111)).in_drain, 1);
        let emptied = [(90_000, 0), (60_000, 10), (30_000, 100), (5_000, 1000)];
        assert_eq!(check(4, &emptied, 600_000, (1100, 1110)).in_drain, 10);
        check(4, &[(90_000, 0), (5_000, 1000)], 600_000, (1000, 1000));
    }

    #[test]
    fn what_a_group_has_is_no_older_than_the_group() {
        // As recorded on a real 6.12, 38 s after the group was made, without aging since.
        let rows = [(37_788, 0), (37_788, 6126), (37_788, 99), (37_788, 372)];
        check(0, &rows, 120_000, (6597, 6597));
        check(0, &rows, 37_788, (6597, 6597));
        // Never aged within ten seconds: no page is known to be used, none known not to be.
        assert_eq!(check(0, &rows, 10_000, (0, 6597)).not_looked_at, 6597);
    }

    #[test]
    fn the_window_that_nobody_looked_in_leaves_everything_open() {
        let rows = [(90_000, 1), (60_000, 10), (30_000, 100)];
        assert_eq!(check(4, &rows, 29_999, (0, 111)).not_looked_at, 111);
        assert_eq!(check(4, &rows, 30_000, (100, 100)).not_looked_at, 0);
    }

    #[test]
    fn types_nodes_and_groups_are_counted_apart_and_summed() {
        let rows = " 7 9000 1 2\n 8 5000 10 20\n 9 100 100 200\n";
        let text =
            format!("memcg 1 /\n node 0\n{rows} node 1\n{rows}memcg 2 /a\n node 0\n{rows} node 1\n{rows}");
        let dump = parse(&text).unwrap();
        let one = of_memcg(&dump.memcgs[1], Window { within_ms: 6000, has_swap: true });
        assert_eq!(one.anon, Pages { used: Bracket { at_least: 220, at_most: 222 }, listed: 222 });
        assert_eq!(one.file, Pages { used: Bracket { at_least: 440, at_most: 444 }, listed: 444 });
        assert_eq!(one.file.idle(), Bracket { at_least: 0, at_most: 4 });
        assert_eq!(
            of_dump(&dump, Window { within_ms: 6000, has_swap: true }).total().used,
            Bracket { at_least: 1320, at_most: 1332 }
        );
    }

    #[test]
    fn without_swap_nothing_of_anonymous_memory_is_certain() {
        let dump =
            parse("memcg 1 /\n node 0\n 4 9000 0 0\n 5 6000 0 0\n 6 3000 0 7\n 7 100 2000 0\n").unwrap();
        let anon = |has_swap| of_dump(&dump, Window { within_ms: 1000, has_swap }).anon.used;
        assert_eq!(anon(true), Bracket { at_least: 2000, at_most: 2000 });
        assert_eq!(anon(false), Bracket { at_least: 0, at_most: 2000 });
    }
}
