//! The lists of one memcg on one node, with the costs, ages and statistics that belong to them. [reclaim 1.4]

use crate::accessed::TableWalkState;
use crate::balance::Feedback;
use crate::lru::GenerationLists;
use crate::lru::guest::Guest;
use crate::memory::list::List;
use crate::policy::GroupRules;
use crate::stat::{Counters, STATS, Stat};
use crate::units::{LruType, MemcgId, Nanos, NodeId};
use crate::zswap::ZswapLru;
use pageout_rules::lru::Lru;

/// The kernel's five list names, as the gauges count them. How many lists there really are is the LRU's business.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LruList {
    /// Anonymous memory that was not used lately.
    InactiveAnon = 0,
    /// Anonymous memory in use.
    ActiveAnon = 1,
    /// Page cache that was not used lately.
    InactiveFile = 2,
    /// Page cache in use.
    ActiveFile = 3,
    /// Locked memory, which reclaim does not look at.
    Unevictable = 4,
}

impl LruList {
    /// The four that reclaim scans, in the order in which it does.
    pub const EVICTABLE: [LruList; 4] =
        [LruList::InactiveAnon, LruList::ActiveAnon, LruList::InactiveFile, LruList::ActiveFile];

    /// All lists.
    pub const ALL: [LruList; 5] = [
        LruList::InactiveAnon,
        LruList::ActiveAnon,
        LruList::InactiveFile,
        LruList::ActiveFile,
        LruList::Unevictable,
    ];

    /// The list of a type.
    pub fn new(kind: LruType, active: bool) -> LruList {
        match (kind, active) {
            (LruType::Anon, false) => LruList::InactiveAnon,
            (LruType::Anon, true) => LruList::ActiveAnon,
            (LruType::File, false) => LruList::InactiveFile,
            (LruType::File, true) => LruList::ActiveFile,
        }
    }

    /// The inactive list of a type.
    pub fn inactive(kind: LruType) -> LruList {
        LruList::new(kind, false)
    }

    /// The active list of a type.
    pub fn active(kind: LruType) -> LruList {
        LruList::new(kind, true)
    }

    /// Returns whether it is an active list.
    pub fn is_active(self) -> bool {
        matches!(self, LruList::ActiveAnon | LruList::ActiveFile)
    }

    /// The type of memory on it.
    pub fn kind(self) -> LruType {
        match self {
            LruList::InactiveAnon | LruList::ActiveAnon => LruType::Anon,
            _ => LruType::File,
        }
    }

    /// The gauge that counts it.
    pub fn stat(self) -> Stat {
        match self {
            LruList::InactiveAnon => Stat::NrInactiveAnon,
            LruList::ActiveAnon => Stat::NrActiveAnon,
            LruList::InactiveFile => Stat::NrInactiveFile,
            LruList::ActiveFile => Stat::NrActiveFile,
            LruList::Unevictable => Stat::NrUnevictable,
        }
    }
}

/// The lists of one memcg on one node.
pub struct Lruvec {
    /// The group whose pages are on its lists.
    pub memcg: MemcgId,
    /// The node that they are on.
    pub node: NodeId,
    /// By [`LruList`], for two lists. Others use some of them as they like: where a folio stands tells no more than
    /// whether the gauges call it active.
    pub lists: [List; 4],
    /// The pages on these lists by zone, from the highest down, if the node has several zones. Pages on lists of generations count as
    /// inactive, whatever the gauges report: only the number per type matters.
    pub by_zone: Vec<[u64; 4]>,
    /// For groups under MGLRU or, if they can be switched to it, under the classic LRU; empty then.
    pub generations: Option<Box<GenerationLists>>,
    /// A policy that keeps the pages instead of lists.
    pub guest: Option<Box<Guest>>,
    /// The group's policy has changed, and folios may be left on the lists of the former one.
    pub is_switching: bool,
    /// Costs of evictions, by generation and tier.
    pub feedback: Feedback,
    /// State of page-table walks.
    pub walk: TableWalkState,
    /// All dirty pages that reclaim has met here were met before: reclaim for the group, and kswapd.
    pub is_group_congested: bool,
    /// Likewise, as kswapd has found it.
    pub is_node_congested: bool,
    /// Recent cost of reclaiming each type, in the units of `note_cost`; descendants' costs included.
    pub cost: [u64; 2],
    /// Counters at the last update of the costs, if they are read from counters.
    pub cost_counted: [u64; 2],
    /// The clock of evictions and activations by which refault distances are measured; descendants' included.
    pub nonresident_age: u64,
    /// The refault-activation counters as the last reclaim cycle left them.
    pub refaults: [u64; 2],
    /// The refault-activation counters as they were then, where that is known.
    pub refaults_live: [u64; 2],
    /// The lruvec's compressed pages.
    pub zswap: ZswapLru,
    /// Work that earlier calls of the shrinker of shadow-only nodes have deferred here.
    pub shadow_nodes_deferred: u64,
    /// Pages on its lists are among them, live.
    pub stat_local: Counters,
    /// Its counters as of the last flush, with those of its descendants. If statistics are always exact, those of its descendants alone.
    pub stat_flushed: Counters,
}

impl Lruvec {
    /// The lists of a forgotten group are another's.
    fn begin_again(&mut self) {
        assert!(self.stat_local.iter().all(|&count| count == 0), "a forgotten group has counters");
        self.is_switching = false;
        (self.is_group_congested, self.is_node_congested) = (false, false);
        (self.cost, self.cost_counted) = ([0; 2], [0; 2]);
        (self.refaults, self.refaults_live) = ([0; 2], [0; 2]);
        self.shadow_nodes_deferred = 0;
        self.stat_flushed = [0; STATS];
    }

    /// Pages on a list.
    #[inline]
    pub fn size(&self, list: LruList) -> u64 {
        let pages = self.stat_local[list.stat() as usize];
        pages.try_into().expect("a list holds no fewer than no pages")
    }

    /// Pages on a list that are in a zone of this rank or a lower one.
    pub fn size_from(&self, list: LruList, rank: usize) -> u64 {
        match rank {
            0 => self.size(list),
            _ => self.by_zone.iter().skip(rank).map(|zone| zone[list as usize]).sum(),
        }
    }

    /// Zones of its node.
    pub fn zones(&self) -> usize {
        self.by_zone.len().max(1)
    }

    /// Pages on all of them that reclaim scans.
    pub fn evictable(&self) -> u64 {
        LruList::EVICTABLE.map(|list| self.size(list)).iter().sum()
    }
}

/// Index of an lruvec.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct LruvecId(u32);

/// All lruvecs: one a memcg and node.
pub struct Lruvecs {
    /// Zones of each node.
    zones: Vec<usize>,
    /// By node.
    pages: Vec<u64>,
    all: Vec<Lruvec>,
}

impl Lruvecs {
    /// For nodes of so many zones and pages.
    pub fn new(zones: Vec<usize>, pages: Vec<u64>) -> Lruvecs {
        Lruvecs { zones, pages, all: Vec::new() }
    }

    /// All nodes.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.zones.len()).map(|node| NodeId(node as u8))
    }

    /// Makes the lruvecs of the next memcg, or empties those of a forgotten one. The clocks and generations of the latter go on: shadows and reclaimers
    /// may still name them.
    pub fn add_memcg(&mut self, memcg: MemcgId, policy: &GroupRules, now: Nanos) {
        if memcg.index() * self.zones.len() < self.all.len() {
            for node in self.nodes() {
                let lruvec = self.id(memcg, node);
                self[lruvec].begin_again();
            }
            return;
        }
        assert_eq!(
            self.all.len(),
            memcg.index() * self.zones.len(),
            "groups get their lists in the order of their numbers"
        );
        for node in self.nodes() {
            let may_keep_generations = policy.lru.may_be_switched();
            let zones = self.zones[node.index()];
            let generations = GenerationLists::new(policy.generations.count_max, zones, now);
            let slots = usize::from(policy.generations.count_max);
            let guest = match policy.lru {
                Lru::TwoLists | Lru::Generations => None,
                // No chance but by which lruvec it is.
                Lru::Guest(listed) => {
                    Some(Box::new(Guest::new(listed, self.all.len() as u64, self.pages[node.index()])))
                }
            };
            self.all.push(Lruvec {
                memcg,
                node,
                lists: [List::default(); 4],
                by_zone: if zones > 1 { vec![[0; 4]; zones] } else { Vec::new() },
                guest,
                is_switching: false,
                feedback: Feedback::new(slots),
                walk: TableWalkState::new(slots, generations.max_seq),
                generations: may_keep_generations.then(|| Box::new(generations)),
                is_group_congested: false,
                is_node_congested: false,
                cost: [0; 2],
                cost_counted: [0; 2],
                nonresident_age: 0,
                refaults: [0; 2],
                refaults_live: [0; 2],
                zswap: ZswapLru::default(),
                shadow_nodes_deferred: 0,
                stat_local: [0; STATS],
                stat_flushed: [0; STATS],
            });
        }
    }

    /// The lruvec of a group on a node.
    #[inline]
    pub fn id(&self, memcg: MemcgId, node: NodeId) -> LruvecId {
        LruvecId(u32::from(memcg.0) * self.zones.len() as u32 + u32::from(node.0))
    }

    /// Returns whether a group's folios are being moved.
    pub fn is_switching(&self, memcg: MemcgId) -> bool {
        self.nodes().any(|node| self[self.id(memcg, node)].is_switching)
    }

    /// All lruvecs.
    pub fn iter(&self) -> impl Iterator<Item = &Lruvec> {
        self.all.iter()
    }
}

impl std::ops::Index<LruvecId> for Lruvecs {
    type Output = Lruvec;
    #[inline]
    fn index(&self, id: LruvecId) -> &Lruvec {
        &self.all[id.0 as usize]
    }
}

impl std::ops::IndexMut<LruvecId> for Lruvecs {
    #[inline]
    fn index_mut(&mut self, id: LruvecId) -> &mut Lruvec {
        &mut self.all[id.0 as usize]
    }
}
