//! Events of a story: a page's name and state, the decision that was made on it, and the numbers that were compared.

use std::collections::BTreeSet;

use crate::balance::{Position, RefTierLimit, ScanBalance, TIERS, TypeReason};
use crate::lru::batch::{Batch, Unrotated};
use crate::lru::{Arrival, Deactivation, PlaceRule};
use crate::pghot::Source as HotSource;
use crate::story::Tracepoint;
use crate::units::{FileId, LruType, MemcgId, MmId, Nanos, NodeId, TaskId};
use crate::writeback::WritebackReason;

/// A page by what it holds, wherever it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum PageName {
    /// A page of a file, tmpfs included.
    File {
        /// The file.
        file: FileId,
        /// Page of it.
        page: u64,
    },
    /// Anonymous.
    Anon {
        /// The address space.
        mm: MmId,
        /// Page of it.
        page: u64,
    },
}

impl PageName {
    /// The page's number within what it is a page of.
    pub(super) fn number(self) -> u64 {
        match self {
            PageName::File { page, .. } | PageName::Anon { page, .. } => page,
        }
    }

    /// The page so many behind it.
    pub(super) fn next(self, pages: u64) -> PageName {
        match self {
            PageName::File { file, page } => PageName::File { file, page: page + pages },
            PageName::Anon { mm, page } => PageName::Anon { mm, page: page + pages },
        }
    }

    /// The first page of the folio of so many pages that it is part of.
    pub(super) fn of_folio(self, pages: u64) -> PageName {
        let first = |page| page / pages * pages;
        match self {
            PageName::File { file, page } => PageName::File { file, page: first(page) },
            PageName::Anon { mm, page } => PageName::Anon { mm, page: first(page) },
        }
    }
}

/// The pages and events that a story covers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StoryFilter {
    /// Everything that happens to these pages.
    Pages(BTreeSet<PageName>),
    /// Evictions of any page, or of pages of one group and its descendants, and nothing else.
    Evictions(Option<MemcgId>),
}

/// A decision on a page or on lists, or a tracepoint, with its time and place.
#[derive(Clone, PartialEq, Debug)]
pub struct StoryEvent {
    /// The start of the engine call in which it was decided. A run of hits is one call.
    pub at: Nanos,
    /// The group whose lists are meant: the page's.
    pub memcg: MemcgId,
    /// The node.
    pub node: NodeId,
    /// The page, lists or tracepoint that the event is about.
    pub told: Told,
}

/// About what a [`StoryEvent`] is.
#[derive(Clone, PartialEq, Debug)]
pub enum Told {
    /// A page.
    Page {
        /// Which.
        page: PageName,
        /// The page's state as the step found it; for a step that puts it somewhere, as it left it.
        state: PageState,
        /// The step.
        event: PageEvent,
    },
    /// All pages of a group on a node.
    Lists(ListsEvent),
    /// A tracepoint, as the kernel tells it. Its event has no group, and the node that it is about, or the first.
    Tracepoint(Tracepoint),
}

/// The state of a page in memory: its list, and the flags and bits that say how hot it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageState {
    /// Anonymous memory or files.
    pub kind: LruType,
    /// The list that the page is on.
    pub place: Whereabouts,
    /// REFERENCED: used once through a descriptor, or found used once.
    pub referenced: bool,
    /// ACTIVE.
    pub active: bool,
    /// WORKINGSET.
    pub workingset: bool,
    /// Further accesses through descriptors, 0 to 3 (generations).
    pub counter: u8,
    /// The tier that these bits make, where pages are kept by generation.
    pub tier: Option<u8>,
    /// A page-table entry's accessed bit is set.
    pub accessed: bool,
    /// The page's place among the 512 of the huge page that it is part of. An event of one of them is an event of all.
    pub huge: Option<u16>,
}

/// The list that a page is on, if any.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Whereabouts {
    /// On none: new, in an add batch, or in reclaim's hands.
    NoList,
    /// Counted as unevictable.
    Unevictable,
    /// On the inactive list of its type.
    Inactive,
    /// On the active list of its type.
    Active,
    /// Where its group's own policy has it: all of them stand in one order.
    SingleList,
    /// In a generation.
    Generation {
        /// The generation that its record carries.
        seq: u64,
        /// The generation on whose list it still is.
        listed: u64,
        /// The oldest of its type.
        oldest: u64,
        /// The youngest.
        youngest: u64,
    },
}

/// The contents that an absent page was filled with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Filled {
    /// A read of a regular file.
    File,
    /// A read before anyone asked for it.
    Readahead,
    /// A write of the whole page of a regular file, for which nothing is read.
    Overwritten,
    /// Zeroes: new anonymous memory.
    Anon,
    /// Zeroes: a new page of a tmpfs file.
    Tmpfs,
    /// A read of a swap device.
    Swap,
    /// A read before anyone asked for it.
    SwapReadahead,
}

/// The verdict of reclaim on an isolated page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The page leaves memory.
    Free,
    /// Back to the list it came from.
    Keep,
    /// Someone needs it: to the active list, or a young generation.
    Activate,
    /// The page goes to slower memory, if that has a free page.
    Demote,
}

/// The reason of a decision of reclaim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Because {
    /// The page is being read.
    BeingRead,
    /// The page is locked into memory.
    Locked,
    /// The page is being written; its write's end will bring it to the cold end.
    BeingWritten,
    /// A look around from a page judged before it found it used.
    NeighbourLooked,
    /// Page-table entries had been used.
    Used {
        /// Number of entries that were found young.
        young: u32,
        /// The page had been found used before.
        was_referenced: bool,
        /// The page is a program's code, which needs one use only.
        executable: bool,
    },
    /// The page was used since its group's own policy last nominated it.
    Visited {
        /// Page-table entries found used; a use through a descriptor shows in no entry.
        young: u32,
    },
    /// The page needs swap, but no slot is free.
    NoSwapSlot,
    /// A compressed swap device has no memory for it.
    NoRoomToCompress,
    /// zswap has not taken it, and `memory.zswap.writeback` keeps its group from the device.
    NoZswapWriteback,
    /// The swap device fails all writes, and a page is tried now and then.
    SwapFails,
    /// The page's contents were to be forgotten, but it was written since.
    WrittenSince,
    /// It is still mapped.
    StillMapped,
    /// A device or a buffer can't release it.
    Pinned,
    /// The page would have to be written, which a page that was read once before is not worth.
    NotWorthAWrite,
    /// The page would have to be written, for which this reclaimer may not enter a file system.
    MayNotEnterFileSystem,
    /// The page would have to be written, and this reclaimer may start no I/O.
    MayDoNoIo,
    /// A per-CPU batch, or an access in progress, holds a reference.
    Held {
        /// How many.
        references: u16,
    },
    /// The page was written meanwhile.
    Dirty,
    /// The page is dirty, and reclaim leaves writing files to the flusher; its write's end will bring it to the cold end.
    FlusherWrites,
    /// The page would have to be written, and this reclaimer writes none. That is a task that needs a page, in the series of 2010; one that spares
    /// the disk, in laptop mode; one that reclaims a near node.
    MayNotWrite,
    /// The page would have to be written, and its device is so busy that further submitters may have to sleep.
    QueueCongested,
    /// The page's file system was to write it, and marked it dirty again: it leaves what reclaim hands it to the flusher.
    Redirtied,
    /// The page's write has begun; it can go when that has ended.
    WriteBegun,
    /// The page's owner said that its contents may be forgotten.
    Forgettable,
    /// There is slower memory for unused pages.
    SlowerMemory,
}

/// The stamp in a shadow, by the rule that will judge the refault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stamp {
    /// The clock of evictions and activations.
    Age(u64),
    /// The oldest generation of the page's type.
    OldestGeneration(u64),
}

/// The rule by which a refault was judged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RefaultRule {
    /// Evictions and activations since its eviction, against the pages that might have made room.
    Distance {
        /// Since its eviction.
        distance: u64,
        /// Active pages, and those of the other type as far as they can be reclaimed.
        room: u64,
    },
    /// Compared: the generation from which it was evicted, and the oldest one now.
    OldestGeneration {
        /// The oldest at its eviction.
        evicted_from: u64,
        /// The oldest now.
        oldest: u64,
        /// Uses from which on a page that was only read gets back what was known of them.
        restored_from: u8,
    },
    /// Compared: the generation from which it was evicted, and those that may still exist.
    AnyGeneration {
        /// The oldest at its eviction.
        evicted_from: u64,
        /// The youngest now.
        youngest: u64,
        /// How many may exist.
        count: u64,
    },
    /// By generations, and its lists have none.
    NoGenerations,
    /// Refaults have no consequence.
    CountOnly,
    /// Another group's generations do not count here.
    OtherGroup,
    /// The group on whose clock the shadow is was removed: nothing follows.
    RemovedGroup,
}

/// The finder of a page's use, other than reclaim that has isolated it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FoundBy {
    /// A walk of page tables.
    Walk,
    /// A look around, from a neighbour that was found used.
    LookAround,
}

/// The measure by which a page in use was found hot, or not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Heat {
    /// The target node has so much free memory that any page counts as hot.
    RoomToSpare,
    /// Hot if it is on an active list, or in one of the two youngest generations.
    OnActiveList(bool),
    /// Hot if less time has passed than the threshold.
    Age {
        /// Since it was marked, or last reported, in milliseconds.
        age_ms: u64,
        /// The threshold, in milliseconds.
        threshold_ms: u64,
    },
}

/// The judgement at a hint fault of whether a page of another node belongs on the node of the thread that uses it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Locality {
    /// It stays: tiers of memory are not balanced, and it is on slow memory.
    SlowStays,
    /// It stays: it is on slow memory, and had no hint fault before.
    FirstOnSlow,
    /// It stays: its last hint fault was on this node, which is another one.
    LastUsedOn(NodeId),
    /// It belongs here: the thread is new, and no other thread has used it.
    OfNewThread,
    /// It belongs here: its last hint fault was here, too, or it had none.
    UsedHere,
}

impl Locality {
    /// Returns true if the page belongs on the node of the thread.
    pub fn belongs_here(self) -> bool {
        matches!(self, Locality::OfNewThread | Locality::UsedHere)
    }
}

/// The reason why a page has moved to another frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MigrateReason {
    /// A hint fault found it hot.
    HintFault,
    /// A hint fault found that the thread which uses it runs on another node.
    Misplaced,
    /// kmigrated found it in the records of hot pages.
    Kmigrated,
    /// The page's reader had set it aside.
    PageCache,
    /// Reclaim has chosen it, and there is slower memory.
    Demotion,
    /// The page's place is to be part of a large free block.
    Compaction,
    /// The page's node goes offline.
    Offline,
    /// The host takes the frames of this range back.
    ContigRange,
    /// A scheme of DAMON names the node.
    Damon,
}

/// The reason why a page did not migrate to another node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MigrateRefusal {
    /// Several processes run this code, and no node is the right one.
    SharedCode,
    /// The page differs from its file, and would most likely be written in the middle of it.
    DirtyFile,
    /// The node would then be below its high watermark.
    NoRoom,
    /// The node has no free frame for it.
    NoFrame,
    /// The page is on no list: someone else has it.
    NotOnList,
    /// Enough have gone this second.
    RateLimit,
    /// The thrash governor lets no more go.
    Governor,
    /// A device, a task in the middle of an access or a CPU's batch knows it by its frame.
    Held,
}

/// A step in a page's life.
#[derive(Clone, PartialEq, Debug)]
pub enum PageEvent {
    /// The page was not in memory, and a task needed it.
    Filled {
        /// With what.
        with: Filled,
        /// The task.
        task: TaskId,
        /// Reclaim calls that its charge had to make first.
        reclaim_calls: u32,
        /// Pages that they reclaimed.
        reclaimed: u64,
    },
    /// The shadow of its last residency was evaluated.
    Refaulted {
        /// How.
        rule: RefaultRule,
        /// The page came back soon enough to matter.
        recent: bool,
        /// The page was in use in its last residency.
        workingset: bool,
        /// The page's uses then, as far as they are counted.
        refs: u8,
        /// The page's tier then.
        tier: u8,
    },
    /// The read into it has ended.
    Read {
        /// Without an error.
        ok: bool,
    },
    /// The page was compressed into the pool of zswap, and needs no write.
    ZswapStored {
        /// Bytes that it came to; 0 if it is one word repeated.
        bytes: u16,
    },
    /// The page was filled from the pool of zswap, which dropped it.
    ZswapLoaded,
    /// The page left the pool of zswap for the device: it was filled from there, and is being written.
    ZswapWrittenBack,
    /// The page's write has ended, and it should have moved to the cold end of its list, but does not.
    NotRotated {
        /// The reason.
        why: Unrotated,
    },
    /// The page's zone is of no use to the reclaimer: it moved to the next generation.
    OutOfReach {
        /// Sequence number of that.
        to: u64,
    },
    /// The page's write has ended, and with it its time in memory.
    Dropped,
    /// The page left the page cache because its file does not have it any more; what was dirty is not written.
    Truncated {
        /// The page was dirty.
        dirty: bool,
    },
    /// A fault mapped it.
    Mapped {
        /// For a store.
        write: bool,
    },
    /// The use-once test: used a second time through a descriptor.
    SecondAccess {
        /// The page is in the add batch still and will enter as active.
        in_add_batch: bool,
    },
    /// The page waits in a per-CPU batch.
    Queued {
        /// In which.
        batch: Batch,
        /// How many wait there with it.
        waiting: usize,
        /// How many make the batch full.
        full: usize,
    },
    /// The page's batch was drained, and what it waited for is done.
    Drained {
        /// Which.
        batch: Batch,
    },
    /// The page was put where its state says it belongs.
    Placed {
        /// Why it came to a list at all.
        arrival: Arrival,
        /// Why to this one.
        rule: PlaceRule,
    },
    /// Its group's own policy would have it go, and says why it stood there.
    Nominated {
        /// In the policy's words.
        why: String,
    },
    /// Used, and its group's own policy was notified.
    UseTold,
    /// An entry that maps it was found used.
    FoundYoung {
        /// The mechanism that found it.
        by: FoundBy,
    },
    /// The page belongs to the youngest generation from now on.
    MadeYoungest {
        /// Which.
        seq: u64,
    },
    /// Read so often that it belongs to another generation from now on.
    Promoted {
        /// Accesses that are counted now.
        refs: u8,
        /// Which.
        to: u64,
    },
    /// Eviction met it on the list of an old generation, and moved it to the one that it carries.
    Sorted,
    /// Eviction met it dirty or being written, and moved it to the next generation.
    PassedOn {
        /// Which.
        to: u64,
    },
    /// Eviction spared it for its tier.
    Protected {
        /// The page's tier.
        tier: u8,
        /// The highest that is taken.
        limit: RefTierLimit,
        /// Refaults of the tier above that, which decided it.
        spared: Position,
        /// The page is at the top of the ladder, and spared whatever the tiers say.
        at_top: bool,
        /// The generation it moved to.
        to: u64,
    },
    /// A full window made room for a new generation: the oldest was closed, and it moved to the next.
    MovedUp {
        /// The sequence number of the generation that the page moved to.
        to: u64,
    },
    /// Reclaim took it off its list.
    Isolated,
    /// The page was taken off its list to go to another frame.
    IsolatedToMove,
    /// A scan has marked its entry, so that its next access takes a hint fault.
    HintMarked,
    /// An access met its marked entry.
    HintFault {
        /// The node of who accessed it.
        by: NodeId,
    },
    /// The reader, scanner or hint fault that found the page in use has asked whether it is hot.
    HeatJudged {
        /// The node that it would go to.
        to: NodeId,
        /// The judgement and its reason.
        heat: Heat,
    },
    /// A hint fault has asked whether it belongs on the node of the thread that uses it.
    LocalityJudged {
        /// The node of the thread.
        to: NodeId,
        /// The judgement and its reason.
        locality: Locality,
    },
    /// Hot-page tracking was notified that it is in use.
    Reported {
        /// The source of the report.
        source: HotSource,
        /// The node of who accessed it, if that is known.
        by: Option<NodeId>,
        /// Number of accesses reported.
        accesses: u32,
        /// The page is hot by now: kmigrated takes it from here.
        is_ready: bool,
    },
    /// The page's reader has set it aside, to promote it when its call is over.
    SetAside {
        /// The target node.
        to: NodeId,
    },
    /// The page has moved to another frame, of the same node or another.
    Migrated {
        /// The node where it was.
        from: NodeId,
        /// The node where it is.
        to: NodeId,
        /// The reason.
        why: MigrateReason,
    },
    /// The page was to move, and stays.
    NotMigrated {
        /// The target node, or, if that was not known yet, its current node.
        to: NodeId,
        /// Why it stays.
        why: MigrateRefusal,
    },
    /// The huge page that it was part of is single pages from now on.
    SplitOff,
    /// Reclaim judged it.
    Judged {
        /// How.
        verdict: Verdict,
        /// The reason.
        because: Because,
    },
    /// Taken off an active list, it goes to the inactive one.
    Deactivated {
        /// Entries that had been used.
        young: u32,
        /// Why that list is being aged.
        why: Option<Deactivation>,
    },
    /// Taken off an active list, it goes back there: a program's code in use.
    KeptActive,
    /// The page differs from its block in its file from now on.
    Dirtied,
    /// The flusher, or a task that waits for it, has begun to write it to its file.
    FileWriteBegun {
        /// The reason.
        reason: WritebackReason,
    },
    /// The write of the page to its file has ended.
    FileWritten {
        /// Without an error.
        ok: bool,
    },
    /// The write of it to swap has ended.
    Written {
        /// Without an error.
        ok: bool,
    },
    /// The page left memory, and left a shadow.
    Evicted {
        /// The group on whose behalf.
        target: MemcgId,
        /// The stamp of the page's shadow.
        stamp: Stamp,
        /// In use in this residency.
        workingset: bool,
        /// The page's uses, as far as they are counted.
        refs: u8,
        /// The page's tier.
        tier: u8,
        /// The page is on swap; else its contents are in its file.
        swapped: bool,
    },
    /// The page's owner gave it up.
    Released,
}

/// A decision on a group's lists.
#[derive(Clone, PartialEq, Debug)]
pub enum ListsEvent {
    /// A new youngest generation.
    GenerationOpened {
        /// Which.
        seq: u64,
    },
    /// A type's oldest generations are over.
    GenerationsClosed {
        /// The type.
        kind: LruType,
        /// The first of them.
        first: u64,
        /// How many.
        count: u64,
    },
    /// The machine is short, and the group above its soft limit: it gives before others do. Unit: pages.
    AboveSoftLimit {
        /// Pages of the group, descendants included.
        usage: u64,
        /// The soft limit that the group is pushed back to.
        limit: u64,
    },
    /// A task needs a page, and the node is reclaimed so that it need not have another's (`vm.zone_reclaim_mode`).
    NearNode {
        /// Bits of `vm.zone_reclaim_mode`, which say whether it may write and unmap.
        mode: u8,
    },
    /// A round of eviction begins.
    TypeChosen(TypeChoice),
    /// A pass over active and inactive lists begins.
    PassBegun {
        /// How the types share it.
        balance: ScanBalance,
        /// log2 of the part of each list that is scanned.
        priority: u8,
        /// Pages to look at: inactive and active anonymous, inactive and active file.
        targets: [u64; 4],
    },
}

/// The type that a round of eviction takes, and the tier up to which it does.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TypeChoice {
    /// The type.
    pub kind: LruType,
    /// The reason.
    pub reason: TypeReason,
    /// The highest tier that is taken.
    pub limit: RefTierLimit,
    /// Refaults of the type's tiers, as they are compared for the limit.
    pub tiers: [Position; TIERS],
}
