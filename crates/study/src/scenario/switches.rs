//! The engine's switches in a scenario: their values there, a scenario with one turned, and which to turn.
//!
//! A [`Knob`] is a switch of a policy, or a parameter of the machine that is a mechanism of its memory tiers.

use std::fmt;
use std::str::FromStr;

use pageout_engine::{Config, PARAMETERS, Parameter, Policy, SWITCHES, Section, Switch, Values};
use pageout_sim::scenario::Scenario;

use super::nearest::nearest;
use super::source::scalar;
use crate::error::Error;

/// The policy of every cgroup that names none of its own: the profile with the scenario's switches.
pub fn policy_of(scenario: &Scenario) -> Policy {
    let mut policy =
        Policy::by_name(&scenario.kernel.name()).expect("the scenario was checked, and with it the profile");
    for (name, value) in scenario.kernel.switches.iter() {
        if let Some(switch) = Switch::by_name(name) {
            switch.set(&mut policy, &value.to_string());
        }
    }
    policy
}

/// The scenario with a switch turned to a value that it accepts.
pub fn with_switch(scenario: Scenario, switch: &Switch, value: &str) -> Scenario {
    with_knob(scenario, Table::Kernel, switch.name, value)
}

/// The table of a knob.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Table {
    /// `[kernel]`.
    Kernel,
    /// `[sysctl]`.
    Sysctl,
}

/// The scenario with a knob at a value that it accepts, read as `--set` reads it.
pub fn with_knob(mut scenario: Scenario, table: Table, name: &str, value: &str) -> Scenario {
    let knobs = match table {
        Table::Kernel => &mut scenario.kernel.switches,
        Table::Sysctl => &mut scenario.sysctl,
    };
    // If a key has several values, the last one counts.
    knobs.0.push((name.to_string(), scalar(value)));
    scenario
}

/// Cgroups that have a policy of their own, to which the kernel's switches do not apply.
pub fn untouched(scenario: &Scenario) -> Vec<&str> {
    scenario.memcg.iter().filter(|memcg| memcg.policy.is_some()).map(|memcg| memcg.path.as_str()).collect()
}

/// A knob that can be changed.
#[derive(Clone, Copy)]
pub enum Knob {
    /// A switch of a policy.
    Switch(&'static Switch),
    /// A parameter that is a mechanism.
    Parameter(&'static Parameter),
}

impl Knob {
    /// All of them, in the order of the two tables: switches, mechanisms of tiers, and parameters that differ between kernels.
    pub fn all() -> impl Iterator<Item = Knob> {
        let rules =
            PARAMETERS.iter().filter(|parameter| parameter.mechanism.is_some() || !parameter.eras.is_empty());
        SWITCHES.iter().map(Knob::Switch).chain(rules.map(Knob::Parameter))
    }

    /// The one that this names, with its table or without.
    pub fn called(name: &str) -> Option<Knob> {
        Knob::all().find(|knob| knob.is_called(name))
    }

    /// The name of the one that was perhaps meant.
    pub fn meant(name: &str) -> Option<&'static str> {
        let names: Vec<&str> = Knob::all().map(Knob::name).collect();
        let name = ["kernel.", "sysctl."].iter().find_map(|table| name.strip_prefix(table)).unwrap_or(name);
        // A name without its seam is as good a guess as a misspelt one.
        let short = |name: &'static str| name.split_once('.').map_or(name, |(_, name)| name);
        nearest(name, names.iter().copied()).or_else(|| {
            let nearest = nearest(name, names.iter().map(|name| short(name)))?;
            names.iter().copied().find(|name| short(name) == nearest)
        })
    }

    /// Its name below `kernel` or `sysctl`.
    pub fn name(self) -> &'static str {
        match self {
            Knob::Switch(switch) => switch.name,
            Knob::Parameter(parameter) => parameter.name,
        }
    }

    /// The first part of its name.
    pub fn seam(self) -> &'static str {
        self.name().split_once('.').map_or(self.name(), |(seam, _)| seam)
    }

    /// Returns the allowed values.
    pub fn values(self) -> Values {
        match self {
            Knob::Switch(switch) => switch.values,
            Knob::Parameter(parameter) => parameter.values,
        }
    }

    /// Returns the meaning.
    pub fn doc(self) -> &'static str {
        match self {
            Knob::Switch(switch) => switch.doc,
            Knob::Parameter(parameter) => parameter.doc,
        }
    }

    /// Its value in a configuration.
    pub fn get(self, config: &Config) -> String {
        match self {
            Knob::Switch(switch) => switch.get(&config.policy),
            Knob::Parameter(parameter) => parameter.get(config),
        }
    }

    /// What it takes, in words.
    fn takes(self) -> String {
        match self.values() {
            Values::Bool => "true, false".to_string(),
            Values::Choice(words) => words.join(", "),
            Values::Number(least, most) => format!("{least} to {most}"),
        }
    }

    /// Returns true if it accepts a value.
    fn accepts(self, value: &str) -> bool {
        let mut config = Config::default();
        match self {
            Knob::Switch(switch) => switch.set(&mut config.policy, value),
            Knob::Parameter(parameter) => parameter.set(&mut config, value),
        }
    }

    fn alternatives(self, config: &Config) -> Vec<String> {
        match self {
            Knob::Switch(switch) => switch.alternatives(&config.policy),
            Knob::Parameter(parameter) if parameter.mechanism.is_some() => parameter.alternatives(config),
            // What other kernels have.
            Knob::Parameter(parameter) => {
                let own = parameter.get(config);
                let mut values: Vec<String> = Vec::new();
                for era in parameter.eras {
                    if era.value != own && !values.iter().any(|value| value == era.value) {
                        values.push(era.value.to_string());
                    }
                }
                values
            }
        }
    }

    /// The table of the scenario that has it.
    fn table(self) -> Table {
        match self {
            Knob::Parameter(Parameter { section: Section::Sysctl, .. }) => Table::Sysctl,
            _ => Table::Kernel,
        }
    }

    /// Returns true if it does anything only where memory has tiers.
    fn is_of_tiers(self) -> bool {
        matches!(self, Knob::Parameter(parameter) if parameter.mechanism.is_some())
    }

    /// Returns true if it is changed by default.
    fn is_turned_unasked(self, has_tiers: bool) -> bool {
        matches!(self, Knob::Switch(_)) || has_tiers && self.is_of_tiers()
    }

    /// Returns true if it is what a name on the command line means, with its table or without.
    fn is_called(self, name: &str) -> bool {
        let table = match self.table() {
            Table::Kernel => "kernel.",
            Table::Sysctl => "sysctl.",
        };
        self.name() == name || name.strip_prefix(table) == Some(self.name())
    }

    /// Returns true if it belongs to a seam of that name.
    fn is_of_seam(self, name: &str) -> bool {
        self.seam() == name || name.strip_prefix("kernel.") == Some(self.seam())
    }
}

/// One switch turned to one value.
#[derive(Clone)]
pub struct Turn {
    /// The knob.
    pub knob: Knob,
    /// To what.
    pub value: String,
}

impl Turn {
    /// The scenario with it turned.
    pub fn applied(&self, scenario: Scenario) -> Scenario {
        with_knob(scenario, self.knob.table(), self.knob.name(), &self.value)
    }
}

impl Turn {
    /// Its key in a scenario.
    pub fn key(&self) -> String {
        let table = match self.knob.table() {
            Table::Kernel => "kernel",
            Table::Sysctl => "sysctl",
        };
        format!("{table}.{}", self.knob.name())
    }
}

impl FromStr for Turn {
    type Err = String;

    /// `NAME=VALUE`, as of [`Wanted`], but of one switch and one value.
    fn from_str(text: &str) -> Result<Turn, String> {
        let Wanted { names, values, .. } = text.parse()?;
        let knob = |name: &str| Knob::all().find(|knob| knob.name() == name);
        match (&names[..], &values[..]) {
            ([name], [value]) => {
                let knob = knob(name).expect("what is wanted is known");
                Ok(Turn { knob, value: value.clone() })
            }
            ([name], []) => {
                let takes = knob(name).expect("what is wanted is known").takes();
                Err(format!("`{name}`: missing value, expected {name}=VALUE; allowed: {takes}"))
            }
            ([name], values) => {
                Err(format!("`{name}`: found {} values, expected one: {}", values.len(), values.join(", ")))
            }
            _ => Err(format!(
                "`{text}` is a group of switches, expected one switch with its value: {}",
                names.join(", ")
            )),
        }
    }
}

impl PartialEq for Turn {
    /// No two knobs share a name.
    fn eq(&self, other: &Turn) -> bool {
        self.knob.name() == other.knob.name() && self.value == other.value
    }
}

impl std::fmt::Display for Turn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}={}", self.knob.name(), self.value)
    }
}

/// The switches to turn: one, or all of a seam, with their values; all useful values if it names none.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// As it was written.
    text: String,
    /// Names of what is to be turned.
    names: Vec<&'static str>,
    values: Vec<String>,
}

crate::json::as_text!(Wanted);

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Wanted {
    type Err = String;

    fn from_str(text: &str) -> Result<Wanted, String> {
        let (name, values) = match text.split_once('=') {
            Some((name, values)) => (name, values.split(',').map(|value| value.trim().to_string()).collect()),
            None => (text, Vec::new()),
        };
        let (name, text) = (name.trim(), text.to_string());
        if let Some(knob) = Knob::called(name) {
            for value in &values {
                check(knob, value)?;
            }
            return Ok(Wanted { text, names: vec![knob.name()], values });
        }
        let names: Vec<&str> = Knob::all().filter(|knob| knob.is_of_seam(name)).map(Knob::name).collect();
        match (names.is_empty(), values.is_empty()) {
            (true, _) => Err(unknown(name.strip_prefix("kernel.").unwrap_or(name))),
            (false, false) => Err(format!("`{name}` is a group of switches without common values")),
            (false, true) => Ok(Wanted { text, names, values }),
        }
    }
}

fn unknown(name: &str) -> String {
    let meant = Knob::meant(name);
    let seam = name.split_once('.').map_or(name, |(seam, _)| seam);
    let help = match meant {
        // `lru.*` is a way to say `lru`.
        _ if name.strip_prefix(seam) == Some(".*") && Knob::all().any(|knob| knob.seam() == seam) => {
            format!("write `{seam}` for all switches of the group")
        }
        Some(meant) => format!("did you mean `{meant}`? `pageout keys kernel.` lists all switches"),
        None => "`pageout keys kernel.` lists all switches".to_string(),
    };
    format!("unknown switch `{name}`\nhelp: {help}")
}

fn check(knob: Knob, value: &str) -> Result<(), String> {
    if knob.accepts(value) {
        return Ok(());
    }
    if let Some(now) = knob.values().renamed(value) {
        return Err(format!("`{}`: the value `{value}` is now called {now}", knob.name()));
    }
    let words = match knob.values() {
        Values::Bool => &["true", "false"][..],
        Values::Choice(words) => words,
        Values::Number(..) => &[],
    };
    let allowed = knob.takes();
    let help = nearest(value, words.iter().copied()).map(|meant| format!("did you mean `{meant}`? "));
    Err(format!(
        "`{}`: invalid value `{value}`\nhelp: {}allowed: {allowed}",
        knob.name(),
        help.unwrap_or_default()
    ))
}

/// Returns the switches to turn: all requested ones, or all with an effect on such a machine, in the order of the tables, other than to what
/// it is already.
pub fn turns(config: &Config, has_tiers: bool, wanted: &[Wanted]) -> Result<Vec<Turn>, Error> {
    let mut turns = Vec::new();
    for knob in Knob::all() {
        let asked: Vec<&Wanted> =
            wanted.iter().filter(|wanted| wanted.names.contains(&knob.name())).collect();
        let is_meant = if wanted.is_empty() { knob.is_turned_unasked(has_tiers) } else { !asked.is_empty() };
        if !is_meant {
            continue;
        }
        let own = knob.get(config);
        let mut values: Vec<String> = Vec::new();
        if asked.is_empty() || asked.iter().any(|wanted| wanted.values.is_empty()) {
            values = knob.alternatives(config);
        }
        for value in asked.iter().flat_map(|wanted| &wanted.values) {
            if *value != own && !values.contains(value) {
                values.push(value.clone());
            }
        }
        if values.is_empty() {
            let name = knob.name();
            let message = format!("nothing to compare: `{name}` is already `{own}` in this scenario");
            return Err(Error::Asked(message));
        }
        turns.extend(values.into_iter().map(|value| Turn { knob, value }));
    }
    Ok(turns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(wanted: &[&str]) -> Vec<String> {
        let wanted: Vec<Wanted> = wanted.iter().map(|text| text.parse().unwrap()).collect();
        turns(&config(), false, &wanted).unwrap().iter().map(Turn::to_string).collect()
    }

    fn config() -> Config {
        Config { policy: Policy::of("mglru@6.12"), ..Config::default() }
    }

    #[test]
    fn every_switch_is_turned_to_everything_but_what_it_is() {
        let all = named(&[]);
        assert!(SWITCHES.iter().all(|switch| {
            let own = format!("{}={}", switch.name, switch.get(&Policy::of("mglru@6.12")));
            all.iter().any(|turn| turn.starts_with(switch.name)) && !all.contains(&own)
        }));
    }

    #[test]
    fn turns_come_in_the_order_of_the_table_whatever_was_asked_first() {
        assert_eq!(
            named(&["balance.smoothing", "kernel.harvest.rmap", "lru.generations=8,4,2"]),
            ["harvest.rmap=false", "lru.generations=8", "lru.generations=2", "balance.smoothing=false"]
        );
        assert!(named(&["workingset"]).iter().all(|turn| turn.starts_with("workingset.")));
    }

    #[test]
    fn names_and_values_that_do_not_exist_are_refused_with_what_is_meant() {
        for (text, parts) in [
            ("harvest.bloom_fliter", &["unknown switch", "did you mean `harvest.bloom_filter`?"][..]),
            ("lru.*", &["unknown switch `lru.*`", "write `lru` for all switches of the group"]),
            ("bloom_filter", &["did you mean `harvest.bloom_filter`?"]),
            ("colour", &["unknown switch `colour`", "`pageout keys kernel.` lists all switches"]),
            ("folio_bach=31", &["did you mean `folio_batch`?"]),
            ("balance.rule=costs", &["did you mean `cost`?", "allowed: cost, feedback, swappiness"]),
            ("lru.generations=65", &["invalid value `65`", "2 to 64"]),
            ("harvest.rmap=", &["invalid value ``", "true, false"]),
            ("harvest=true", &["group of switches"]),
        ] {
            let message = text.parse::<Wanted>().unwrap_err();
            for part in parts {
                assert!(message.contains(part), "expected {part:?} in:\n{message}");
            }
        }
    }

    #[test]
    fn a_switch_can_not_be_turned_to_what_it_is() {
        let wanted = ["harvest.rmap=true".parse().unwrap()];
        assert!(turns(&config(), false, &wanted).err().unwrap().to_string().contains("already"));
    }

    #[test]
    fn mechanisms_of_tiers_are_turned_where_there_are_tiers_or_when_they_are_asked_for() {
        let all = |has_tiers: bool| -> Vec<String> {
            turns(&config(), has_tiers, &[]).unwrap().iter().map(Turn::to_string).collect()
        };
        let is_of_tiers = |turn: &String| turn == "pghot.walk=all" || turn == "kernel.numa_balancing=2";
        assert_eq!(all(true).iter().filter(|turn| is_of_tiers(turn)).count(), 2);
        assert!(!all(false).iter().any(is_of_tiers));
        assert_eq!(
            named(&[
                "sysctl.kernel.numa_balancing",
                "kernel.pghot.walk=all,sections",
                "vm.pghot_freq_threshold=3"
            ]),
            ["kernel.numa_balancing=2", "pghot.walk=all", "pghot.walk=sections", "vm.pghot_freq_threshold=3"]
        );
        assert!(named(&["pghot"]).iter().all(|turn| turn.starts_with("pghot.")));
        assert!(named(&["numa"]).iter().any(|turn| turn == "numa.promotion_governor_ms=1000"));
    }

    #[test]
    fn every_rule_of_a_version_is_called_by_its_name_and_key() {
        use pageout_engine::Kernel;
        let kernel = Kernel::of_name("classic@6.12").unwrap();
        for row in crate::known::rows(kernel) {
            for name in [row.name.to_string(), row.key()] {
                let knob = Knob::called(&name).unwrap_or_else(|| panic!("{name} is called by nothing"));
                let values = knob.alternatives(&config());
                let turned = format!("{name}={}", values[0]).parse::<Turn>();
                assert_eq!(turned.unwrap().key(), row.key(), "{name}");
            }
        }
        // What nobody names is not turned, unless it is a switch.
        assert!(!turns(&config(), true, &[]).unwrap().iter().any(|turn| turn.key() == "kernel.folio_batch"));
    }
}
