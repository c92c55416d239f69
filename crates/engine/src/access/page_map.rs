//! The folios of all lists in their order, to draw them.
//!
//! A call walks the lists, and keeps and changes nothing. It takes some nanoseconds per folio.

use crate::access::figures::Figures;
use crate::lru::lruvec::LruList;
use crate::memory::folio::{FolioFlags, UseBits};
use crate::memory::list::List;
use crate::memory::table::Entry;
use crate::story::PageName;
use crate::units::{FileId, LruType, MemcgId, MmId, NodeId, Pfn};
use pageout_rules::lru::Lru;

/// A list of a group on a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ListName {
    /// The group.
    pub memcg: MemcgId,
    /// The node.
    pub node: NodeId,
    /// Anonymous memory or files.
    pub kind: LruType,
    /// Which of the lists.
    pub place: ListPlace,
}

/// One of the lists of a group on a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ListPlace {
    /// The inactive list.
    Inactive,
    /// The active list.
    Active,
    /// A generation, by its sequence number.
    Generation(u64),
    /// The pages that a policy of slots keeps, in order of their frames.
    SingleList,
    /// Pages that are never evicted, in order of their frames.
    Unevictable,
    /// Pages on no list, in order of their frames: in the batch of a CPU, or isolated.
    NoList,
}

/// What there is to draw of a folio.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FolioFigures {
    /// Its first page.
    pub page: PageName,
    /// 2 to the power of this many pages.
    pub order: u8,
    /// The group that pays for it.
    pub memcg: MemcgId,
    /// The node that it is on.
    pub node: NodeId,
    /// Anonymous memory or files.
    pub kind: LruType,
    /// REFERENCED.
    pub referenced: bool,
    /// ACTIVE.
    pub active: bool,
    /// WORKINGSET.
    pub workingset: bool,
    /// Further accesses through descriptors, 0 to 3 (generations).
    pub counter: u8,
    /// It differs from its backing store.
    pub dirty: bool,
    /// A write of it is in flight.
    pub writeback: bool,
    /// A read into it is in flight.
    pub locked: bool,
}

/// Where a page is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PagePlace {
    /// Nothing is known of it: it was never in memory, or its file or its owner gave it up.
    Unknown,
    /// It was evicted, and left a shadow.
    Evicted,
    /// In the compressed pool of zswap.
    Compressed,
    /// On a swap device.
    Swapped,
    /// In memory, in the folio that begins with this frame.
    Present(Pfn),
}

impl Figures<'_> {
    /// Where a page is now.
    pub fn page_place(self, page: PageName) -> PagePlace {
        let mm = &self.core.mm;
        let word = match page {
            PageName::File { file, page } => mm.memory.file(file).index.word(page),
            PageName::Anon { mm: of, page } => mm.memory.mm(of).table.word_if_any(page),
        };
        match word.decode() {
            Entry::Present(_) if word.is_zero_page() => PagePlace::Unknown,
            Entry::Present(pfn) => PagePlace::Present(mm.memory.folio_of(pfn)),
            Entry::Shadow(_) => PagePlace::Evicted,
            Entry::Swap(entry) => match (mm.memory.swap.cached(entry), mm.zswap.find(entry)) {
                (Some(pfn), _) => PagePlace::Present(pfn),
                (None, Some(_)) => PagePlace::Compressed,
                (None, None) => PagePlace::Swapped,
            },
            Entry::Empty => PagePlace::Unknown,
        }
    }

    /// Calls `visit` with each folio that is or will be on a list, list by list, from the hot end (head) to the cold end (tail).
    pub fn visit_lists(self, visit: &mut dyn FnMut(ListName, Pfn)) {
        let mm = &self.core.mm;
        let folios = &mm.memory.folios;
        let mut reversed: Vec<u32> = Vec::new();
        let mut walk = |name: ListName, list: &List| {
            reversed.clear();
            reversed.extend(list.iter_from_tail(folios));
            reversed.iter().rev().for_each(|&pfn| visit(name, Pfn(pfn)));
        };
        for lruvec in mm.lruvecs.iter() {
            let name = |kind, place| ListName { memcg: lruvec.memcg, node: lruvec.node, kind, place };
            if let Some(generations) = &lruvec.generations {
                for kind in LruType::BOTH {
                    for seq in (generations.oldest_that_can_exist()..=generations.max_seq).rev() {
                        for list in generations.lists_of(generations.slot(seq), kind) {
                            walk(name(kind, ListPlace::Generation(seq)), list);
                        }
                    }
                }
            }
            if !matches!(mm.memcgs[lruvec.memcg].policy.lru, Lru::Guest(_)) {
                for list in LruList::EVICTABLE {
                    let place = if list.is_active() { ListPlace::Active } else { ListPlace::Inactive };
                    walk(name(list.kind(), place), &lruvec.lists[list as usize]);
                }
            }
        }
        for node in mm.memory.nodes() {
            for zone in mm.memory.zones.of_node(node) {
                for pfn in zone.used_so_far().map(Pfn) {
                    let folio = folios.get(pfn);
                    if folio.has(FolioFlags::KERNEL) || !mm.memory.is_head_in_use(pfn) {
                        continue;
                    }
                    let is_listed = folio.has(FolioFlags::LRU);
                    let is_guest = matches!(mm.memcgs[folio.memcg].policy.lru, Lru::Guest(_));
                    let place = match (folio.has(FolioFlags::UNEVICTABLE), is_listed, is_guest) {
                        (true, ..) => ListPlace::Unevictable,
                        (false, true, true) => ListPlace::SingleList,
                        (false, true, false) => continue,
                        (false, false, _) if mm.memory.places.get(pfn).is_listed() => continue,
                        (false, false, _) => ListPlace::NoList,
                    };
                    let (memcg, kind) = (folio.memcg, folio.lru_type());
                    visit(ListName { memcg, node, kind, place }, pfn);
                }
            }
        }
    }

    /// A folio in use, by its first frame.
    pub fn folio(self, pfn: Pfn) -> FolioFigures {
        let memory = &self.core.mm.memory;
        let folio = &memory.folios[pfn];
        let (use_bits, page) = (memory.use_bits(pfn), folio.index.into());
        // While a folio is in a page cache, its index word has what accesses note.
        let is_dirty = folio.has(FolioFlags::DIRTY)
            || folio.has(FolioFlags::INDEXED)
                && !folio.has(FolioFlags::ANON)
                && memory.file(FileId(folio.owner)).index.word(page).is_dirty();
        FolioFigures {
            page: match folio.has(FolioFlags::ANON) {
                true => PageName::Anon { mm: MmId(folio.owner), page },
                false => PageName::File { file: FileId(folio.owner), page },
            },
            order: folio.order,
            memcg: folio.memcg,
            node: folio.node,
            kind: folio.lru_type(),
            referenced: use_bits.contains(UseBits::REFERENCED),
            active: use_bits.contains(UseBits::ACTIVE),
            workingset: use_bits.contains(UseBits::WORKINGSET),
            counter: use_bits.counter(),
            dirty: is_dirty,
            writeback: folio.has(FolioFlags::WRITEBACK),
            locked: folio.has(FolioFlags::LOCKED),
        }
    }
}
