//! All memory in one place: frames, folios, files, address spaces and swap, with the questions that need more than one of them.

pub mod folio; // a folio's record and its flags
pub mod per_frame; // arrays by frame
pub mod largest; // which blocks of the largest order are free, and need no records
mod transitions; // which flags may change where
pub mod list; // index-linked lists
pub mod numbered; // values by number, which never move
pub mod table_memory; // who has the memory of tables
pub mod sparse; // arrays that take memory where they are not zero
pub mod nodes; // what a table consists of in a kernel, and who pays for it
pub mod table; // 512-entry tables of page words: page tables and page-cache indexes
mod lookup; // folios with the words that lead to them
mod idle; // idle and young flags, for monitors
pub mod tags; // sets of pages of a file, in order
pub mod errors; // writes that have failed, and who was told
pub mod unflushed; // what a device has taken, and has not said to keep
pub mod file; // files: page-cache index, shadow entries
pub mod open_file; // open files: position and readahead window
pub mod mm; // address spaces: mappings over a page table
pub mod deferred; // folios that pressure may split
pub mod mempolicy; // from which nodes the pages of a process come
pub mod room; // whether the system grants their tables any
pub mod tlb; // translations that the processor holds, whose use leaves no trace

use crate::config::{Config, FileSpec};
use crate::lru::Place;
use crate::memory::errors::WriteErrors;
use crate::memory::file::File;
use crate::memory::folio::{Folio, FolioFlags, FolioTable, UseBits};
use crate::memory::list::{Links, UNLISTED};
use crate::memory::mm::Mm;
use crate::memory::open_file::OpenFile;
use crate::memory::per_frame::PerFrame;
use crate::memory::table::{Entry, Mark, NodeChange, SwapEntry, Word};
use crate::memory::table_memory::TableMemory;
use crate::page_alloc::free_memory::FreeMemory;
use crate::page_alloc::request::{Request, Rights};
use crate::page_alloc::watermark::Watermark;
use crate::page_alloc::zones::Zones;
use crate::swap::Swap;
use crate::units::ZoneType;
use crate::units::{CpuId, FileId, MemcgId, MmId, NodeId, OpenFileId, Pfn};

/// All memory of the machine.
pub struct Memory {
    /// A record a frame.
    pub folios: FolioTable,
    /// Place of each folio in MGLRU.
    pub places: PerFrame<Place>,
    /// Free memory.
    pub zones: Zones,
    /// All files, by number.
    pub files: Vec<File>,
    /// All open files, by number.
    pub open_files: Vec<OpenFile>,
    /// Numbers of files, and of open files, that are free again.
    free_files: Vec<FileId>,
    free_open_files: Vec<OpenFileId>,
    /// Writes that have failed, by the device.
    pub fs_errors: Vec<WriteErrors>,
    /// All address spaces, by number.
    pub mms: Vec<Mm>,
    /// Orders above 0 that folios have had, one a bit: a frame may lie within one of these.
    large_orders: u16,
    /// Swap devices.
    pub swap: Swap,
    /// Where tables of files and address spaces lie.
    pub tables: TableMemory,
}

impl Memory {
    /// All memory is free, and there is no file and no process.
    pub fn new(config: &Config) -> Memory {
        Memory {
            folios: FolioTable::default(),
            places: PerFrame::default(),
            zones: Zones::new(config),
            files: Vec::new(),
            open_files: Vec::new(),
            free_files: Vec::new(),
            free_open_files: Vec::new(),
            fs_errors: Vec::new(),
            mms: Vec::new(),
            large_orders: 0,
            swap: Swap::default(),
            tables: TableMemory::default(),
        }
    }

    /// Adds a file of which nothing is cached.
    pub fn add_file(&mut self, spec: FileSpec) -> FileId {
        if let Some(file) = self.free_files.pop() {
            self.files[file.index()] = File::new(spec, &self.tables);
            return file;
        }
        self.files.push(File::new(spec, &self.tables));
        FileId((self.files.len() - 1) as u32)
    }

    /// Forgets a file of which nothing is cached, mapped or open.
    pub fn forget_file(&mut self, file: FileId) {
        let old = self.file(file);
        assert!(old.index.iter().next().is_none() && old.mappings.is_empty(), "{} is in use", old.name);
        debug_assert!(old.nodes.iter().next().is_none(), "nodes of an index go with what is in them");
        let (kind, bdi) = (old.kind, old.bdi);
        let spec = FileSpec { name: String::new(), pages: 0, kind, bdi };
        self.files[file.index()] = File::new(spec, &self.tables);
        self.free_files.push(file);
    }

    /// Opens a file.
    pub fn open_file(&mut self, file: FileId) -> OpenFileId {
        let opened = self.opened(file);
        if let Some(open) = self.free_open_files.pop() {
            self.open_files[open.index()] = opened;
            return open;
        }
        self.open_files.push(opened);
        OpenFileId((self.open_files.len() - 1) as u32)
    }

    /// An open file is closed: its number may be reused.
    pub fn close_file(&mut self, open: OpenFileId) {
        if !self.free_open_files.contains(&open) {
            self.free_open_files.push(open);
        }
    }

    fn opened(&self, file: FileId) -> OpenFile {
        let of = self.file(file);
        // A file of tmpfs is on no device.
        let fs_errors = self.fs_errors.get(of.inode.bdi.index()).map_or(0, |errors| errors.sample());
        let (errors_known, fs_errors_known) = (of.inode.errors.sample(), fs_errors);
        OpenFile { errors_known, fs_errors_known, ..OpenFile::new(file, of.bdi.ra_pages) }
    }

    /// Reopens a file: the position is the start, and readahead is that of the device.
    pub fn open_again(&mut self, open: OpenFileId) {
        let file = self.open_files[open.index()].file;
        self.open_files[open.index()] = self.opened(file);
    }

    /// Adds an address space.
    pub fn add_mm(&mut self, mm: Mm) -> MmId {
        self.mms.push(mm);
        MmId((self.mms.len() - 1) as u32)
    }

    /// A file by its number.
    pub fn file(&self, file: FileId) -> &File {
        &self.files[file.index()]
    }

    /// A file by its number, to be changed.
    pub fn file_mut(&mut self, file: FileId) -> &mut File {
        &mut self.files[file.index()]
    }

    /// An address space by its number.
    pub fn mm(&self, mm: MmId) -> &Mm {
        &self.mms[mm.index()]
    }

    /// An address space by its number, to be changed.
    pub fn mm_mut(&mut self, mm: MmId) -> &mut Mm {
        &mut self.mms[mm.index()]
    }

    /// Frames with a fresh record, and the zone they are from. `None`: no zone of the list passes the mark.
    #[inline]
    pub fn alloc(
        &mut self,
        cpu: CpuId,
        request: &Request,
        mark: Watermark,
        rights: Rights,
        memcg: MemcgId,
    ) -> Option<(ZoneType, Pfn)> {
        let (zone, pfn) = self.zones.take(&mut self.folios, cpu, request, mark, rights)?;
        let (kind, node) = (zone.kind, zone.node);
        debug_assert!(
            kind <= request.class,
            "a request up to zone {:?} gets a frame of {kind:?}",
            request.class
        );
        debug_assert!(
            request.allowed.contains(node),
            "a request gets a frame of {node:?}, which it may not use"
        );
        self.assert_fresh(pfn, request.order);
        let folio = &mut self.folios[pfn];
        *folio = Default::default();
        folio.node = node;
        folio.order = request.order;
        folio.memcg = memcg;
        self.large_orders |= 1 << request.order & !1;
        Some((kind, pfn))
    }

    /// Allocates for a request that has just made its block in this zone, whatever the marks.
    pub fn capture(
        &mut self,
        node: NodeId,
        zone: ZoneType,
        request: &Request,
        memcg: MemcgId,
    ) -> Option<Pfn> {
        let pfn = self.zones.zone_mut(node, zone).capture(&mut self.folios, &request.wanted())?;
        self.assert_fresh(pfn, request.order);
        self.folios[pfn] = Folio { memcg, ..Folio::new(node, request.order) };
        self.large_orders |= 1 << request.order & !1;
        Some(pfn)
    }

    /// Allocates without a look at the zones: a page that the CPU holds of the first one, where that has plenty.
    #[inline(always)]
    pub fn alloc_listed(&mut self, cpu: CpuId, request: &Request, memcg: MemcgId) -> Option<(ZoneType, Pfn)> {
        let (zone, pfn) = self.zones.take_listed(&mut self.folios, cpu, request)?;
        let (kind, node) = (zone.kind, zone.node);
        self.assert_fresh(pfn, 0);
        self.folios[pfn] = Folio { memcg, ..Folio::new(node, 0) };
        Some((kind, pfn))
    }

    /// The zones have allocated a block: it is unused, and is where blocks of its order are.
    #[inline(always)]
    fn assert_fresh(&self, pfn: Pfn, order: u8) {
        debug_assert!(pfn.0.is_multiple_of(1 << order), "a block of order {order} begins with {pfn:?}");
        debug_assert_eq!(self.folios.free_order(pfn), None, "{pfn:?} is given out and still counts as free");
        debug_assert!(
            self.folios[pfn].refs == 0 && self.folios[pfn].mapped == 0,
            "{pfn:?} is allocated while it is in use: {:?}",
            self.folios[pfn]
        );
        debug_assert_eq!(self.folios.links(pfn.0), UNLISTED, "{pfn:?} is given out while it is on a list");
    }

    /// Gives a folio's frames back.
    #[inline]
    pub fn free(&mut self, cpu: CpuId, pfn: Pfn) {
        let Folio { node, order, refs, mapped, .. } = self.folios[pfn];
        debug_assert_eq!((refs, mapped), (0, 0), "{pfn:?} is freed while somebody has it");
        debug_assert_eq!(self.folios.free_order(pfn), None, "{pfn:?} is freed twice");
        debug_assert_eq!(self.zones.node_of(pfn), node, "{pfn:?} is freed to another node than it is of");
        debug_assert!(pfn.0.is_multiple_of(1 << order), "a folio of order {order} begins with {pfn:?}");
        self.zones.give_back(&mut self.folios, cpu, node, pfn, order);
    }

    /// Takes a page of each of this many of a node's pageblocks permanently.
    pub fn take_scattered(&mut self, node: NodeId, count: u64) -> Vec<Pfn> {
        self.zones.take_scattered(&mut self.folios, node, count)
    }

    /// Makes this the free memory of a zone. What was free there and is on none of its lists is the caller's from now on.
    pub fn set_free(
        &mut self,
        node: NodeId,
        kind: ZoneType,
        free: &FreeMemory,
        config: &Config,
    ) -> Result<Vec<Pfn>, String> {
        self.zones.set_free(&mut self.folios, node, kind, free, config)
    }

    /// Takes back the free pages that CPUs hold.
    pub fn drain_all_pages(&mut self) {
        self.zones.drain_all(&mut self.folios);
    }

    /// Puts memory of a node that was never used into the lists of free blocks.
    pub fn list_fresh(&mut self, node: NodeId) {
        self.zones.list_fresh(&mut self.folios, node);
    }

    /// Takes all free pages of a node within a block out of the lists. Each is referred to by who has it now.
    pub fn isolate_free(&mut self, node: NodeId, block: std::ops::Range<u32>) -> Vec<Pfn> {
        let mut free = Vec::new();
        self.zones.isolate_free(&mut self.folios, node, block, &mut free);
        free
    }

    /// Gives a request that fails what is kept for requests that can't wait; whether there was anything.
    pub fn release_highatomic(&mut self, request: &Request, even_last: bool) -> bool {
        self.zones.release_highatomic(&mut self.folios, request, even_last)
    }

    /// A CPU's housekeeping of the free pages that it holds.
    pub fn refresh_lists(&mut self, cpu: CpuId) {
        self.zones.refresh(&mut self.folios, cpu);
    }

    /// Makes room for what arrays by frame hold of so many frames. From now on none of it moves, and none is given back.
    pub fn reserve_records(&mut self, frames: usize) {
        self.places.reserve(frames);
        self.folios.reserve(frames);
    }

    /// Gives back what arrays by frame hold of blocks that are free.
    pub fn give_back(&mut self) {
        // A folio that leaves its list leaves its place there.
        self.places.give_back(&self.folios.largest);
        self.folios.give_back();
    }

    /// All nodes.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> {
        self.zones.nodes()
    }

    /// Returns whether there has ever been a large folio.
    #[inline]
    pub fn has_large_folios(&self) -> bool {
        self.large_orders != 0
    }

    /// The folio that a frame in use belongs to: itself, or the large one that it lies in.
    pub fn folio_of(&self, pfn: Pfn) -> Pfn {
        let mut orders = self.large_orders;
        while orders != 0 {
            let order = 15 - orders.leading_zeros() as u8;
            orders &= !(1 << order);
            let head = Pfn(pfn.0 & !((1 << order) - 1));
            if self.folios.get(head).order >= order && self.is_in_use(head) {
                return head;
            }
        }
        pfn
    }

    /// Returns whether something refers to the folio that begins with a frame. The record of a frame that is free, or on the list of a CPU, still has
    /// its old state. So does that of a frame in the middle of a large folio.
    fn is_in_use(&self, pfn: Pfn) -> bool {
        let folio = self.folios.get(pfn);
        let holds = FolioFlags::INDEXED | FolioFlags::SWAPCACHE | FolioFlags::LOCKED | FolioFlags::WRITEBACK;
        let has_user = folio.refs > 0 || folio.mapped > 0 || folio.flags().intersects(holds);
        has_user && self.folios.free_order(pfn).is_none()
    }

    /// Returns whether a frame is the first one of a folio in use.
    pub fn is_head_in_use(&self, pfn: Pfn) -> bool {
        self.is_in_use(pfn) && self.folio_of(pfn) == pfn
    }

    /// The slot of a folio in the swap cache.
    pub fn swap_entry(&self, pfn: Pfn) -> SwapEntry {
        let folio = &self.folios[pfn];
        debug_assert!(folio.has(FolioFlags::SWAPCACHE), "{pfn:?} has no slot");
        SwapEntry { swap: folio.swap, slot: folio.slot }
    }

    /// Returns the use bits of the folio, wherever they are kept.
    #[inline(always)]
    pub fn use_bits(&self, pfn: Pfn) -> UseBits {
        self.use_bits_of(&self.folios[pfn])
    }

    /// Returns the use bits of a folio with an available record.
    #[inline(always)]
    pub fn use_bits_of(&self, folio: &Folio) -> UseBits {
        if folio.has(FolioFlags::INDEXED) {
            self.files[folio.owner as usize].index.word(folio.index.into()).use_bits()
        } else {
            folio.use_bits
        }
    }

    /// Returns whether all these use bits of a folio are set.
    #[inline]
    pub fn has_use(&self, pfn: Pfn, use_bits: UseBits) -> bool {
        self.use_bits(pfn).contains(use_bits)
    }

    /// Sets use bits of a folio.
    #[inline]
    pub fn add_use(&mut self, pfn: Pfn, use_bits: UseBits) {
        self.change_use_bits(pfn, |old| old | use_bits);
    }

    /// Clears use bits of a folio.
    #[inline]
    pub fn remove_use(&mut self, pfn: Pfn, use_bits: UseBits) {
        self.change_use_bits(pfn, |old| old - use_bits);
    }

    /// Gives a folio these use bits.
    #[inline]
    pub fn set_use_bits(&mut self, pfn: Pfn, use_bits: UseBits) {
        self.change_use_bits(pfn, |_| use_bits);
    }

    /// Returns what they were before.
    #[inline(always)]
    pub fn change_use_bits(&mut self, pfn: Pfn, change: impl FnOnce(UseBits) -> UseBits) -> UseBits {
        let folio = &mut self.folios[pfn];
        let mut before = folio.use_bits;
        if folio.has(FolioFlags::INDEXED) {
            let index = &mut self.files[folio.owner as usize].index;
            index.update(folio.index.into(), |word| {
                before = word.use_bits();
                *word = word.with_use_bits(change(before));
            });
        } else {
            folio.use_bits = change(before);
        }
        before
    }

    /// Puts a folio into the index of its file; from now on its use bits live there. Returns what was in the slot.
    pub fn index_insert(&mut self, pfn: Pfn, mark: Mark) -> (Word, NodeChange) {
        let folio = self.begin_index_insert(pfn);
        debug_assert_eq!(folio.order, 0, "{pfn:?} is put into one slot of an index");
        let mut word = Word::cached(pfn, folio.use_bits, mark);
        word.set_busy(folio.has(FolioFlags::LOCKED));
        let (found, change) = self.files[folio.owner as usize].index.replace(folio.index.into(), word);
        debug_assert!(!found.is_present(), "page {} of a file is put over another", folio.index);
        debug_assert_eq!(
            word.is_plain(),
            !folio.has(FolioFlags::LOCKED),
            "{pfn:?} is locked, and a hit would not wait for it, or the other way round"
        );
        (found, change)
    }

    fn begin_index_insert(&mut self, pfn: Pfn) -> Folio {
        let folio = &mut self.folios[pfn];
        debug_assert!(!folio.has(FolioFlags::INDEXED), "{pfn:?} is put into an index twice");
        debug_assert!(!folio.has(FolioFlags::ANON), "{pfn:?} is anonymous, and is put into a file's index");
        folio.set(FolioFlags::INDEXED);
        *folio
    }

    /// The same of a large folio. The last of several shadows in its range counts [folios 1.8]. Also returns what changed in index nodes, by a
    /// page of each.
    pub fn index_insert_large(&mut self, pfn: Pfn, mark: Mark) -> (Word, Vec<(u64, NodeChange)>) {
        let folio = self.begin_index_insert(pfn);
        let first = u64::from(folio.index);
        debug_assert!(
            first.is_multiple_of(folio.pages()),
            "{pfn:?} lies across the place of its size: {folio:?}"
        );
        self.large_orders |= 1 << folio.order;
        let (mut shadow, mut changes) = (Word::EMPTY, Vec::new());
        for page in folio.file_pages() {
            let mut word = if page == first {
                Word::cached(pfn, folio.use_bits, mark).with_order(folio.order)
            } else {
                Word::cached_tail(pfn, folio.order)
            };
            word.set_busy(folio.has(FolioFlags::LOCKED));
            let (found, change) = self.files[folio.owner as usize].index.replace(page, word);
            debug_assert!(!found.is_present(), "page {page} of a file is put over another");
            if found.is_shadow() {
                shadow = found;
            }
            if change != NodeChange::None {
                changes.push((page, change));
            }
        }
        (shadow, changes)
    }

    /// Takes a folio out of the index of its file, leaving `word`; its use bits move to its record.
    pub fn index_remove(&mut self, pfn: Pfn, word: Word) -> NodeChange {
        debug_assert!(!word.is_present(), "a page leaves an index and leaves a page there");
        let folio = &mut self.folios[pfn];
        debug_assert!(folio.has(FolioFlags::INDEXED), "{pfn:?} leaves an index and is in none");
        debug_assert_eq!(folio.order, 0, "{pfn:?} leaves one slot of an index");
        let (old, change) = self.files[folio.owner as usize].index.replace(folio.index.into(), word);
        debug_assert!(
            old.is_present() && old.pfn() == pfn,
            "{pfn:?} leaves an index that does not lead to it"
        );
        folio.use_bits = old.use_bits();
        folio.clear(FolioFlags::INDEXED);
        change
    }

    /// The same of a large folio, which leaves the word in each slot: one shadow spans its range [folios 1.8]; of swap, each has its own. Returns what changed in index nodes,
    /// by a page of each.
    pub fn index_remove_large(&mut self, pfn: Pfn, word: Word) -> Vec<(u64, NodeChange)> {
        debug_assert!(!word.is_present(), "a page leaves an index and leaves a page there");
        let folio = &mut self.folios[pfn];
        debug_assert!(folio.has(FolioFlags::INDEXED), "{pfn:?} leaves an index and is in none");
        let index = &mut self.files[folio.owner as usize].index;
        folio.use_bits = index.word(folio.index.into()).use_bits();
        let mut changes = Vec::new();
        for (at, page) in (0..).zip(folio.file_pages()) {
            // Slots are in a row, one a page.
            let word = match word.decode() {
                Entry::Swap(entry) => {
                    Word::swapped(SwapEntry { slot: entry.slot + at, ..entry }).with_order(folio.order)
                }
                _ => word,
            };
            let (old, change) = index.replace(page, word);
            debug_assert!(
                old.is_present() && old.pfn() == pfn,
                "{pfn:?} leaves an index that does not lead to it"
            );
            if change != NodeChange::None {
                changes.push((page, change));
            }
        }
        folio.clear(FolioFlags::INDEXED);
        changes
    }

    /// Makes folios of these orders, in this order, of a large one in a page cache. Their words have its state, and so have their records, except for
    /// the list links. Returns their first frames.
    pub fn index_split(&mut self, pfn: Pfn, orders: &[u8]) -> Vec<Pfn> {
        let folio = self.folios[pfn];
        let index = &mut self.files[folio.owner as usize].index;
        let head = index.word(folio.index.into());
        let (mut at, mut parts) = (0, Vec::new());
        for &order in orders {
            let part = Pfn(pfn.0 + at);
            self.folios[part] = folio.part(at, order);
            for page in self.folios[part].file_pages() {
                let is_first = page == u64::from(folio.index + at);
                index.update(page, |word| *word = word.of_part(part, order, is_first.then_some(head)));
            }
            parts.push(part);
            at += 1 << order;
        }
        assert_eq!(u64::from(at), folio.pages(), "the parts of {pfn:?} are all of it");
        parts
    }
}
