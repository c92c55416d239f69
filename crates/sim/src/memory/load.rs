//! Loaded latency: the additional time of an access compared with its price in idle DRAM next to the CPU, by its node's distance and load.
//!
//! ```text
//!   latency of a line   idle + service * ρ / (2 (1 - ρ))        ρ: how busy the node was lately, 0.9 at most
//!   bandwidth           what is asked for in a window of time and the node can't give in it is left over: who comes then waits until
//!                       it has been given; and nobody gets his own bytes faster than the node gives them
//! ```
//! The first is the mean wait of a queue with random arrivals and constant service, M/D/1 (Pollaczek 1930, Khinchine 1932; in any textbook of
//! queueing). The service is half of the idle latency: of the 95 ns of DRAM, a row cycle takes 48 (tRC of DDR5, JEDEC JESD79-5), and the rest is the
//! way there and back. So latency is half as long again at 67 % and rises steeply beyond 90 %, as measurements of loaded latency show. The second
//! bounds throughput by bandwidth whatever the latency.
//!
//! **One price for one access to one node**, whatever else the machine has. Each node is priced by its own latency, bandwidth and load. This includes
//! ordinary memory, with or without a slower node. Tasks are simulated one after the other, each up to a quantum ahead. So bytes are counted by
//! window and not in the order of requests: otherwise no task would wait for a later request of another.
//!
//! **Memory that the CPUs can't load is idle.** If all CPUs together, copying as fast as the prices permit, need less than an eighth of a node's
//! bandwidth, the formula gives at most 3 ns of DRAM's 95. Such a node adds its distance alone, and ordinary memory nothing.
//!
//! **Scope of costs.** The table of costs is about ordinary memory that is idle. A node of DRAM adds nothing but its load. A load or store through a
//! mapping moves one line and waits for it. A page that read(2) or write(2) copies moves 64, which hardware fetches ahead: for each additional
//! nanosecond of a line, the page takes 65/115 more. That is the ratio of the published linear reads, 291 ns per page from CXL vs 226 from DRAM, to
//! the distance of the latencies that are typical of the two (docs/spec/costs.md).
//!
//! **Sockets.** Memory behind another socket is further away than its node's distance: `link.rs` adds that.
//!
//! What is not modelled: processor caches, so each access reaches memory.

use pageout_engine::{Nanos, NodeId, PAGE_SIZE};

use super::MemorySpec;
use super::link::{LinkSpec, Links};

/// Bytes of a cache line.
pub(crate) const LINE: u64 = 64;
/// Nanoseconds over which a node's load is averaged, where a page stands for itself: as many accesses to a window, if it stands for more.
const WINDOW: u64 = 100_000;
/// A node is idle if less than this part of its bandwidth can be asked for.
const IDLE_PART: u64 = 8;
/// The load is in thousandths. Beyond this the formula diverges, and bandwidth decides. Latency is then three and a quarter times its idle value,
/// where measured curves turn upwards steeply.
const LOAD_MAX: u64 = 900;
/// What a copied page takes longer, of each nanosecond that a line takes longer.
const PAGE_SHARE: (u64, u64) = (65, 115);

/// What one access moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Moves {
    /// A line, through a mapping.
    Line,
    /// A page, copied by a system call or by the kernel.
    Page,
}

impl Moves {
    const fn bytes(self) -> u64 {
        match self {
            Moves::Line => LINE,
            Moves::Page => PAGE_SIZE,
        }
    }

    /// What so much more of a line's latency makes of it.
    const fn of_latency(self, nanos: u64) -> u64 {
        match self {
            Moves::Line => nanos,
            Moves::Page => nanos * PAGE_SHARE.0 / PAGE_SHARE.1,
        }
    }
}

/// Loads or stores of a node, or what goes one way over a link.
#[derive(Clone, Debug)]
pub(super) struct Channel {
    /// The latency of a line beyond that of ordinary memory.
    extra: u64,
    service: u64,
    bandwidth: u64,
    /// True if the requests can be high enough to cause waits.
    is_loaded: bool,
    /// True if there was any request.
    is_used: bool,
    /// How long a window is.
    window_ns: u64,
    /// The current window, and the picoseconds of work that it has brought, in addition to those that were left over when it began.
    window: u64,
    work: u64,
    left_over: u64,
    /// The load of the windows before, in thousandths. Each counts half as much as the one after it: otherwise a task that waits for a busy node
    /// would find it idle in the next window.
    load: u64,
    /// What is still to come of accesses that take longer than their window.
    ahead: Vec<Ahead>,
}

/// Work of the windows that come.
#[derive(Clone, Copy, Debug)]
struct Ahead {
    left: u64,
    each: u64,
}

impl Channel {
    pub(super) fn new(latency: u64, ordinary: u64, bandwidth: u64, asked: Asked) -> Channel {
        Channel {
            extra: asked.times(latency.saturating_sub(ordinary)),
            service: asked.times(latency) / 2,
            bandwidth: (bandwidth / asked.stands_for).max(1),
            is_loaded: asked.loads(bandwidth),
            is_used: false,
            window_ns: asked.times(WINDOW),
            window: 0,
            work: 0,
            left_over: 0,
            load: 0,
            ahead: Vec::new(),
        }
    }

    fn picoseconds(&self, bytes: u64) -> u64 {
        (u128::from(bytes) * 1_000_000_000_000 / u128::from(self.bandwidth)) as u64
    }

    /// What a window can do, in picoseconds.
    fn capacity(&self) -> u64 {
        self.window_ns * 1000
    }

    #[inline]
    fn turn(&mut self, at: Nanos) {
        if at.0 >= (self.window + 1) * self.window_ns {
            self.turn_to(at.0 / self.window_ns);
        }
    }

    #[cold]
    fn turn_to(&mut self, window: u64) {
        while self.window < window {
            let work = self.left_over + self.work;
            self.load = (self.load + (work / self.window_ns).min(LOAD_MAX)) / 2;
            self.left_over = work.saturating_sub(self.capacity());
            self.work = 0;
            for ahead in &mut self.ahead {
                let part = ahead.each.min(ahead.left);
                ahead.left -= part;
                self.work += part;
            }
            self.ahead.retain(|ahead| ahead.left > 0);
            let is_idle = self.load + self.left_over + self.work == 0;
            self.window = if is_idle { window } else { self.window + 1 };
        }
    }

    /// How much longer a line takes than in idle ordinary memory.
    #[inline]
    pub(super) fn longer(&mut self, at: Nanos) -> u64 {
        if !self.is_loaded {
            return self.extra;
        }
        self.turn(at);
        self.extra + self.service * self.load / (2 * (1000 - self.load))
    }

    /// Additional time of a line if the channel is in use: memory without requests has no effect.
    pub(super) fn longer_if_used(&mut self, at: Nanos) -> u64 {
        if self.is_used { self.longer(at) } else { 0 }
    }

    /// This many bytes are requested within `span` from `at` on. Returns how much longer than that their transfer takes.
    #[inline]
    pub(super) fn book(&mut self, at: Nanos, bytes: u64, span: u64) -> u64 {
        self.is_used = true;
        if !self.is_loaded {
            return 0;
        }
        self.turn(at);
        let work = self.picoseconds(bytes);
        let own = (work / 1000).saturating_sub(span);
        self.spread(at, work, span + own);
        let over = (self.left_over + self.work).saturating_sub(self.capacity());
        own.max(over / 1000)
    }

    /// Adds work that is done evenly, from `at` on: hits are served many at a time, and may fill more windows than the one they begin in.
    fn spread(&mut self, at: Nanos, work: u64, span: u64) {
        let here = ((self.window + 1) * self.window_ns).saturating_sub(at.0).min(self.window_ns);
        if span <= here {
            self.work += work;
            return;
        }
        let share = |part: u64| (u128::from(work) * u128::from(part) / u128::from(span)) as u64;
        let now = share(here);
        self.work += now;
        self.ahead.push(Ahead { left: work - now, each: share(self.window_ns).max(1) });
    }
}

/// What is asked of memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    /// Bytes a second that all CPUs together ask for at most; `None` where nothing takes time, memory neither.
    pub(crate) bandwidth: Option<u64>,
    /// What each access stands for.
    pub(crate) stands_for: u64,
}

impl Asked {
    /// With enough CPUs that any memory may be busy.
    #[cfg(test)]
    pub(crate) const MOST: Asked = Asked { bandwidth: Some(u64::MAX), stands_for: 1 };

    fn times(self, nanos: u64) -> u64 {
        nanos * self.stands_for
    }

    /// Returns true if a node or a link of this bandwidth may be busy.
    fn loads(self, bandwidth: u64) -> bool {
        self.bandwidth.is_some_and(|asked| asked > bandwidth / IDLE_PART)
    }
}

/// How busy the memory of each node is.
#[derive(Clone, Debug)]
pub(crate) struct MemoryLoad {
    /// By node, of loads and of stores.
    nodes: Vec<[Channel; 2]>,
    /// `None` with one socket.
    links: Option<Links>,
}

/// Accesses of a kind to each node, loads and stores.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Touches {
    pub(crate) lines: [u64; 2],
    pub(crate) pages: [u64; 2],
}

/// Accesses that take as long as each other, of one node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    pub(crate) moves: Moves,
    pub(crate) is_write: bool,
}

/// How much longer than its price one access of each kind takes.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Delays {
    lines: [u64; 2],
    pages: [u64; 2],
}

impl Delays {
    pub(crate) fn of(&self, kind: Kind) -> u64 {
        let delays = if kind.moves == Moves::Line { self.lines } else { self.pages };
        delays[usize::from(kind.is_write)]
    }

    fn add(&mut self, kind: Kind, longer: u64) {
        let delays = if kind.moves == Moves::Line { &mut self.lines } else { &mut self.pages };
        delays[usize::from(kind.is_write)] += longer;
    }
}

/// How much longer bytes take than their span, and those that come last: of which node, loaded or stored.
struct Queue {
    longer: u64,
    node: NodeId,
    is_write: bool,
}

impl Touches {
    /// The kinds that there are any of, and how many.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = (Kind, u64)> + use<> {
        let kind = |moves, is_write| Kind { moves, is_write };
        let all = [
            (kind(Moves::Line, false), self.lines[0]),
            (kind(Moves::Line, true), self.lines[1]),
            (kind(Moves::Page, false), self.pages[0]),
            (kind(Moves::Page, true), self.pages[1]),
        ];
        all.into_iter().filter(|(_, count)| *count > 0)
    }

    pub(crate) fn add(&mut self, moves: Moves, is_write: bool, count: u64) {
        let counts = match moves {
            Moves::Line => &mut self.lines,
            Moves::Page => &mut self.pages,
        };
        counts[usize::from(is_write)] += count;
    }

    pub(crate) fn count(&self) -> u64 {
        self.lines.iter().chain(&self.pages).sum()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes_of(false) + self.bytes_of(true)
    }

    pub(super) fn bytes_of(&self, is_write: bool) -> u64 {
        let of = usize::from(is_write);
        self.lines[of] * Moves::Line.bytes() + self.pages[of] * Moves::Page.bytes()
    }
}

impl std::ops::AddAssign for Touches {
    fn add_assign(&mut self, other: Touches) {
        for is_write in [0, 1] {
            self.lines[is_write] += other.lines[is_write];
            self.pages[is_write] += other.pages[is_write];
        }
    }
}

impl MemoryLoad {
    /// The load of nodes with this memory, and of links between their sockets; `None` where nothing of it ever takes longer than costs say.
    pub(crate) fn new(nodes: &[MemorySpec], links: Option<&LinkSpec>, asked: Asked) -> Option<MemoryLoad> {
        let dram = MemorySpec::DRAM;
        let channels = |spec: &MemorySpec| {
            [
                Channel::new(spec.read_latency, dram.read_latency, spec.read_bandwidth, asked),
                Channel::new(spec.write_latency, dram.write_latency, spec.write_bandwidth, asked),
            ]
        };
        let nodes: Vec<[Channel; 2]> = nodes.iter().map(channels).collect();
        let adds = |channel: &Channel| channel.is_loaded || channel.extra > 0;
        let is_any = links.is_some() || nodes.iter().flatten().any(adds);
        is_any.then(|| MemoryLoad { nodes, links: links.map(|links| Links::new(links, asked)) })
    }

    /// Additional time of one such access of a CPU of node `from` compared with idle ordinary memory next to it, without bandwidth.
    pub(crate) fn longer(
        &mut self,
        at: Nanos,
        from: NodeId,
        node: NodeId,
        moves: Moves,
        is_write: bool,
    ) -> u64 {
        let channel = &mut self.nodes[node.index()][usize::from(is_write)];
        let longer = channel.longer(at);
        let link = self.links.as_mut().map_or(0, |links| links.longer(at, from, node, is_write));
        moves.of_latency(longer + link)
    }

    /// How much longer a line of memory that is in use may take now, at most.
    pub(crate) fn longest(&mut self, at: Nanos) -> u64 {
        let loads = self.nodes.iter_mut().map(|[loads, _]| loads.longer_if_used(at));
        loads.max().unwrap_or(0) + self.links.as_mut().map_or(0, |links| links.longest(at))
    }

    /// A CPU of node `from` makes these accesses from `at` on, by node, one after the other, which would take `span` in idle ordinary
    /// memory. Returns how much longer they take, and leaves in `delays` how much of that each access of a kind does.
    pub(crate) fn access(
        &mut self,
        at: Nanos,
        span: Nanos,
        from: NodeId,
        touches: &[Touches],
        delays: &mut [Delays],
    ) -> Nanos {
        let mut longer = 0;
        for (node, (touches, delays)) in touches.iter().zip(&mut *delays).enumerate() {
            *delays = Delays::default();
            for (kind, count) in touches.kinds() {
                let each = self.longer(at, from, NodeId(node as u8), kind.moves, kind.is_write);
                delays.add(kind, each);
                longer += count * each;
            }
        }
        let queue = self.queue(at, Nanos(span.0 + longer), from, touches);
        let bytes = touches[queue.node.index()].bytes_of(queue.is_write).max(1);
        for moves in [Moves::Line, Moves::Page] {
            let kind = Kind { moves, is_write: queue.is_write };
            let share = u128::from(queue.longer) * u128::from(moves.bytes()) / u128::from(bytes);
            delays[queue.node.index()].add(kind, share as u64);
        }
        Nanos(longer + queue.longer)
    }

    /// A CPU of node `from` requests these bytes within `span` from `at` on. Returns how much longer than that their transfer takes.
    pub(crate) fn transfer(&mut self, at: Nanos, span: Nanos, from: NodeId, touches: &[Touches]) -> Nanos {
        Nanos(self.queue(at, span, from, touches).longer)
    }

    /// How much longer these bytes take within `span` from `at` on, and whose of them come last.
    fn queue(&mut self, at: Nanos, span: Nanos, from: NodeId, touches: &[Touches]) -> Queue {
        let mut last = Queue { longer: 0, node: NodeId(0), is_write: false };
        for (node, (channels, touches)) in self.nodes.iter_mut().zip(touches).enumerate() {
            let node = NodeId(node as u8);
            for (channel, is_write) in channels.iter_mut().zip([false, true]) {
                let bytes = touches.bytes_of(is_write);
                if bytes == 0 {
                    continue;
                }
                let link =
                    self.links.as_mut().map_or(0, |links| links.book(at, bytes, span, from, node, is_write));
                let longer = channel.book(at, bytes, span.0).max(link);
                if longer > last.longer {
                    last = Queue { longer, node, is_write };
                }
            }
        }
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CXL: MemorySpec = MemorySpec {
        read_latency: 210,
        write_latency: 210,
        read_bandwidth: 64_000_000_000,
        write_bandwidth: 64_000_000_000,
    };

    /// The node of whose CPUs accesses are.
    const HERE: NodeId = NodeId(0);

    fn access(load: &mut MemoryLoad, at: Nanos, span: Nanos, touches: &[Touches]) -> Nanos {
        load.access(at, span, HERE, touches, &mut vec![Delays::default(); touches.len()])
    }

    fn lines(count: u64) -> Touches {
        Touches { lines: [count, 0], pages: [0, 0] }
    }

    #[test]
    fn ordinary_memory_that_nobody_can_load_is_what_costs_are_about() {
        let asked = |bandwidth| Asked { bandwidth, stands_for: 1 };
        let is_any = |memory: &[MemorySpec], asked| MemoryLoad::new(memory, None, asked).is_some();
        let eighth = MemorySpec::DRAM.read_bandwidth / 8;
        assert!(!is_any(&[], Asked::MOST));
        assert!(!is_any(&[MemorySpec::DRAM; 3], asked(Some(eighth))));
        assert!(!is_any(&[MemorySpec::DRAM; 3], asked(None)), "nothing takes time");
        assert!(is_any(&[MemorySpec::DRAM], asked(Some(eighth + 1))));
        assert!(is_any(&[MemorySpec::DRAM, CXL], asked(Some(1))), "it is further away");
    }

    /// Its load, what is waited for, and all that this takes: as on a machine with that node alone.
    #[test]
    fn a_node_is_priced_as_if_it_were_the_only_one() {
        let calls = (0..4000u64).map(|call| (call * 7_001 % 3_000_000, call * 37 % 90_000, call % 700));
        let mut calls: Vec<(u64, u64, u64)> = calls.collect();
        calls.sort_unstable();
        for stands_for in [1, 64, 1024] {
            let asked = Asked { stands_for, ..Asked::MOST };
            let mut alone = MemoryLoad::new(&[MemorySpec::DRAM], None, asked).unwrap();
            for preset in MemorySpec::PRESETS {
                let other = MemorySpec::preset(preset).unwrap();
                let mut beside = MemoryLoad::new(&[MemorySpec::DRAM, other], None, asked).unwrap();
                let mut alone = alone.clone();
                for &(at, span, pages) in &calls {
                    let (at, span) = (Nanos(at * stands_for), Nanos(span * stands_for));
                    let touches = Touches { lines: [pages, 3], pages: [pages, pages / 2] };
                    assert_eq!(alone.longest(at), beside.longest(at), "{preset}");
                    let price = access(&mut alone, at, span, &[touches]);
                    assert_eq!(
                        price,
                        access(&mut beside, at, span, &[touches, Touches::default()]),
                        "{preset}"
                    );
                }
            }
            assert!(access(&mut alone, Nanos(0), Nanos(0), &[lines(1 << 20)]) > Nanos::ZERO);
        }
    }

    /// Eight CPUs that ask for half of what there is, each simulated for a quantum after the other.
    #[test]
    fn nobody_waits_for_what_others_ask_for_later() {
        let mut load = MemoryLoad::new(&[MemorySpec::DRAM], None, Asked::MOST).unwrap();
        let (mut longer, quantum, batch) = (0, 100_000, 10_000);
        // 16 bytes a nanosecond and CPU, 128 by all of them, of 307.
        let pages = Touches { lines: [0, 0], pages: [batch * 16 / PAGE_SIZE, 0] };
        for turn in 0..100 {
            for _cpu in 0..8 {
                for at in (0..quantum).step_by(batch as usize) {
                    longer += load.transfer(Nanos(turn * quantum + at), Nanos(batch), HERE, &[pages]).0;
                }
            }
        }
        assert_eq!(longer, 0);
    }

    #[test]
    fn an_idle_slow_node_adds_its_distance_and_a_copied_page_the_published_65_ns() {
        let mut load = MemoryLoad::new(&[MemorySpec::DRAM, CXL], None, Asked::MOST).unwrap();
        let far = [Touches::default(), lines(10)];
        assert_eq!(access(&mut load, Nanos(0), Nanos(1730), &far), Nanos(10 * 115));
        let page = [Touches::default(), Touches { lines: [0, 0], pages: [1, 0] }];
        assert_eq!(access(&mut load, Nanos(0), Nanos(226), &page), Nanos(65));
        assert_eq!(access(&mut load, Nanos(0), Nanos(1730), &[lines(10), Touches::default()]), Nanos(0));
    }

    /// A thousand lines of slow memory take 1000 ns of its bandwidth; fast ones wait for none of it.
    #[test]
    fn who_waits_for_bandwidth_is_who_asked_for_it() {
        let mut load = MemoryLoad::new(&[MemorySpec::DRAM, CXL], None, Asked::MOST).unwrap();
        let mut delays = [Delays::default(); 2];
        let longer = load.access(Nanos(0), Nanos(0), HERE, &[lines(1), lines(1000)], &mut delays);
        let load = Kind { moves: Moves::Line, is_write: false };
        assert_eq!(delays.map(|delays| delays.of(load)), [0, 115]);
        assert_eq!(longer, Nanos(1000 * 115), "they take longer than their bytes");
        let mut load_pages = MemoryLoad::new(&[MemorySpec::DRAM, CXL], None, Asked::MOST).unwrap();
        let pages = Touches { lines: [0, 0], pages: [1000, 0] };
        let longer = load_pages.access(Nanos(0), Nanos(0), HERE, &[lines(64), pages], &mut delays);
        // Of 64 ns for a page, 65 are gone with its latency; so nothing is left to wait for.
        assert_eq!(longer, Nanos(65_000));
        for _ in 0..2 {
            load_pages.access(Nanos(0), Nanos(0), HERE, &[lines(64), pages], &mut delays);
        }
        let page = Kind { moves: Moves::Page, is_write: false };
        // Three such calls at once are 92 us more than a window can do.
        assert_eq!((delays[0].of(load), delays[1].of(page)), (0, 65 + 3 * 64 - 100));
    }

    /// At two thirds the wait is half of the idle latency: 210 * 1/2 * 667 / (2 * 333).
    #[test]
    fn latency_rises_with_load_by_the_formula() {
        let mut load = MemoryLoad::new(&[MemorySpec::DRAM, CXL], None, Asked::MOST).unwrap();
        let mut longer = |window: u64, is_write| {
            load.longer(Nanos(window * WINDOW), HERE, NodeId(1), Moves::Line, is_write)
        };
        assert_eq!(longer(0, false), 115);
        for window in 0..20 {
            // 64 bytes take a nanosecond of 64 GB/s: 66,700 lines are 66.7 % of a window.
            load.transfer(Nanos(window * WINDOW), Nanos(WINDOW), HERE, &[Touches::default(), lines(66_700)]);
        }
        let mut longer = |window: u64, is_write| {
            load.longer(Nanos(window * WINDOW), HERE, NodeId(1), Moves::Line, is_write)
        };
        assert_eq!(longer(20, false), 115 + 105 * 666 / 668);
        assert_eq!(longer(20, true), 115, "nothing was stored");
        assert_eq!(longer(40, false), 115, "it has calmed down");
    }

    /// One call that fills a hundred windows is as much load as a hundred calls of a window each, and then none.
    #[test]
    fn a_long_call_is_load_for_as_long_as_it_takes() {
        let waits = |windows_at_once: u64| {
            let mut load = MemoryLoad::new(&[MemorySpec::DRAM, CXL], None, Asked::MOST).unwrap();
            let longer = |load: &mut MemoryLoad, window: u64| {
                load.longer(Nanos(window * WINDOW), HERE, NodeId(1), Moves::Line, false)
            };
            for window in (0..100).step_by(windows_at_once as usize) {
                let touches = [Touches::default(), lines(windows_at_once * 50_000)];
                load.transfer(Nanos(window * WINDOW), Nanos(windows_at_once * WINDOW), HERE, &touches);
            }
            [longer(&mut load, 50), longer(&mut load, 99), longer(&mut load, 100), longer(&mut load, 120)]
        };
        // Half of the bandwidth: 105 / 2 longer.
        assert_eq!(waits(1)[2..], [115 + 52, 115]);
        assert_eq!(waits(25)[2..], [115 + 52, 115]);
        assert_eq!(waits(100), [115 + 52, 115 + 52, 115 + 52, 115]);
    }

    /// Sixteen tasks that each ask for half of the bandwidth get all of it, and no more.
    #[test]
    fn throughput_is_bounded_by_bandwidth() {
        let mut load = MemoryLoad::new(&[MemorySpec::DRAM, CXL], None, Asked::MOST).unwrap();
        let (mut clocks, mut bytes) = ([0; 16], 0);
        while clocks.iter().any(|&clock| clock < 10_000_000) {
            let task = (0..16).min_by_key(|&task| clocks[task]).unwrap();
            let half = Touches { lines: [0, 0], pages: [78, 0] };
            let at = Nanos(clocks[task]);
            clocks[task] += 10_000 + access(&mut load, at, Nanos(10_000), &[Touches::default(), half]).0;
            bytes += half.bytes();
        }
        let rate = bytes as f64 / (*clocks.iter().max().unwrap() as f64 / 1e9);
        assert!((0.9..=1.01).contains(&(rate / 64e9)), "{rate}");
    }

    #[test]
    fn an_access_that_stands_for_many_takes_as_much_longer() {
        let longer = |stands_for, lines: u64| {
            let mut load =
                MemoryLoad::new(&[MemorySpec::DRAM, CXL], None, Asked { stands_for, ..Asked::MOST }).unwrap();
            let touches = [Touches::default(), Touches { lines: [lines, 0], pages: [0, 0] }];
            (0..40)
                .map(|window| access(&mut load, Nanos(window * WINDOW), Nanos(lines * 173), &touches).0)
                .sum::<u64>()
        };
        assert!(longer(8, 50).abs_diff(longer(1, 400)) * 100 < longer(1, 400));
    }

    #[test]
    fn more_load_is_never_faster() {
        let mut before = 0;
        for busy in 0..=120 {
            let mut load = MemoryLoad::new(&[MemorySpec::DRAM, CXL], None, Asked::MOST).unwrap();
            access(&mut load, Nanos(0), Nanos(WINDOW), &[Touches::default(), lines(busy * WINDOW / 100)]);
            let now = access(&mut load, Nanos(WINDOW), Nanos(173), &[Touches::default(), lines(1)]).0;
            assert!(now >= before, "{busy} %: {now} after {before}");
            before = now;
        }
    }
}
