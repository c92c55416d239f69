//! Invariants of the whole engine, which tests, fuzzing and debug builds check from outside. [reclaim 9]

use crate::core::Core;
use crate::kmem::INDEX_NODE_BYTES;
use crate::lru::Place;
use crate::lru::lruvec::{LruList, Lruvec};
use crate::lru::two_lists;
use crate::memcg::lru::MemcgLru;
use crate::memory::folio::{Folio, FolioFlags, UseBits};
use crate::memory::list::List;
use crate::memory::table::{Entry, LEAF_PAGES, NODE_SLOTS, Table, Word};
use crate::stat::Stat;
use crate::state::State;
use crate::units::{FileId, LruType, MemcgId, MmId, NodeId, PAGE_SIZE, Pfn};
use std::collections::{BTreeMap, BTreeSet};

impl Core {
    /// Panics with what is wrong unless every structure agrees with every other. Walks all memory: not for hot paths.
    pub(crate) fn check_invariants(&self) {
        self.mm.memory.zones.check_invariants(&self.mm.memory.folios);
        for node in self.mm.memory.zones.passed_by().iter() {
            assert!(self.kswapds[node.index()].is_awake(), "a node is passed by while its kswapd is awake");
        }
        self.mm.check_listed_by_zone();
        let users = self.mm.page_users();
        let folios: Vec<Vec<Pfn>> = self.mm.memory.nodes().map(|node| self.mm.folios_in_use(node)).collect();
        let used: usize = folios.iter().map(|folios| self.mm.check_folios(folios, &users)).sum();
        assert_eq!(used, users.len(), "a frame is free and in use");
        for lruvec in self.mm.lruvecs.iter() {
            self.mm.check_lruvec(lruvec, &folios[lruvec.node.index()]);
        }
        self.mm.check_switching();
        self.mm.memcgs.lrus.iter().for_each(MemcgLru::check_invariants);
        self.check_writeback(users.keys());
        self.mm.check_batches();
        self.mm.check_unlisted(folios.iter().flatten());
        self.mm.check_charges(folios.iter().flatten());
        self.mm.check_kmem();
        self.check_swap();
        self.mm.check_zswap();
        self.mm.check_deferred_splits();
        self.mm.check_pghot(&folios);
        for file in &self.mm.memory.files {
            file.index.check_invariants();
            let is_used = |node| !file.index.is_node_empty(node * NODE_SLOTS);
            file.nodes.check_invariants(is_used);
        }
        // The page in the head of an index is in no node.
        let files = self.mm.memory.files.iter().filter(|file| !file.nodes.has_head());
        let indexes = files.map(|file| &file.index).chain(self.mm.memory.swap.indexes());
        let shadow_only = indexes.map(Table::shadow_only_nodes).sum::<usize>();
        assert_eq!(shadow_only, self.mm.shadow_nodes.count(), "shadow-only index nodes and their queue");
    }

    /// Every slot in use is referred to, and accounted to its group.
    fn check_swap(&self) {
        self.mm.memory.swap.check_invariants();
        let mut by_memcg = vec![0; self.mm.memcgs.count()];
        for (entry, memcg) in self.mm.memory.swap.taken() {
            for id in self.mm.memcgs.ancestors(memcg) {
                by_memcg[id.index()] += 1;
            }
            if let Some(pfn) = self.mm.memory.swap.cached(entry) {
                assert!(self.mm.memory.folios[pfn].has(FolioFlags::SWAPCACHE), "{pfn:?} in the swap cache");
                let folio = &self.mm.memory.folios[pfn];
                let is_own = folio.swap == entry.swap && folio.slots().contains(&entry.slot);
                assert!(is_own, "{pfn:?} and its slot {}", entry.slot);
            }
        }
        for id in self.mm.memcgs.ids() {
            assert_eq!(
                self.mm.memcgs[id].swap_usage,
                by_memcg[id.index()],
                "swap of {}",
                self.mm.memcgs.path(id)
            );
        }
        for (pfn, is_write) in self.transfers() {
            let flag = if is_write { FolioFlags::WRITEBACK } else { FolioFlags::LOCKED };
            let folio = self.mm.memory.folio_of(pfn);
            assert!(
                self.mm.memory.folios[folio].has(flag),
                "{pfn:?} has a transfer in flight but not {flag:?}"
            );
        }
    }
}

impl State {
    /// Only folios of lower tiers have records, each by its first frame, and what is ready is found.
    fn check_pghot(&self, folios: &[Vec<Pfn>]) {
        for (pfn, record) in self.pghot.records.iter() {
            assert!(self.lower_tiers.holds(pfn), "{pfn:?} of the top tier has a record: {record:?}");
            if self.config.pghot_clear_stale {
                let is_folio = folios.iter().any(|of_node| of_node.binary_search(&pfn).is_ok());
                assert!(is_folio, "{pfn:?} is no folio, and has a record: {record:?}");
            }
        }
        self.pghot.records.check_invariants();
    }

    /// Returns how many page-table entries lead to each folio, and checks the contents of these entries.
    fn page_users(&self) -> BTreeMap<Pfn, u16> {
        let mut users: BTreeMap<Pfn, u16> = BTreeMap::new();
        for (mm_id, mm) in self.memory.mms.iter().enumerate() {
            mm.table.check_invariants();
            for (page, word) in mm.table.iter() {
                let Entry::Present(pfn) = word.decode() else { continue };
                if word.is_zero_page() {
                    continue;
                }
                let folio = &self.memory.folios[pfn];
                let is_first_of_huge = word.is_huge() && page % LEAF_PAGES == 0;
                assert!(
                    !word.is_huge() || folio.is_large_anon(),
                    "{pfn:?}: how its entry maps it, and what it is"
                );
                assert_eq!(word.order(), folio.order, "{pfn:?}: what its entry says of its size");
                *users.entry(pfn).or_default() += 1;
                assert!(!folio.has(FolioFlags::LOCKED), "{pfn:?} is mapped while it is being read");
                if word.is_huge() {
                    let owner = (MmId(folio.owner), u64::from(folio.index));
                    assert_eq!(owner, (MmId(mm_id as u32), page - page % LEAF_PAGES), "{pfn:?} is another's");
                    let words = mm.table.words(owner.1..owner.1 + LEAF_PAGES);
                    let is_alike =
                        |other: Word| other.pfn() == pfn && other.is_prot_none() == word.is_prot_none();
                    assert!(
                        !is_first_of_huge || words.into_iter().all(is_alike),
                        "{pfn:?}: words of one entry"
                    );
                } else if folio.has(FolioFlags::ANON) {
                    let is_own = folio.owner as usize == mm_id && folio.file_pages().contains(&page);
                    assert!(is_own, "{pfn:?} is mapped by a stranger");
                    assert_eq!(
                        word.head(page),
                        folio.index.into(),
                        "{pfn:?} lies across the place of its size"
                    );
                } else {
                    assert!(folio.has(FolioFlags::INDEXED), "{pfn:?} is mapped but not in its file's index");
                }
            }
        }
        for (file_id, file) in self.memory.files.iter().enumerate() {
            for (page, word) in file.index.iter() {
                let Entry::Present(pfn) = word.decode() else { continue };
                let folio = &self.memory.folios[pfn];
                let place = (FileId(folio.owner), u64::from(folio.index));
                assert!(
                    folio.has(FolioFlags::INDEXED) && !folio.has(FolioFlags::ANON),
                    "{pfn:?} in an index"
                );
                let is_own = place.0 == FileId(file_id as u32) && folio.file_pages().contains(&page);
                assert!(is_own, "{pfn:?} is in a stranger's slot");
                assert_eq!((word.order(), word.head(page)), (folio.order, place.1), "{pfn:?}: its size");
                assert_eq!(
                    word.is_plain(),
                    !folio.has(FolioFlags::LOCKED),
                    "{pfn:?}: busy and locked differ"
                );
                // On a page that is dirty or being written, the flag is reclaim's.
                let other = FolioFlags::SWAPBACKED | FolioFlags::DIRTY | FolioFlags::WRITEBACK;
                let is_marked = folio.has(FolioFlags::RECLAIM) && !folio.flags().intersects(other);
                assert_eq!(word.is_readahead(), is_marked, "{pfn:?}: the mark in its word and its flag");
                users.entry(pfn).or_default();
            }
        }
        users
    }

    /// The free blocks of a node among the frames used so far, by their first frames, with their orders.
    fn free_blocks(&self, node: NodeId) -> BTreeMap<Pfn, u8> {
        let mut free = BTreeMap::new();
        for (pfn, order) in self.memory.zones.free_blocks(&self.memory.folios, node) {
            assert_eq!(free.insert(pfn, order), None, "{pfn:?} is free twice");
            for pfn in (pfn.0..pfn.0 + (1 << order)).map(Pfn) {
                assert!(
                    self.memory.places.get(pfn) == Place::default(),
                    "{pfn:?} is free and in a generation"
                );
            }
        }
        free
    }

    /// The folios of a node, by their first frames: what is not free is a folio, or belongs to the one before it.
    pub(crate) fn folios_in_use(&self, node: NodeId) -> Vec<Pfn> {
        let free = self.free_blocks(node);
        let mut folios: Vec<Pfn> = Vec::new();
        let (mut end, mut blocks) = (0, 0);
        for pfn in self.memory.zones.used_so_far(node) {
            if pfn.0 < end {
                continue;
            }
            let order = match free.get(&pfn) {
                Some(&order) => {
                    blocks += 1;
                    order
                }
                None => {
                    folios.push(pfn);
                    self.memory.folios[pfn].order
                }
            };
            end = pfn.0 + (1 << order);
        }
        assert_eq!(blocks, free.len(), "a block is free within another or within a folio");
        folios
    }

    /// Every folio is one that something refers to. Returns how many have users.
    fn check_folios(&self, folios: &[Pfn], users: &BTreeMap<Pfn, u16>) -> usize {
        for &pfn in folios {
            let folio = &self.memory.folios[pfn];
            let kernel = FolioFlags::KERNEL;
            assert!(
                !folio.is_large_anon() || pfn.0.is_multiple_of(1 << folio.order) && !folio.has(kernel),
                "{pfn:?}: {folio:?}"
            );
            assert_eq!(folio.mapped, users.get(&pfn).copied().unwrap_or(0), "{pfn:?}: mappings");
            let held = FolioFlags::INDEXED
                | FolioFlags::SWAPCACHE
                | FolioFlags::LOCKED
                | FolioFlags::WRITEBACK
                | FolioFlags::KERNEL;
            let reachable = folio.mapped > 0 || folio.refs > 0 || folio.flags().intersects(held);
            assert!(reachable, "{pfn:?} is in use but nothing refers to it: {folio:?}");
            assert!(!folio.has(FolioFlags::SWAPCACHE | FolioFlags::INDEXED), "{pfn:?} is in two caches");
        }
        folios.iter().filter(|&pfn| users.contains_key(pfn)).count()
    }

    /// Lists hold exactly the folios that say so, and sizes agree with them.
    fn check_lruvec(&self, lruvec: &Lruvec, folios: &[Pfn]) {
        let mut sizes = [0; 5];
        let mut by_zone = vec![[0; 4]; lruvec.by_zone.len()];
        let mut count_in_zone = |pfn: Pfn, gauge: LruList, pages: u64| {
            if lruvec.zones() > 1 {
                by_zone[self.memory.zones.rank_of(lruvec.node, pfn)][gauge as usize] += pages;
            }
        };
        for (at, list) in lruvec.lists.iter().enumerate() {
            for pfn in self.check_list(lruvec, list) {
                let folio = &self.memory.folios[pfn];
                assert!(!self.memory.places.get(pfn).is_listed(), "{pfn:?} is on a list and in a generation");
                let gauge = two_lists::list_of(folio, self.memory.use_bits_of(folio));
                assert_eq!(at, gauge as usize, "{pfn:?} is on another list than its state says");
                sizes[gauge as usize] += folio.pages();
                count_in_zone(pfn, gauge, folio.pages());
            }
        }
        if let Some(guest) = &lruvec.guest {
            for (_, holder) in guest.slots.iter() {
                let folio = self.check_listed(lruvec, Pfn(holder));
                sizes[LruList::inactive(folio.lru_type()) as usize] += folio.pages();
                count_in_zone(Pfn(holder), LruList::inactive(folio.lru_type()), folio.pages());
            }
            self.check_guest(self.lruvecs.id(lruvec.memcg, lruvec.node));
        }
        if let Some(generations) = &lruvec.generations {
            for list in &generations.lists {
                for pfn in self.check_list(lruvec, list) {
                    let folio = &self.memory.folios[pfn];
                    assert!(
                        !self.memory.has_use(pfn, UseBits::ACTIVE),
                        "{pfn:?} is in a generation and ACTIVE"
                    );
                    let slot = generations.check_place(pfn, self.memory.places[pfn], folio.lru_type());
                    let is_active = self.counts_as_active(self.lruvec_of(pfn), pfn, slot);
                    sizes[LruList::new(folio.lru_type(), is_active) as usize] += folio.pages();
                    count_in_zone(pfn, LruList::inactive(folio.lru_type()), folio.pages());
                }
            }
            generations.check_invariants(&self.memory);
        }
        for &pfn in folios {
            let folio = &self.memory.folios[pfn];
            if folio.memcg == lruvec.memcg && folio.has(FolioFlags::LRU | FolioFlags::UNEVICTABLE) {
                sizes[LruList::Unevictable as usize] += folio.pages();
            }
        }
        assert_eq!(by_zone, lruvec.by_zone, "list sizes by zone of {}", self.memcgs.path(lruvec.memcg));
        let counted = LruList::ALL.map(|list| lruvec.size(list));
        assert_eq!(sizes, counted, "list sizes of {}", self.memcgs.path(lruvec.memcg));
    }

    /// A zone's pages on lists are the sum over all groups.
    fn check_listed_by_zone(&self) {
        for node in self.memory.nodes() {
            for (rank, zone) in self.memory.zones.of_node(node).iter().enumerate() {
                let pages = |list: LruList| {
                    let of_node = self.lruvecs.iter().filter(|lruvec| lruvec.node == node);
                    let counts = of_node.filter_map(|lruvec| lruvec.by_zone.get(rank));
                    counts.map(|zone| zone[list as usize] as i64).sum::<i64>()
                };
                let listed = LruType::BOTH
                    .map(|kind| pages(LruList::new(kind, false)) + pages(LruList::new(kind, true)));
                assert_eq!(listed, zone.listed, "pages on lists of zone {}", zone.kind.name());
            }
        }
    }

    /// The folios of a list. Each must know that it is on it.
    fn check_list(&self, lruvec: &Lruvec, list: &List) -> Vec<Pfn> {
        list.check_invariants(&self.memory.folios);
        let folios: Vec<Pfn> = list.iter_from_tail(&self.memory.folios).map(Pfn).collect();
        for &pfn in &folios {
            self.check_listed(lruvec, pfn);
        }
        folios
    }

    /// A folio that an lruvec has says so, too.
    fn check_listed(&self, lruvec: &Lruvec, pfn: Pfn) -> &Folio {
        let folio = &self.memory.folios[pfn];
        assert_eq!((folio.memcg, folio.node), (lruvec.memcg, lruvec.node), "{pfn:?} is on a stranger's list");
        assert!(folio.has(FolioFlags::LRU), "{pfn:?} is on a list without LRU");
        assert!(!folio.has(FolioFlags::UNEVICTABLE), "{pfn:?} is unevictable and on a list");
        folio
    }

    fn check_batches(&self) {
        let mut queued: BTreeMap<Pfn, u16> = BTreeMap::new();
        for pfn in self.cpus.iter().flat_map(|cpu| cpu.batches.iter()) {
            *queued.entry(pfn).or_default() += 1;
        }
        for (pfn, times) in queued {
            assert!(
                self.memory.folios[pfn].refs >= times,
                "{pfn:?} is in {times} batches without references"
            );
        }
    }

    /// What can be reclaimed and is on no list waits in a batch for one, or has been isolated and is counted so.
    fn check_unlisted<'a>(&self, folios: impl Iterator<Item = &'a Pfn>) {
        let waiting: BTreeSet<Pfn> = self.cpus.iter().flat_map(|cpu| cpu.batches.iter()).collect();
        let placed = FolioFlags::LRU | FolioFlags::UNEVICTABLE | FolioFlags::KERNEL;
        let is_away = |&&pfn: &&Pfn| {
            let folio = &self.memory.folios[pfn];
            let is_in_use = folio.mapped > 0 || folio.has(FolioFlags::INDEXED | FolioFlags::SWAPCACHE);
            is_in_use && !folio.flags().intersects(placed) && !waiting.contains(&pfn)
        };
        let away: u64 = folios.filter(is_away).map(|&pfn| self.memory.folios[pfn].pages()).sum();
        let nodes = self.memory.nodes();
        let isolated: i64 = nodes
            .flat_map(|node| {
                [Stat::NrIsolatedAnon, Stat::NrIsolatedFile].map(|stat| self.node_stat(node, stat))
            })
            .sum();
        // Reclaim's own stay counted until its batch is over, wherever they are by then.
        assert!(
            away as i64 <= isolated,
            "{away} pages are on no list and in no batch, but {isolated} are isolated"
        );
    }

    /// The frames that are the kernel's own.
    pub(crate) fn kernel_frames(&self) -> Vec<Pfn> {
        let nodes = self.memory.nodes();
        let folios = nodes.flat_map(|node| self.folios_in_use(node));
        folios.filter(|&pfn| self.memory.folios[pfn].has(FolioFlags::KERNEL)).collect()
    }

    /// What groups are charged for kernel memory is what there is of it, and what CPUs and groups hold of charged bytes.
    fn check_kmem(&self) {
        let slab = &self.kmem.index_nodes;
        slab.check_invariants();
        let slab_pages: BTreeMap<Pfn, u16> = slab.pages().collect();
        let mut in_slab: BTreeMap<Pfn, u16> = BTreeMap::new();
        let mut bytes = vec![0; self.memcgs.count()];
        let mut objects = vec![0; self.memcgs.count()];
        for node in self.memory.files.iter().flat_map(|file| file.nodes.iter()) {
            *in_slab.entry(node.pfn).or_default() += 1;
            if node.memcg != MemcgId::ROOT {
                objects[self.memcgs.online(node.memcg).index()] += INDEX_NODE_BYTES as i64;
            }
        }
        assert!(
            in_slab.iter().all(|(pfn, count)| slab_pages.get(pfn) == Some(count)),
            "index nodes and their slab"
        );
        assert_eq!(slab_pages.values().sum::<u16>(), in_slab.values().sum::<u16>(), "objects of the slab");
        let mut tables = BTreeSet::new();
        for mm in &self.memory.mms {
            for node in mm.nodes.iter() {
                assert!(tables.insert(node.pfn), "{:?} is two page tables", node.pfn);
            }
            for page in mm.table.present() {
                assert!(mm.nodes.leaf(page).is_some(), "page {page} is mapped without a page table");
            }
        }
        let frames = self.kernel_frames();
        for pfn in frames.iter().filter(|pfn| !slab_pages.contains_key(pfn)) {
            let payer = self.memory.folios[*pfn].memcg;
            if payer != MemcgId::ROOT {
                bytes[self.memcgs.online(payer).index()] += PAGE_SIZE;
            }
        }
        let frames: BTreeSet<Pfn> = frames.into_iter().collect();
        assert!(slab_pages.keys().chain(&tables).all(|pfn| frames.contains(pfn)), "the kernel's frames");
        let gauge = |stat: Stat| self.vmstat(stat);
        assert_eq!(gauge(Stat::NrSlabReclaimable), slab_pages.len() as i64, "nr_slab_reclaimable");
        for (pfn, order) in self.kmem.huge_pools.iter() {
            assert!(frames.contains(&pfn), "{pfn:?} of a pool of huge pages");
            assert_eq!(self.memory.folios[pfn].order, order, "{pfn:?} is in a pool of other blocks");
        }
        let mut balloon = BTreeSet::new();
        for &pfn in self.kmem.balloon.frames() {
            assert!(frames.contains(&pfn) && balloon.insert(pfn), "{pfn:?} of the balloon");
        }
        let mut zspages = BTreeSet::new();
        for entry in self.zswap.entries().filter(|entry| entry.payer != MemcgId::ROOT) {
            bytes[self.memcgs.online(entry.payer).index()] += entry.length();
        }
        let compressed = self.memory.swap.zrams().flat_map(|zram| zram.frames());
        for pfn in compressed.chain(self.zswap.pool.frames()) {
            assert!(frames.contains(&pfn) && zspages.insert(pfn), "{pfn:?} of a compressed device");
            assert!(!tables.contains(&pfn) && !slab_pages.contains_key(&pfn), "{pfn:?} has two states");
        }
        assert_eq!(gauge(Stat::NrZspages), zspages.len() as i64, "nr_zspages");
        for id in self.memcgs.ids() {
            let group = &self.memcgs[id];
            let held = self.cpus.iter().filter(|cpu| cpu.bytes.memcg == id).map(|cpu| cpu.bytes.bytes);
            let charged = if self.config.kmem { objects[id.index()] as u64 } else { 0 };
            let bytes = bytes[id.index()] + charged + group.kmem_rest + held.sum::<u64>();
            assert_eq!(group.kmem * PAGE_SIZE, bytes, "kernel memory charged to {}", self.memcgs.path(id));
            let local = |stat: Stat| -> i64 {
                let nodes = self.lruvecs.nodes();
                nodes.map(|node| self.lruvecs[self.lruvecs.id(id, node)].stat_local[stat as usize]).sum()
            };
            assert_eq!(local(Stat::Kernel), group.kmem as i64, "kernel of {}", self.memcgs.path(id));
            assert_eq!(local(Stat::SlabReclaimable), objects[id.index()], "slab of {}", self.memcgs.path(id));
        }
    }

    /// A group's usage is its folios, its kernel memory, its descendants' and the stocks.
    fn check_charges<'a>(&self, folios: impl Iterator<Item = &'a Pfn>) {
        let mut expected = vec![0; self.memcgs.count()];
        let mut charge = |memcg: MemcgId, pages: u64| {
            for id in self.memcgs.ancestors(memcg) {
                expected[id.index()] += pages;
            }
        };
        for &pfn in folios {
            let folio = &self.memory.folios[pfn];
            if folio.has(FolioFlags::CHARGED) {
                charge(folio.memcg, folio.pages());
            }
        }
        for id in self.memcgs.ids() {
            charge(id, self.memcgs[id].kmem);
        }
        for cpu in &self.cpus {
            charge(cpu.stock.memcg, cpu.stock.pages);
        }
        self.memcgs.check_invariants();
        for id in self.memcgs.ids() {
            assert_eq!(
                self.memcgs[id].usage,
                expected[id.index()],
                "pages charged to {}",
                self.memcgs.path(id)
            );
        }
    }
}
