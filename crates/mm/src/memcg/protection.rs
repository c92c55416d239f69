//! Protection: how much of a group reclaim leaves alone.
//!
//! `memory.min` and `memory.low` protect a group from the reclaim of an ancestor. How much of a group's setting is *effective* depends
//! on what its siblings claim of their parent's. A group is never protected from its own limit. [reclaim 2.10]

use super::Memcgs;
use crate::units::MemcgId;

/// The protected part of a group's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Protection {
    /// Pages that no reclaim takes.
    pub min: u64,
    /// Pages that reclaim takes only where nothing else is left.
    pub low: u64,
}

impl Memcgs {
    /// Sets `memory.min` and `memory.low`.
    pub fn set_protection(&mut self, id: MemcgId, protection: Protection) {
        let before = self[id].claim();
        (self[id].min, self[id].low) = (protection.min, protection.low);
        let (parent, after) = (self[id].parent, self[id].claim());
        self.claim_changed(parent, before, after);
        self.assert_claims_added_up(parent);
    }

    /// A child claims more or less of its parent's protection: the parent knows what all children claim.
    #[inline]
    pub(super) fn assert_claims_added_up(&self, parent: Option<MemcgId>) {
        // Parents of more children are left to the check of the whole tree.
        if let Some(parent) =
            parent.filter(|&parent| cfg!(debug_assertions) && self[parent].children.len() <= 16)
        {
            let claims = self[parent].children.iter().map(|&child| self[child].claim());
            let sum = |sum: Protection, claim: Protection| Protection {
                min: sum.min + claim.min,
                low: sum.low + claim.low,
            };
            let claims = claims.fold(Protection::default(), sum);
            assert_eq!(self[parent].claimed, claims, "claims on the protection of {}", self[parent].name);
        }
    }

    pub(super) fn claim_changed(&mut self, parent: Option<MemcgId>, before: Protection, after: Protection) {
        if let Some(parent) = parent {
            let claimed = &mut self[parent].claimed;
            assert!(
                claimed.min >= before.min && claimed.low >= before.low,
                "a child claims more of its parent's protection than all children do: {before:?} of {claimed:?}"
            );
            claimed.min = claimed.min - before.min + after.min;
            claimed.low = claimed.low - before.low + after.low;
        }
    }

    /// Effective `min` and `low` of a group while `root` is being reclaimed (`emin`, `elow`), in pages.
    ///
    /// Computed along the path from the top for every visit: an order of visits that isn't top-down must not see a
    /// parent's share of yesterday.
    #[doc(alias = "mem_cgroup_calculate_protection")]
    pub fn protection(&self, root: MemcgId, id: MemcgId) -> Protection {
        if id == root {
            return Protection::default();
        }
        let Some(parent) = self[id].parent else { return Protection::default() };
        if parent == root {
            return Protection { min: self[id].min, low: self[id].low };
        }
        self.protection_below(id, parent, self.protection(root, parent))
    }

    /// The protection of a group from reclaim for the machine, by what was worked out for its parent when that was visited last. Right
    /// only if parents are visited before their children.
    pub fn visit_protection(&mut self, id: MemcgId) -> Protection {
        let protection = match self[id].parent {
            None => Protection::default(),
            Some(MemcgId::ROOT) => Protection { min: self[id].min, low: self[id].low },
            Some(parent) => self.protection_below(id, parent, self[parent].visited),
        };
        self[id].visited = protection;
        protection
    }

    /// The protection of a group that was worked out when it was visited last; none before.
    pub fn visited_protection(&self, id: MemcgId) -> Protection {
        self[id].visited
    }

    /// The protection of a group, given its parent's.
    fn protection_below(&self, id: MemcgId, parent: MemcgId, above: Protection) -> Protection {
        let (claim, siblings) = (self[id].claim(), self[parent].claimed);
        Protection {
            min: self.effective(id, parent, above.min, claim.min, siblings.min),
            low: self.effective(id, parent, above.low, claim.low, siblings.low),
        }
    }

    /// Effective protection of a group that claims `claimed` pages; its parent has `parent_effective`, and all children claim `siblings`.
    fn effective(
        &self,
        id: MemcgId,
        parent: MemcgId,
        parent_effective: u64,
        claimed: u64,
        siblings: u64,
    ) -> u64 {
        if parent_effective == 0 {
            return 0;
        }
        // The parent can't give more than it has: all claims shrink in proportion.
        if siblings > parent_effective {
            return muldiv(claimed, parent_effective, siblings);
        }
        // As with the mount option memory_recursiveprot, which systemd sets: what no child claims still protects them all, in
        // proportion to what each has beyond its claim.
        let (usage, parent_usage) = (self[id].usage, self[parent].usage);
        if parent_effective > siblings && parent_usage > siblings && usage > claimed {
            return claimed + muldiv(parent_effective - siblings, usage - claimed, parent_usage - siblings);
        }
        claimed
    }
}

fn muldiv(a: u64, b: u64, divisor: u64) -> u64 {
    (u128::from(a) * u128::from(b) / u128::from(divisor)) as u64
}

#[cfg(test)]
mod tests {
    use super::super::Memcg;
    use super::super::tests::tree;
    use super::*;

    fn set(memcgs: &mut Memcgs, id: MemcgId, name: &str, pages: u64) {
        let Memcg { min, low, .. } = memcgs[id];
        let protection =
            if name == "min" { Protection { min: pages, low } } else { Protection { min, low: pages } };
        memcgs.set_protection(id, protection);
    }

    #[test]
    fn a_group_is_not_protected_from_its_own_limit() {
        let (mut memcgs, [top, a, _]) = tree(60, 30);
        set(&mut memcgs, a, "min", 60);
        assert_eq!(memcgs.protection(a, a), Protection::default());
        assert_eq!(memcgs.protection(top, a), Protection { min: 60, low: 0 });
    }

    #[test]
    fn claims_beyond_the_parents_protection_shrink_in_proportion() {
        let (mut memcgs, [top, a, b]) = tree(60, 30);
        set(&mut memcgs, top, "low", 45);
        // Nobody can claim more than is in use.
        set(&mut memcgs, a, "low", 120);
        set(&mut memcgs, b, "low", 30);
        assert_eq!(memcgs.protection(MemcgId::ROOT, a).low, 30);
        assert_eq!(memcgs.protection(MemcgId::ROOT, b).low, 15);
        set(&mut memcgs, b, "low", 15);
        assert_eq!(memcgs.protection(MemcgId::ROOT, a).low, 60 * 45 / 75);
        assert_eq!(memcgs.protection(MemcgId::ROOT, b).low, 15 * 45 / 75);
    }

    #[test]
    fn protection_that_no_child_claims_is_shared_by_usage() {
        let (mut memcgs, [top, a, b]) = tree(60, 30);
        set(&mut memcgs, top, "low", 45);
        assert_eq!(memcgs.protection(MemcgId::ROOT, a).low, 30);
        assert_eq!(memcgs.protection(MemcgId::ROOT, b).low, 15);
        // What one of them claims is its own; the rest goes by what each has beyond its claim.
        set(&mut memcgs, b, "low", 15);
        assert_eq!(memcgs.protection(MemcgId::ROOT, a).low, 30 * 60 / 75);
        assert_eq!(memcgs.protection(MemcgId::ROOT, b).low, 15 + 30 * 15 / 75);
    }
}
