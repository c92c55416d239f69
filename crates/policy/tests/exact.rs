//! The textbooks beside the policies: each misses where the plainest form of its algorithm does, to the access.

use pageout_policy::check::{Random, Step, Trace};
use pageout_policy::{Cache, Listed, Telling, Uses};
use std::collections::VecDeque;

trait Naive {
    /// True if the page was there.
    fn access(&mut self, page: u32) -> bool;
}

/// Pages in order of arrival, or of use, the oldest first.
struct InOrder {
    capacity: usize,
    pages: VecDeque<u32>,
    of_use: bool,
}

impl Naive for InOrder {
    fn access(&mut self, page: u32) -> bool {
        let found = self.pages.iter().position(|&other| other == page);
        match found {
            Some(_) if !self.of_use => return true,
            Some(at) => drop(self.pages.remove(at)),
            None if self.pages.len() == self.capacity => drop(self.pages.pop_front()),
            None => {}
        }
        self.pages.push_back(page);
        found.is_some()
    }
}

/// Pages in order of arrival, the oldest first, and whether they were visited since the hand came by.
struct NaiveSieve {
    capacity: usize,
    pages: Vec<(u32, bool)>,
    hand: Option<usize>,
}

impl Naive for NaiveSieve {
    fn access(&mut self, page: u32) -> bool {
        if let Some((_, visited)) = self.pages.iter_mut().find(|(other, _)| *other == page) {
            *visited = true;
            return true;
        }
        if self.pages.len() == self.capacity {
            let mut at = self.hand.unwrap_or(0);
            while self.pages[at].1 {
                self.pages[at].1 = false;
                at = (at + 1) % self.pages.len();
            }
            self.pages.remove(at);
            self.hand = (at < self.pages.len()).then_some(at);
        }
        self.pages.push((page, false));
        false
    }
}

/// The algorithm of the paper, with plain queues: pages with their uses, the oldest first.
struct NaiveS3Fifo {
    capacity: usize,
    small: VecDeque<(u32, u8)>,
    main: VecDeque<(u32, u8)>,
    ghosts: VecDeque<u32>,
}

impl NaiveS3Fifo {
    fn evict(&mut self) {
        loop {
            let is_small_full = self.small.len() >= (self.capacity / 10).max(1);
            if is_small_full || self.main.is_empty() {
                let (page, uses) = self.small.pop_front().expect("memory is full");
                if uses < 2 {
                    self.ghosts.push_back(page);
                    if self.ghosts.len() > self.capacity - self.capacity / 10 {
                        self.ghosts.pop_front();
                    }
                    return;
                }
                self.main.push_back((page, 0));
            } else {
                let (page, uses) = self.main.pop_front().expect("it was looked at");
                match uses {
                    0 => return,
                    uses => self.main.push_back((page, uses - 1)),
                }
            }
        }
    }
}

impl Naive for NaiveS3Fifo {
    fn access(&mut self, page: u32) -> bool {
        if let Some((_, uses)) = self.small.iter_mut().chain(&mut self.main).find(|(other, _)| *other == page)
        {
            *uses = (*uses + 1).min(3);
            return true;
        }
        if self.small.len() + self.main.len() == self.capacity {
            self.evict();
        }
        match self.ghosts.iter().position(|&other| other == page) {
            Some(at) => {
                self.ghosts.remove(at);
                self.main.push_back((page, 0));
            }
            None => self.small.push_back((page, 0)),
        }
        false
    }
}

fn naive(name: &str, capacity: usize) -> Box<dyn Naive> {
    match name {
        "fifo" | "lru" => Box::new(InOrder { capacity, pages: VecDeque::new(), of_use: name == "lru" }),
        "sieve" => Box::new(NaiveSieve { capacity, pages: Vec::new(), hand: None }),
        "s3-fifo" => Box::new(NaiveS3Fifo {
            capacity,
            small: VecDeque::new(),
            main: VecDeque::new(),
            ghosts: VecDeque::new(),
        }),
        _ => panic!("{name} has no plain form here"),
    }
}

#[test]
fn every_listed_policy_hits_where_the_plainest_form_of_it_does() {
    let mut random = Random::new(11);
    for listed in pageout_policy::POLICIES {
        let uses = (listed.make)(0).uses();
        for number in (0..90).step_by(3) {
            let trace = Trace::new(number);
            let capacity = 1 + random.below(trace.pages.into()) as u32;
            for telling in [Telling::Batches(1), Telling::Batches(256), Telling::Late, Telling::Never] {
                let is_allowed = match telling {
                    Telling::Batches(_) => true,
                    Telling::Late => uses == Uses::Late,
                    Telling::Never => uses == Uses::Never,
                };
                if !is_allowed {
                    continue;
                }
                let mut naive = naive(listed.name, capacity as usize);
                let mut cache = Cache::new((listed.make)(0), capacity, telling);
                for (at, page) in trace.steps.iter().filter_map(Step::accessed).enumerate() {
                    let was_there = cache.access(page, false, 1).unwrap_or_else(|fault| panic!("{fault}"));
                    assert_eq!(
                        was_there,
                        naive.access(page),
                        "{}, room for {capacity}, {telling:?}: access {at} of trace {number}, to page {page}",
                        listed.name
                    );
                }
            }
        }
    }
}

#[test]
fn a_name_finds_its_policy() {
    assert_eq!(Listed::by_name("sieve").map(|listed| listed.name), Some("sieve"));
    assert!(Listed::by_name("sieve2").is_none());
}
