//! The newtypes everything is counted in; counts, indexes and bytes never mix.

use bytemuck::Zeroable;
use std::fmt;

/// Bytes in a base page.
pub const PAGE_SIZE: u64 = 1 << PAGE_SHIFT;
/// log2 of [`PAGE_SIZE`].
pub const PAGE_SHIFT: u32 = 12;
/// Frames in a section: 128 MiB. Nodes begin at section boundaries, and folio records are allocated by section.
pub const SECTION_FRAMES: u32 = 1 << 15;
/// Order of the largest block that the page allocator keeps.
pub const MAX_BLOCK_ORDER: u8 = 10;
/// Order of a pageblock.
pub const PAGEBLOCK_ORDER: u8 = 9;
/// Pages in a pageblock, 2^9, what one leaf of a page table maps: what the page allocator gives to one kind of use, as far as it can.
pub const PAGEBLOCK_PAGES: u64 = 1 << PAGEBLOCK_ORDER;
/// Frames in the largest block that the page allocator keeps. Zones begin at multiples of it.
pub const MAX_BLOCK_PAGES: u32 = 1 << MAX_BLOCK_ORDER;

macro_rules! index {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Zeroable)]
        pub struct $name(pub $inner);

        impl $name {
            /// As an index into a table of them.
            #[inline]
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

index! {
    /// Page frame number: a dense index over all nodes' frames.
    Pfn(u32)
}
index! {
    /// NUMA node.
    NodeId(u8)
}
/// A set of NUMA nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Nodemask(u64);

impl Nodemask {
    /// All nodes that there may be.
    pub const ALL: Nodemask = Nodemask(u64::MAX);

    /// These nodes.
    #[inline]
    pub fn of(nodes: impl IntoIterator<Item = NodeId>) -> Nodemask {
        Nodemask(nodes.into_iter().fold(0, |mask, node| mask | 1 << node.0))
    }

    /// These without one of them, or with one more.
    #[inline]
    pub fn set(&mut self, node: NodeId, is_in: bool) {
        let bit = 1 << node.0;
        self.0 = if is_in { self.0 | bit } else { self.0 & !bit };
    }

    /// Parses the kernel's list format: `0-2,5`. `None`: the text is not a list of nodes.
    pub fn parse(list: &str) -> Option<Nodemask> {
        let node = |text: &str| {
            let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse().ok().filter(|&node: &u8| is_number && u32::from(node) < u64::BITS)
        };
        list.trim().split(',').try_fold(Nodemask(0), |mask, run| {
            let (first, last) = run.split_once('-').unwrap_or((run, run));
            let (first, last) = (node(first)?, node(last)?);
            (first <= last).then(|| Nodemask(mask.0 | Nodemask::of((first..=last).map(NodeId)).0))
        })
    }

    /// Returns whether a node is one of them.
    #[inline(always)]
    pub fn contains(self, node: NodeId) -> bool {
        self.0 >> node.0 & 1 == 1
    }

    /// Returns whether there is none.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// All of them, in order.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = NodeId> {
        (0..u64::BITS as u8).map(NodeId).filter(move |&node| self.contains(node))
    }

    /// The one after a node, and around.
    #[inline]
    pub fn after(self, node: Option<NodeId>) -> Option<NodeId> {
        self.iter().find(|&next| node.is_none_or(|node| next > node)).or(self.iter().next())
    }
}

impl std::ops::Not for Nodemask {
    type Output = Nodemask;

    #[inline]
    fn not(self) -> Nodemask {
        Nodemask(!self.0)
    }
}

impl std::ops::BitAnd for Nodemask {
    type Output = Nodemask;

    #[inline]
    fn bitand(self, other: Nodemask) -> Nodemask {
        Nodemask(self.0 & other.0)
    }
}

/// As the kernel lists them.
impl fmt::Display for Nodemask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes: Vec<NodeId> = self.iter().collect();
        for (at, run) in nodes.chunk_by(|a, b| a.0 + 1 == b.0).enumerate() {
            let comma = if at > 0 { "," } else { "" };
            let (first, last) = (run[0].0, run[run.len() - 1].0);
            if first == last { write!(f, "{comma}{first}")? } else { write!(f, "{comma}{first}-{last}")? }
        }
        Ok(())
    }
}

index! {
    /// Simulated CPU; chooses the per-CPU batches and the charge stock.
    CpuId(u16)
}
index! {
    /// Memory group. Reused only if the machine forgets a group that is gone: otherwise a shadow could name the wrong group.
    MemcgId(u16)
}
index! {
    /// Address space.
    MmId(u32)
}
index! {
    /// File, regular or tmpfs.
    FileId(u32)
}
index! {
    /// An open file: a position and a readahead window, which all objects that were made from it share.
    OpenFileId(u32)
}
index! {
    /// A thread of execution that accesses pages.
    TaskId(u32)
}
index! {
    /// Swap device.
    SwapId(u8)
}
index! {
    /// Backing device: what regular files live on, and what a flusher thread writes to.
    BdiId(u16)
}
index! {
    /// A device transfer in flight.
    IoId(u32)
}
index! {
    /// An open file or a mapping of one task, numbered from 0 in the order of the calls that made them.
    ObjectId(u32)
}

/// A device's writeback on behalf of one memory group (`bdi_writeback`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WbId(pub u32);

impl WbId {
    /// As an index into a table of them.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl MemcgId {
    /// The root group: never limited, parent of all.
    pub const ROOT: MemcgId = MemcgId(0);
}

/// A point in virtual time, or a span of it, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Nanos(pub u64);

impl Nanos {
    /// The beginning of time.
    pub const ZERO: Nanos = Nanos(0);
    /// A second.
    pub const SECOND: Nanos = Nanos(1_000_000_000);

    /// `ticks` timer ticks at `hz` ticks a second.
    #[inline]
    pub fn from_ticks(ticks: u64, hz: u32) -> Nanos {
        Nanos(ticks * (Self::SECOND.0 / u64::from(hz)))
    }
}

impl std::ops::Add for Nanos {
    type Output = Nanos;
    #[inline]
    fn add(self, other: Nanos) -> Nanos {
        Nanos(self.0 + other.0)
    }
}

impl std::ops::AddAssign for Nanos {
    #[inline]
    fn add_assign(&mut self, other: Nanos) {
        self.0 += other.0;
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n >= 1_000_000_000 => write!(f, "{:.3} s", n as f64 / 1e9),
            n if n >= 1_000_000 => write!(f, "{:.3} ms", n as f64 / 1e6),
            n if n >= 1_000 => write!(f, "{:.1} us", n as f64 / 1e3),
            n => write!(f, "{n} ns"),
        }
    }
}

/// The two kinds of memory that reclaim balances. tmpfs pages count as anonymous: they live and die with swap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LruType {
    /// Swap-backed: anonymous and tmpfs.
    Anon = 0,
    /// Backed by a file.
    File = 1,
}

impl LruType {
    /// Both types, anonymous first as the kernel orders them.
    pub const BOTH: [LruType; 2] = [LruType::Anon, LruType::File];
}

/// A zone of a node, or the highest zone that a request may use: its class.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ZoneType {
    /// Below 16 MiB, for devices of the ISA bus; only if the kernel is built with it.
    Dma = 0,
    /// Below 4 GiB, for devices with addresses of 32 bits.
    Dma32 = 1,
    /// All other memory that the kernel can use for itself.
    Normal = 2,
    /// Memory that only what can be moved may use.
    Movable = 3,
}

impl ZoneType {
    /// The number of zone types.
    pub const COUNT: usize = 4;
    /// All, from the lowest up.
    pub const ALL: [ZoneType; ZoneType::COUNT] =
        [ZoneType::Dma, ZoneType::Dma32, ZoneType::Normal, ZoneType::Movable];

    /// The name of the zone in `/proc/zoneinfo`.
    #[inline]
    pub fn name(self) -> &'static str {
        match self {
            ZoneType::Dma => "DMA",
            ZoneType::Dma32 => "DMA32",
            ZoneType::Normal => "Normal",
            ZoneType::Movable => "Movable",
        }
    }
}

/// Latency and bandwidth of a node's memory, seen from the nearest CPUs (`access0` in `/sys/devices/system/node/nodeN`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AccessCoordinate {
    /// Latency of a load, in nanoseconds.
    pub read_latency: u32,
    /// Latency of a store, in nanoseconds.
    pub write_latency: u32,
    /// Bandwidth of loads, in MB a second.
    pub read_bandwidth: u32,
    /// Bandwidth of stores, in MB a second.
    pub write_bandwidth: u32,
}
