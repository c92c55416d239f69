//! Naive models of the policies that the field compares with: plain lists and maps, searched and sorted, after the paper's words.

use crate::models::{Model, take};
use pageout_policy::check::Random;
use std::collections::{BTreeMap, VecDeque};

fn fraction(draws: &mut Random) -> f64 {
    (draws.draw() >> 11) as f64 / (1u64 << 53) as f64
}

pub(crate) fn lru_k(capacity: usize, k: usize, history: usize) -> Model {
    // All times of use of pages in memory and of those that are remembered, the last one last.
    let mut uses: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    let mut there: Vec<u32> = Vec::new();
    let mut left: VecDeque<u32> = VecDeque::new();
    let mut now = 0;
    Box::new(move |page| {
        now += 1;
        let was_there = there.contains(&page);
        if !was_there {
            take(&mut left, page);
            if there.len() == capacity {
                // A page that was remembered has k - 1 of its uses at most: those of an eviction before are too old.
                let rank = |page: &u32| {
                    let times = &uses[page];
                    let kth = times.len().checked_sub(k).map_or(0, |at| times[at]);
                    (kth, if kth == 0 { times[times.len() - 1] } else { 0 })
                };
                let victim = there.iter().copied().min_by_key(rank).expect("it is full");
                there.retain(|&other| other != victim);
                let times = uses.get_mut(&victim).expect("it was used");
                times.drain(..times.len().saturating_sub(k - 1));
                left.push_front(victim);
                if left.len() > history {
                    uses.remove(&left.pop_back().expect("there is one"));
                }
            }
            there.push(page);
        }
        uses.entry(page).or_default().push(now);
        was_there
    })
}

pub(crate) fn lfu_da(capacity: usize) -> Model {
    // By page: priority, last use, uses.
    let mut pages: BTreeMap<u32, (u32, u32, u32)> = BTreeMap::new();
    let (mut now, mut age) = (0, 0);
    Box::new(move |page| {
        now += 1;
        let was_there = pages.contains_key(&page);
        if !was_there && pages.len() == capacity {
            let (&victim, &(priority, ..)) = pages.iter().min_by_key(|(_, of)| **of).expect("it is full");
            pages.remove(&victim);
            age = priority;
        }
        let (priority, last, uses) = pages.entry(page).or_default();
        *uses += 1;
        (*priority, *last) = (*uses + age, now);
        was_there
    })
}

pub(crate) fn mq(capacity: usize, lists: usize, life: usize, left_max: usize) -> Model {
    // Pages in memory, least recently moved first: list, uses, time of expiry.
    let mut pages: Vec<(u32, usize, u32, usize)> = Vec::new();
    let mut left: VecDeque<(u32, u32)> = VecDeque::new();
    let mut now = 0;
    Box::new(move |page| {
        let found = pages.iter().position(|&(other, ..)| other == page);
        let mut uses = 1;
        if let Some(at) = found {
            uses += pages.remove(at).2;
        } else {
            if let Some(at) = left.iter().position(|&(other, _)| other == page) {
                uses += left.remove(at).expect("it was found").1;
            }
            if pages.len() == capacity {
                let lowest = pages.iter().map(|&(_, list, ..)| list).min().expect("it is full");
                let at = pages.iter().position(|&(_, list, ..)| list == lowest).expect("it has one");
                let (victim, _, uses, _) = pages.remove(at);
                left.push_front((victim, uses));
                left.truncate(left_max);
            }
        }
        let list = (0..lists).rev().find(|list| uses >> list > 0).expect("it has a use");
        pages.push((page, list, uses, now + life));
        now += 1;
        for list in 1..lists {
            let Some(at) = pages.iter().position(|of| of.1 == list) else { continue };
            if pages[at].3 < now {
                let (page, _, uses, _) = pages.remove(at);
                pages.push((page, list - 1, uses, now + life));
            }
        }
        found.is_some()
    })
}

pub(crate) fn qd_lp(capacity: usize, probation_max: usize, left_max: usize, most: u8) -> Model {
    let [mut probation, mut main]: [VecDeque<(u32, u8)>; 2] = Default::default();
    let mut left = VecDeque::new();
    let main_max = capacity - probation_max;
    Box::new(move |page| {
        if let Some((_, uses)) = probation.iter_mut().chain(&mut main).find(|(other, _)| *other == page) {
            *uses = most.min(*uses + 1);
            return true;
        }
        let is_known = take(&mut left, page);
        let was_full = probation.len() + main.len() == capacity;
        if is_known {
            main.push_front((page, 0));
        } else {
            probation.push_front((page, 0));
        }
        // The parts are too full by the new page alone; who overflows probation goes, or overflows the main part.
        while was_full && probation.len() + main.len() > capacity {
            let newest = (page, 0);
            if main.len() > main_max && main.iter().any(|of| *of != newest || !is_known) {
                let is_newest = is_known && main.back() == Some(&newest);
                assert!(!is_newest, "the newest page of a queue with others is not the oldest");
                let (page, uses) = main.pop_back().expect("it has too many");
                if uses > 0 {
                    // The newest stays at the head until the hand has gone round.
                    let at = usize::from(is_known);
                    main.insert(at, (page, uses - 1));
                }
            } else {
                let (page, uses) = probation.pop_back().expect("one of the two has too many");
                if uses > 0 {
                    let at = usize::from(is_known);
                    main.insert(at, (page, 0));
                } else {
                    left.push_front(page);
                    left.truncate(left_max);
                }
            }
        }
        false
    })
}

/// The ring as a list, from the page under the hand `hot` on; the head of the ring is its end.
pub(crate) fn clock_pro(capacity: usize, cold: usize, left_max: usize) -> Model {
    #[derive(Clone, Copy, PartialEq)]
    enum Is {
        Hot,
        Cold,
        Trial,
        Left,
    }
    struct Ring {
        capacity: usize,
        cold_max: usize,
        /// Page, what it is, and whether it was used.
        pages: VecDeque<(u32, Is, bool)>,
        /// The pages under the hands `cold` and `test`.
        hands: [Option<u32>; 2],
    }
    impl Ring {
        fn at(&self, page: u32) -> usize {
            self.pages.iter().position(|&(other, ..)| other == page).expect("it is in the ring")
        }
        fn count(&self, is: impl Fn(Is) -> bool) -> usize {
            self.pages.iter().filter(|of| is(of.1)).count()
        }
        fn hot(&self) -> usize {
            self.count(|is| is == Is::Hot)
        }
        fn there(&self) -> usize {
            self.count(|is| is != Is::Left)
        }
        /// Hands wait at the next page that they are for.
        fn settle(&mut self) {
            for hand in 0..2 {
                let is_for = |is| matches!((hand, is), (0, Is::Cold) | (1, Is::Left)) || is == Is::Trial;
                for _ in 0..self.pages.len() {
                    let Some(page) = self.hands[hand] else { break };
                    if is_for(self.pages[self.at(page)].1) {
                        break;
                    }
                    self.hands[hand] = Some(self.next(page));
                }
            }
        }
        fn push(&mut self, page: u32, is: Is) {
            self.settle();
            self.pages.push_back((page, is, false));
            self.hands.iter_mut().for_each(|hand| _ = hand.get_or_insert(page));
            self.settle();
        }
        fn next(&self, page: u32) -> u32 {
            self.pages[(self.at(page) + 1) % self.pages.len()].0
        }
        fn remove(&mut self, page: u32) {
            let next = Some(self.next(page)).filter(|&next| next != page);
            for hand in self.hands.iter_mut().filter(|hand| **hand == Some(page)) {
                *hand = next;
            }
            let at = self.at(page);
            self.pages.remove(at);
            self.settle();
        }
        /// A trial ends; returns false if the page is gone with it.
        fn end_trial(&mut self, page: u32) -> bool {
            let at = self.at(page);
            let (_, is, is_used) = self.pages[at];
            if (is == Is::Trial || is == Is::Left) && !is_used {
                self.cold_max = (self.cold_max - 1).max(1);
            }
            match is {
                Is::Left => self.remove(page),
                Is::Trial => self.pages[at].1 = Is::Cold,
                Is::Hot | Is::Cold => {}
            }
            self.settle();
            is != Is::Left
        }
        fn turn_hot_hand(&mut self) {
            let (page, is, is_used) = self.pages[0];
            if is == Is::Hot {
                self.pages[0] = (page, if is_used { Is::Hot } else { Is::Cold }, false);
            } else if !self.end_trial(page) {
                return;
            }
            self.pages.rotate_left(1);
            self.settle();
        }
        fn promote(&mut self, page: u32) {
            self.cold_max = (self.cold_max + 1).min(self.capacity);
            self.push(page, Is::Hot);
            while self.hot() > self.capacity - self.cold_max {
                self.turn_hot_hand();
            }
        }
    }
    let mut ring = Ring { capacity, cold_max: cold, pages: VecDeque::new(), hands: [None; 2] };
    Box::new(move |page| {
        let found = ring.pages.iter().position(|&(other, ..)| other == page);
        if let Some(at) = found.filter(|&at| ring.pages[at].1 != Is::Left) {
            ring.pages[at].2 = true;
            return true;
        }
        if found.is_some() {
            ring.remove(page);
        }
        let was_full = ring.there() == capacity;
        while ring.there() == capacity {
            while ring.hot() == capacity {
                ring.turn_hot_hand();
            }
            let at_hand = ring.hands[0].expect("it is full");
            let at = ring.at(at_hand);
            match ring.pages[at] {
                (_, Is::Hot | Is::Left, _) => unreachable!("the hand waits at a cold page"),
                (_, Is::Cold, false) => ring.remove(at_hand),
                (_, Is::Trial, false) => {
                    ring.pages[at].1 = Is::Left;
                    ring.settle();
                    while ring.count(|is| is == Is::Left) > left_max {
                        let tested = ring.hands[1].expect("it has pages");
                        ring.end_trial(tested);
                    }
                }
                (_, Is::Cold, true) => {
                    ring.remove(at_hand);
                    ring.push(at_hand, Is::Trial);
                }
                (_, Is::Trial, true) => {
                    ring.remove(at_hand);
                    ring.promote(at_hand);
                }
            }
        }
        if found.is_some() {
            ring.promote(page);
        } else {
            let is_hot = !was_full && ring.hot() < capacity - ring.cold_max;
            ring.push(page, if is_hot { Is::Hot } else { Is::Trial });
        }
        false
    })
}

pub(crate) fn hyperbolic(capacity: usize, sample: u32, seed: u64) -> Model {
    // Page, time of arrival, uses.
    let mut pages: Vec<(u32, u128, u128)> = Vec::new();
    let mut draws = Random::new(seed);
    let mut now = 0;
    Box::new(move |page| {
        now += 1;
        if let Some((.., uses)) = pages.iter_mut().find(|(other, ..)| *other == page) {
            *uses += 1;
            return true;
        }
        if pages.len() < capacity {
            pages.push((page, now, 1));
            return false;
        }
        let drawn: Vec<usize> = (0..sample).map(|_| draws.below(capacity as u64) as usize).collect();
        let mut order = drawn.clone();
        // Fractions of the same order by cross multiplication; a stable sort keeps the one drawn first in front.
        order.sort_by(|&one, &other| {
            let ((_, since, uses), (_, other_since, other_uses)) = (pages[one], pages[other]);
            (uses * (now - other_since)).cmp(&(other_uses * (now - since)))
        });
        pages[order[0]] = (page, now, 1);
        false
    })
}

pub(crate) fn lhd(capacity: usize, sample: u32, period: u64, explore: f64, seed: u64) -> Model {
    struct Page {
        page: u32,
        last: u64,
        is_explorer: bool,
        /// Ages at its hits, the last one last.
        hits: Vec<u64>,
    }
    let (unit, highest) = ((capacity as u64).div_ceil(32), 1023);
    let period = period.max(capacity as u64);
    // By class and age: counts of hits, and of all events.
    let mut counts: BTreeMap<(u32, u64), [u64; 2]> = BTreeMap::new();
    let mut densities: BTreeMap<(u32, u64), f64> = BTreeMap::new();
    let mut pages: Vec<Page> = Vec::new();
    let mut draws = Random::new(seed);
    let mut now = 0;
    let age = move |page: &Page, now: u64| ((now - page.last) / unit).min(highest);
    let class = |page: &Page| match page.hits.len() {
        0 => 0,
        _ => 1 + (1 + page.hits.iter().rev().take(2).sum::<u64>()).ilog2(),
    };
    Box::new(move |page| {
        now += 1;
        let found = pages.iter().position(|of| of.page == page);
        if let Some(at) = found {
            let of = &mut pages[at];
            let age = age(of, now);
            let count = counts.entry((class(of), age)).or_default();
            count.iter_mut().for_each(|count| *count += 1 << 16);
            of.hits.push(age);
            (of.is_explorer, of.last) = (false, now);
        } else {
            let mut place = pages.len();
            if pages.len() == capacity {
                let density = |of: &Page| {
                    let age = age(of, now);
                    let density = densities.get(&(class(of), age)).copied();
                    let kept = of.is_explorer && age < highest;
                    density.unwrap_or(1.0 / (age + 1) as f64) + if kept { 1.0 } else { 0.0 }
                };
                let drawn: Vec<usize> = (0..sample).map(|_| draws.below(capacity as u64) as usize).collect();
                place = drawn[0];
                for &at in &drawn {
                    if density(&pages[at]) < density(&pages[place]) {
                        place = at;
                    }
                }
                let victim = &pages[place];
                counts.entry((class(victim), age(victim, now))).or_default()[1] += 1 << 16;
            }
            let is_explorer = fraction(&mut draws) < explore;
            let new = Page { page, last: now, is_explorer, hits: Vec::new() };
            if place == pages.len() { pages.push(new) } else { pages[place] = new }
        }
        if now % period == 0 {
            // The definition: hits from this age on, over the time from this age to each event.
            for class in 0..=12 {
                for age in 0..=highest {
                    let later = || counts.range((class, age)..=(class, highest));
                    let hits: u64 = later().map(|(_, [hits, _])| hits).sum();
                    let time: u64 = later().map(|((_, at), [_, events])| (at - age + 1) * events).sum();
                    if time > 0 {
                        densities.insert((class, age), hits as f64 / time as f64);
                    }
                }
            }
            for [hits, events] in counts.values_mut() {
                let evictions = *events - *hits;
                *hits = *hits * 9 / 10;
                *events = *hits + evictions * 9 / 10;
            }
        }
        found.is_some()
    })
}

/// Weights of two experts whose sum is 1.
fn reweigh(weights: &mut [f64; 2], which: usize, by: f64) {
    weights[which] *= by;
    let sum = weights[0] + weights[1];
    *weights = weights.map(|weight| (weight / sum).max(1e-9));
}

pub(crate) fn lecar(capacity: usize, rate: f64, discount: f64, seed: u64) -> Model {
    // Least recently used first. Of names: page, uses, time; the oldest last.
    let mut pages: Vec<(u32, u32)> = Vec::new();
    let mut left: [VecDeque<(u32, u32, u64)>; 2] = Default::default();
    let mut weights = [0.5; 2];
    let mut draws = Random::new(seed);
    let mut now = 0;
    let discount = libm::log(discount) / capacity as f64;
    Box::new(move |page| {
        now += 1;
        if let Some(at) = pages.iter().position(|&(other, _)| other == page) {
            let (_, uses) = pages.remove(at);
            pages.push((page, uses + 1));
            return true;
        }
        let mut uses = 1;
        for (expert, names) in left.iter_mut().enumerate() {
            if let Some(at) = names.iter().position(|&(other, ..)| other == page) {
                let (_, before, then) = names.remove(at).expect("it was found");
                uses += before;
                let regret = libm::exp(discount * (now - then) as f64);
                reweigh(&mut weights, 1 - expert, libm::exp(rate * regret));
            }
        }
        if pages.len() == capacity {
            let is_lru = fraction(&mut draws) < weights[0];
            let least = pages.iter().map(|&(_, uses)| uses).min();
            let lfu = pages.iter().position(|&(_, uses)| Some(uses) == least).expect("it is full");
            let (victim, uses) = pages.remove(if is_lru { 0 } else { lfu });
            let names = &mut left[usize::from(!is_lru)];
            names.push_front((victim, uses, now));
            names.truncate(capacity);
        }
        pages.push((page, uses));
        false
    })
}

pub(crate) fn cacheus(capacity: usize, seed: u64) -> Model {
    #[derive(Clone, Copy)]
    struct Page {
        page: u32,
        uses: u32,
        last: u64,
        is_new: bool,
        is_demoted: bool,
    }
    // Newest first.
    let [mut scan, mut reused]: [VecDeque<Page>; 2] = Default::default();
    let mut left: [VecDeque<Page>; 2] = Default::default();
    let mut scan_max = (capacity / 2).max(1);
    let mut weights = [0.5; 2];
    let mut draws = Random::new(seed);
    let any = |draws: &mut Random| 0.001 + fraction(draws) * (1.0 - 0.001);
    let mut rates = [any(&mut draws); 2];
    let (mut hits, mut hits_before, mut in_vain, mut now) = (0_u64, 0_u64, 0, 0_u64);
    Box::new(move |page| {
        now += 1;
        let at = |list: &VecDeque<Page>| list.iter().position(|of| of.page == page);
        let demoted = scan.iter().filter(|of| of.is_demoted).count();
        let new_left = left[0].iter().filter(|of| of.is_new).count();
        let mut known = None;
        let mut was_there = false;
        if let Some(found) = at(&scan).and_then(|at| scan.remove(at)) {
            if found.is_demoted {
                scan_max = scan_max.saturating_sub((new_left / demoted).max(1)).max(1);
            }
            (known, was_there) = (Some(found), true);
        } else if let Some(found) = at(&reused).and_then(|at| reused.remove(at)) {
            (known, was_there) = (Some(found), true);
        } else if let Some(found) = at(&left[0]).and_then(|at| left[0].remove(at)) {
            reweigh(&mut weights, 0, libm::exp(-rates[1]));
            if found.is_new {
                scan_max = (scan_max + (demoted / new_left).max(1)).min(capacity);
            }
            known = Some(found);
        } else if let Some(found) = at(&left[1]).and_then(|at| left[1].remove(at)) {
            reweigh(&mut weights, 1, libm::exp(-rates[1]));
            known = Some(found);
        }
        hits += u64::from(was_there);
        if !was_there && scan.len() + reused.len() == capacity {
            let recent = *scan.back().or(reused.back()).expect("it is full");
            let all = scan.iter().chain(&reused);
            let rare = *all.min_by_key(|of| (of.uses, u64::MAX - of.last)).expect("it is full");
            let by_recency = recent.page == rare.page || fraction(&mut draws) < weights[0];
            let mut victim = if by_recency { recent } else { rare };
            scan.retain(|of| of.page != victim.page);
            reused.retain(|of| of.page != victim.page);
            if recent.page != rare.page {
                victim.is_demoted = false;
                let names = &mut left[usize::from(!by_recency)];
                names.push_front(victim);
                names.truncate(capacity / 2);
            }
        }
        match known {
            None => scan.push_front(Page { page, uses: 1, last: now, is_new: true, is_demoted: false }),
            Some(found) => {
                let uses = found.uses + 1;
                reused.push_front(Page { page, uses, last: now, is_new: false, is_demoted: false });
                while reused.len() > capacity - scan_max {
                    let oldest = reused.pop_back().expect("it has too many");
                    scan.push_front(Page { is_demoted: true, ..oldest });
                }
            }
        }
        if now % capacity as u64 == 0 {
            let [before, rate] = rates;
            let (moved, rose) = (rate - before, hits as f64 - hits_before as f64);
            let mut next = rate;
            if moved == 0.0 {
                in_vain += u32::from(rose <= 0.0);
                if in_vain == 10 {
                    (in_vain, next) = (0, any(&mut draws));
                }
            } else {
                let sign = if rose / moved > 0.0 { 1.0 } else { -1.0 };
                (in_vain, next) = (0, (rate + sign * (rate * moved).abs()).clamp(0.001, 1.0));
            }
            rates = [rate, next];
            (hits_before, hits) = (hits, 0);
        }
        was_there
    })
}
