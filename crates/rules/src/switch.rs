//! Switches: every mechanism and every era's rule under a name that scenarios set, versions bundle and `ablate` turns.
//!
//! `rules!` (`declare.rs`) declares the rows, in the file of each mechanism; here they are put together. The first part of a name
//! is the seam that it belongs to.

use crate::choice::Values;
use crate::era::{Era, Held, Lists, held};
use crate::history::{Line, history};
use crate::policy::{GroupRules, MachineRules, Policy};
use crate::version::Version;

/// A row of the table of switches.
#[derive(Clone, Copy)]
pub struct Switch {
    /// The switch's name; the part before the dot is the seam.
    pub name: &'static str,
    /// The values that the switch accepts.
    pub values: Values,
    /// Versions in which each value held.
    pub eras: &'static [Era],
    /// Effect of the switch, and the reason to change it.
    pub doc: &'static str,
    /// The shipped scenario whose result it changes, as a path below `scenarios/`, and the value that changes it there. `None`
    /// only where nothing shows it, which its documentation then says.
    pub shown_by: Option<(&'static str, &'static str)>,
    pub(crate) get: fn(&Policy) -> String,
    pub(crate) set: fn(&mut Policy, &str) -> Option<()>,
}

impl Switch {
    /// The switch of this name.
    pub fn by_name(name: &str) -> Option<&'static Switch> {
        SWITCHES.iter().find(|switch| switch.name == name)
    }

    /// The switch's value in a policy.
    pub fn get(&self, policy: &Policy) -> String {
        (self.get)(policy)
    }

    /// The values worth trying instead of the one that it has in a policy.
    pub fn alternatives(&self, policy: &Policy) -> Vec<String> {
        let mut values: Vec<String> = match self.values {
            Values::Bool => vec!["false".into(), "true".into()],
            Values::Choice(words) => words.iter().map(|word| (*word).to_owned()).collect(),
            Values::Number(least, most) => [least, 3, 8, most].map(|value| value.to_string()).into(),
        };
        values.retain(|value| *value != self.get(policy));
        values
    }

    /// Sets it; false, changing nothing, where it doesn't accept the value.
    pub fn set(&self, policy: &mut Policy, value: &str) -> bool {
        self.values.holds(value) && (self.set)(policy, value).is_some()
    }

    /// Returns which value it had in which versions, in words.
    pub fn history(&self) -> Vec<Line> {
        history(self.eras)
    }

    /// Returns its value in a version with this LRU.
    pub fn held(&self, version: Version, lists: Lists) -> Held {
        held(self.eras, version, lists)
    }

    /// The only lists with which it is read, of kernels whose other seams are those that came with their lists ([`Policy::natural_lists`]);
    /// `None` where both read it.
    pub fn only_with(&self) -> Option<Lists> {
        // Rules of generations that stand elsewhere, and rules among those of generations that two lists read as well.
        const MGLRU: &[&str] = &[
            "lru.memcg_lru",
            "lru.memcg_lru_restart",
            "reclaim.protection",
            "reclaim.initial_priority",
            "reclaim.batch_tallies",
            "workingset.counters",
            "balance.controller",
            "balance.smoothing",
            "balance.type_rule",
            "balance.ref_tier_gains",
            "balance.tier_reference",
        ];
        const BOTH: &[&str] = &["lru.switching", "lru.interface"];
        const CLASSIC: &[&str] = &["reclaim.clean_only"];
        let is_in = |rows: &[Switch]| rows.iter().any(|row| row.name == self.name);
        if CLASSIC.contains(&self.name) {
            return Some(Lists::Classic);
        }
        let is_of_generations = is_in(crate::lru::GENERATIONS) || is_in(crate::lru::PASS);
        let is_mglru = MGLRU.contains(&self.name) || is_of_generations && !BOTH.contains(&self.name);
        is_mglru.then_some(Lists::Mglru)
    }

    /// Returns whether it is one for the machine, and not a group's.
    pub fn is_machines(&self) -> bool {
        MACHINES.iter().any(|rows| rows.iter().any(|row| row.name == self.name))
    }
}

/// The part of a policy that a struct of rules is.
pub(crate) trait Part {
    /// The part.
    fn of(policy: &Policy) -> &Self;
    /// The part, to change it.
    fn of_mut(policy: &mut Policy) -> &mut Self;
}

/// The rows of rules that groups may differ in.
const GROUPS: &[&[Switch]] = &[
    crate::policy::GROUP,
    crate::accessed::ACCESSED_BITS,
    crate::lru::GENERATIONS,
    crate::lru::PASS,
    crate::reclaim::RECLAIM,
    crate::balance::BALANCE,
];

/// The rows of rules that are one for the machine.
const MACHINES: &[&[Switch]] = &[
    crate::policy::MACHINE,
    crate::writeback::WRITEBACK,
    crate::zswap::ZSWAP,
    crate::damon::DAMON,
    crate::numa_balancing::NUMA_BALANCING,
];

/// The seams and mechanisms, in the order in which their switches are listed.
const SEAMS: &[&str] = &[
    "harvest.",
    "lru.",
    "reclaim.",
    "writeback.",
    "workingset.",
    "balance.",
    "zswap.",
    "folio.",
    "readahead.",
    "damon.",
    "numa_balancing.",
];

const COUNT: usize = count(GROUPS) + count(MACHINES);

/// All switches of a policy.
pub const SWITCHES: &[Switch] = &ALL;

static ALL: [Switch; COUNT] = {
    let mut all = [crate::policy::GROUP[0]; COUNT];
    let (mut at, mut seam) = (0, 0);
    while seam < SEAMS.len() {
        let mut table = 0;
        while table < GROUPS.len() + MACHINES.len() {
            let rows = if table < GROUPS.len() { GROUPS[table] } else { MACHINES[table - GROUPS.len()] };
            let mut row = 0;
            while row < rows.len() {
                if begins_with(rows[row].name, SEAMS[seam]) {
                    all[at] = rows[row];
                    at += 1;
                }
                row += 1;
            }
            table += 1;
        }
        seam += 1;
    }
    assert!(at == COUNT, "the name of each rule begins with its seam");
    all
};

const fn count(tables: &[&[Switch]]) -> usize {
    let (mut sum, mut table) = (0, 0);
    while table < tables.len() {
        sum += tables[table].len();
        table += 1;
    }
    sum
}

const fn begins_with(name: &str, seam: &str) -> bool {
    let (name, seam) = (name.as_bytes(), seam.as_bytes());
    let mut at = 0;
    while at < seam.len() {
        if at >= name.len() || name[at] != seam[at] {
            return false;
        }
        at += 1;
    }
    true
}

/// A policy of defaults alone.
pub(crate) const BASE: Policy = Policy { group: GroupRules::BASE, machine: MachineRules::BASE };

#[cfg(test)]
mod tests {
    use super::*;
    use crate::era::When;

    #[test]
    fn every_switch_can_be_set_to_what_it_accepts_and_reads_back() {
        for switch in SWITCHES {
            for value in switch.values.ends() {
                let mut policy = BASE;
                assert!(switch.set(&mut policy, &value), "{} = {value}", switch.name);
                assert_eq!(switch.get(&policy), value);
            }
        }
    }

    #[test]
    fn what_a_switch_does_not_accept_changes_nothing() {
        for switch in SWITCHES {
            for value in ["", "perhaps", "1", "65"] {
                let mut policy = BASE;
                assert!(!switch.set(&mut policy, value), "{} = {value}", switch.name);
                assert_eq!(policy, BASE);
            }
        }
    }

    #[test]
    fn no_two_values_of_a_rule_hold_in_the_same_version_with_the_same_lists() {
        let spans = |switch: &Switch, lists: Lists| -> Vec<(Version, Version)> {
            let for_lists = switch.eras.iter().filter(|era| era.lists.is_none_or(|of| of == lists));
            let mut spans: Vec<(Version, Version)> = for_lists
                .filter_map(|era| match era.when {
                    When::Versions(from, to) => Some((from, to)),
                    _ => None,
                })
                .collect();
            spans.sort();
            spans
        };
        for switch in SWITCHES {
            for lists in [Lists::Classic, Lists::Mglru] {
                let spans = spans(switch, lists);
                assert!(spans.iter().all(|(from, to)| from <= to), "{}", switch.name);
                assert!(spans.windows(2).all(|pair| pair[0].1 < pair[1].0), "{}: {spans:?}", switch.name);
            }
        }
    }

    #[test]
    fn every_value_of_a_rule_has_an_era() {
        for switch in SWITCHES {
            if let Values::Choice(words) = switch.values {
                for word in words {
                    assert!(switch.eras.iter().any(|era| era.value == *word), "{} = {word}", switch.name);
                }
            }
        }
    }
}
