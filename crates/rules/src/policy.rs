//! The reclaim policy: a choice at each of the four seams, with every mechanism and every era's rule as a switch.
//!
//! A policy is plain data, the same for every group that names it. All switches are always there: a switch of generations rests
//! while a group keeps two lists. So mechanisms can be exchanged one by one, whichever policy they came from. [`crate::switch`]
//! gives each its name: scenarios set it, and `ablate` goes through all of them.

use crate::balance::{Balance, CostRule};
use crate::config::{ConfigError, check_range};
use crate::harvest::Harvest;
use crate::lru::{AbortScope, GenerationRules, Interface, Lru, RejectedUse};
use crate::reclaim::{
    AnonOnly, AnonWriteback, AwakeNodes, FileWriteback, KswapdReset, NoioAnon, OfflinePages, OnSignal,
    ProtectionRule, ReclaimRules, V1Throttle,
};
use crate::workingset::Workingset;
use crate::writeback::WritebackRules;
use crate::zswap::ZswapRules;

/// A choice at the four seams of reclaim for one memory group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Policy {
    /// How accessed bits are found.
    pub harvest: Harvest,
    /// The LRU: which lists there are, where a folio goes, and which folio is looked at next.
    pub lru: Lru,
    /// How generations are kept, where that is [`Lru::Generations`].
    pub generations: GenerationRules,
    /// What a refault means.
    pub workingset: Workingset,
    /// How much to take from anonymous and how much from file memory.
    pub balance: Balance,
    /// When a reclaim call flushes statistics, and what it tries before it gives up.
    pub reclaim: ReclaimRules,
    /// What is done about dirty pages of files. It is one for all groups: that of those which name no policy.
    pub writeback: WritebackRules,
    /// A mapped page of a program's code that was used since reclaim last looked stays, because a program whose code was
    /// paged out can't even wait well.
    pub executable_protection: bool,
    /// `memory.reclaim` has counters of its own (`pgscan_proactive`, `pgsteal_proactive`), as since Linux 6.15, so that what user
    /// space asks for doesn't look like pressure; before, it counted as direct reclaim.
    pub proactive_counters: bool,
    /// What zswap does. It is one for all groups, so those of the policy count that groups have which name none.
    pub zswap: ZswapRules,
}

impl Policy {
    /// The classic active/inactive LRU of Linux 6.12: profile `classic@6.12`.
    pub fn classic_6_12() -> Policy {
        Policy {
            harvest: Harvest::rmap_only(),
            lru: Lru::TwoLists,
            generations: GenerationRules::linux_6_12(),
            workingset: Workingset::Distance,
            balance: Balance::cost(),
            reclaim: ReclaimRules::linux_6_12(),
            writeback: WritebackRules::linux_6_12(),
            executable_protection: true,
            proactive_counters: false,
            zswap: ZswapRules::linux_6_12(),
        }
    }

    /// The LRU of mid-2010 as far as dirty pages go: profile `classic@2.6.35`. Whoever reclaims writes what it meets, waits are
    /// `congestion_wait`, blocks of pages are made by reclaim alone, who dirties too much writes itself, and refaults say nothing.
    /// Its file systems obey; XFS and btrfs of that summer did not (`reclaim.writepage`). It had no zswap and no map of pages of zeroes.
    /// Not modelled: lists by zone.
    pub fn classic_2_6_35() -> Policy {
        Policy {
            workingset: Workingset::CountOnly,
            reclaim: ReclaimRules::linux_2_6_35(),
            writeback: WritebackRules::linux_2_6_35(),
            ..Policy::classic_6_12()
        }
    }

    /// Linux 2.6.35 with the series "avoid overflowing of stack during page reclaim" as posted for the third time, in June 2010: profile
    /// `classic@2.6.35-nodirect`. A task that reclaims for the machine writes nothing, to swap neither.
    pub fn classic_2_6_35_nodirect() -> Policy {
        let mut policy = Policy::classic_2_6_35();
        policy.reclaim.file_writeback = FileWriteback::NotDirect;
        policy.reclaim.anon_writeback = AnonWriteback::NotDirect;
        policy
    }

    /// The classic LRU in front of the zswap of Linux 6.8: profile `classic@6.8`. Lists and refaults are those of 6.12.
    pub fn classic_6_8() -> Policy {
        Policy { zswap: ZswapRules::linux_6_8(), ..Policy::classic_6_12() }
    }

    /// The multi-generational LRU of Linux 6.12: profile `mglru@6.12`.
    pub fn mglru_6_12() -> Policy {
        Policy {
            harvest: Harvest::page_table_walk(),
            lru: Lru::Generations,
            generations: GenerationRules::linux_6_12(),
            workingset: Workingset::OldestGeneration,
            balance: Balance::feedback_6_12(),
            reclaim: ReclaimRules::generations_6_12(),
            writeback: WritebackRules::linux_6_12(),
            executable_protection: true,
            proactive_counters: false,
            zswap: ZswapRules::linux_6_12(),
        }
    }

    /// The multi-generational LRU as posted for the fourth time in August 2021, before it was merged: profile `mglru@v4-2021`.
    /// (<https://lore.kernel.org/linux-mm/20210818063107.2696454-1-yuzhao@google.com/>) [machine 9.1]
    ///
    /// Known of that era, from what is described of the postings around it: up to seven generations (the default of November 2021);
    /// a page that needs a write, or was in use when it was evicted, joins the second oldest; aging only when both types are down to
    /// the two youngest; no Bloom filter, no memcg LRU, no `min_ttl_ms`; the tiers' ladder of 6.12; per-CPU batches of 15; no map of pages
    /// of zeroes. As groups are walked by their tree, protection is worked out from the top down. Left open, and as in 6.12: which
    /// refaults count as recent and what they restore (as before 6.7), the controller's constants, how many pages are looked at a
    /// round, the look around an entry that the reverse map finds young. zswap is that of 6.8, the oldest that is known here; it had no
    /// shrinker then.
    pub fn mglru_v4_2021() -> Policy {
        Policy {
            harvest: Harvest { bloom_filter: false, ..Harvest::page_table_walk() },
            generations: GenerationRules::v4_2021(),
            reclaim: ReclaimRules { protection: ProtectionRule::TopDown, ..ReclaimRules::generations_6_12() },
            zswap: ZswapRules::linux_6_8(),
            ..Policy::mglru_6_12()
        }
    }

    /// The multi-generational LRU of Linux 6.16: profile `mglru@6.16`.
    pub fn mglru_6_16() -> Policy {
        Policy {
            harvest: Harvest::page_table_walk(),
            lru: Lru::Generations,
            generations: GenerationRules::linux_6_16(),
            workingset: Workingset::AnyGeneration,
            balance: Balance::feedback_6_16(),
            reclaim: ReclaimRules { anon_only: AnonOnly::OrFile, ..ReclaimRules::generations_6_12() },
            writeback: WritebackRules::linux_6_12(),
            executable_protection: false,
            proactive_counters: true,
            zswap: ZswapRules::linux_6_12(),
        }
    }

    /// The classic LRU of Linux 7.3: profile `classic@2026`.
    pub fn classic_2026() -> Policy {
        Policy {
            balance: Balance { cost: CostRule::Counters, ..Balance::cost() },
            reclaim: ReclaimRules::linux_7_3(),
            proactive_counters: true,
            zswap: ZswapRules::linux_7_1(),
            ..Policy::classic_6_12()
        }
    }

    /// The multi-generational LRU of Linux 7.1, of June 2026: profile `mglru@7.1`. That of 6.16, but reclaim for a group stops at its
    /// target, that of cgroup v1 waits for writes, nodes whose kswapd is awake are passed by, kswapd stays hopeless until enough is free, pages of a removed group are its parent's,
    /// a signal ends a request, and zswap is of 2026.
    pub fn mglru_7_1() -> Policy {
        let mut policy = Policy::mglru_6_16();
        policy.generations.pass.abort_scope = AbortScope::All;
        policy.reclaim.v1_throttle = V1Throttle::AfterPass;
        policy.reclaim.kswapd_reset = KswapdReset::Balanced;
        policy.reclaim.awake_nodes = AwakeNodes::PassedBy;
        policy.reclaim.swap_cache_bypass = false;
        policy.reclaim.offline = OfflinePages::Reparent;
        policy.reclaim.on_signal = OnSignal::Ends;
        policy.zswap = ZswapRules::linux_7_1();
        policy
    }

    /// The multi-generational LRU of Linux 7.3, of October 2026: profile `mglru@2026`. Each rule in which it differs from 6.16 is a
    /// switch.
    pub fn mglru_2026() -> Policy {
        Policy {
            generations: GenerationRules::linux_7_3(),
            reclaim: ReclaimRules::generations_7_3(),
            executable_protection: true,
            zswap: ZswapRules::linux_7_1(),
            ..Policy::mglru_6_16()
        }
    }

    /// Linux 7.3 with what waits for the release after it: profile `mglru@next`. What reclaim could not free begins its count of
    /// accesses anew, and protection is worked out for whoever reclaims.
    pub fn mglru_next() -> Policy {
        let mut policy = Policy::mglru_2026();
        policy.generations.rejected_use = RejectedUse::Clear;
        policy.reclaim.protection = ProtectionRule::TopDown;
        policy.reclaim.noio_anon = NoioAnon::SkipLowSwapcache;
        policy
    }

    /// `mglru@next` with frequency guided promotion, as posted for the third time in October 2026: profile `mglru-fg`. Not merged. Its
    /// earlier postings went by refault distance as well; this one does not.
    pub fn mglru_fg() -> Policy {
        Policy {
            generations: GenerationRules::frequency_guided(),
            balance: Balance::frequency_guided(),
            ..Policy::mglru_next()
        }
    }

    /// One list in exact order of access, no second chance: the textbook LRU, profile `lru`. A reference, not a kernel's.
    pub fn exact_lru() -> Policy {
        Policy { lru: Lru::SingleList, workingset: Workingset::CountOnly, ..Policy::classic_6_12() }
    }

    /// One queue and a hand that spares what was used: SIEVE, profile `sieve`. Not a kernel's; it shows what the seams carry.
    pub fn sieve() -> Policy {
        Policy { lru: Lru::Sieve, ..Policy::exact_lru() }
    }

    /// Refuses a number of generations outside its range.
    pub fn check(&self) -> Result<(), ConfigError> {
        check_range("lru.generations", self.generations.count_max.into(), 2, 64)
    }

    /// The profile of this name.
    pub fn by_name(name: &str) -> Option<Policy> {
        PROFILES.iter().find(|profile| profile.name == name).map(|profile| (profile.policy)())
    }

    /// What `lru_gen/enabled` makes of a group's policy the first time: the other family's lists, refaults and balance, of the
    /// era whose interface it has. How accessed bits are found stays, but for the look around, which only generations have, and so
    /// do the rules of a call, but for when it asks for dirty pages to be written, and whose protection it goes by.
    pub fn with_generations(self, enabled: bool) -> Policy {
        if enabled == (self.lru == Lru::Generations) {
            return self;
        }
        let other = match (enabled, self.generations.interface) {
            (false, _) => Policy::classic_6_12(),
            (true, Interface::Linux6_12) => Policy::mglru_6_12(),
            (true, Interface::Linux6_16) => Policy::mglru_6_16(),
        };
        let harvest = Harvest { look_around: other.harvest.look_around, ..self.harvest };
        let ReclaimRules { flusher_wake, batch_tallies, v1_throttle, protection, .. } = other.reclaim;
        let reclaim = ReclaimRules { flusher_wake, batch_tallies, v1_throttle, protection, ..self.reclaim };
        let Policy { generations, zswap, writeback, .. } = self;
        Policy { harvest, generations, reclaim, zswap, writeback, ..other }
    }
}

/// A policy under a name.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    /// The name of the profile in scenarios.
    pub name: &'static str,
    /// The policy that the profile stands for.
    pub policy: fn() -> Policy,
    /// Parameters that were others than today's.
    pub parameters: &'static [(&'static str, &'static str)],
}

impl Profile {
    const fn new(name: &'static str, policy: fn() -> Policy) -> Profile {
        Profile { name, policy, parameters: &[] }
    }

    /// The profile of this name.
    pub fn by_name(name: &str) -> Option<&'static Profile> {
        PROFILES.iter().find(|profile| profile.name == name)
    }
}

/// Batches were shorter in 2010, no mark was ever raised because kinds of memory mix, and pages of zeroes went to swap like others.
const OF_2010: &[(&str, &str)] =
    &[("folio_batch", "14"), ("vm.watermark_boost_factor", "0"), ("swap.zero_map", "false")];

/// Batches grew to 31 with Linux 6.9, and pages of zeroes have gone to a map of them since 6.12.
const UP_TO_6_8: &[(&str, &str)] = &[("folio_batch", "15"), ("swap.zero_map", "false")];

/// All profiles.
pub const PROFILES: &[Profile] = &[
    Profile::new("classic@6.12", Policy::classic_6_12),
    Profile::new("classic@2026", Policy::classic_2026),
    Profile { parameters: UP_TO_6_8, ..Profile::new("mglru@v4-2021", Policy::mglru_v4_2021) },
    Profile::new("mglru@6.12", Policy::mglru_6_12),
    Profile::new("mglru@6.16", Policy::mglru_6_16),
    Profile::new("mglru@7.1", Policy::mglru_7_1),
    Profile::new("mglru@2026", Policy::mglru_2026),
    Profile::new("mglru@next", Policy::mglru_next),
    Profile::new("mglru-fg", Policy::mglru_fg),
    Profile { parameters: OF_2010, ..Profile::new("classic@2.6.35", Policy::classic_2_6_35) },
    Profile {
        parameters: OF_2010,
        ..Profile::new("classic@2.6.35-nodirect", Policy::classic_2_6_35_nodirect)
    },
    Profile::new("lru", Policy::exact_lru),
    Profile::new("sieve", Policy::sieve),
    Profile { parameters: UP_TO_6_8, ..Profile::new("classic@6.8", Policy::classic_6_8) },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reclaim::{FlushRule, FlusherWake};

    #[test]
    fn switching_the_lists_keeps_the_rules_of_a_reclaim_call() {
        let mut classic = Policy::classic_6_12();
        classic.reclaim.stat_flush = FlushRule::Updates;
        classic.reclaim.force_active_anon = true;
        let switched = classic.with_generations(true);
        assert_eq!(switched.lru, Lru::Generations);
        assert_eq!(switched.reclaim.stat_flush, FlushRule::Updates);
        // But for what two lists and generations do each in their own way.
        assert_eq!(switched.reclaim.flusher_wake, FlusherWake::Pass);
        assert_eq!(switched.with_generations(false), classic);
    }

    #[test]
    fn each_profile_has_the_zswap_of_its_own_kernel() {
        for profile in PROFILES {
            let rules = (profile.policy)().zswap;
            let of_its_kernel = match profile.name {
                "classic@6.8" | "mglru@v4-2021" => ZswapRules::linux_6_8(),
                "mglru@7.1" | "mglru@2026" | "mglru@next" | "mglru-fg" | "classic@2026" => {
                    ZswapRules::linux_7_1()
                }
                _ => ZswapRules::linux_6_12(),
            };
            assert_eq!(rules, of_its_kernel, "{}", profile.name);
        }
    }

    #[test]
    fn no_profile_from_before_6_12_has_a_map_of_pages_of_zeroes() {
        let has_none = |profile: &&Profile| profile.parameters.contains(&("swap.zero_map", "false"));
        let without: Vec<&str> = PROFILES.iter().filter(has_none).map(|profile| profile.name).collect();
        assert_eq!(without, ["mglru@v4-2021", "classic@2.6.35", "classic@2.6.35-nodirect", "classic@6.8"]);
    }

    #[test]
    fn generations_go_by_the_protection_that_kswapd_worked_out_until_that_was_mended() {
        let of_generations = PROFILES.iter().map(|profile| (profile.name, (profile.policy)()));
        for (name, policy) in of_generations.filter(|(_, policy)| policy.lru == Lru::Generations) {
            let is_mended = matches!(name, "mglru@v4-2021" | "mglru@next" | "mglru-fg");
            let rule = if is_mended { ProtectionRule::TopDown } else { ProtectionRule::KswapdOnly };
            assert_eq!(policy.reclaim.protection, rule, "{name}");
        }
    }
}
