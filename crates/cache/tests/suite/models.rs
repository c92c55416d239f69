//! Each policy beside a naive model of it: plain lists that are searched and sorted, after the paper's words.

use crate::{field, random};
use pageout_cache::{Bare, Choice, POLICIES};
use pageout_policy::check::{Random, least_misses};
use pageout_policy::{Arrival, End, PageId, Policy, Slot};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::Ordering::Relaxed;

/// Says whether a page was in memory, and takes it in.
pub(crate) type Model = Box<dyn FnMut(u32) -> bool>;

/// Takes a page out of a list, if it is there.
pub(crate) fn take(list: &mut VecDeque<u32>, page: u32) -> bool {
    let at = list.iter().position(|&other| other == page);
    at.map(|at| list.remove(at)).is_some()
}

/// With room for so many pages, and these parameters.
fn model(policy: &str, capacity: usize, value: impl Fn(&str) -> f64) -> Option<Model> {
    let share = |name: &str| (value(name) * capacity as f64 + 1e-9) as usize;
    Some(match policy {
        "fifo" => fifo(capacity),
        "lru" => lru(capacity),
        "mru" => mru(capacity),
        "clock" => clock(capacity, (1 << value("bits") as u32) - 1),
        "sieve" => sieve(capacity),
        "slru" => {
            let segments = value("segments") as usize;
            let segment = (value("protected") / (segments - 1) as f64 * capacity as f64 + 1e-9) as usize;
            slru(capacity, segment, segments, value("fill") == 1.0)
        }
        "lfu" => lfu(capacity),
        "lru-2" => lru_2(capacity, share("history")),
        "2q" => two_q(capacity, share("in"), share("out")),
        "arc" => arc(capacity),
        "lirs" => lirs(capacity, share("hir").max(1), share("ghost")),
        "s3-fifo" => s3_fifo(
            capacity,
            share("small").max(1),
            share("ghost"),
            value("promote") as u8,
            value("fill") == 1.0,
        ),
        "w-tinylfu" => w_tinylfu(capacity, value),
        "random" => any(capacity, 5),
        "lru-k" => field::lru_k(capacity, value("k") as usize, share("history")),
        "lfu-da" => field::lfu_da(capacity),
        "mq" => field::mq(capacity, value("lists") as usize, share("life"), share("ghost")),
        "qd-lp" => field::qd_lp(
            capacity,
            share("probation").max(1),
            share("ghost"),
            (1_u32 << value("bits") as u32) as u8 - 1,
        ),
        "clock-pro" => field::clock_pro(capacity, share("cold").max(1), share("ghost")),
        "hyperbolic" => field::hyperbolic(capacity, value("sample") as u32, 5),
        "lhd" => field::lhd(capacity, value("sample") as u32, value("period") as u64, value("explore"), 5),
        "lecar" => field::lecar(capacity, value("rate"), value("discount"), 5),
        "cacheus" => field::cacheus(capacity, 5),
        _ => return None,
    })
}

fn fifo(capacity: usize) -> Model {
    let mut pages = VecDeque::new();
    Box::new(move |page| {
        if pages.contains(&page) {
            return true;
        }
        pages.push_front(page);
        pages.truncate(capacity);
        false
    })
}

fn lru(capacity: usize) -> Model {
    let mut pages = VecDeque::new();
    Box::new(move |page| {
        let was_there = take(&mut pages, page);
        pages.push_front(page);
        pages.truncate(capacity);
        was_there
    })
}

fn mru(capacity: usize) -> Model {
    let mut pages = VecDeque::new();
    Box::new(move |page| {
        let was_there = take(&mut pages, page);
        if !was_there && pages.len() == capacity {
            pages.pop_front();
        }
        pages.push_front(page);
        was_there
    })
}

/// As a queue: who was used goes round.
fn clock(capacity: usize, most: u32) -> Model {
    let mut queue: VecDeque<(u32, u32)> = VecDeque::new();
    Box::new(move |page| {
        if let Some((_, uses)) = queue.iter_mut().find(|(other, _)| *other == page) {
            *uses = most.min(*uses + 1);
            return true;
        }
        while queue.len() == capacity {
            let (page, uses) = queue.pop_back().expect("it is full");
            if uses > 0 {
                queue.push_front((page, uses - 1));
            }
        }
        queue.push_front((page, 0));
        false
    })
}

/// One queue, and the page under the hand.
fn sieve(capacity: usize) -> Model {
    let mut queue: VecDeque<(u32, bool)> = VecDeque::new();
    let mut hand: Option<u32> = None;
    Box::new(move |page| {
        if let Some((_, is_used)) = queue.iter_mut().find(|(other, _)| *other == page) {
            *is_used = true;
            return true;
        }
        if queue.len() == capacity {
            let mut at = hand.and_then(|hand| queue.iter().position(|&(page, _)| page == hand));
            let mut at = at.take().unwrap_or(queue.len() - 1);
            while queue[at].1 {
                queue[at].1 = false;
                at = if at == 0 { queue.len() - 1 } else { at - 1 };
            }
            hand = (at > 0).then(|| queue[at - 1].0);
            queue.remove(at);
        }
        queue.push_front((page, false));
        false
    })
}

/// Segments, probation first.
struct Segments {
    lists: Vec<VecDeque<u32>>,
    segment: usize,
}

impl Segments {
    fn is_hit(&mut self, page: u32) -> bool {
        let Some(from) = self.lists.iter_mut().position(|list| take(list, page)) else { return false };
        let to = (from + 1).min(self.lists.len() - 1);
        self.lists[to].push_front(page);
        for to in (1..=to).rev() {
            if self.lists[to].len() > self.segment {
                let oldest = self.lists[to].pop_back().expect("it has too many");
                self.lists[to - 1].push_front(oldest);
            }
        }
        true
    }

    fn len(&self) -> usize {
        self.lists.iter().map(VecDeque::len).sum()
    }

    fn victim(&self) -> Option<u32> {
        self.lists.iter().find_map(|list| list.back().copied())
    }
}

fn slru(capacity: usize, segment: usize, segments: usize, fills: bool) -> Model {
    let mut slru = Segments { lists: vec![VecDeque::new(); segments], segment };
    Box::new(move |page| {
        if slru.is_hit(page) {
            return true;
        }
        if slru.len() == capacity {
            let victim = slru.victim().expect("it is full");
            slru.lists.iter_mut().for_each(|list| _ = take(list, victim));
        }
        // By the sizes of libCacheSim's segments: the lowest takes what division leaves.
        let room = |at: usize| if at == 0 { capacity - segment * (segments - 1) } else { segment };
        let lowest = (0..segments).find(|&at| slru.lists[at].len() < room(at));
        let to = if fills && slru.len() < capacity { lowest.expect("memory is not full") } else { 0 };
        slru.lists[to].push_front(page);
        false
    })
}

fn lfu(capacity: usize) -> Model {
    let mut pages: BTreeMap<u32, (u32, u32)> = BTreeMap::new();
    let mut now = 0;
    Box::new(move |page| {
        now += 1;
        let was_there = pages.contains_key(&page);
        if !was_there && pages.len() == capacity {
            let (&victim, _) = pages.iter().min_by_key(|(_, uses)| **uses).expect("it is full");
            pages.remove(&victim);
        }
        let (uses, last) = pages.entry(page).or_default();
        (*uses, *last) = (*uses + 1, now);
        was_there
    })
}

fn lru_2(capacity: usize, history: usize) -> Model {
    // By page: its second last and its last use.
    let mut pages: BTreeMap<u32, (u32, u32)> = BTreeMap::new();
    let mut left: VecDeque<(u32, u32)> = VecDeque::new();
    let mut now = 0;
    Box::new(move |page| {
        now += 1;
        if let Some((second_last, last)) = pages.get_mut(&page) {
            (*second_last, *last) = (*last, now);
            return true;
        }
        let known = left.iter().position(|&(other, _)| other == page).and_then(|at| left.remove(at));
        if pages.len() == capacity {
            let (&victim, &(_, last)) = pages.iter().min_by_key(|(_, uses)| **uses).expect("it is full");
            pages.remove(&victim);
            left.push_front((victim, last));
            left.truncate(history);
        }
        pages.insert(page, (known.map_or(0, |(_, last)| last), now));
        false
    })
}

fn two_q(capacity: usize, in_max: usize, out_max: usize) -> Model {
    let (mut newer, mut out, mut main) = (VecDeque::new(), VecDeque::new(), VecDeque::new());
    Box::new(move |page| {
        if take(&mut main, page) {
            main.push_front(page);
            return true;
        }
        if newer.contains(&page) {
            return true;
        }
        let is_known = take(&mut out, page);
        if newer.len() + main.len() == capacity {
            if newer.len() > in_max || main.is_empty() {
                out.push_front(newer.pop_back().expect("it has too many"));
                out.truncate(out_max);
            } else {
                main.pop_back();
            }
        }
        if is_known {
            main.push_front(page)
        } else {
            newer.push_front(page)
        };
        false
    })
}

fn arc(capacity: usize) -> Model {
    let [mut t1, mut t2, mut b1, mut b2]: [VecDeque<u32>; 4] = Default::default();
    let mut target = 0.0_f64;
    Box::new(move |page| {
        if take(&mut t1, page) || take(&mut t2, page) {
            t2.push_front(page);
            return true;
        }
        let (len1, len2) = (b1.len() as f64, b2.len() as f64);
        let is_in_b2 = b2.contains(&page);
        let is_known = is_in_b2 || b1.contains(&page);
        if is_in_b2 {
            target = (target - (len1 / len2).max(1.0)).max(0.0);
        } else if is_known {
            target = (target + (len2 / len1).max(1.0)).min(capacity as f64);
        } else if t1.len() + b1.len() == capacity {
            if t1.len() == capacity {
                t1.pop_back()
            } else {
                b1.pop_back()
            };
        } else if t1.len() + t2.len() + b1.len() + b2.len() == 2 * capacity {
            b2.pop_back();
        }
        if t1.len() + t2.len() == capacity {
            let len = t1.len() as f64;
            if len > 0.0 && (len > target || is_in_b2 && len == target) {
                b1.push_front(t1.pop_back().expect("it is not empty"));
            } else {
                b2.push_front(t2.pop_back().expect("one of the two is not empty"));
            }
        }
        take(&mut b1, page);
        take(&mut b2, page);
        if is_known {
            t2.push_front(page)
        } else {
            t1.push_front(page)
        };
        false
    })
}

fn lirs(capacity: usize, high_max: usize, left_max: usize) -> Model {
    #[derive(Clone, Copy, PartialEq)]
    enum Is {
        Low,
        High,
        Left,
    }
    let low_max = capacity - high_max;
    let mut is: BTreeMap<u32, Is> = BTreeMap::new();
    // Newest first; who leaves first is last; who left last is first.
    let [mut stack, mut queue, mut left]: [VecDeque<u32>; 3] = Default::default();
    Box::new(move |page| {
        let was = is.get(&page).copied();
        let was_there = was.is_some_and(|was| was != Is::Left);
        let low = |is: &BTreeMap<u32, Is>| is.values().filter(|is| **is == Is::Low).count();
        take(&mut left, page);
        if !was_there && low(&is) + queue.len() == capacity {
            let victim = queue.pop_back().expect("low pages do not fill memory");
            if stack.contains(&victim) {
                is.insert(victim, Is::Left);
                left.push_front(victim);
            } else {
                is.remove(&victim);
            }
            if left.len() > left_max {
                let forgotten = left.pop_back().expect("there is one");
                take(&mut stack, forgotten);
                is.remove(&forgotten);
            }
        }
        let was_in_stack = take(&mut stack, page);
        stack.push_front(page);
        take(&mut queue, page);
        let becomes_low = was_in_stack || was.is_none() && low(&is) < low_max;
        if was == Some(Is::Low) || becomes_low {
            is.insert(page, Is::Low);
        } else {
            is.insert(page, Is::High);
            queue.push_front(page);
        }
        loop {
            // What lies below the last low page is taken from the stack.
            while let Some(&bottom) = stack.back()
                && is[&bottom] != Is::Low
            {
                stack.pop_back();
                if take(&mut left, bottom) {
                    is.remove(&bottom);
                }
            }
            if low(&is) <= low_max {
                return was_there;
            }
            let bottom = stack.pop_back().expect("a low page is in the stack");
            is.insert(bottom, Is::High);
            queue.push_front(bottom);
        }
    })
}

fn s3_fifo(capacity: usize, share: usize, left_max: usize, promote: u8, fill: bool) -> Model {
    let [mut small, mut main]: [VecDeque<(u32, u8)>; 2] = Default::default();
    let mut left = VecDeque::new();
    Box::new(move |page| {
        if let Some((_, uses)) = small.iter_mut().chain(&mut main).find(|(other, _)| *other == page) {
            *uses = 3.min(*uses + 1);
            return true;
        }
        let is_filling = fill && small.len() + main.len() < capacity;
        while small.len() + main.len() == capacity {
            if small.len() >= share || main.is_empty() {
                let (page, uses) = small.pop_back().expect("it has its share");
                if uses >= promote {
                    main.push_front((page, 0));
                } else {
                    left.push_front(page);
                    left.truncate(left_max);
                }
            } else {
                let (page, uses) = main.pop_back().expect("it is not empty");
                if uses > 0 {
                    main.push_front((page, uses - 1));
                }
            }
        }
        let enters_main = take(&mut left, page) || is_filling && small.len() >= share;
        if enters_main {
            main.push_front((page, 0))
        } else {
            small.push_front((page, 0))
        };
        false
    })
}

fn w_tinylfu(capacity: usize, value: impl Fn(&str) -> f64) -> Model {
    let window_max = ((value("window") * capacity as f64 + 1e-9) as usize).clamp(1, capacity);
    let segments = value("segments") as usize;
    let room = (capacity - window_max) as f64;
    let segment = (value("protected") / (segments - 1) as f64 * room + 1e-9) as usize;
    let mut main = Segments { lists: vec![VecDeque::new(); segments], segment };
    let (sample, most) = (value("sample") as usize * capacity, value("count") as u32);
    let newer_wins_ties = value("ties") == 1.0;
    let mut window = VecDeque::new();
    let mut counts: BTreeMap<u32, u32> = BTreeMap::new();
    let mut since = 0;
    Box::new(move |page| {
        let uses = counts.entry(page).or_default();
        *uses = most.min(*uses + 1);
        since += 1;
        if since == sample {
            since /= 2;
            counts.values_mut().for_each(|uses| *uses /= 2);
        }
        if take(&mut window, page) {
            window.push_front(page);
            return true;
        }
        if main.is_hit(page) {
            return true;
        }
        window.push_front(page);
        if window.len() > window_max {
            let candidate = window.pop_back().expect("it has too many");
            if window_max + main.len() == capacity {
                let Some(victim) = main.victim() else { return false };
                let wins = counts[&candidate] > counts[&victim];
                if !(wins || newer_wins_ties && counts[&candidate] == counts[&victim]) {
                    return false;
                }
                main.lists.iter_mut().for_each(|list| _ = take(list, victim));
            }
            main.lists[0].push_front(candidate);
        }
        false
    })
}

fn any(capacity: usize, seed: u64) -> Model {
    let mut pages = Vec::new();
    let mut draws = Random::new(seed);
    Box::new(move |page| {
        if pages.contains(&page) {
            return true;
        }
        if pages.len() < capacity {
            pages.push(page);
        } else {
            pages[draws.below(capacity as u64) as usize] = page;
        }
        false
    })
}

/// All policies with their defaults, and with other parameters.
fn choices() -> Vec<Choice> {
    let others = [
        "clock:bits=2",
        "slru:segments=4,protected=0.75",
        "slru:segments=4,protected=0.75,fill=1",
        "slru:fill=1",
        "slru:protected=0",
        "slru:protected=1",
        "lru-2:history=0",
        "lru-2:history=3",
        "lru-k:k=1",
        "lru-k:k=2",
        "lru-k:k=5,history=3",
        "mq:lists=1,ghost=0",
        "mq:lists=3,life=0.5,ghost=1",
        "qd-lp:probation=0.5,bits=1",
        "qd-lp:probation=1,ghost=0",
        "clock-pro:cold=1,ghost=0",
        "clock-pro:cold=0.5,ghost=3",
        "hyperbolic:sample=3",
        "lhd:period=150,explore=0.2",
        "lhd:sample=4,period=400,explore=0",
        "lecar:rate=1,discount=0.5",
        "2q:in=0,out=0",
        "2q:in=1,out=1",
        "lirs:hir=0.3,ghost=0",
        "lirs:hir=1,ghost=3",
        "s3-fifo:small=0,ghost=0",
        "s3-fifo:small=1,ghost=1,promote=1",
        "s3-fifo:small=0.3,fill=1",
        "w-tinylfu:window=0.2,protected=0.5,sample=2",
        "w-tinylfu:window=1",
        "w-tinylfu:window=0.1,protected=0.75,segments=4,sample=3,count=255,ties=1",
    ];
    let names = POLICIES.iter().map(|row| row.name);
    names.chain(others).map(|text| text.parse().expect("it is one")).collect()
}

const CAPACITIES: [u32; 6] = [1, 2, 3, 10, 30, 100];

#[test]
fn removed_page_leaves_and_its_place_is_free() {
    for choice in choices().iter().filter(|choice| !choice.is_bound()) {
        for capacity in [2, 10, 100] {
            for removed in [0, capacity / 2, capacity - 1] {
                let mut simulation = choice.simulation(capacity, 5).expect("it is no bound");
                let pages: Vec<u32> = (0..capacity).collect();
                simulation.run(&pages);
                simulation.remove(removed);
                simulation.check().unwrap();
                assert_eq!(simulation.run(&[capacity]), 1);
                let others = pages.iter().copied().filter(|page| *page != removed);
                let others: Vec<u32> = others.chain([capacity]).collect();
                let misses = simulation.run(&others);
                assert_eq!(misses, 0, "{choice}, room for {capacity}, without {removed}");
                assert_eq!(simulation.run(&[removed]), 1, "{choice}: it is still there");
            }
        }
    }
}

#[test]
fn removals_keep_every_policy_whole() {
    for choice in choices().iter().filter(|choice| !choice.is_bound()) {
        for (seed, capacity) in (0..).zip(CAPACITIES) {
            let mut simulation = choice.simulation(capacity, 5).expect("it is no bound");
            let mut draws = Random::new(seed);
            let pages = 3 * capacity + 9;
            for (at, page) in random(seed, pages, 3_000).into_iter().enumerate() {
                simulation.run(&[page]);
                let mut removed = None;
                if draws.below(3) == 0 {
                    let other = draws.below(pages.into()) as u32;
                    simulation.reserve(pages);
                    simulation.remove(other);
                    removed = Some(other);
                }
                let told =
                    |what: String| panic!("{choice}, room for {capacity}, seed {seed}, access {at}: {what}");
                simulation.check().unwrap_or_else(told);
                if let Some(removed) = removed.filter(|_| draws.below(2) == 0) {
                    assert_eq!(simulation.run(&[removed]), 1, "{choice}: page {removed} is still there");
                }
            }
        }
    }
}

#[test]
fn every_policy_hits_where_a_naive_model_of_it_does_and_holds_together() {
    for choice in choices().iter().filter(|choice| !choice.is_bound()) {
        for (seed, capacity) in (0..).zip(CAPACITIES.repeat(2)) {
            let value = |name: &str| {
                let mut values = choice.values();
                values.find(|(parameter, _)| parameter.name == name).map(|(_, value)| value).expect(name)
            };
            let model = model(choice.name(), capacity as usize, value);
            let mut model = model.unwrap_or_else(|| panic!("{choice} has no model"));
            let mut simulation = choice.simulation(capacity, 5).expect("it is no bound");
            for (at, page) in random(seed, 3 * capacity + 9, 3_000).into_iter().enumerate() {
                let is_hit = simulation.run(&[page]) == 0;
                let told =
                    |what: &str| format!("{choice}, room for {capacity}, seed {seed}, access {at}: {what}");
                assert_eq!(is_hit, model(page), "{}", told("the model says otherwise"));
                if at % 16 == 0 {
                    simulation.check().unwrap_or_else(|wrong| panic!("{}", told(&wrong)));
                }
            }
        }
    }
}

#[test]
fn opt_has_the_least_misses_and_no_policy_fewer() {
    for (seed, capacity) in (50..).zip(CAPACITIES.repeat(3)) {
        let accesses = random(seed, 2 * capacity + 5, 2_000);
        let least = least_misses(&accesses, capacity as usize) as u64;
        for choice in choices() {
            let misses = choice.misses(&accesses, capacity, seed);
            assert!(misses >= least, "{choice} has {misses} misses, and {least} are the least; seed {seed}");
            assert!(
                !choice.is_bound() || misses == least,
                "{choice} has {misses} misses, not {least}; seed {seed}"
            );
        }
    }
}

#[test]
fn a_trace_in_blocks_is_the_trace_at_once_and_pages_may_come_late() {
    let accesses = random(3, 500, 5_000);
    for choice in choices().iter().filter(|choice| !choice.is_bound()) {
        let mut simulation = choice.simulation(60, 9).expect("it is no bound");
        let in_blocks: u64 = accesses.chunks(7).map(|block| simulation.run(block)).sum();
        assert_eq!(in_blocks, choice.misses(&accesses, 60, 9), "{choice}");
    }
}

#[test]
fn what_is_written_over_slots_and_over_page_numbers_misses_as_often() {
    let check = |name: &str, over_slots: Box<dyn pageout_policy::Policy>, capacity: u32| {
        let accesses = random(capacity.into(), 3 * capacity, 60_000);
        let bare = pageout_cache::Simulation::run(&mut Bare::new(over_slots, capacity), &accesses);
        let choice: Choice = name.parse().expect("it is one");
        assert_eq!(choice.misses(&accesses, capacity, 0), bare, "{name}, room for {capacity}");
    };
    // Shares of others are rounded in another way.
    for capacity in [10, 60, 200, 4_000] {
        check("lru", Box::<pageout_policy::Lru>::default(), capacity);
        check("s3-fifo", Box::<pageout_policy::S3Fifo>::default(), capacity);
    }
}

/// FIFO with something to keep between calls.
#[derive(Default)]
struct Holding(pageout_policy::Fifo, std::sync::Arc<Held>);

/// How often it was taken, and whether it is kept.
#[derive(Default)]
struct Held(std::sync::atomic::AtomicU32, std::sync::atomic::AtomicBool);

struct Hold(std::sync::Arc<Held>);

impl Drop for Hold {
    fn drop(&mut self) {
        assert!(self.0.1.swap(false, Relaxed));
    }
}

impl Policy for Holding {
    fn resized(&mut self, capacity: u32) {
        self.0.resized(capacity);
    }
    fn added(&mut self, arrival: &Arrival) {
        assert!(self.1.1.load(Relaxed), "it is kept during accesses");
        self.0.added(arrival);
    }
    fn used(&mut self, slots: &[Slot]) {
        self.0.used(slots);
    }
    fn nominate(&mut self, want: u32, victims: &mut Vec<Slot>) {
        self.0.nominate(want, victims);
    }
    fn ended(&mut self, slot: Slot, page: PageId, end: End) {
        self.0.ended(slot, page, end);
    }
    fn held(&self) -> Option<Box<dyn std::any::Any>> {
        self.1.0.fetch_add(1, Relaxed);
        assert!(!self.1.1.swap(true, Relaxed), "it is taken once");
        Some(Box::new(Hold(self.1.clone())))
    }
}

#[test]
fn what_a_policy_keeps_between_calls_is_dropped_within_some_thousand_accesses() {
    let held = std::sync::Arc::<Held>::default();
    let mut bare = Bare::new(Box::new(Holding(Default::default(), held.clone())), 7);
    let pages: Vec<u32> = (0..20_000).map(|at| at * at % 97).collect();
    let misses = pageout_cache::Simulation::run(&mut bare, &pages);
    assert!(!held.1.load(Relaxed), "nothing is kept at the end");
    assert!((4..1000).contains(&held.0.load(Relaxed)), "{} times", held.0.load(Relaxed));
    let mut fifo = Bare::new(Box::<pageout_policy::Fifo>::default(), 7);
    assert_eq!(pageout_cache::Simulation::run(&mut fifo, &pages), misses);
}
