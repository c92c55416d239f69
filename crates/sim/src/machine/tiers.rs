//! Machines whose memory is not all alike: the time that accesses and copies take by node, and the report of fast and slow memory.
//!
//! ```text
//!   ordinary memory that its CPUs can't load     none of this: costs are about it
//!   one node that they can                       accesses are counted by what they move, and take longer by its load
//!   several nodes                                each access is looked up, as it is priced by the node of its page
//!   memory that is not all alike                 so it is, and there is a report of tiers
//! ```
//! The price of an access to a node is the same in all of them (`memory/load.rs`).

use pageout_engine::{Access, Nanos, NodeId, Op, PAGE_SIZE, Pfn, Stat, Touched};

use super::Machine;
use super::arrivals::Arrivals;
use super::hints::{Hints, Place};
use super::shares::Shares;
use crate::calls::decode_call;
use crate::latency::LatencyHistogram;
use crate::memory::{Asked, Delays, Hindsight, LinkSpec, MemoryLoad, MemorySpec, Moves, Touches};
use crate::report::{NodeReport, Residency, ThreadReport, TierReport, TrackerTime};
use crate::task::{Task, decode};

/// The memory of the nodes, and who has used it.
pub(super) struct TieredMemory {
    pub(super) load: MemoryLoad,
    /// All of it is ordinary, and equally far from every CPU: there is nothing to report about it.
    is_alike: bool,
    /// The hardware that reports accesses.
    pub(super) hints: Hints,
    /// For each node, true if it is in the top tier.
    is_top_tier: Vec<bool>,
    /// By node: accesses of tasks so far.
    accessed: Vec<Touches>,
    /// What each access took, from its beginning to its end.
    latency: LatencyHistogram,
    /// Pages that went from one node to another, by both.
    moved: Vec<Vec<u64>>,
    /// When pages came to the tier where they are.
    arrivals: Arrivals,
    /// Pages that went back soon after they came.
    ping_pong: u64,
    shares: Shares,
    /// CPU time of scans that mark page-table entries, and of samples.
    pub(super) scanning: Nanos,
    sampling: Nanos,
    /// Which pages were accessed when, if requested.
    pub(super) hindsight: Option<Hindsight>,
    residency: Residency,
    /// Buffers, by node.
    touches: Vec<Touches>,
    delays: Vec<Delays>,
    /// Times of the buffered accesses, each with its count.
    spans: Vec<(Nanos, u64)>,
}

/// Costs of the buffered accesses in ordinary memory, by their traffic.
#[derive(Default)]
struct Prices {
    lines: Priced,
    pages: Priced,
}

/// Those that move the same.
#[derive(Clone, Copy, Default)]
struct Priced {
    count: u64,
    sum: u64,
}

impl Prices {
    fn of(&mut self, moves: Moves) -> &mut Priced {
        match moves {
            Moves::Line => &mut self.lines,
            Moves::Page => &mut self.pages,
        }
    }
}

impl Priced {
    /// The price of one: the mean, where a task's objects are read by calls of several sizes.
    fn each(self) -> u64 {
        self.sum.checked_div(self.count).unwrap_or(0)
    }
}

impl TieredMemory {
    /// `None` where memory never takes longer than costs say.
    pub(super) fn new(
        nodes: &[MemorySpec],
        links: Option<&LinkSpec>,
        asked: Asked,
        is_top_tier: Vec<bool>,
        hints: Hints,
        hindsight: bool,
    ) -> Option<Box<TieredMemory>> {
        let load = MemoryLoad::new(nodes, links, asked)?;
        let is_alike = links.is_none() && nodes.iter().all(|spec| *spec == MemorySpec::DRAM);
        let count = nodes.len();
        Some(Box::new(TieredMemory {
            load,
            is_alike,
            hints,
            is_top_tier,
            accessed: vec![Touches::default(); count],
            latency: LatencyHistogram::default(),
            moved: vec![vec![0; count]; count],
            arrivals: Arrivals::default(),
            ping_pong: 0,
            shares: Shares::default(),
            scanning: Nanos::ZERO,
            sampling: Nanos::ZERO,
            hindsight: (hindsight && !is_alike).then(Hindsight::new),
            residency: Residency { span: Shares::SPAN, pages: Vec::new() },
            touches: vec![Touches::default(); count],
            delays: vec![Delays::default(); count],
            spans: Vec::new(),
        }))
    }

    /// Additional time of these operations compared with ordinary memory. The price of a copy between nodes includes the latency of two kinds of
    /// memory, so only its bandwidth is added; zeroes are written at the distance of the page. A CPU of node `by` does it.
    pub(super) fn carry_out(
        &mut self,
        ops: &[Op],
        at: Nanos,
        span: Nanos,
        by: NodeId,
        node_of: impl Fn(Pfn) -> NodeId,
    ) -> Nanos {
        self.touches.fill(Touches::default());
        let (mut longer, mut is_any) = (0, false);
        for op in ops {
            match *op {
                Op::Zero { pfn, pages } => {
                    let node = node_of(pfn);
                    longer += u64::from(pages) * self.load.longer(at, by, node, Moves::Page, true);
                    self.touches[node.index()].pages[1] += u64::from(pages);
                }
                Op::FreeFrame { .. } if self.is_alike => continue,
                Op::FreeFrame { pfn, pages } => {
                    self.arrivals.take(pfn, at);
                    if let Some(hindsight) = &mut self.hindsight {
                        (0..pages).for_each(|page| hindsight.note_free(Pfn(pfn.0 + page)));
                    }
                    continue;
                }
                Op::Copy { from, to, pages } => {
                    if !self.is_alike {
                        self.note_copy(from, to, pages.into(), at, &node_of);
                    }
                    if let Some(hindsight) = &mut self.hindsight {
                        let frames = (0..pages).map(|page| (Pfn(from.0 + page), Pfn(to.0 + page)));
                        frames.for_each(|(from, to)| hindsight.note_copy(from, to));
                    }
                    let (from, to) = (node_of(from), node_of(to));
                    self.touches[from.index()].pages[0] += u64::from(pages);
                    self.touches[to.index()].pages[1] += u64::from(pages);
                    if from != to {
                        self.moved[from.index()][to.index()] += u64::from(pages);
                    }
                }
                _ => continue,
            }
            is_any = true;
        }
        if !is_any {
            return Nanos::ZERO;
        }
        let span = Nanos(span.0 + longer);
        Nanos(longer) + self.load.transfer(at, span, by, &self.touches)
    }

    /// A page goes to another frame, and perhaps to another tier.
    fn note_copy(&mut self, from: Pfn, to: Pfn, pages: u64, at: Nanos, node_of: impl Fn(Pfn) -> NodeId) {
        let is_top = |pfn| self.is_top_tier[node_of(pfn).index()];
        let (was_top, now_top) = (is_top(from), is_top(to));
        if was_top == now_top {
            return self.arrivals.follow(from, to);
        }
        // What came to the tier that it leaves goes back.
        let is_back = self.arrivals.take(from, at);
        self.ping_pong += if is_back { pages } else { 0 };
        self.arrivals.set(to, at);
    }

    /// `fast_pages`: capacity of the top tier.
    fn report(
        &self,
        hotness_bytes: u64,
        tracker: TrackerTime,
        fast_pages: u64,
        slow_pages: u64,
    ) -> TierReport {
        let nodes = self.accessed.iter().zip(&self.is_top_tier).map(|(accessed, &is_top_tier)| NodeReport {
            is_top_tier,
            accesses: accessed.count(),
            bytes: accessed.bytes(),
        });
        let mut report = TierReport {
            nodes: nodes.collect(),
            moved: self.moved.clone(),
            ping_pong: self.ping_pong,
            converged: self.shares.convergence(),
            latency: self.latency.summary(),
            hotness_bytes,
            slow_bytes: slow_pages * PAGE_SIZE,
            tracker,
            best_fast_share: None,
            residency: self.residency.clone(),
        };
        let (promoted, _) = report.promoted_and_demoted();
        // The run's own placement counts, too, and its pages may have migrated faster than those of the bound.
        let best = self.hindsight.as_ref().and_then(|all| all.best_share(fast_pages, promoted));
        report.best_fast_share = best.map(|best| best.max(report.fast_share().unwrap_or(0.0)));
        report
    }

    /// The buffered accesses took their price and the addition of their node.
    fn note_spans(&mut self, prices: &Prices) {
        let priced = |moves| if moves == Moves::Line { prices.lines } else { prices.pages };
        let placed = self.touches.iter().zip(&self.delays).flat_map(|(touches, delays)| {
            touches.kinds().map(|(kind, count)| (Nanos(priced(kind.moves).each() + delays.of(kind)), count))
        });
        self.spans.clear();
        self.spans.extend(placed.filter(|(_, count)| *count > 0));
    }

    /// The buffered accesses took their price, reported by tier. One of them waited for its page before.
    fn record(&mut self, prices: &Prices, mut waited: Nanos) {
        self.note_spans(prices);
        for &(each, mut count) in &self.spans {
            if waited > Nanos::ZERO {
                self.latency.record(std::mem::take(&mut waited) + each);
                count -= 1;
            }
            self.latency.record_many(each, count);
        }
    }

    /// The next `count` accesses of a task, all of them to the only node, take this much longer than `span`.
    fn take_longer(&mut self, task: &Task, count: usize, at: Nanos, span: Nanos) -> Nanos {
        let pending = &task.accesses.pending()[..count];
        let weight = u64::from(task.weight);
        let mut prices = Prices::default();
        let touches = &mut self.touches[0];
        *touches = Touches::default();
        match task.moves_alike() {
            Some(moves) => {
                let sum = task.access_prices(pending);
                *prices.of(moves) = Priced { count: count as u64 * weight, sum };
                let writes = pending.iter().filter(|access| access.is_write()).count();
                touches.add(moves, true, writes as u64 * weight);
                touches.add(moves, false, (count - writes) as u64 * weight);
            }
            None => {
                for access in pending {
                    let moves = task.moves(access.object());
                    let priced = prices.of(moves);
                    priced.count += weight;
                    priced.sum += task.access_price(access.object());
                    touches.add(moves, access.is_write(), weight);
                }
            }
        }
        let longer = self.load.access(at, span, NodeId(0), &self.touches, &mut self.delays);
        self.note_spans(&prices);
        longer
    }

    /// Times of the last accesses without their waits, each with its count.
    pub(super) fn spans(&self) -> &[(Nanos, u64)] {
        &self.spans
    }

    /// How much longer than in ordinary memory an access may take now, at most.
    #[cold]
    pub(super) fn longest(&mut self, at: Nanos) -> u64 {
        self.load.longest(at)
    }
}

impl Machine {
    /// What fast and slow memory came to; nothing where all is alike.
    pub(super) fn tier_report(&self) -> Option<TierReport> {
        let memory = self.memory.as_deref().filter(|memory| !memory.is_alike)?;
        let pages = |is_top_tier: bool| {
            let zones = self.engine.figures().zones();
            let of_tier = zones.filter(|zone| memory.is_top_tier[zone.node.index()] == is_top_tier);
            of_tier.map(|zone| zone.managed).sum()
        };
        let tracker = self.tracker_time(memory);
        Some(memory.report(self.engine.figures().hotness_bytes(), tracker, pages(true), pages(false)))
    }

    /// What it took to know which pages are in use. Their moves are not among it.
    fn tracker_time(&self, memory: &TieredMemory) -> TrackerTime {
        let threads = self.thread_reports();
        let sum = |name: &str, time: &dyn Fn(&ThreadReport) -> Nanos| {
            let named = threads.iter().filter(|thread| thread.name.starts_with(name));
            named.fold(Nanos::ZERO, |sum, thread| sum + time(thread))
        };
        let all = self.account().spent(&self.costs);
        let recorded = "hotness_recorded";
        let by_threads =
            ["klruscand", "kmigrated"].map(|name| sum(name, &|thread| thread.spent.on(recorded)));
        TrackerTime {
            scans: memory.scanning,
            hint_faults: all.on("hint_faults"),
            records: Nanos(all.on(recorded).0 - by_threads[0].0 - by_threads[1].0),
            klruscand: sum("klruscand", &|thread| thread.cpu_time),
            kmigrated: sum("kmigrated", &|thread| {
                let moving = ["copied", "entries_migrated"].map(|name| thread.spent.on(name).0);
                Nanos(thread.cpu_time.0.saturating_sub(moving.iter().sum()))
            }),
            samples: memory.sampling,
            kdamond: sum("kdamond", &|thread| {
                let looks = ["damon_pages", "damon_samples", "damon_sample_steps", "rmap_steps"];
                let rest = thread.spent.by_unit.iter().filter(|(name, _)| !looks.contains(name));
                Nanos(thread.cpu_time.0.saturating_sub(rest.map(|(_, time)| time.0).sum()))
            }),
        }
    }

    /// The next `count` accesses of a task have found their pages. Returns how much longer they take than `span`, their price in ordinary memory, at
    /// that place. `began`: when the first of them began, if it did so before `at`.
    #[cold]
    pub(super) fn take_longer(
        &mut self,
        task: usize,
        count: usize,
        at: Nanos,
        span: Nanos,
        began: Nanos,
    ) -> Nanos {
        match &mut self.memory {
            None => Nanos::ZERO,
            Some(memory) if memory.touches.len() == 1 => {
                memory.take_longer(&self.tasks[task], count, at, span)
            }
            Some(_) => self.take_longer_by_node(task, count, at, span, began),
        }
    }

    /// How much longer accesses take where there is more than one node.
    fn take_longer_by_node(
        &mut self,
        task: usize,
        count: usize,
        at: Nanos,
        span: Nanos,
        began: Nanos,
    ) -> Nanos {
        let Some(memory) = &mut self.memory else { return Nanos::ZERO };
        let task = &self.tasks[task];
        let (cpu, weight) = (task.runner.cpu, u64::from(task.weight));
        let (mut prices, mut zeroes) = (Prices::default(), Touches::default());
        let is_heard = !memory.is_alike && self.engine.wants_hardware_hints();
        let mut hints = is_heard.then_some(&mut memory.hints);
        let has_hints = hints.is_some();
        memory.touches.fill(Touches::default());
        for &access in &task.accesses.pending()[..count] {
            let moves = task.moves(access.object());
            let priced = prices.of(moves);
            priced.count += weight;
            priced.sum += task.access_price(access.object());
            let access: Access =
                task.calls.as_deref().map_or_else(|| decode(access), |calls| decode_call(access, calls));
            if let Touched::Frame(pfn) = self.engine.touched(task.runner.id, access) {
                let node = self.engine.node_of(pfn);
                memory.touches[node.index()].add(moves, access.write, weight);
                if let Some(hints) = &mut hints {
                    let is_top_tier = memory.is_top_tier[node.index()];
                    let is_in_kernel = moves == Moves::Page;
                    let place = Place { node, is_top_tier, is_write: access.write, is_in_kernel };
                    hints.access(at, cpu, pfn, place, weight);
                }
                if let Some(hindsight) = &mut memory.hindsight {
                    let is_fast = memory.is_top_tier[node.index()];
                    let key = self.engine.figures().page_key(task.runner.id, access);
                    hindsight.note(key, pfn, at, is_fast, || memory.arrivals.has(pfn));
                }
            } else {
                zeroes.add(moves, access.write, weight);
            }
        }
        let from = self.engine.figures().node_of_cpu(cpu);
        for (sum, touches) in memory.accessed.iter_mut().zip(&memory.touches) {
            *sum += *touches;
        }
        let tops = memory.touches.iter().zip(&memory.is_top_tier);
        let fast = tops.map(|(touches, &is_top)| if is_top { touches.count() } else { 0 }).sum();
        let all = memory.touches.iter().map(Touches::count).sum();
        memory.shares.add(at, fast, all);
        if memory.residency.is_due(at) {
            let lists = [Stat::NrInactiveAnon, Stat::NrActiveAnon, Stat::NrInactiveFile, Stat::NrActiveFile];
            let engine = &self.engine;
            let of_node = |node: usize| {
                let pages = lists
                    .iter()
                    .map(|&stat| engine.figures().node_stat(NodeId(node as u8), stat).max(0) as u64);
                pages.sum()
            };
            memory.residency.add(at, (0..memory.is_top_tier.len()).map(of_node).collect());
        }
        // A page of zeroes belongs to no node, and is near to every CPU.
        memory.touches[from.index()] += zeroes;
        let longer = memory.load.access(at, span, from, &memory.touches, &mut memory.delays);
        if memory.is_alike {
            memory.note_spans(&prices);
            return longer;
        }
        memory.record(&prices, Nanos(at.0 - began.0));
        if !has_hints {
            return longer;
        }
        let sampling = self.keep_hints(at, cpu);
        if let Some(memory) = &mut self.memory {
            memory.sampling += sampling;
        }
        longer + sampling
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hints::HintSpec;

    const CXL: MemorySpec = MemorySpec {
        read_latency: 210,
        write_latency: 210,
        read_bandwidth: 64_000_000_000,
        write_bandwidth: 64_000_000_000,
    };

    /// Frames below 100 are on the fast node.
    fn node_of(pfn: Pfn) -> NodeId {
        NodeId(u8::from(pfn.0 >= 100))
    }

    fn two_tiers() -> Box<TieredMemory> {
        let hints = Hints::new(HintSpec::default(), 1, 1, 2);
        TieredMemory::new(&[MemorySpec::DRAM, CXL], None, Asked::MOST, vec![true, false], hints, true)
            .unwrap()
    }

    /// 95 of 100 accesses reach fast memory, and the first of them waits for its page: nobody else does.
    #[test]
    fn each_access_counts_with_what_it_took_and_not_with_the_mean_of_those_beside_it() {
        let mut memory = two_tiers();
        let lines = Priced { count: 100, sum: 100 * 173 };
        let pages = Priced { count: 2, sum: 2 * 400 };
        for waited in [Nanos(5000), Nanos::ZERO] {
            memory.touches[0] = Touches { lines: [95, 0], pages: [2, 0] };
            memory.touches[1].lines = [5, 0];
            let touches = memory.touches.clone();
            memory.load.access(Nanos(0), Nanos(100 * 173), NodeId(0), &touches, &mut memory.delays);
            memory.record(&Prices { lines, pages }, waited);
        }
        let within_a_percent = |nanos: u64, of: u64| nanos.abs_diff(of) * 100 <= of;
        let quantile = |share| memory.latency.quantile(share).0;
        assert!(within_a_percent(quantile(0.5), 173) && within_a_percent(quantile(0.9), 173));
        assert!(within_a_percent(quantile(0.97), 173 + 115), "five in a hundred reach slow memory");
        assert!(within_a_percent(quantile(0.99), 400), "pages are copied, too");
        let all = memory.latency.summary();
        assert_eq!((all.count, all.max), (204, Nanos(5173)));
        assert_eq!(all.total, Nanos(5000 + 2 * (100 * 173 + 5 * 115 + 2 * 400)));
    }

    #[test]
    fn a_page_that_goes_back_within_ten_seconds_is_ping_pong() {
        let mut memory = two_tiers();
        let mut copy = |from, to, seconds: u64| {
            let ops = [
                Op::Copy { from: Pfn(from), to: Pfn(to), pages: 1 },
                Op::FreeFrame { pfn: Pfn(from), pages: 1 },
            ];
            memory.carry_out(&ops, Nanos(seconds * 1_000_000_000), Nanos::ZERO, NodeId(0), node_of);
            memory.ping_pong
        };
        assert_eq!(copy(1, 100, 0), 0, "demoted");
        assert_eq!(copy(100, 101, 1), 0, "compacted: it is the same page");
        assert_eq!(copy(101, 2, 9), 1, "promoted again");
        assert_eq!(copy(2, 102, 20), 1, "and demoted long after");
        copy(3, 103, 60);
        assert_eq!(memory.report(0, TrackerTime::default(), 0, 0).promoted_and_demoted(), (1, 3));
    }
}
