//! `[machine]` and `[kernel]`: the hardware, and which kernel's rules run on it.

use pageout_engine::{
    Config, ConfigError, Layout, Lists, MemoryTiers, MemoryType, Nanos, NodeId, Nodemask, PAGE_SIZE, Version,
};

use super::keys::{Accepts, Key, LATENCY, kernel_keys, range_of};
use super::section::{Held, from_nothing, section, words};
use super::task::CPU_MAX;
use super::{Bandwidth, Knobs, Scale, Size, TimeSpan};
use crate::cost::Costs;
use crate::device::Figure;
use crate::hints::{self, CountSpec, HintSpec, SampleSpec};
use crate::memory::{LinkSpec, MemorySpec, Preset};

section! {
    /// The simulated hardware.
    pub struct Machine {
        cpus: u16, [default 4] in range_of("cpus") => Same,
            "Processors. Tasks and kernel threads compete for them. Each has its own folio batches and charge stock. Four, so that a few tasks and kswapd do not queue for one CPU.";
        hz: u32, [default 250] in range_of("hz") => Same,
            "Timer ticks per second (CONFIG_HZ). The statistics flush and throttling count in ticks. Debian builds its kernels with 250.";
        memory: Option<Size>, [absent Held::text(&Machine::DEFAULT_MEMORY)] in NODE_MEMORY => Twice,
            "Memory of a machine with one node. Small, because a scenario is usually about a limit of a cgroup.";
        node: Vec<Node>, [unless Vec::new()] each Node,
            "NUMA nodes, in order of their numbers.";
        remote_latency: Option<TimeSpan>, [absent "62ns"] in Accepts::Time(0, 1_000_000) => Same,
            "Additional latency of an access if the processor belongs to another socket than the memory. Each node with processors is a socket. Memory without processors belongs to the nearest socket, or to all sockets at equal distance. 62 ns is the difference between the presets remote-socket and DRAM. 0s: the processor's socket has no effect. For exactly two [[machine.node]] that have cpus.";
        remote_bandwidth: Option<Bandwidth>, [absent "96GB/s, that of the preset remote-socket"] in Accepts::Bandwidth => Same,
            "Bytes per second that can go from one socket to another, in each direction.";
        hints: Hints, [unless Hints::default()] table Hints,
            "Hardware that reports accesses to hot-page tracking, if tracking listens to it (vm.pghot_record_hwhints_enable) and there is slower memory.";
        zone_dma: bool, [unless false] in Accepts::Bool => Same,
            "Whether the first 16 MiB are a separate zone (CONFIG_ZONE_DMA), which other requests use only as a last resort.";
        init_memory: Size, [default Size(0)] in Accepts::Size(0, 1 << 30) => Twice,
            "Memory of the first node that the kernel still uses while it computes the watermarks of zones, and frees afterwards: its initialisation code and data.";
        quantum: TimeSpan, [default TimeSpan(100_000)] in Accepts::Time(1_000, 1_000_000_000) => Same,
            "Time by which a task runs ahead on its own clock through hits before other tasks get their turn. A longer time simulates faster but orders tasks more coarsely; 100us is about one device read.";
        timeslice: TimeSpan, [default TimeSpan(3_000_000)] in Accepts::Time(1_000, 1_000_000_000) => Same,
            "How long a task keeps its CPU while others wait for it. It must be longer than a switch of tasks (machine.price.context_switch). 3 ms is the kernel's base slice on 8 CPUs or more.";
        wakeup_granularity: TimeSpan, [default TimeSpan(1_000_000)] in Accepts::Time(0, 1_000_000_000) => Same,
            "How much less CPU time than the running task a waking task must have had to preempt it. A sleeping task is credited with at most one time slice, so from that value on no task preempts. 1 ms is the kernel's value before it is multiplied by the number of CPUs.";
        // Hardware has as many, whatever the memory.
        tlb_entries: u32, [default 0] in range_of("tlb_entries") => Same,
            "Translations that a processor holds for an address space, a power of two. An access through one of them sets no accessed bit, so pages in constant use may look idle: x86 Linux does not flush translations when it clears the bits. 0: every access sets the bit, as with a small cache that is flushed often.";
        oom: OomRule, [default OomRule::End] in Accepts::Choice(OomRule::WORDS) => Same,
            "What happens when no memory can be allocated in any other way. end: the run ends and reports what was short, because most scenarios are about sufficient memory. kill: a process is killed as Linux does it, the one that frees most, and the run continues.";
        page_stands_for: u32, [unless 1] in Accepts::Integer(1, 65_536) => Half,
            "Scale factor: each page stands for N pages, and each access for N accesses. CPU, memory and device time per page are multiplied by N; all other times stay. A machine with a 64th of the memory then does in a second what the full machine does, if files and processes are scaled down alike and there are as many times fewer accesses. Latencies of accesses are those of N accesses. `pageout advise-tier FILE --check-scale` repeats a study at half the factor, with twice the pages and accesses.";
        hindsight: bool, [unless true] in Accepts::Bool => Same,
            "Whether a run with slower memory computes which share of accesses fast memory could have served at best, had all been known beforehand, and where in memory they were. It follows 16,384 pages at most, and checks each access for that; false saves this time.";
        access_times: bool, [unless true] in Accepts::Bool => Same,
            "Whether a run measures how long accesses took, what delayed them, and which decisions used statistics that were out of date. It costs a few percent of the time of a run with many misses; false saves this time.";
        costs: String, [default "xeon-vm".to_string()] in Accepts::Choice(Costs::PROFILES) => Same,
            "The table of CPU costs. xeon-vm is measured, and the others are scaled from it. [machine.price] overrides single rows. In its descriptions M is measured, S comes from the postings that scenarios reproduce, T is typical of the hardware, D is derived from another row, and E is estimated. Their figures are those of xeon-vm.";
        migration: Migration, [unless Migration::OneThread] in Accepts::Choice(Migration::WORDS) => Same,
            "What copies pages that migrate, from one node to another or to make space for huge pages. one-thread: the task or kernel thread itself, as Linux does it. 16-threads: a batch is split among 16 threads, whose CPU time is not counted. dma: 16 channels of a copy engine. Both were proposed in 2025 with measured rates, T: compared with one thread, 3.5 and 5.2 times as many huge pages per second, and 1.2 and 0.7 times as many single pages.";
        price: Knobs, [unless Knobs::default()] knobs price_keys,
            "Prices of this machine, which override those in its table of costs.";
    }
}

/// No unit of work takes longer on any machine: an emulated one wakes a task in 300 us.
const PRICE: Accepts = Accepts::Time(0, 10_000_000);

/// The keys of `[machine.price]`.
fn price_keys() -> Vec<Key> {
    let key = |(row, documentation): &(&str, &str)| Key {
        path: format!("machine.price.{row}"),
        accepts: PRICE,
        // Prices of pages are multiplied by what a page stands for.
        scale: Scale::Same,
        default: "as in the table of costs".to_string(),
        meaning: (*documentation).to_string(),
        versions: Vec::new(),
    };
    Costs::ROWS.iter().map(key).collect()
}

section! {
    /// Hardware that reports accesses.
    pub struct Hints {
        preset: String, [default "ibs".to_string()] in Accepts::Choice(HintSpec::NAMES) => Same,
            "The class of hardware; it sets every figure not overridden here. ibs and pebs: processors sample their own loads and stores, but not the kernel's, so never pages that read(2) or write(2) copies. cxl-hmu: slower memory counts accesses to itself from any processor. The postings of pghot use ibs.";
        period: Option<u32>, [absent "the preset's"] in Accepts::Integer(1, 134_217_727) => Same,
            "Loads and stores of a processor from one sample to the next. Hardware counts operations, and a sampled operation seldom is an access that reaches memory; it sees the same share of accesses. A sixteenth of the period varies. For processors that sample.";
        loads_only: Option<bool>, [absent "the preset's"] in Accepts::Bool => Same,
            "Stores are neither counted nor sampled. For processors that sample.";
        min_latency: Option<TimeSpan>, [absent "the preset's"] in Accepts::Time(0, 1_000_000) => Same,
            "Samples of accesses that took less time are dropped. With a value above the latency of ordinary memory, only slower memory is seen. For processors that sample.";
        overhead: Option<TimeSpan>, [absent "the preset's"] in Accepts::Time(0, 1_000_000) => Same,
            "CPU time of one sample, on the processor that takes it. For processors that sample.";
        // Pages that share a counter share it whatever each of them stands for; counters and the ring are as many as the hardware has.
        unit: Option<Size>, [absent "the preset's"] in Accepts::Size(4096, 2 << 20) => Same,
            "Size of memory that shares a counter, a power of two. For memory that counts.";
        counters: Option<u32>, [absent "the preset's"] in Accepts::Integer(1, 1 << 24) => Same,
            "Counters of a node's memory. If two units need the same counter, each access to one unit takes back an access of the other. For memory that counts.";
        threshold: Option<u32>, [absent "the preset's"] in Accepts::Integer(1, 1 << 24) => Same,
            "Accesses that make a unit hot. For memory that counts.";
        epoch: Option<TimeSpan>, [absent "the preset's"] in Accepts::Time(0, 3_600_000_000_000) => Same,
            "How long accesses are counted before the hot units are reported and counting starts anew. 0s: a unit is reported as soon as it is hot. For memory that counts.";
        ring: Option<u32>, [absent "the preset's"] in Accepts::Integer(1, 1 << 24) => Same,
            "Entries that are buffered until they are read, per processor or per node. Entries that arrive while the buffer is full are lost, and counted (hwhint_buffer_full).";
        drain: Option<TimeSpan>, [absent "the preset's"] in Accepts::Time(1_000, 60_000_000_000) => Same,
            "Time from the first entry until the buffer is read.";
    }
}

impl Default for Hints {
    fn default() -> Hints {
        from_nothing()
    }
}

impl Hints {
    /// The hardware; of an unknown preset, which the check has found, the first.
    pub fn spec(&self) -> HintSpec {
        let time = |time: Option<TimeSpan>, preset: Nanos| time.map_or(preset, |time| Nanos(time.0));
        match HintSpec::preset(&self.preset).unwrap_or_default() {
            HintSpec::Samples(preset) => HintSpec::Samples(SampleSpec {
                period: self.period.unwrap_or(preset.period),
                loads_only: self.loads_only.unwrap_or(preset.loads_only),
                min_latency: time(self.min_latency, preset.min_latency),
                overhead: time(self.overhead, preset.overhead),
                ring: self.ring.unwrap_or(preset.ring),
                drain: time(self.drain, preset.drain),
            }),
            HintSpec::Counts(preset) => HintSpec::Counts(CountSpec {
                unit_pages: self.unit.map_or(preset.unit_pages, |unit| unit.pages_floor() as u32),
                counters: self.counters.unwrap_or(preset.counters),
                threshold: self.threshold.unwrap_or(preset.threshold),
                epoch: time(self.epoch, preset.epoch),
                ring: self.ring.unwrap_or(preset.ring),
                drain: time(self.drain, preset.drain),
            }),
        }
    }

    /// Keys that are given, and that the hardware of this preset has no use for.
    pub(super) fn useless(&self) -> Vec<&'static str> {
        let samples = [
            ("period", self.period.is_some()),
            ("loads_only", self.loads_only.is_some()),
            ("min_latency", self.min_latency.is_some()),
            ("overhead", self.overhead.is_some()),
        ];
        let counts = [
            ("unit", self.unit.is_some()),
            ("counters", self.counters.is_some()),
            ("threshold", self.threshold.is_some()),
            ("epoch", self.epoch.is_some()),
        ];
        let useless = match self.spec() {
            HintSpec::Samples(_) => counts,
            HintSpec::Counts(_) => samples,
        };
        useless.into_iter().filter(|(_, is_given)| *is_given).map(|(key, _)| key).collect()
    }

    /// Every figure that a preset gives, with its source.
    pub fn figures(preset: &hints::Preset) -> Vec<MemoryFigure> {
        let text = |time: Nanos| format!("\"{}\"", TimeSpan(time.0));
        let values = match preset.spec {
            HintSpec::Samples(spec) => vec![
                ("period", spec.period.to_string()),
                ("loads_only", spec.loads_only.to_string()),
                ("min_latency", text(spec.min_latency)),
                ("overhead", text(spec.overhead)),
                ("ring", spec.ring.to_string()),
                ("drain", text(spec.drain)),
            ],
            HintSpec::Counts(spec) => vec![
                ("unit", format!("\"{}\"", Size(u64::from(spec.unit_pages) * PAGE_SIZE))),
                ("counters", spec.counters.to_string()),
                ("threshold", spec.threshold.to_string()),
                ("epoch", text(spec.epoch)),
                ("ring", spec.ring.to_string()),
                ("drain", text(spec.drain)),
            ],
        };
        let source =
            |key: &str| preset.sources.iter().find(|(of, _)| *of == key).map_or("", |(_, source)| source);
        values.into_iter().map(|(key, value)| MemoryFigure { key, value, source: source(key) }).collect()
    }
}

words! {
    /// The agent that copies migrating pages.
    pub enum Migration {
        /// The agent that moves them.
        OneThread = "one-thread",
        /// A batch is split among 16.
        SixteenThreads = "16-threads",
        /// Hardware for it, with 16 channels.
        Dma = "dma",
    }
}

words! {
    /// The reaction when no memory can be allocated in any other way.
    pub enum OomRule {
        /// The run ends, and says what was short.
        End = "end",
        /// A process is killed, and the run goes on.
        Kill = "kill",
    }
}

section! {
    /// One NUMA node.
    pub struct Node {
        memory: Size, [required] in NODE_MEMORY => Twice,
            "Memory of this NUMA node; nodes are numbered in the order of the file. Instead of machine.memory.";
        movable: Size, [default Size(0)] in Accepts::Size(0, (8 << 40) - (64 << 20)) => Twice,
            "This much of the node's memory, at its end, is zone Movable: only for pages of processes and files, as is often true of memory added at run time.";
        reserved: Size, [default Size(0)] in Accepts::Size(0, 8 << 40) => Twice,
            "Further memory of the node that is never free: structures of pages, the kernel itself. It moves the limits of zones.";
        unmovable_blocks: u64, [default 0] in Accepts::Integer(0, Node::BLOCKS_MAX as i64) => Twice,
            "The number of the node's blocks of 2 MiB, evenly spread, that have an unmovable page of the kernel from the start, as on a machine that has been up for a while. The rest of such a block is free, but never available for a huge page. For nodes of at most 64GiB: each of their pages then has a record from the start.";
        distance: u32, [default Node::DISTANCE] in Accepts::Integer(11, 254) => Same,
            "Distance to other nodes, in the firmware's unit, in which a node's own memory is 10 away. Between two nodes the larger value counts. A node without a free page uses the pages of the nearest node.";
        distances: Vec<u8>, [unless Vec::new()] in Accepts::Numbers => Same,
            "Distance of each node's memory from this node, one number per node in their order: 10 to itself, 11 to 254 to others. It is the node's row in the firmware's table (numactl --hardware). Instead of distance. For tables in which the distance of two nodes is not the larger of two numbers, such as 32 between sockets, and 50 and 60 to memory behind one of them. The row gives distances from this node; the rows of other nodes give distances to it.";
        cpus: Option<u16>, [absent "none"] in Accepts::Integer(0, CPU_MAX as i64 + 1) => Same,
            "Processors of this node, numbered in the order of nodes. Processors of machine.cpus that no node lists belong to the first node. Allocations of a task use the node of its processor first. A node without processors is memory only.";
        preset: String, [default MemorySpec::DRAM_NAME.to_string()] in Accepts::Choice(MemorySpec::PRESETS) => Same,
            "The class of memory; it sets every figure not overridden here. Latency and bandwidth decide the tier of a node without processors, relative to the first node with processors. A node with processors is ordinary memory.";
        read_latency: Option<TimeSpan>, [absent "the preset's"] in LATENCY => Same,
            "Latency of a load with no other load in flight.";
        write_latency: Option<TimeSpan>, [absent "the preset's"] in LATENCY => Same,
            "Latency of a store that has to reach memory.";
        read_bandwidth: Option<Bandwidth>, [absent "the preset's"] in Accepts::Bandwidth => Same,
            "Bytes per second, shared by loads.";
        write_bandwidth: Option<Bandwidth>, [absent "the preset's"] in Accepts::Bandwidth => Same,
            "Bytes per second, shared by stores.";
        interleave_weight: u16, [unless 1] in Accepts::Integer(1, 255) => Same,
            "Pages that weighted interleaving takes from this node in a row (/sys/kernel/mm/mempolicy/weighted_interleave).";
        adistance: Option<u32>, [absent "from latency and bandwidth"] in Accepts::Integer(1, i32::MAX as i64) => Same,
            "Abstract distance, as the kernel computes it from latency and bandwidth. The tier is a 128th of it; less is faster. DRAM is 576. A driver that does not know its memory reports 2880.";
    }
}

/// A figure of a class of memory, or of hardware that reports accesses to it, in the form of a scenario setting.
pub struct MemoryFigure {
    /// The key of `[[machine.node]]`, or of `[machine.hints]`.
    pub key: &'static str,
    /// The value of the figure.
    pub value: String,
    /// The source of the figure.
    pub source: &'static str,
}

impl Node {
    /// Distance between nodes that do not define it.
    pub(super) const DISTANCE: u32 = 20;

    /// Blocks of 2 MiB of the largest node that may have such.
    pub(super) const BLOCKS_MAX: u64 = 64 << 9;

    /// Every figure that a preset gives, with its source.
    pub fn figures(preset: &Preset) -> [MemoryFigure; 4] {
        let time = |figure: Figure<u64>| (format!("\"{}\"", TimeSpan(figure.value)), figure.source);
        let rate = |figure: Figure<u64>| (format!("\"{}\"", Bandwidth(figure.value)), figure.source);
        let figures = [
            ("read_latency", time(preset.read_latency)),
            ("write_latency", time(preset.write_latency)),
            ("read_bandwidth", rate(preset.read_bandwidth)),
            ("write_bandwidth", rate(preset.write_bandwidth)),
        ];
        figures.map(|(key, (value, source))| MemoryFigure { key, value, source })
    }

    /// The node's memory; of an unknown preset, which the check has found, ordinary memory.
    pub fn spec(&self) -> MemorySpec {
        let preset = MemorySpec::preset(&self.preset).unwrap_or(MemorySpec::DRAM);
        MemorySpec {
            read_latency: self.read_latency.map_or(preset.read_latency, |time| time.0),
            write_latency: self.write_latency.map_or(preset.write_latency, |time| time.0),
            read_bandwidth: self.read_bandwidth.map_or(preset.read_bandwidth, |rate| rate.0),
            write_bandwidth: self.write_bandwidth.map_or(preset.write_bandwidth, |rate| rate.0),
        }
    }

    fn memory_type(&self) -> MemoryType {
        match self.adistance {
            Some(adistance) => MemoryType::Adistance(adistance),
            None => MemoryType::Measured(self.spec().coordinate()),
        }
    }
}

const NODE_MEMORY: Accepts = Accepts::Size(4 << 20, 8 << 40);

impl Machine {
    /// Memory of a machine that does not define it.
    pub const DEFAULT_MEMORY: Size = Size(1 << 30);

    /// Memory of each node, in order.
    pub fn node_sizes(&self) -> Vec<Size> {
        if self.node.is_empty() {
            vec![self.memory.unwrap_or(Machine::DEFAULT_MEMORY)]
        } else {
            self.node.iter().map(|node| node.memory).collect()
        }
    }
}

impl Machine {
    /// What that memory is like.
    pub(super) fn memory_specs(&self) -> Vec<MemorySpec> {
        if self.node.is_empty() { vec![MemorySpec::DRAM] } else { self.node.iter().map(Node::spec).collect() }
    }

    /// How that memory lies.
    pub(super) fn layout(&self) -> Layout {
        let pages = |size: fn(&Node) -> Size| self.node.iter().map(|node| size(node).pages_floor()).collect();
        let distance = |from: usize, to: usize| match self.node[from].distances.get(to) {
            Some(&given) => given,
            None if from == to => 10,
            None => self.node[from].distance.max(self.node[to].distance) as u8,
        };
        let nodes = 0..self.node.len();
        Layout {
            zone_dma: self.zone_dma,
            movable_pages: pages(|node| node.movable),
            reserved_pages: pages(|node| node.reserved),
            unmovable_blocks: self.node.iter().map(|node| node.unmovable_blocks).collect(),
            init_pages: self.init_memory.pages_floor(),
            distances: nodes
                .clone()
                .map(|from| nodes.clone().map(|to| distance(from, to)).collect())
                .collect(),
            cpu_nodes: self.cpu_nodes(),
            interleave_weights: self.node.iter().map(|node| node.interleave_weight as u8).collect(),
            memory_types: self.node.iter().map(Node::memory_type).collect(),
            ..Layout::default()
        }
    }

    /// Nodes with processors.
    pub(super) fn sockets(&self) -> usize {
        let cpu_nodes = self.cpu_nodes();
        (0..self.node.len()).filter(|&node| cpu_nodes.contains(&NodeId(node as u8))).count()
    }

    /// What lies between its sockets, if that makes a difference.
    pub(super) fn links(&self) -> Option<LinkSpec> {
        let latency = self.remote_latency.map_or(LinkSpec::LATENCY, |time| time.0);
        let layout = self.layout();
        let has_cpus = |node: usize| layout.cpu_nodes.contains(&NodeId(node as u8));
        (latency > 0 && self.sockets() > 1).then(|| LinkSpec {
            latency,
            bandwidth: self.remote_bandwidth.map_or(LinkSpec::BANDWIDTH, |rate| rate.0),
            has_cpus: (0..self.node.len()).map(has_cpus).collect(),
            distances: layout.distances.clone(),
        })
    }

    /// The machine's tiers of memory.
    pub fn tiers(&self) -> Result<MemoryTiers, ConfigError> {
        MemoryTiers::new(&Config {
            node_pages: self.node_sizes().into_iter().map(Size::pages_floor).collect(),
            layout: self.layout(),
            cpus: self.cpus,
            ..Config::default()
        })
    }

    /// The processors of some nodes.
    pub(super) fn cpus_of(&self, nodes: Nodemask) -> Vec<u16> {
        let node_of = self.cpu_nodes();
        (0..self.cpus)
            .filter(|&cpu| node_of.get(usize::from(cpu)).is_some_and(|&node| nodes.contains(node)))
            .collect()
    }

    /// The node of each processor.
    pub(super) fn cpu_nodes(&self) -> Vec<NodeId> {
        let of_node = |node: &Node| usize::from(node.cpus.unwrap_or(0));
        let unnamed = usize::from(self.cpus).saturating_sub(self.node.iter().map(of_node).sum());
        let ids = (0..).map(NodeId);
        let of_nodes = ids.zip(&self.node).flat_map(|(id, node)| std::iter::repeat_n(id, of_node(node)));
        std::iter::repeat_n(NodeId(0), unnamed).chain(of_nodes).collect()
    }
}

impl Default for Machine {
    fn default() -> Machine {
        from_nothing()
    }
}

section! {
    /// The rules of the kernel. `version` and `lists` name a version of the kernel and its lists, `profile` a bundle of rules; every other key is one
    /// switch by its dotted name.
    pub struct Kernel {
        profile: String, [default Kernel::DEFAULT_PROFILE.to_string()] in Accepts::Policy => Same,
            "LRU and version, such as mglru@6.8, or a bundle of rules that no version has. This project is compared with the counters of 6.12, a long-term kernel.";
        version: Option<String>, [absent "the profile's"] in Accepts::Version => Same,
            "Version of the kernel: every rule has its value of that version. Stable versions with three numbers exist if they changed a rule, such as 6.1.69; a series alone is its newest version. `pageout keys kernel --at 6.8` prints the values of a version and their sources.";
        lists: Option<String>, [absent "the profile's"] in Accepts::Choice(&["classic", "mglru"]) => Same,
            "LRU of that version: classic (active and inactive lists) or MGLRU, which came with 6.1.";
        switches: Knobs, [rest] knobs kernel_keys,
            "Single switches and batch sizes that differ from the bundle.";
    }
}

impl Kernel {
    /// The profile of a scenario that names none.
    pub const DEFAULT_PROFILE: &str = "classic@6.12";

    /// The name of what it goes by: the profile, or the version with its lists where the scenario says either.
    pub fn name(&self) -> String {
        if self.version.is_none() && self.lists.is_none() {
            return self.profile.clone();
        }
        let of_profile = pageout_engine::Kernel::of_name(&self.profile);
        let lists = of_profile.map_or(Lists::Classic, |kernel| kernel.lists).name();
        let version = of_profile.map_or(Version::LAST, |kernel| kernel.version).to_string();
        let lists = self.lists.as_deref().unwrap_or(lists);
        format!("{lists}@{}", self.version.as_deref().unwrap_or(&version))
    }
}

impl Default for Kernel {
    fn default() -> Kernel {
        from_nothing()
    }
}
