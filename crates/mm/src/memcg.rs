//! The tree of memory groups: usage and limits, and the order in which reclaim visits a subtree.
//!
//! Usage is counted in a group and all its ancestors. [reclaim 2.10]

mod protection; // how much of a group is out of reclaim's reach
mod walk; // which group a reclaimer visits next
pub mod lru; // in which order reclaim for the machine comes by groups
pub mod stock; // what a CPU has charged ahead

use crate::policy::GroupRules;
use crate::units::{MemcgId, MmId, Nanos, Nodemask};
use lru::MemcgLru;
pub use protection::Protection;
use std::collections::{BTreeMap, VecDeque};
pub use walk::SharedWalk;
use walk::WalkPosition;

/// No limit: what the kernel prints as `max`.
pub const UNLIMITED: u64 = u64::MAX;

/// Events of `memory.events`, counted where they happened and in all ancestors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemcgEvent {
    /// Reclaim took from it although its usage was below `memory.low`.
    Low = 0,
    /// Its usage went above `memory.high`.
    High = 1,
    /// Its usage was about to go above `memory.max`.
    Max = 2,
    /// It was at its limit, and a charge was about to fail.
    Oom = 3,
    /// A process of it was killed.
    OomKill = 4,
    /// All of its processes were killed.
    OomGroupKill = 5,
}

/// Names of what `memory.events` counts.
pub const MEMORY_EVENTS: [&str; 6] = ["low", "high", "max", "oom", "oom_kill", "oom_group_kill"];

/// Events of `memory.swap.events`, likewise.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SwapEvent {
    /// Its swap usage went above `memory.swap.high`.
    High = 0,
    /// Its swap usage was about to go above `memory.swap.max`.
    Max = 1,
    /// It got no slot: none was free, or its limit was reached.
    Fail = 2,
}

impl SwapEvent {
    /// Names of what `memory.swap.events` counts.
    pub const NAMES: [&str; 3] = ["high", "max", "fail"];
}

/// A memory cgroup: limits, usage, protection, counters.
pub struct Memcg {
    /// The name of its directory; the root's is empty.
    pub name: String,
    /// The group above it; the root has none.
    pub parent: Option<MemcgId>,
    /// The group was not removed.
    pub is_online: bool,
    /// The group was removed, and nothing is charged to it any more.
    is_released: bool,
    /// Nothing refers to it any more, and its number may be another's.
    is_forgotten: bool,
    /// The children, in order of creation.
    pub children: Vec<MemcgId>,
    /// The children by name: a hierarchy may have tens of thousands side by side.
    children_by_name: BTreeMap<String, MemcgId>,
    /// The reclaim rules of the group.
    pub policy: GroupRules,
    /// The group's policy before it was switched to or from generations.
    pub set_aside: Option<GroupRules>,
    /// Address spaces whose memory it is charged for, in the order in which they joined.
    pub mms: Vec<MmId>,
    /// Pages charged, descendants included.
    pub usage: u64,
    /// Pages charged that are kernel memory, descendants left out.
    pub kmem: u64,
    /// Bytes of these that no object has and no CPU holds.
    pub kmem_rest: u64,
    /// `memory.min`. Unit: pages.
    pub min: u64,
    /// `memory.low`. Unit: pages.
    pub low: u64,
    /// `memory.high`. Unit: pages.
    pub high: u64,
    /// `memory.max`. Unit: pages.
    pub max: u64,
    /// Dirty pages up to which the machine's limit throttles no writer.
    pub dirty_min: u64,
    /// `memory.soft_limit_in_bytes` of cgroup v1: what the group is pushed back to where the machine is short of memory.
    pub soft_limit: u64,
    /// Sum of the children's claims on `min` and `low`: as much of each one's setting as it uses. Kept up to date, because protection
    /// asks for it at each visit of a child, and children may be many.
    claimed: Protection,
    /// The latest result of [`Memcgs::visit_protection`].
    visited: Protection,
    /// Swap slots in use, descendants included.
    pub swap_usage: u64,
    /// `memory.swap.high`. Unit: pages.
    pub swap_high: u64,
    /// `memory.swap.max`. Unit: pages.
    pub swap_max: u64,
    /// The nodes that its memory may be on (`cpuset.mems`); without, as its parent's.
    pub mems: Option<Nodemask>,
    /// The OOM killer ends all of its processes and of those below it, or none.
    pub oom_group: bool,
    /// Pages that its compressed bytes may come to, and whether they may be written to a device.
    pub zswap_max: u64,
    /// `memory.zswap.writeback`: its compressed pages may be written to a device.
    pub zswap_writeback: bool,
    /// `memory.events`, by [`MemcgEvent`]: of this group and those below it.
    pub events: [u64; 6],
    /// Events that happened in this group itself.
    pub events_local: [u64; 6],
    /// Statistics updates since the last flush, and those that CPUs have collected but not reported.
    pub updates_pending: u64,
    /// Time of the last flush of its statistics.
    pub stat_flushed_at: Nanos,
    /// By CPU: updates that it has collected and not passed on.
    pub updates_by_cpu: Vec<u64>,
    /// `memory.swap.events`, of this group and those below it.
    pub swap_events: [u64; 3],
    /// By node: position of the walk of this subtree that its reclaimers share.
    walks: Vec<WalkPosition>,
}

impl Memcg {
    /// The children that were not removed, by name.
    pub fn children_names(&self) -> impl Iterator<Item = &str> {
        self.children_by_name.keys().map(String::as_str)
    }

    /// The group's claim on its parent's protection: as much of its setting as it uses.
    fn claim(&self) -> Protection {
        Protection { min: self.usage.min(self.min), low: self.usage.min(self.low) }
    }

    #[inline]
    fn is_protected(&self) -> bool {
        self.min | self.low != 0
    }
}

/// The tree of all groups.
pub struct Memcgs {
    all: Vec<Memcg>,
    /// Removed groups to which nothing was charged any more at some time.
    emptied: Vec<MemcgId>,
    /// Numbers of forgotten groups, which new groups get: the first forgotten first.
    forgotten: VecDeque<MemcgId>,
    /// By node: order of machine-wide reclaim, if it is not that of the tree.
    pub lrus: Vec<MemcgLru>,
    /// Some group has been given a soft limit.
    pub has_soft_limits: bool,
    /// Orders of walks that are over, and a buffer to make one; kept so that a walk allocates nothing.
    spare_orders: Vec<Vec<MemcgId>>,
    spare_stack: Vec<MemcgId>,
    nodes: usize,
    cpus: usize,
}

impl Memcgs {
    /// The root alone.
    pub fn new(policy: GroupRules, nodes: usize, cpus: usize) -> Memcgs {
        let lrus = (0..nodes).map(|_| MemcgLru::default()).collect();
        let mut memcgs = Memcgs {
            all: Vec::new(),
            emptied: Vec::new(),
            forgotten: VecDeque::new(),
            lrus,
            has_soft_limits: false,
            spare_orders: Vec::new(),
            spare_stack: Vec::new(),
            nodes,
            cpus,
        };
        memcgs.push(String::new(), None, policy);
        memcgs
    }

    fn push(&mut self, name: String, parent: Option<MemcgId>, policy: GroupRules) -> MemcgId {
        let id = match self.take_forgotten(&policy) {
            Some(id) => {
                self[id] = self.fresh(name, parent, policy);
                id
            }
            None => {
                let fresh = self.fresh(name, parent, policy);
                self.all.push(fresh);
                MemcgId((self.all.len() - 1) as u16)
            }
        };
        self.lrus.iter_mut().for_each(|lru| lru.add(id));
        id
    }

    /// The number of a forgotten group that had the same policy, because its lists are kept.
    fn take_forgotten(&mut self, policy: &GroupRules) -> Option<MemcgId> {
        let at = self.forgotten.iter().position(|&id| self[id].policy == *policy)?;
        self.forgotten.remove(at)
    }

    /// Returns whether a new group of this policy gets the number of a forgotten one.
    pub fn has_forgotten(&self, policy: &GroupRules) -> bool {
        self.forgotten.iter().any(|&id| self[id].policy == *policy)
    }

    /// A group without charges, limits and events.
    fn fresh(&self, name: String, parent: Option<MemcgId>, policy: GroupRules) -> Memcg {
        Memcg {
            name,
            parent,
            is_online: true,
            is_released: false,
            is_forgotten: false,
            children: Vec::new(),
            children_by_name: BTreeMap::new(),
            policy,
            set_aside: None,
            mms: Vec::new(),
            usage: 0,
            kmem: 0,
            kmem_rest: 0,
            min: 0,
            low: 0,
            high: UNLIMITED,
            max: UNLIMITED,
            dirty_min: 0,
            soft_limit: UNLIMITED,
            claimed: Protection::default(),
            visited: Protection::default(),
            swap_usage: 0,
            swap_high: UNLIMITED,
            swap_max: UNLIMITED,
            oom_group: false,
            mems: None,
            zswap_max: UNLIMITED,
            zswap_writeback: true,
            events: [0; 6],
            events_local: [0; 6],
            updates_pending: 0,
            stat_flushed_at: Nanos::ZERO,
            updates_by_cpu: vec![0; self.cpus],
            swap_events: [0; 3],
            walks: vec![WalkPosition::default(); self.nodes],
        }
    }

    /// Adds a group below another.
    pub fn create(&mut self, parent: MemcgId, name: &str, policy: GroupRules) -> MemcgId {
        assert!(self[parent].is_online, "a group is made below one that was removed");
        let id = self.push(name.to_owned(), Some(parent), policy);
        self[parent].children.push(id);
        let namesake = self[parent].children_by_name.insert(name.to_owned(), id);
        assert_eq!(namesake, None, "{} is made twice", self.path(id));
        id
    }

    /// The child of this name.
    pub fn child(&self, parent: MemcgId, name: &str) -> Option<MemcgId> {
        self[parent].children_by_name.get(name).copied()
    }

    /// Groups that there are or were.
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// All groups, removed ones included.
    pub fn ids(&self) -> impl Iterator<Item = MemcgId> + use<> {
        (0..self.all.len()).map(|id| MemcgId(id as u16))
    }

    /// Returns whether there is or was such a group.
    pub fn contains(&self, id: MemcgId) -> bool {
        id.index() < self.all.len()
    }

    /// The nodes that a group may have memory of: its own, as far as those above it have them, or theirs.
    #[doc(alias = "cpuset_mems_allowed")]
    pub fn mems_allowed(&self, id: MemcgId) -> Nodemask {
        let own = self.ancestors(id).filter_map(|id| self[id].mems);
        own.fold(
            Nodemask::ALL,
            |allowed, mems| if (allowed & mems).is_empty() { mems } else { allowed & mems },
        )
    }

    /// The group itself, its parent, and so on up to the root.
    pub fn ancestors(&self, id: MemcgId) -> impl Iterator<Item = MemcgId> {
        std::iter::successors(Some(id), |&id| self[id].parent)
    }

    /// Returns whether a group is `ancestor` or a descendant of it.
    pub fn is_below(&self, id: MemcgId, ancestor: MemcgId) -> bool {
        self.ancestors(id).any(|id| id == ancestor)
    }

    /// The group itself, or what stands for it since it was removed: the first one above it that was not.
    pub fn online(&self, id: MemcgId) -> MemcgId {
        self.ancestors(id).find(|&id| self[id].is_online).expect("the root is never removed")
    }

    /// The group and its descendants, parents before children, siblings in order of creation.
    pub fn subtree(&self, root: MemcgId) -> Vec<MemcgId> {
        let mut order = Vec::new();
        self.order_into(root, &mut order, &mut Vec::new());
        order
    }

    fn order_into(&self, root: MemcgId, order: &mut Vec<MemcgId>, stack: &mut Vec<MemcgId>) {
        stack.push(root);
        while let Some(id) = stack.pop() {
            order.push(id);
            stack.extend(self[id].children.iter().rev());
        }
    }

    /// Path of a group in the hierarchy, as cgroupfs shows it.
    pub fn path(&self, id: MemcgId) -> String {
        let mut names: Vec<&str> = self.ancestors(id).map(|id| self[id].name.as_str()).collect();
        names.pop();
        names.reverse();
        format!("/{}", names.join("/"))
    }

    /// The group at a path of the hierarchy.
    pub fn by_path(&self, path: &str) -> Option<MemcgId> {
        let names = path.split('/').filter(|name| !name.is_empty());
        names.into_iter().try_fold(MemcgId::ROOT, |parent, name| self.child(parent, name))
    }

    /// Counts an event in a group and all its ancestors but the root, which has no such file.
    pub fn event(&mut self, id: MemcgId, event: MemcgEvent) {
        self[id].events_local[event as usize] += 1;
        self.change_upwards(id, |group| group.events[event as usize] += 1);
    }

    /// Takes back an event that was counted in a group and its ancestors.
    pub fn take_back_event(&mut self, id: MemcgId, event: MemcgEvent) {
        self[id].events_local[event as usize] -= 1;
        self.change_upwards(id, |group| group.events[event as usize] -= 1);
    }

    /// Counts an event of swap in a group and its ancestors.
    pub fn swap_event(&mut self, id: MemcgId, event: SwapEvent) {
        self.change_upwards(id, |group| group.swap_events[event as usize] += 1);
    }

    /// Charges this many pages to the group and its ancestors. If these do not fit, charges the minimum that is enough, and returns which. If an
    /// ancestor has no space for that either, charges nothing and returns that ancestor.
    pub fn charge(&mut self, id: MemcgId, most: u64, least: u64) -> Result<u64, MemcgId> {
        debug_assert!(least > 0 && least <= most, "{least} to {most} pages are charged");
        let mut pages = most;
        for id in self.ancestors(id) {
            let Memcg { usage, max, .. } = self[id];
            if usage + least > max {
                return Err(id);
            }
            if usage + most > max {
                pages = least;
            }
        }
        self.charge_beyond_limits(id, pages);
        debug_assert!(
            self.ancestors(id).all(|id| self[id].usage <= self[id].max),
            "{} or one above it is charged beyond its limit",
            self[id].name
        );
        Ok(pages)
    }

    /// Charges whatever the limits say.
    pub fn charge_beyond_limits(&mut self, id: MemcgId, pages: u64) {
        self.change_usage(id, |usage| usage + pages);
    }

    /// Takes pages off the usage of a group and all above it.
    #[inline(always)]
    pub fn uncharge(&mut self, id: MemcgId, pages: u64) {
        self.change_usage(id, |usage| {
            usage.checked_sub(pages).unwrap_or_else(|| panic!("{pages} of {usage} pages are uncharged"))
        });
        self.note_if_empty(id);
        self.assert_empty_noted(id);
    }

    /// Changes the usage of the group and of each of its ancestors, and what they claim of their parents' protection.
    #[inline]
    fn change_usage(&mut self, id: MemcgId, change: impl Fn(u64) -> u64) {
        let (mut level, mut below) = (Some(id), 0);
        while let Some(id) = level {
            let group = &mut self[id];
            debug_assert!(
                !group.is_released,
                "{} is charged, or uncharged, after it was released",
                group.name
            );
            let usage = change(group.usage);
            debug_assert!(
                usage >= below,
                "{} is charged {usage} pages, and one below it {below}",
                group.name
            );
            below = usage;
            level = group.parent;
            if !group.is_protected() {
                group.usage = usage;
                continue;
            }
            let before = group.claim();
            group.usage = usage;
            let after = group.claim();
            self.claim_changed(level, before, after);
            self.assert_claims_added_up(level);
        }
    }

    /// Changes the group and each of its ancestors.
    #[inline]
    fn change_upwards(&mut self, id: MemcgId, mut change: impl FnMut(&mut Memcg)) {
        let mut level = Some(id);
        while let Some(id) = level {
            let group = &mut self[id];
            change(group);
            level = group.parent;
        }
    }

    /// Returns whether a group or an ancestor of it is above its `memory.high` or its `memory.swap.high`.
    pub fn is_over_high(&self, memcg: MemcgId) -> bool {
        let is_over = |group: &Memcg| group.usage > group.high || group.swap_usage > group.swap_high;
        self.ancestors(memcg).any(|id| is_over(&self[id]))
    }

    /// Pages that may still be charged before this group's own limit is hit.
    pub fn margin(&self, id: MemcgId) -> u64 {
        self[id].max.saturating_sub(self[id].usage)
    }

    /// Swap slots may be taken while no ancestor is at its `memory.swap.max`.
    pub fn charge_swap(&mut self, id: MemcgId) -> bool {
        self.charge_swap_pages(id, 1)
    }

    /// The same of several slots: all or none.
    pub fn charge_swap_pages(&mut self, id: MemcgId, pages: u64) -> bool {
        let has_room = |id: MemcgId| self[id].swap_max.saturating_sub(self[id].swap_usage) >= pages;
        let full = self.ancestors(id).find(|&id| !has_room(id));
        if let Some(full) = full {
            self.swap_event(full, SwapEvent::Max);
            self.swap_event(id, SwapEvent::Fail);
            return false;
        }
        let mut below = 0;
        self.change_upwards(id, |group| {
            group.swap_usage += pages;
            assert!(group.swap_usage <= group.swap_max, "{} has more slots than it may", group.name);
            assert!(group.swap_usage >= below, "{} has fewer slots than one below it", group.name);
            below = group.swap_usage;
        });
        true
    }

    /// Takes a slot off the swap usage of a group and all above it.
    pub fn uncharge_swap(&mut self, id: MemcgId) {
        self.uncharge_swap_pages(id, 1);
    }

    /// Takes several slots off.
    pub fn uncharge_swap_pages(&mut self, id: MemcgId, pages: u64) {
        let mut below = 0;
        self.change_upwards(id, |group| {
            assert!(group.swap_usage >= pages, "a slot is taken off {}, which has none", group.name);
            group.swap_usage -= pages;
            assert!(group.swap_usage >= below, "{} has fewer slots than one below it", group.name);
            below = group.swap_usage;
        });
        self.note_if_empty(id);
        self.assert_empty_noted(id);
    }

    /// Free swap slots that this group may use, of `free` on the devices.
    pub fn free_swap(&self, id: MemcgId, free: u64) -> u64 {
        let left = |id: MemcgId| self[id].swap_max.saturating_sub(self[id].swap_usage);
        self.ancestors(id).map(left).fold(free, u64::min)
    }

    /// At least half of some ancestor's swap limit is used, the soft one or the hard one.
    pub fn is_swap_half_full(&self, id: MemcgId) -> bool {
        self.ancestors(id).any(|id| {
            let group = &self[id];
            group.swap_usage.saturating_mul(2) >= group.swap_high.min(group.swap_max)
        })
    }

    /// A removed group's directory is gone: its path does not lead to it any more, and may be reused.
    pub fn unlink_name(&mut self, id: MemcgId) {
        let (parent, name) = (self[id].parent, self[id].name.clone());
        assert!(self[id].is_online, "{} is removed twice", self.path(id));
        assert!(self[id].mms.is_empty(), "{} is removed while processes are in it", self.path(id));
        assert!(self[id].children_by_name.is_empty(), "{} is removed before those below it", self.path(id));
        self[id].is_online = false;
        if let Some(parent) = parent {
            let removed = self[parent].children_by_name.remove(&name);
            assert_eq!(removed, Some(id), "another group has the name of the one that is removed");
        }
        self.note_if_empty(id);
        self.assert_empty_noted(id);
    }

    /// Kernel memory that a group pays for is its parent's: those above it are charged already.
    pub fn reparent_kmem(&mut self, id: MemcgId, parent: MemcgId) {
        assert_eq!(self[id].parent, Some(parent), "kernel memory goes to another group than the parent");
        let group = &mut self[id];
        assert!(group.usage >= group.kmem, "{} pages of kernel memory among {}", group.kmem, group.usage);
        let (pages, rest) = (std::mem::take(&mut group.kmem), std::mem::take(&mut group.kmem_rest));
        group.usage -= pages;
        let before = (self[parent].kmem, self[parent].kmem_rest);
        self[parent].kmem += pages;
        self[parent].kmem_rest += rest;
        let after = (self[parent].kmem, self[parent].kmem_rest);
        assert_eq!(
            after,
            (before.0 + pages, before.1 + rest),
            "kernel memory of a removed group and its parent"
        );
    }

    /// Pages that a group was charged for are its parent's: those above it are charged already.
    pub fn reparent_pages(&mut self, id: MemcgId, pages: u64) {
        let group = &mut self[id];
        group.usage = group.usage.checked_sub(pages).expect("a group is charged for its folios");
    }

    /// Notes a removed group to which nothing is charged any more.
    #[inline]
    fn note_if_empty(&mut self, id: MemcgId) {
        let group = &self[id];
        if !group.is_online && group.usage == 0 && group.swap_usage == 0 {
            self.emptied.push(id);
        }
    }

    /// A removed group that nothing is charged to any more, and below which there is no other.
    pub fn take_empty(&mut self) -> Option<MemcgId> {
        while let Some(id) = self.emptied.pop() {
            let group = &self[id];
            let is_empty = group.usage == 0 && group.swap_usage == 0 && group.children.is_empty();
            if is_empty && !group.is_online && !group.is_released {
                return Some(id);
            }
        }
        None
    }

    /// The number of a released group may be another's from now on. Returns whether the group is released.
    pub fn forget(&mut self, id: MemcgId) -> bool {
        let is_new = self[id].is_released && !self[id].is_forgotten;
        if is_new {
            (self[id].name, self[id].is_forgotten) = (String::new(), true);
            self.forgotten.push_back(id);
        }
        is_new
    }

    /// The group has ended. Its number is not reused before it is forgotten, so that remaining references to it name no other group.
    pub fn release(&mut self, id: MemcgId) {
        let parent = self[id].parent.expect("the root is never removed");
        let group = &self[id];
        assert!(!group.is_online, "{} is released before it is removed", group.name);
        assert!(!group.is_released, "{} is released twice", group.name);
        assert_eq!((group.usage, group.swap_usage), (0, 0), "{} is released while it is charged", group.name);
        assert_eq!((group.kmem, group.kmem_rest), (0, 0), "{} is released with kernel memory", group.name);
        assert!(group.children.is_empty(), "{} is released before those below it", group.name);
        self[id].is_released = true;
        self[parent].children.retain(|&child| child != id);
        let above: Vec<MemcgId> = self.ancestors(parent).collect();
        for ancestor in above {
            for walk in self[ancestor].walks.iter_mut().filter(|walk| walk.last == Some(id)) {
                walk.last = None;
            }
        }
        self.lrus.iter_mut().for_each(|lru| lru.release(id));
        self.note_if_empty(parent);
        self.assert_empty_noted(parent);
    }

    /// A group has lost what was charged to it, or a child: if it was removed and nothing is left, it is noted.
    #[inline]
    fn assert_empty_noted(&self, id: MemcgId) {
        let group = &self[id];
        debug_assert!(
            group.is_online || group.usage + group.swap_usage > 0 || self.emptied.contains(&id),
            "{} was removed and is empty, but this was not reported",
            group.name
        );
    }

    /// Panics unless what is kept of groups together agrees with each of them.
    pub fn check_invariants(&self) {
        for id in self.ids() {
            let group = &self[id];
            let mut claimed = Protection::default();
            for &child in &group.children {
                let claim = self[child].claim();
                claimed = Protection { min: claimed.min + claim.min, low: claimed.low + claim.low };
                assert!(!self[child].is_released, "{} has a released child", self.path(id));
            }
            assert_eq!(group.claimed, claimed, "what children of {} claim", self.path(id));
            if !group.is_online {
                assert!(
                    group.mms.is_empty() && group.children_by_name.is_empty(),
                    "{} is in use",
                    self.path(id)
                );
                assert_eq!((group.kmem, group.kmem_rest), (0, 0), "kernel memory of {}", self.path(id));
            }
            assert!(
                !group.is_released || group.usage + group.swap_usage == 0,
                "{} is released",
                self.path(id)
            );
        }
    }

    /// Descendants of a group that are online, and those that were removed but are not released.
    pub fn descendants(&self, id: MemcgId) -> (u64, u64) {
        let below = &self.subtree(id)[1..];
        let online = below.iter().filter(|&&id| self[id].is_online).count();
        (online as u64, (below.len() - online) as u64)
    }
}

impl std::ops::Index<MemcgId> for Memcgs {
    type Output = Memcg;
    #[inline]
    fn index(&self, id: MemcgId) -> &Memcg {
        &self.all[id.index()]
    }
}

impl std::ops::IndexMut<MemcgId> for Memcgs {
    #[inline]
    fn index_mut(&mut self, id: MemcgId) -> &mut Memcg {
        &mut self.all[id.index()]
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Root with a child `top`, which has the children `a` and `b`, each with its charged pages.
    pub(super) fn tree(a: u64, b: u64) -> (Memcgs, [MemcgId; 3]) {
        let policy = pageout_rules::policy::Policy::of("classic@6.12").group;
        let mut memcgs = Memcgs::new(policy, 1, 1);
        let top = memcgs.create(MemcgId::ROOT, "top", policy);
        let ids = [top, memcgs.create(top, "a", policy), memcgs.create(top, "b", policy)];
        memcgs.charge(ids[1], a, a).unwrap();
        memcgs.charge(ids[2], b, b).unwrap();
        (memcgs, ids)
    }

    #[test]
    fn a_charge_that_hits_an_ancestors_limit_charges_nobody_and_names_the_ancestor() {
        let (mut memcgs, [top, a, _]) = tree(60, 30);
        memcgs[top].max = 100;
        assert_eq!(memcgs.charge(a, 11, 11), Err(top));
        assert_eq!((memcgs[a].usage, memcgs[top].usage), (60, 90));
        assert_eq!(memcgs.margin(top), 10);
    }

    #[test]
    fn a_removed_group_is_let_go_of_after_the_last_of_its_children() {
        let (mut memcgs, [top, a, b]) = tree(1, 1);
        [a, b, top].into_iter().for_each(|id| memcgs.unlink_name(id));
        for (id, freed) in [(b, vec![b]), (a, vec![a, top])] {
            memcgs.uncharge(id, 1);
            let next = || memcgs.take_empty().inspect(|&id| memcgs.release(id));
            assert_eq!(std::iter::from_fn(next).collect::<Vec<_>>(), freed);
        }
    }

    #[test]
    fn paths_lead_to_groups_and_back() {
        let (memcgs, [_, a, _]) = tree(1, 1);
        assert_eq!(memcgs.path(a), "/top/a");
        assert_eq!(memcgs.by_path("/top/a"), Some(a));
        assert_eq!(memcgs.path(MemcgId::ROOT), "/");
        assert_eq!(memcgs.by_path("/"), Some(MemcgId::ROOT));
        assert_eq!(memcgs.by_path("/top/c"), None);
    }
}
