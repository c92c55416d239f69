//! The books: what each folio adds to each counter by the state that it is in, and proof that the counters move when that state does.
//!
//! A counter of pages is a sum over folios, but it is never computed as a sum: code that changes a folio counts the change. It may be forgotten, made
//! twice, or made for another group, and the counter drifts by one. So the same is recorded a second time, as in bookkeeping. One table defines in
//! which counters a folio is included ([`ROWS`]). Code that changes a folio opens the books before and closes them after. By then each counter must
//! have moved by what the folio adds now, less what it added then:
//!
//! ```text
//!   let books = self.open_audit(Transition::Unmap, [pfn]);     what each counter says, and what the folio adds to it
//!   ...                                                  flags, lists and counters change, in whichever order
//!   self.close_audit(books);                             panics here, with the transition and the counter that is off
//! ```
//! The checked counters are those of its lruvec, its node and its zone, lengths of lists, pages of generations, and the dirty pages of its file and
//! wb. Each is read live, not as of the last flush: updates that CPUs have yet to pass on concern the readers, not the count. By then the references
//! to the folio must also agree with its record, and a copy of its contents must be where its flags say.
//!
//! Pages that groups pay for have their own books ([`Charges`]): pages in use, slots of swap, and bytes of the kernel's objects. Pages in use are
//! those charged less those that CPUs have charged ahead. Pages charged for immediate use are recorded as paid before anything else is charged.
//!
//! Builds without debug assertions open no books, and nothing is left of the calls. In the others the first [`AUDITED_FIRST`] of each transition are
//! audited, and then one in [`AUDITED_LATER`]: a run of a test makes no more, and a simulation makes millions.

use crate::core::Core;
use crate::lru::lruvec::{LruList, LruvecId};
use crate::lru::two_lists;
use crate::memory::folio::{Folio, FolioFlags, UseBits};
use crate::memory::table::SwapEntry;
use crate::stat::Stat;
use crate::state::State;
use crate::units::{FileId, MemcgId, NodeId, PAGE_SIZE, Pfn, WbId};

/// How many of each transition are audited from the start on.
const AUDITED_FIRST: u32 = 128;
/// One in so many is audited after that.
const AUDITED_LATER: u32 = 64;

/// What is done to a folio, to what a group pays for, or to what is kept of all groups.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Transition {
    Place,
    Unlink,
    ChangeGeneration,
    Map,
    Unmap,
    Mlock,
    EnterPageCache,
    LeavePageCache,
    EnterSwapCache,
    LeaveSwapCache,
    GiveSlotUp,
    Dirty,
    Clean,
    BeginWrite,
    EndWrite,
    Migrate,
    Split,
    SplitEntry,
    Charge,
    Uncharge,
    GiveBack,
    Refill,
    ChargeObject,
    UnchargeObject,
    TakeSlot,
    FreeSlot,
    Reparent,
    FlushStats,
}

/// How many kinds of transitions there are.
const DEEDS: usize = Transition::FlushStats as usize + 1;

/// What has been done, where assertions are.
#[derive(Default)]
pub(crate) struct Transitions {
    /// How often each has been.
    times: [u32; DEEDS],
    /// Pages that were charged to a group last, until they are recorded as paid.
    paid: Option<(MemcgId, u64)>,
}

/// A folio's state, as far as counters depend on it.
struct Standing {
    folio: Folio,
    /// The list that the gauges count it on.
    list: Option<LruList>,
    /// It is on one of the two lists, rather than in a generation or with a guest.
    is_on_two_lists: bool,
    /// The generation that it belongs to.
    generation: Option<usize>,
    /// Pages of it that are mapped.
    mapped_pages: u64,
    /// One entry maps all of them.
    is_mapped_by_one: bool,
    at: Owners,
}

/// Whose counters they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Owners {
    lruvec: LruvecId,
    node: NodeId,
    /// The zone's rank, where its node has several.
    rank: Option<usize>,
    /// A page of a regular file.
    file: Option<FileId>,
    wb: Option<WbId>,
}

/// A counter, and what a folio adds to it: in its group's lruvec and on its node.
struct Row {
    stat: Stat,
    in_group: fn(&Standing) -> i64,
    on_node: fn(&Standing) -> i64,
}

const fn both(stat: Stat, adds: fn(&Standing) -> i64) -> Row {
    Row { stat, in_group: adds, on_node: adds }
}

/// In which counters a folio stands.
#[rustfmt::skip]
const ROWS: [Row; 14] = [
    both(Stat::NrInactiveAnon, |of| of.pages_if(of.list == Some(LruList::InactiveAnon))),
    both(Stat::NrActiveAnon,   |of| of.pages_if(of.list == Some(LruList::ActiveAnon))),
    both(Stat::NrInactiveFile, |of| of.pages_if(of.list == Some(LruList::InactiveFile))),
    both(Stat::NrActiveFile,   |of| of.pages_if(of.list == Some(LruList::ActiveFile))),
    both(Stat::NrUnevictable,  |of| of.pages_if(of.list == Some(LruList::Unevictable))),
    both(Stat::NrAnonPages,    |of| if of.has(FolioFlags::ANON) { of.mapped_pages as i64 } else { 0 }),
    both(Stat::NrAnonThps,     |of| i64::from(of.is_mapped_by_one)),
    both(Stat::NrMapped,       |of| if of.has(FolioFlags::ANON) { 0 } else { of.mapped_pages as i64 }),
    both(Stat::NrShmem,        |of| of.pages_if(of.has(FolioFlags::INDEXED | FolioFlags::SWAPBACKED))),
    both(Stat::NrDirty,        |of| of.pages_if(of.is_dirty_in_file())),
    both(Stat::NrWriteback,    |of| of.pages_if(of.has(FolioFlags::WRITEBACK))),
    both(Stat::NrSwapcached,   |of| of.pages_if(of.has(FolioFlags::SWAPCACHE))),
    // The machine counts the swap cache among its file pages, and a page of tmpfs on its way from one to the other twice.
    Row {
        stat: Stat::NrFilePages,
        in_group: |of| of.pages_if(of.has(FolioFlags::INDEXED)),
        on_node:  |of| of.pages_if(of.has(FolioFlags::INDEXED)) + of.pages_if(of.has(FolioFlags::SWAPCACHE)),
    },
    // No group counts what is locked, but as unevictable.
    Row {
        stat: Stat::NrMlock,
        in_group: |_| 0,
        on_node:  |of| of.pages_if(of.has(FolioFlags::MLOCKED)),
    },
];

/// Generations that are checked. If a window has more, the others are not checked.
const GENERATIONS: usize = 8;

// Where the balances of each kind begin.
const OF_NODE: usize = ROWS.len();
const OF_LISTS: usize = OF_NODE + ROWS.len();
const OF_GENERATIONS: usize = OF_LISTS + LruList::EVICTABLE.len();
const OF_ZONE: usize = OF_GENERATIONS + 2 * GENERATIONS;
const OF_FILE: usize = OF_ZONE + LruList::EVICTABLE.len() + 2;
const OF_WB: usize = OF_FILE + 2;
const BALANCES: usize = OF_WB + 2;

type Balances = [i64; BALANCES];

/// The books of these folios when they were opened; nothing if auditing is off.
#[must_use]
pub(crate) struct Books<const N: usize>(Option<(Transition, [Page; N])>);

/// A folio's page in the books.
struct Page {
    pfn: Pfn,
    at: Owners,
    use_bits: UseBits,
    balances: Balances,
    adds: Balances,
}

impl Standing {
    fn has(&self, flags: FolioFlags) -> bool {
        self.folio.has(flags)
    }

    fn pages_if(&self, is_counted: bool) -> i64 {
        if is_counted { self.folio.pages() as i64 } else { 0 }
    }

    fn is_of_regular_file(&self) -> bool {
        self.has(FolioFlags::INDEXED) && !self.has(FolioFlags::SWAPBACKED)
    }

    fn is_dirty_in_file(&self) -> bool {
        self.is_of_regular_file() && self.has(FolioFlags::DIRTY)
    }

    /// What it adds to each balance of where it is.
    fn adds(&self) -> Balances {
        let mut adds = [0; BALANCES];
        for (row, at) in ROWS.iter().zip(0..) {
            adds[at] = (row.in_group)(self);
            adds[OF_NODE + at] = (row.on_node)(self);
        }
        let kind = self.folio.lru_type();
        if let Some(list) = self.list.filter(|&list| list != LruList::Unevictable) {
            if self.is_on_two_lists {
                adds[OF_LISTS + list as usize] = 1;
            }
            if self.at.rank.is_some() {
                // By zone, only two lists tell active pages from others.
                let in_zone = if self.is_on_two_lists { list } else { LruList::inactive(kind) };
                adds[OF_ZONE + in_zone as usize] = self.pages_if(true);
                adds[OF_ZONE + LruList::EVICTABLE.len() + kind as usize] = self.pages_if(true);
            }
        }
        if let Some(generation) = self.generation.filter(|&generation| generation < GENERATIONS) {
            adds[OF_GENERATIONS + 2 * generation + kind as usize] = self.pages_if(true);
        }
        let is_written = self.is_of_regular_file() && self.has(FolioFlags::WRITEBACK);
        for (at, is_counted) in [self.is_dirty_in_file(), is_written].into_iter().enumerate() {
            adds[OF_FILE + at] = self.pages_if(is_counted);
            adds[OF_WB + at] = self.pages_if(is_counted);
        }
        adds
    }
}

impl Owners {
    /// Adds what is added elsewhere, or takes it away, as far as both have a balance in common.
    fn add_shared(&self, sum: &mut Balances, other: &Owners, adds: &Balances, sign: i64) {
        let is_same_group = self.lruvec == other.lruvec;
        let shared = [
            (0..OF_NODE, is_same_group),
            (OF_NODE..OF_LISTS, self.node == other.node),
            (OF_LISTS..OF_ZONE, is_same_group),
            (OF_ZONE..OF_FILE, is_same_group && self.rank == other.rank),
            (OF_FILE..OF_WB, self.file.is_some() && self.file == other.file),
            (OF_WB..BALANCES, self.wb.is_some() && self.wb == other.wb),
        ];
        for (balances, _) in shared.into_iter().filter(|&(_, is_shared)| is_shared) {
            for (sum, adds) in sum[balances.clone()].iter_mut().zip(&adds[balances]) {
                *sum += sign * adds;
            }
        }
    }
}

/// What a balance is called.
fn name_of(balance: usize) -> String {
    match balance {
        0..OF_NODE => format!("{} of the group", ROWS[balance].stat.name()),
        OF_NODE..OF_LISTS => format!("{} of the node", ROWS[balance - OF_NODE].stat.name()),
        OF_LISTS..OF_GENERATIONS => format!("folios on {:?}", LruList::EVICTABLE[balance - OF_LISTS]),
        OF_GENERATIONS..OF_ZONE => {
            let at = balance - OF_GENERATIONS;
            format!("pages of type {} in generation {}", at % 2, at / 2)
        }
        OF_ZONE..OF_FILE => format!("pages on list {} of the zone", balance - OF_ZONE),
        OF_FILE..OF_WB => format!("{} pages of the file", ["dirty", "written"][balance - OF_FILE]),
        _ => format!("{} pages of the wb", ["dirty", "written"][balance - OF_WB]),
    }
}

impl Core {
    /// Opens the books for folios that are about to change.
    #[inline(always)]
    pub(crate) fn open_audit<const N: usize>(
        &mut self,
        transition: Transition,
        folios: [Pfn; N],
    ) -> Books<N> {
        if !cfg!(debug_assertions) || !self.is_audited(transition) {
            return Books(None);
        }
        Books(Some((transition, folios.map(|pfn| self.entry_of(pfn)))))
    }

    /// Closes them when the change is complete.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn close_audit<const N: usize>(&self, books: Books<N>) {
        if let Some((transition, pages)) = books.0 {
            let folios = pages.each_ref().map(|page| page.pfn);
            self.audit(transition, &pages, &folios);
        }
    }

    /// Closes the books of one folio, in whose place there are others now.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn close_books_of_split(&self, books: Books<1>, parts: &[Pfn]) {
        if let Some((transition, pages)) = books.0 {
            self.audit(transition, &pages, parts);
        }
    }

    /// Returns true if this one is.
    pub(crate) fn is_audited(&mut self, transition: Transition) -> bool {
        if self.has_known_bug() {
            return false;
        }
        let times = &mut self.transitions.times[transition as usize];
        *times = times.wrapping_add(1);
        *times <= AUDITED_FIRST || times.is_multiple_of(AUDITED_LATER)
    }

    /// An engine with a known bug is to be found out by what it does to contents, not here.
    #[inline(always)]
    pub(crate) fn has_known_bug(&self) -> bool {
        #[cfg(test)]
        let has_bug = self.mutant.is_some();
        #[cfg(not(test))]
        let has_bug = false;
        has_bug
    }

    #[inline(never)]
    fn entry_of(&self, pfn: Pfn) -> Page {
        let standing = self.standing(pfn);
        let use_bits = self.mm.memory.use_bits(pfn);
        Page { pfn, use_bits, at: standing.at, balances: self.balances(&standing.at), adds: standing.adds() }
    }

    #[inline(never)]
    #[track_caller]
    fn audit(&self, transition: Transition, then: &[Page], now: &[Pfn]) {
        for &pfn in now {
            self.assert_led_to(transition, pfn);
        }
        self.assert_as_hot(transition, &then[0], now);
        for page in then {
            let mut expected = [0; BALANCES];
            then.iter()
                .for_each(|page_then| page.at.add_shared(&mut expected, &page_then.at, &page_then.adds, -1));
            for standing in now.iter().map(|&pfn| self.standing(pfn)) {
                page.at.add_shared(&mut expected, &standing.at, &standing.adds(), 1);
            }
            let balances = self.balances(&page.at);
            // A file that has got another wb meanwhile adds to that one what it had here.
            let wb = page.at.file.and_then(|file| self.mm.memory.file(file).inode.wb);
            let compared = if wb == page.at.wb { BALANCES } else { OF_WB };
            for balance in 0..compared {
                let moved = balances[balance] - page.balances[balance];
                assert!(
                    moved == expected[balance],
                    "{transition:?} of {:?} moves {} by {moved}, but by its state it should move by {}: {:?}",
                    page.pfn,
                    name_of(balance),
                    expected[balance],
                    self.mm.memory.folios[page.pfn]
                );
            }
        }
    }

    /// Where a folio is kept has changed, and not how hot it is: that only its lists may change.
    #[track_caller]
    fn assert_as_hot(&self, transition: Transition, then: &Page, now: &[Pfn]) {
        let may_change = matches!(transition, Transition::Place | Transition::Unlink | Transition::Mlock);
        let is_there = |pfn: &&Pfn| self.mm.memory.folios[**pfn].has(FolioFlags::CHARGED);
        if let Some(&pfn) = now.iter().find(is_there).filter(|_| !may_change) {
            let use_bits = self.mm.memory.use_bits(pfn);
            assert_eq!(use_bits, then.use_bits, "{transition:?} of {:?} changes how hot it is", then.pfn);
        }
    }

    /// What leads to a folio says the same of it as its record: the word in its file's index, the file's tags, its slot, its entries.
    #[track_caller]
    fn assert_led_to(&self, transition: Transition, pfn: Pfn) {
        let folio = &self.mm.memory.folios[pfn];
        if self.mm.memory.folios.free_order(pfn).is_some() {
            return;
        }
        if folio.has(FolioFlags::INDEXED) {
            folio.file_pages().for_each(|page| self.assert_led_to_by(transition, pfn, folio, page));
        }
        if folio.has(FolioFlags::SWAPCACHE) {
            for slot in folio.slots().map(|slot| SwapEntry { swap: folio.swap, slot }) {
                let cached = self.mm.memory.swap.cached(slot);
                assert_eq!(cached, Some(pfn), "{transition:?} of {pfn:?}: its slot leads elsewhere");
                assert!(self.mm.memory.swap.is_taken(slot), "{transition:?} of {pfn:?}: its slot is free");
            }
        }
        self.mm.assert_copy_is_known(transition, pfn);
        if folio.has(FolioFlags::CHARGED) {
            let entries = self.mm.mappings_of(pfn);
            assert_eq!(
                entries, folio.mapped,
                "{transition:?} of {pfn:?}: entries that map it, and how many it counts"
            );
        }
    }

    /// The word of a page, and its tags, agree with the record of its folio.
    #[track_caller]
    fn assert_led_to_by(&self, transition: Transition, pfn: Pfn, folio: &Folio, page: u64) {
        let file = self.mm.memory.file(FileId(folio.owner));
        let word = file.index.word(page);
        assert!(
            word.is_present() && word.pfn() == pfn && word.order() == folio.order,
            "{transition:?} of {pfn:?}: its file leads elsewhere"
        );
        assert_eq!(
            word.is_plain(),
            !folio.has(FolioFlags::LOCKED),
            "{transition:?} of {pfn:?}: busy and locked"
        );
        if !folio.has(FolioFlags::SWAPBACKED) {
            let (dirty, written) = (folio.has(FolioFlags::DIRTY), folio.has(FolioFlags::WRITEBACK));
            assert_eq!(word.is_dirty(), dirty, "{transition:?} of {pfn:?}: its word and DIRTY");
            assert_eq!(
                file.inode.dirty.contains(page),
                dirty,
                "{transition:?} of {pfn:?}: its file's tag and DIRTY"
            );
            let is_tagged = file.inode.writeback.contains(page);
            assert_eq!(is_tagged, written, "{transition:?} of {pfn:?}: its file's tag and WRITEBACK");
        }
    }

    fn standing(&self, pfn: Pfn) -> Standing {
        let is_free = self.mm.memory.folios.free_order(pfn).is_some();
        let folio = if is_free { Folio::default() } else { self.mm.memory.folios[pfn] };
        let lruvec = self.mm.lruvec_of_folio(&folio);
        let of = &self.mm.lruvecs[lruvec];
        let (mut list, mut generation) = (None, None);
        let is_listed = folio.has(FolioFlags::LRU);
        let place = self.mm.memory.places.get(pfn);
        if is_listed && folio.has(FolioFlags::UNEVICTABLE) {
            list = Some(LruList::Unevictable);
        } else if is_listed && place.is_listed() {
            let slot = usize::from(place.generation - 1);
            generation = Some(slot);
            list = Some(LruList::new(folio.lru_type(), self.mm.counts_as_active(lruvec, pfn, slot)));
        } else if is_listed && of.guest.is_some() {
            list = Some(LruList::inactive(folio.lru_type()));
        } else if is_listed {
            list = Some(two_lists::list_of(&folio, self.mm.memory.use_bits_of(&folio)));
        }
        let is_regular = folio.has(FolioFlags::CHARGED)
            && !folio.flags().intersects(FolioFlags::ANON | FolioFlags::SWAPBACKED);
        let file = is_regular.then_some(FileId(folio.owner));
        let at = Owners {
            lruvec,
            node: folio.node,
            rank: (!of.by_zone.is_empty()).then(|| self.mm.rank_in(lruvec, pfn)),
            file,
            wb: file.and_then(|file| self.mm.memory.file(file).inode.wb),
        };
        let is_on_two_lists = list.is_some_and(|list| list != LruList::Unevictable)
            && generation.is_none()
            && of.guest.is_none();
        let mapped_pages = if folio.mapped > 0 { self.mm.mapped_pages(&folio, pfn) } else { 0 };
        let is_mapped_by_one = self.mm.memory.is_mapped_by_one(&folio);
        Standing { folio, list, is_on_two_lists, generation, mapped_pages, is_mapped_by_one, at }
    }

    fn balances(&self, at: &Owners) -> Balances {
        let mut balances = [0; BALANCES];
        let of = &self.mm.lruvecs[at.lruvec];
        for (row, number) in ROWS.iter().zip(0..) {
            balances[number] = of.stat_local[row.stat as usize];
            balances[OF_NODE + number] = self.mm.vmstat[at.node.index()][row.stat as usize];
        }
        for (number, list) in of.lists.iter().enumerate() {
            balances[OF_LISTS + number] = list.len() as i64;
        }
        let generations = of.generations.iter().flat_map(|generations| &generations.pages);
        for (number, pages) in generations.flatten().take(2 * GENERATIONS).enumerate() {
            balances[OF_GENERATIONS + number] = *pages as i64;
        }
        if let Some(rank) = at.rank {
            let by_list = of.by_zone[rank].map(|pages| pages as i64);
            let listed = self.mm.memory.zones.of_node(at.node)[rank].listed;
            for (number, pages) in by_list.into_iter().chain(listed).enumerate() {
                balances[OF_ZONE + number] = pages;
            }
        }
        if let Some(file) = at.file {
            let inode = &self.mm.memory.file(file).inode;
            balances[OF_FILE] = inode.dirty.count() as i64;
            balances[OF_FILE + 1] = inode.writeback.count() as i64;
        }
        if let Some(wb) = at.wb {
            [balances[OF_WB], balances[OF_WB + 1]] = self.writeback.pages_of(wb).map(|pages| pages as i64);
        }
        balances
    }
}

/// Groups that are checked, from the one that pays upwards.
const LEVELS: usize = 4;

/// The payments of a group and its ancestors when their books were opened; nothing if auditing is off.
#[must_use]
pub(crate) struct Charges(Option<(Transition, MemcgId, [Paid; LEVELS])>);

/// What a group pays for. Pages and slots are counted in those above it, too.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Paid {
    /// Pages in use: charged, and neither held ahead by a CPU nor the kernel's own.
    pub(crate) pages: i64,
    /// Slots of swap.
    pub(crate) slots: i64,
    /// Bytes of the kernel's objects: of the kernel's own pages, less what no object has.
    pub(crate) bytes: i64,
}

impl Paid {
    pub(crate) fn pages(pages: i64) -> Paid {
        Paid { pages, ..Paid::default() }
    }

    pub(crate) fn slots(slots: i64) -> Paid {
        Paid { slots, ..Paid::default() }
    }

    pub(crate) fn bytes(bytes: i64) -> Paid {
        Paid { bytes, ..Paid::default() }
    }
}

impl Core {
    /// Opens the books of a group that is about to pay for more, or for less.
    #[inline(always)]
    pub(crate) fn open_charges(&mut self, transition: Transition, memcg: MemcgId) -> Charges {
        if !cfg!(debug_assertions) || !self.is_audited(transition) {
            return Charges(None);
        }
        Charges(Some((transition, memcg, self.mm.paid_upwards(memcg))))
    }

    /// Closes them: the group and those above it pay for so much more, or less.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn close_charges(&self, charges: Charges, more: Paid) {
        if let Some((transition, memcg, then)) = charges.0 {
            self.mm.audit_charges(transition, memcg, &then, more);
        }
    }

    /// Pages were charged to a group, for immediate use.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn note_paid(&mut self, memcg: MemcgId, pages: u64) {
        if cfg!(debug_assertions) {
            let before = self.transitions.paid.replace((memcg, pages));
            assert_eq!(before, None, "pages were charged, and nothing is paid for by them");
        }
    }

    /// A folio, or memory of the kernel's, says that a group pays for it: by what was charged just now.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn assert_paid(&mut self, memcg: MemcgId, pages: u64) {
        if cfg!(debug_assertions) {
            let paid = self.transitions.paid.take();
            assert_eq!(paid, Some((memcg, pages)), "what was charged, and what it is to pay for");
        }
    }
}

impl State {
    /// Where a folio's contents are is known: a clean page that swap backs has them in its slot, and one that has no slot is dirty.
    #[track_caller]
    fn assert_copy_is_known(&self, transition: Transition, pfn: Pfn) {
        let folio = &self.memory.folios[pfn];
        if !folio.has(FolioFlags::SWAPBACKED) || folio.has(FolioFlags::DIRTY) {
            return;
        }
        if folio.has(FolioFlags::SWAPCACHE) {
            let is_busy = folio.flags().intersects(FolioFlags::WRITEBACK | FolioFlags::LOCKED);
            assert!(
                is_busy || self.is_in_slot(pfn),
                "{transition:?} of {pfn:?}: it is clean, and not in its slot"
            );
        }
        // An anonymous page that could be forgotten may be clean when it is used again: it was not written since.
        let is_filled =
            folio.has(FolioFlags::ANON) && matches!(transition, Transition::Map | Transition::GiveSlotUp);
        if !folio.has(FolioFlags::SWAPCACHE) && (folio.has(FolioFlags::INDEXED) || is_filled) {
            panic!("{transition:?} of {pfn:?}: its only copy is in memory, and it is clean: {folio:?}");
        }
    }

    /// Returns true if the slot of a folio has what the folio held when it was written there last: as zeroes, in zswap, or on the device.
    fn is_in_slot(&self, pfn: Pfn) -> bool {
        let folio = &self.memory.folios[pfn];
        let is_held = |slot| self.memory.swap.holds_page(slot) || self.zswap.find(slot).is_some();
        folio.slots().all(|slot| is_held(SwapEntry { swap: folio.swap, slot }))
    }

    /// A folio of the swap cache leaves memory: it is in its slot.
    #[inline]
    #[track_caller]
    pub(crate) fn assert_in_slot(&self, pfn: Pfn) {
        if cfg!(debug_assertions) {
            let folio = &self.memory.folios[pfn];
            assert!(self.is_in_slot(pfn), "{pfn:?} leaves memory, and is not in its slot: {folio:?}");
        }
    }

    #[inline(never)]
    fn paid_upwards(&self, memcg: MemcgId) -> [Paid; LEVELS] {
        let mut levels = [Paid::default(); LEVELS];
        for (paid, id) in levels.iter_mut().zip(self.memcgs.ancestors(memcg)) {
            let stocks = self.cpus.iter().map(|cpu| cpu.stock).filter(|stock| stock.pages > 0);
            let ahead = stocks.filter(|stock| self.memcgs.is_below(stock.memcg, id)).map(|stock| stock.pages);
            let group = &self.memcgs[id];
            paid.pages = group.usage as i64 - ahead.sum::<u64>() as i64;
            paid.slots = group.swap_usage as i64;
            let held = self.cpus.iter().filter(|cpu| cpu.bytes.memcg == id).map(|cpu| cpu.bytes.bytes);
            paid.bytes = (group.kmem * PAGE_SIZE) as i64 - (group.kmem_rest + held.sum::<u64>()) as i64;
        }
        // Each group knows the kernel's pages of itself alone.
        for of in self.memcgs.ids().filter(|&id| self.memcgs[id].kmem > 0) {
            for (paid, id) in levels.iter_mut().zip(self.memcgs.ancestors(memcg)) {
                if self.memcgs.is_below(of, id) {
                    paid.pages -= self.memcgs[of].kmem as i64;
                }
            }
        }
        levels
    }

    #[inline(never)]
    #[track_caller]
    fn audit_charges(&self, transition: Transition, memcg: MemcgId, then: &[Paid; LEVELS], more: Paid) {
        let now = self.paid_upwards(memcg);
        for ((before, after), id) in then.iter().zip(now).zip(self.memcgs.ancestors(memcg)) {
            let moved = Paid {
                pages: after.pages - before.pages,
                slots: after.slots - before.slots,
                bytes: after.bytes - before.bytes,
            };
            // Objects are paid for by one group alone.
            let more = if id == memcg { more } else { Paid { bytes: 0, ..more } };
            assert!(
                moved == more,
                "{transition:?} to {} moves what {} pays for by {moved:?}, and should by {more:?}",
                self.memcgs.path(memcg),
                self.memcgs.path(id)
            );
        }
    }
}
