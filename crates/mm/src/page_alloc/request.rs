//! A request to the page allocator: its gfp flags, and the alloc flags with which each try of it tests a zone's watermarks.
//!
//! A request says what its caller may do and bear (`Gfp`, the kernel's gfp flags). A try of it says how deep it may reach into the
//! reserves of a zone (`Rights`, the kernel's alloc flags). The fast path tries with few rights, the slow path with more. [machine 2.5, 2.9]

use crate::page_alloc::compact::Wanted;
use crate::units::ZoneType;
use crate::units::{NodeId, Nodemask};

/// Largest order that a request is served at almost any price. Larger blocks are costly, so a caller that requests one must handle a failure.
pub const COSTLY_ORDER: u8 = 3;

/// The use of a page, which decides which pages it may be adjacent to. [machine 2.8]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(dead_code)] // nobody asks for the last one
pub enum MigrateType {
    /// Kernel memory that stays where it is.
    Unmovable = 0,
    /// Pages of processes and files: a copy serves as well.
    Movable = 1,
    /// Kernel memory that a shrinker can free.
    Reclaimable = 2,
    /// Pageblocks kept for requests of order > 0 that can't wait.
    HighAtomic = 3,
}

impl MigrateType {
    /// The number of migrate types.
    pub const COUNT: usize = 4;
    /// All types.
    pub const ALL: [MigrateType; MigrateType::COUNT] =
        [MigrateType::Unmovable, MigrateType::Movable, MigrateType::Reclaimable, MigrateType::HighAtomic];
}

bitflags::bitflags! {
    /// Permitted actions of the caller of the allocator, and its tolerance of failure.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Gfp: u16 {
        /// May reclaim for itself, and so sleep.
        const DIRECT_RECLAIM = 1 << 0;
        /// The request may wake kswapd.
        const KSWAPD_RECLAIM = 1 << 1;
        /// Reclaim for it may start I/O.
        const IO = 1 << 2;
        /// Reclaim for it may enter a file system.
        const FS = 1 << 3;
        /// May use half of the reserve.
        const HIGH = 1 << 4;
        /// May use all of it: the caller frees more than it takes.
        const MEMALLOC = 1 << 5;
        /// May not, although its task might.
        const NOMEMALLOC = 1 << 6;
        /// One round of reclaim is enough: it has another way.
        const NORETRY = 1 << 7;
        /// Tries as long as that makes progress, but never invokes the OOM killer.
        const RETRY_MAYFAIL = 1 << 8;
        /// A failure is not reported.
        const NOWARN = 1 << 10;
        /// From the preferred node or not at all.
        const THISNODE = 1 << 11;
        /// The page is for write(2), and will be dirty: where nodes have dirty limits, those that are over theirs are left out at first.
        const WRITE = 1 << 12;
    }
}

#[allow(dead_code)] // for those who can't bear everything
impl Gfp {
    /// GFP_KERNEL: may do everything.
    pub const KERNEL: Gfp = Gfp::DIRECT_RECLAIM.union(Gfp::KSWAPD_RECLAIM).union(Gfp::IO).union(Gfp::FS);
    /// GFP_NOFS: may do everything but enter a file system.
    pub const NOFS: Gfp = Gfp::KERNEL.difference(Gfp::FS);
    /// GFP_NOIO: may do everything but start I/O.
    pub const NOIO: Gfp = Gfp::NOFS.difference(Gfp::IO);
    /// Flags of readahead: locks of a file are held, and a page that is not needed immediately has little value.
    pub const READAHEAD: Gfp = Gfp::NOFS.union(Gfp::NORETRY).union(Gfp::NOWARN);
    /// May do nothing but wake kswapd: GFP_NOWAIT.
    pub const NOWAIT: Gfp = Gfp::KSWAPD_RECLAIM;
    /// Flags of a huge page that is not worth any time: a free block, or nothing (GFP_TRANSHUGE_LIGHT).
    pub const HUGE_LIGHT: Gfp = Gfp::IO.union(Gfp::FS).union(Gfp::NOMEMALLOC).union(Gfp::NOWARN);
    /// Flags of a huge page that is worth it: reclaim and compaction, without waking a thread (GFP_TRANSHUGE).
    pub const HUGE: Gfp = Gfp::HUGE_LIGHT.union(Gfp::DIRECT_RECLAIM);
    /// GFP_ATOMIC: may not wait, may use the reserve, and wakes kswapd.
    pub const ATOMIC: Gfp = Gfp::KSWAPD_RECLAIM.union(Gfp::HIGH);
}

bitflags::bitflags! {
    /// The rights of one attempt: how much of the reserves it may use.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Rights: u16 {
        /// Half of the mark is enough.
        const MIN_RESERVE = 1 << 0;
        /// With the right before: three eighths are.
        const NON_BLOCK = 1 << 1;
        /// The OOM killer's victim needs memory to die: half of what is left of the mark is enough.
        const OOM = 1 << 2;
        /// May take from pageblocks kept for such requests.
        const HIGHATOMIC = 1 << 3;
        /// Watermarks do not bind the request.
        const NO_WATERMARKS = 1 << 4;
        /// May not take pages of another migrate type out of a block below the size of a pageblock.
        const NOFRAGMENT = 1 << 5;
        /// The try may wake kswapd.
        const KSWAPD = 1 << 6;
    }
}

impl Rights {
    /// Rights that lead into the reserves.
    pub const RESERVES: Rights =
        Rights::MIN_RESERVE.union(Rights::NON_BLOCK).union(Rights::OOM).union(Rights::HIGHATOMIC);
}

/// A requested block of pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// 2^order pages, aligned to their number.
    pub order: u8,
    /// The mobility of the pages.
    pub migrate_type: MigrateType,
    /// The highest permitted zone.
    pub class: ZoneType,
    /// Permissions of the request.
    pub gfp: Gfp,
    /// The node from which the page is wanted first, which is one of `allowed`.
    pub node: NodeId,
    /// The nodes from which the page may come.
    pub allowed: Nodemask,
    /// True if it is wanted there because that node has its turn.
    pub is_interleaved: bool,
}

impl Request {
    /// Returns whether a block for the one serves the other as well.
    pub fn is_like(&self, other: &Request) -> bool {
        let what = |request: &Request| (request.order, request.migrate_type, request.class, request.allowed);
        what(self) == what(other)
    }

    /// Returns whether it asks for so large a block that it has to bear a failure.
    pub fn is_costly(&self) -> bool {
        self.order > COSTLY_ORDER
    }

    /// Returns whether the caller has another way.
    pub fn may_fail(&self) -> bool {
        self.gfp.contains(Gfp::NORETRY) || self.is_costly()
    }

    /// Returns whether a task may be killed to serve it.
    pub fn may_kill(&self) -> bool {
        !self.is_costly() && !self.gfp.intersects(Gfp::RETRY_MAYFAIL | Gfp::THISNODE)
    }

    /// The block that compaction is to make for it.
    pub fn wanted(&self) -> Wanted {
        Wanted { order: self.order, migrate_type: self.migrate_type, class: self.class }
    }

    /// A page of the kernel's own, which every address must reach.
    pub fn kernel(migrate_type: MigrateType, gfp: Gfp, node: NodeId) -> Request {
        let allowed = Nodemask::ALL;
        Request { order: 0, migrate_type, class: ZoneType::Normal, gfp, node, allowed, is_interleaved: false }
    }

    /// A page of a process or a file.
    pub fn movable(gfp: Gfp, node: NodeId) -> Request {
        Request {
            order: 0,
            migrate_type: MigrateType::Movable,
            class: ZoneType::Movable,
            gfp,
            node,
            allowed: Nodemask::ALL,
            is_interleaved: false,
        }
    }
}
