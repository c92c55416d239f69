//! Allocation of swap slots: which slot of a device is taken next.
//!
//! ```text
//!   64 at a time   ┌── ready    ◄── the CPU's cluster, from its start to its end ◄── next: an empty one, else one with holes
//!                  └── returned ──► the clusters they belong to
//! ```
//! The device is divided into clusters of 512 slots. A CPU fills the free slots of one cluster after the other. So CPUs don't
//! meet on a cluster, and pages swapped out together lie together. A CPU takes and gives back slots by the batch, to take the
//! device's lock once in 64 pages. [reclaim-6.12 M13]
//!
//! Empty clusters come first. Then come those with holes, first the one that got its first hole longest ago. No source
//! says so; the recordings on zram show it. When they end, the shadows of swapped pages lie in a 64th as many index nodes
//! as pages were ever written: hardly a slot was used twice. (`ground-truth/README.md`)
//!
//! A large folio needs a free, aligned row of slots. It takes it from a cluster that was begun with its order, so that single pages do not break rows
//! up. Slots of such a cluster go back to it immediately. [folios 3.5]
//!
//! ```text
//!   cluster of an order   a CPU's ──searched──▶ frag ──a slot is freed──▶ nonfull ──a CPU takes it──▶ a CPU's
//!                           ▲                                               │ none is used
//!                           └────────────────────── empty ◀─────────────────┘
//! ```
//! Single pages take from clusters of other orders if there is nothing else.

use crate::memory::list::{Links, List};
use crate::units::CpuId;
use pageout_rules::folio::SwapClusters;

/// Slots of a cluster: as many as a PMD maps pages.
const CLUSTER: u32 = 512;
/// Slots that a CPU takes or gives back at a time (SWAP_SLOTS_CACHE_SIZE).
const CACHE: usize = 64;
/// Clusters that an assertion adds up, at most.
const CLUSTERS_COUNTED: usize = 32;
/// Orders of folios whose slots lie in a row: up to a whole cluster.
const ORDERS: usize = CLUSTER.ilog2() as usize + 1;

/// The free and taken slots of one device.
pub(super) struct Slots {
    slots: u32,
    /// A bit a slot: holds a page.
    held: Bits,
    /// A bit a slot: holds a page, or is in a CPU's cache.
    out: Bits,
    used: u32,
    clusters: Clusters,
    /// Neither some CPU's, nor full: with holes, newest at the head; empty.
    holed: List,
    empty: List,
    /// Clusters of an order, neither a CPU's nor full: those not searched since a slot was freed, newest at the head; then those searched.
    nonfull: [List; ORDERS],
    frag: [List; ORDERS],
    cpus: Vec<CpuSlots>,
}

/// The slots that a CPU keeps available.
#[derive(Default)]
struct CpuSlots {
    /// Slots to hand out, the last one first.
    ready: Vec<u32>,
    returned: Vec<u32>,
    /// The slot at which the search in its cluster goes on.
    next: Option<u32>,
    /// The same by order, for large folios.
    large: [Option<u32>; ORDERS],
}

#[derive(Clone)]
struct Cluster {
    /// Slots that are out.
    out: u32,
    is_a_cpus: bool,
    /// The order of the folios that it was begun with.
    order: u8,
    on: Option<On>,
    links: (u32, u32),
}

/// The list that a cluster is on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum On {
    Empty,
    Holed,
    Nonfull,
    Frag,
}

struct Clusters(Vec<Cluster>);

impl Links for Clusters {
    fn links(&self, item: u32) -> (u32, u32) {
        self.0[item as usize].links
    }

    fn links_mut(&mut self, item: u32) -> &mut (u32, u32) {
        &mut self.0[item as usize].links
    }
}

/// A bit a slot.
pub(super) struct Bits(Vec<u64>);

impl Bits {
    pub(super) fn new(slots: u32) -> Bits {
        Bits(vec![0; slots.div_ceil(64) as usize])
    }

    pub(super) fn has(&self, slot: u32) -> bool {
        self.0[(slot / 64) as usize] >> (slot % 64) & 1 != 0
    }

    pub(super) fn flip(&mut self, slot: u32) {
        self.0[(slot / 64) as usize] ^= 1 << (slot % 64);
    }
}

impl Slots {
    pub(super) fn new(slots: u32) -> Slots {
        let unused = Cluster { out: 0, is_a_cpus: false, order: 0, on: Some(On::Empty), links: (0, 0) };
        let mut clusters = Clusters(vec![unused; slots.div_ceil(CLUSTER) as usize]);
        let mut empty = List::default();
        for cluster in 0..clusters.0.len() as u32 {
            empty.push_head(&mut clusters, cluster);
        }
        Slots {
            slots,
            held: Bits::new(slots),
            out: Bits::new(slots),
            used: 0,
            clusters,
            holed: List::default(),
            empty,
            nonfull: Default::default(),
            frag: Default::default(),
            cpus: Vec::new(),
        }
    }

    pub(super) fn len(&self) -> u32 {
        self.slots
    }

    /// Slots that hold a page.
    pub(super) fn used(&self) -> u32 {
        self.used
    }

    pub(super) fn is_taken(&self, slot: u32) -> bool {
        self.held.has(slot)
    }

    /// Returns true if a CPU has a slot available.
    pub(super) fn has_ready(&self, cpu: CpuId) -> bool {
        self.cpus.get(cpu.index()).is_some_and(|cpu| !cpu.ready.is_empty())
    }

    #[doc(alias = "get_swap_pages")]
    pub(super) fn take(&mut self, cpu: CpuId) -> Option<u32> {
        if self.used == self.slots {
            return None;
        }
        if self.of(cpu).ready.is_empty() {
            self.refill(cpu);
        }
        if self.of(cpu).ready.is_empty() {
            self.gather();
            self.refill(cpu);
        }
        let slot = self.of(cpu).ready.pop().expect("what no page holds has been gathered");
        assert!(!self.held.has(slot), "slot {slot} is handed out while it holds a page");
        assert!(self.out.has(slot), "slot {slot} is handed out and was not taken from its cluster");
        self.held.flip(slot);
        self.used += 1;
        assert!(self.used <= self.slots, "{} of {} slots hold a page", self.used, self.slots);
        Some(slot)
    }

    /// Takes slots in a row for a folio of this order. Returns the first.
    #[doc(alias = "swap_alloc_large")]
    #[cold]
    pub(super) fn take_large(&mut self, order: u8, cpu: CpuId, rule: SwapClusters) -> Option<u32> {
        let at = usize::from(order);
        let is_whole = 1 << order == CLUSTER;
        if at >= ORDERS || self.slots - self.used < 1 << order || rule == SwapClusters::HugeOnly && !is_whole
        {
            return None;
        }
        if let Some(next) = self.of(cpu).large[at].take()
            && let Some(slot) = self.take_row(next, order, cpu)
        {
            return Some(slot);
        }
        if rule == SwapClusters::NonfullFirst && !is_whole {
            let slot = self.take_in_used(order, cpu);
            if slot.is_some() {
                return slot;
            }
        }
        if let Some(cluster) = self.next_empty(order) {
            self.claim_for(cluster, order);
            let slot = self.take_row(cluster * CLUSTER, order, cpu);
            assert!(slot.is_some(), "cluster {cluster} is free and has no row of order {order}");
            return slot;
        }
        if is_whole || rule == SwapClusters::FreeOnly {
            return None;
        }
        if rule == SwapClusters::ByOrder {
            let slot = self.take_in_used(order, cpu);
            if slot.is_some() {
                return slot;
            }
        }
        // Later kernels look at one of them only.
        let searched = if rule == SwapClusters::ByOrder { self.frag[at].len() } else { 1 };
        self.take_in_list(On::Frag, searched, order, cpu)
    }

    fn take_in_used(&mut self, order: u8, cpu: CpuId) -> Option<u32> {
        self.take_in_list(On::Nonfull, self.nonfull[usize::from(order)].len(), order, cpu)
    }

    /// Takes a row from one of so many clusters of a list, the oldest first. Those without one have been searched.
    fn take_in_list(&mut self, on: On, most: u64, order: u8, cpu: CpuId) -> Option<u32> {
        for _ in 0..most {
            let list = match on {
                On::Nonfull => &mut self.nonfull[usize::from(order)],
                _ => &mut self.frag[usize::from(order)],
            };
            let cluster = list.pop_tail(&mut self.clusters)?;
            self.clusters.0[cluster as usize].on = None;
            self.claim_for(cluster, order);
            if let Some(slot) = self.take_row(cluster * CLUSTER, order, cpu) {
                return Some(slot);
            }
        }
        None
    }

    /// A free cluster with slots for a folio of this order: the last one of the device may be short.
    fn next_empty(&mut self, order: u8) -> Option<u32> {
        let cluster =
            self.empty.iter_from_tail(&self.clusters).find(|&cluster| self.size(cluster) >> order > 0)?;
        self.empty.remove(&mut self.clusters, cluster);
        self.clusters.0[cluster as usize].on = None;
        Some(cluster)
    }

    fn claim_for(&mut self, cluster: u32, order: u8) {
        let claimed = &mut self.clusters.0[cluster as usize];
        assert!(!claimed.is_a_cpus, "cluster {cluster} is claimed by two CPUs");
        (claimed.is_a_cpus, claimed.order) = (true, order);
    }

    /// The first free row from a slot of a CPU's cluster on. The CPU goes on behind it, or releases the cluster.
    fn take_row(&mut self, from: u32, order: u8, cpu: CpuId) -> Option<u32> {
        let (cluster, pages) = (from / CLUSTER, 1 << order);
        let end = cluster * CLUSTER + self.size(cluster);
        let is_free =
            |first: &u32| first + pages <= end && (*first..first + pages).all(|slot| !self.out.has(slot));
        let found = (from..end).step_by(pages as usize).find(is_free);
        if let Some(first) = found {
            for slot in first..first + pages {
                assert!(!self.held.has(slot), "slot {slot} is free in its cluster and holds a page");
                self.out.flip(slot);
                self.held.flip(slot);
            }
            self.clusters.0[cluster as usize].out += pages;
            self.used += pages;
        }
        match found.map(|first| first + pages).filter(|next| next + pages <= end) {
            Some(next) => self.of(cpu).large[usize::from(order)] = Some(next),
            None => self.give_up(cluster),
        }
        self.assert_cpus_clusters();
        self.assert_clusters_listed();
        found
    }

    pub(super) fn free(&mut self, slot: u32, cpu: CpuId) {
        assert!(self.held.has(slot), "slot {slot} is freed twice");
        assert!(self.out.has(slot), "slot {slot} holds a page and is in its cluster");
        assert!(self.used > 0, "slot {slot} is freed, and none holds a page");
        self.held.flip(slot);
        self.used -= 1;
        assert!(self.used < self.slots, "slot {slot} is free, and all hold a page");
        if self.clusters.0[(slot / CLUSTER) as usize].order > 0 {
            return self.put_in(slot);
        }
        let returned = &mut self.of(cpu).returned;
        returned.push(slot);
        if returned.len() == CACHE {
            for slot in std::mem::take(returned) {
                self.put_in(slot);
            }
        }
    }

    fn of(&mut self, cpu: CpuId) -> &mut CpuSlots {
        if self.cpus.len() <= cpu.index() {
            self.cpus.resize_with(cpu.index() + 1, CpuSlots::default);
        }
        &mut self.cpus[cpu.index()]
    }

    /// Refills a CPU's stock of slots, which is empty.
    fn refill(&mut self, cpu: CpuId) {
        let mut ready = std::mem::take(&mut self.of(cpu).ready);
        assert!(ready.is_empty(), "a CPU gets slots while it has some");
        while ready.len() < CACHE
            && let Some(slot) = self.take_out(cpu)
        {
            ready.push(slot);
        }
        ready.reverse();
        self.of(cpu).ready = ready;
        self.assert_cpus_clusters();
    }

    /// The next free slot of the CPU's cluster, or of the cluster that becomes its next.
    fn take_out(&mut self, cpu: CpuId) -> Option<u32> {
        loop {
            let start = match self.of(cpu).next {
                Some(start) => start,
                None => self.claim()? * CLUSTER,
            };
            let end = (start / CLUSTER * CLUSTER + CLUSTER).min(self.slots);
            let found = (start..end).find(|&slot| !self.out.has(slot));
            let next = found.map(|slot| slot + 1).filter(|&next| next < end);
            self.of(cpu).next = next;
            if let Some(slot) = found {
                assert!(!self.held.has(slot), "slot {slot} is free in its cluster and holds a page");
                self.out.flip(slot);
                let cluster = &mut self.clusters.0[(slot / CLUSTER) as usize];
                assert!(cluster.is_a_cpus, "slot {slot} is taken from a cluster that is no CPU's");
                cluster.out += 1;
                assert!(cluster.out <= CLUSTER, "a cluster has given more slots than it has");
            }
            if next.is_none() {
                self.give_up(start / CLUSTER);
            }
            if found.is_some() {
                return found;
            }
        }
    }

    /// A cluster for a CPU to fill with single pages.
    fn claim(&mut self) -> Option<u32> {
        let cluster = self.empty.pop_tail(&mut self.clusters);
        let cluster = cluster.or_else(|| self.holed.pop_tail(&mut self.clusters));
        let cluster = cluster.or_else(|| {
            let mut large = self.frag.iter_mut().chain(&mut self.nonfull);
            large.find_map(|list| list.pop_tail(&mut self.clusters))
        })?;
        let claimed = &mut self.clusters.0[cluster as usize];
        assert!(!claimed.is_a_cpus, "cluster {cluster} is claimed by two CPUs");
        (claimed.is_a_cpus, claimed.on) = (true, None);
        let out = claimed.out;
        assert!(out < self.size(cluster), "cluster {cluster} is claimed and has no free slot");
        Some(cluster)
    }

    /// A CPU has come to the end of its cluster, or leaves it.
    fn give_up(&mut self, cluster: u32) {
        assert!(self.clusters.0[cluster as usize].is_a_cpus, "cluster {cluster} is given up and is no CPU's");
        self.clusters.0[cluster as usize].is_a_cpus = false;
        self.enlist(cluster, On::Frag);
        let has_room = self.clusters.0[cluster as usize].out != self.size(cluster);
        let is_listed = self.clusters.0[cluster as usize].on.is_some();
        assert_eq!(is_listed, has_room, "a cluster is released, and is on a list if it has free slots");
    }

    /// Puts a cluster that belongs to no CPU on the list for its state; one of an order on `large`.
    fn enlist(&mut self, cluster: u32, large: On) {
        let size = self.size(cluster);
        let of = &mut self.clusters.0[cluster as usize];
        let (order, on) = (
            usize::from(of.order),
            match of.out {
                0 => Some(On::Empty),
                out if out == size => None,
                _ if of.order > 0 => Some(large),
                _ => Some(On::Holed),
            },
        );
        of.on = on;
        if on == Some(On::Empty) {
            of.order = 0;
        }
        let list = match on {
            None => return,
            Some(On::Empty) => &mut self.empty,
            Some(On::Holed) => &mut self.holed,
            Some(On::Nonfull) => &mut self.nonfull[order],
            Some(On::Frag) => &mut self.frag[order],
        };
        list.push_head(&mut self.clusters, cluster);
    }

    /// Takes a cluster off its list, if it is on one.
    fn unlist(&mut self, cluster: u32) {
        let of = &mut self.clusters.0[cluster as usize];
        let order = usize::from(of.order);
        let list = match of.on.take() {
            None => return,
            Some(On::Empty) => &mut self.empty,
            Some(On::Holed) => &mut self.holed,
            Some(On::Nonfull) => &mut self.nonfull[order],
            Some(On::Frag) => &mut self.frag[order],
        };
        list.remove(&mut self.clusters, cluster);
    }

    fn size(&self, cluster: u32) -> u32 {
        CLUSTER.min(self.slots - cluster * CLUSTER)
    }

    /// A slot goes back to its cluster.
    fn put_in(&mut self, slot: u32) {
        assert!(self.out.has(slot), "slot {slot} goes back to its cluster twice");
        assert!(!self.held.has(slot), "slot {slot} goes back to its cluster and holds a page");
        self.out.flip(slot);
        let cluster = slot / CLUSTER;
        let size = self.size(cluster);
        let state = &mut self.clusters.0[cluster as usize];
        assert!(state.out > 0, "slot {slot} goes back to a cluster of which none is out");
        let was_full = state.out == size;
        state.out -= 1;
        // A cluster with holes keeps its place, unless it is empty now or is one of an order.
        let (is_free, is_large) = (state.out == 0, state.order > 0);
        if !state.is_a_cpus && (was_full || is_free || is_large && state.on != Some(On::Nonfull)) {
            self.unlist(cluster);
            self.enlist(cluster, On::Nonfull);
        }
        self.assert_clusters_listed();
    }

    /// A slot has gone back: clusters with holes and empty ones, except those of a CPU, are on their lists.
    #[inline]
    fn assert_clusters_listed(&self) {
        if cfg!(debug_assertions) && self.clusters.0.len() <= CLUSTERS_COUNTED {
            let (mut holed, mut empty, mut large) = (0, 0, 0);
            for (cluster, state) in (0..).zip(&self.clusters.0).filter(|(_, state)| !state.is_a_cpus) {
                match state.out {
                    0 => empty += 1,
                    out if out == self.size(cluster) => {}
                    _ if state.order > 0 => large += 1,
                    _ => holed += 1,
                }
            }
            assert_eq!(
                (self.holed.len(), self.empty.len(), self.large_listed()),
                (holed, empty, large),
                "clusters on the lists of the holed, the empty and the large, and those that belong there by what is out"
            );
        }
    }

    /// Clusters of an order that are on a list.
    fn large_listed(&self) -> u64 {
        self.nonfull.iter().chain(&self.frag).map(List::len).sum()
    }

    /// Everything that no page holds goes back to the clusters, from all CPUs: the device is nearly full.
    fn gather(&mut self) {
        for CpuSlots { ready, returned, next, large } in std::mem::take(&mut self.cpus) {
            for next in large.into_iter().chain([next]).flatten() {
                self.give_up(next / CLUSTER);
            }
            for slot in returned.into_iter().chain(ready) {
                self.put_in(slot);
            }
        }
        self.assert_cpus_clusters();
    }

    /// CPUs have got clusters, or left them: a cluster is a CPU's where the search of one goes on in it.
    #[inline]
    #[track_caller]
    fn assert_cpus_clusters(&self) {
        if cfg!(debug_assertions) && self.clusters.0.len() <= CLUSTERS_COUNTED {
            self.check_cpus_clusters();
        }
    }

    #[track_caller]
    fn check_cpus_clusters(&self) {
        let nexts = self.cpus.iter().flat_map(|cpu| cpu.large.iter().chain([&cpu.next]).flatten());
        let searched: Vec<u32> = nexts.map(|next| next / CLUSTER).collect();
        for (cluster, state) in (0..).zip(&self.clusters.0) {
            let cpus = searched.iter().filter(|&&searched| searched == cluster).count();
            assert_eq!(usize::from(state.is_a_cpus), cpus, "CPUs whose cluster {cluster} is, and is to be");
        }
    }

    /// All taken slots, in order; for checkers.
    pub(super) fn taken(&self) -> impl Iterator<Item = u32> {
        (0..self.slots).filter(|&slot| self.held.has(slot))
    }

    /// Panics unless each slot is in exactly one place and each cluster on the list that it belongs to.
    pub(super) fn check_invariants(&self) {
        let mut cached: Vec<u32> =
            self.cpus.iter().flat_map(|cpu| cpu.ready.iter().chain(&cpu.returned)).copied().collect();
        cached.sort_unstable();
        assert!(cached.is_sorted_by(|a, b| a < b), "a slot is in two caches");
        for &slot in &cached {
            assert!(self.out.has(slot) && !self.held.has(slot), "slot {slot} is in a cache and elsewhere");
        }
        let out = (0..self.slots).filter(|&slot| self.out.has(slot)).count();
        let held = self.taken().count();
        assert_eq!(held, self.used as usize, "slots that hold a page");
        assert_eq!(out, held + cached.len(), "slots that are out");
        for (list, what) in [(&self.holed, "holed"), (&self.empty, "empty")] {
            list.check_invariants(&self.clusters);
            for cluster in list.iter_from_tail(&self.clusters) {
                let Cluster { out, is_a_cpus, .. } = self.clusters.0[cluster as usize];
                assert!(!is_a_cpus, "cluster {cluster} of a CPU is on the list of the {what}");
                assert_eq!(out == 0, what == "empty", "cluster {cluster} is on the list of the {what}");
            }
        }
        for (order, lists) in self.nonfull.iter().zip(&self.frag).enumerate() {
            for (list, on) in [(lists.0, On::Nonfull), (lists.1, On::Frag)] {
                list.check_invariants(&self.clusters);
                for cluster in list.iter_from_tail(&self.clusters) {
                    let state = &self.clusters.0[cluster as usize];
                    let is = (state.is_a_cpus, usize::from(state.order), state.on);
                    assert_eq!(is, (false, order, Some(on)), "cluster {cluster} of order {order}");
                    assert!(state.out > 0, "cluster {cluster} is free and has an order");
                }
            }
        }
        self.check_cpus_clusters();
        let mut unlisted = 0;
        for (cluster, state) in (0..).zip(&self.clusters.0) {
            let (first, size) = (cluster * CLUSTER, self.size(cluster));
            let out = (first..first + size).filter(|&slot| self.out.has(slot)).count();
            assert_eq!(state.out as usize, out, "slots of cluster {cluster} that are out");
            unlisted += u64::from(state.is_a_cpus || state.out == size);
        }
        let listed = self.holed.len() + self.empty.len() + self.large_listed();
        assert_eq!(listed + unlisted, self.clusters.0.len() as u64, "clusters");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const CPU: CpuId = CpuId(0);

    fn take(slots: &mut Slots, number: usize) -> Vec<u32> {
        (0..number).map(|_| slots.take(CPU).unwrap()).collect()
    }

    #[test]
    fn pages_swapped_out_together_lie_together() {
        let mut slots = Slots::new(2048);
        assert_eq!(take(&mut slots, 1000), (0..1000).collect::<Vec<u32>>());
    }

    #[test]
    fn an_empty_cluster_is_begun_before_a_hole_is_filled() {
        let mut slots = Slots::new(1536);
        take(&mut slots, 512 + 64);
        let holes: Vec<u32> = (0..512).step_by(8).collect();
        holes.iter().for_each(|&slot| slots.free(slot, CPU));
        // The CPU's own cluster comes first, to its end.
        assert_eq!(take(&mut slots, 448 + 512), (576..1536).collect::<Vec<u32>>());
        assert_eq!(take(&mut slots, 64), holes);
    }

    #[test]
    fn freed_slots_come_back_64_at_a_time_or_when_there_are_no_others() {
        let mut slots = Slots::new(1024);
        take(&mut slots, 1000);
        (0..63).for_each(|slot| slots.free(slot, CPU));
        assert_eq!(take(&mut slots, 24), (1000..1024).collect::<Vec<u32>>());
        assert_eq!(take(&mut slots, 63), (0..63).collect::<Vec<u32>>());
        assert_eq!(slots.take(CPU), None);
    }

    #[test]
    fn a_cpu_finds_the_last_slots_in_another_ones_cache() {
        let mut slots = Slots::new(100);
        take(&mut slots, 1);
        let others: BTreeSet<u32> = std::iter::from_fn(|| slots.take(CpuId(1))).collect();
        assert_eq!(others, (1..100).collect());
    }

    #[test]
    fn large_folios_lie_in_clusters_of_their_order() {
        let rule = SwapClusters::ByOrder;
        let mut slots = Slots::new(4 * 512);
        take(&mut slots, 1);
        assert_eq!(
            [4, 4, 2, 4].map(|order| slots.take_large(order, CPU, rule)),
            [512, 528, 1024, 544].map(Some)
        );
        assert_eq!(slots.take_large(9, CPU, rule), Some(1536));
        assert_eq!(slots.take_large(9, CPU, rule), None, "no cluster is free");
        slots.check_invariants();
    }

    #[test]
    fn row_freed_in_a_used_cluster_is_found_by_rule() {
        for (rule, expected) in [
            (SwapClusters::FreeOnly, None),
            (SwapClusters::ByOrder, Some(32)),
            (SwapClusters::NonfullFirst, Some(32)),
        ] {
            let mut slots = Slots::new(512);
            (0..32).for_each(|at| assert_eq!(slots.take_large(4, CPU, rule), Some(at * 16)));
            (32..48).for_each(|slot| slots.free(slot, CPU));
            assert_eq!(slots.take_large(4, CPU, rule), expected, "{rule:?}");
            slots.check_invariants();
        }
    }

    #[test]
    fn nonfull_first_leaves_free_clusters_alone() {
        for (rule, expected) in [(SwapClusters::ByOrder, 1024), (SwapClusters::NonfullFirst, 16)] {
            let mut slots = Slots::new(4 * 512);
            (0..64).for_each(|at| assert_eq!(slots.take_large(4, CPU, rule), Some(at * 16)));
            (16..32).for_each(|slot| slots.free(slot, CPU));
            assert_eq!(slots.take_large(4, CPU, rule), Some(expected), "{rule:?}");
            slots.check_invariants();
        }
    }

    #[test]
    fn single_pages_use_large_clusters_last() {
        let mut slots = Slots::new(2 * 512);
        slots.take_large(4, CPU, SwapClusters::ByOrder);
        let singles = take(&mut slots, 512 + 496);
        assert_eq!((singles[0], singles[511], singles[512]), (512, 1023, 16));
        assert_eq!(slots.take(CPU), None);
        slots.check_invariants();
    }

    proptest! {
        #[test]
        fn slots_are_handed_out_once_until_they_are_freed(
            size in 1..1500u32,
            rule in prop::sample::select(vec![SwapClusters::FreeOnly, SwapClusters::ByOrder, SwapClusters::NonfullFirst]),
            actions in proptest::collection::vec((0..3u8, 0..3u16, any::<prop::sample::Index>(), 1..200usize), 1..60),
        ) {
            let mut slots = Slots::new(size);
            let mut held = BTreeSet::new();
            for (takes, cpu, which, number) in actions {
                for _ in 0..number {
                    if takes == 2 {
                        let order = 2 + (number % 8) as u8;
                        for slot in slots.take_large(order, CpuId(cpu), rule).into_iter().flat_map(|at| at..at + (1 << order)) {
                            prop_assert!(held.insert(slot));
                        }
                    } else if takes == 1 {
                        match slots.take(CpuId(cpu)) {
                            Some(slot) => prop_assert!(held.insert(slot)),
                            None => prop_assert_eq!(held.len(), size as usize),
                        }
                    } else if !held.is_empty() {
                        let slot = *held.iter().nth(which.index(held.len())).unwrap();
                        held.remove(&slot);
                        slots.free(slot, CpuId(cpu));
                    }
                }
                slots.check_invariants();
                prop_assert!(slots.taken().eq(held.iter().copied()));
            }
        }
    }
}
