//! The engine's switches in a scenario: their values there, a scenario with one turned, and what `--switch` asks for.

use std::str::FromStr;

use pageout_engine::{Policy, SWITCHES, Switch, Values};
use pageout_sim::scenario::Scenario;

use crate::scenario::nearest::nearest;
use crate::scenario::source::scalar;

/// The policy of every cgroup that names none of its own: the profile with the scenario's switches.
pub(crate) fn policy_of(scenario: &Scenario) -> Policy {
    let mut policy =
        Policy::by_name(&scenario.kernel.profile).expect("the scenario was checked, and with it the profile");
    for (name, value) in scenario.kernel.switches.iter() {
        if let Some(switch) = Switch::by_name(name) {
            switch.set(&mut policy, &value.to_string());
        }
    }
    policy
}

/// The scenario with a switch turned to a value that it accepts.
pub(crate) fn with_switch(scenario: Scenario, switch: &Switch, value: &str) -> Scenario {
    with_knob(scenario, Table::Kernel, switch.name, value)
}

/// Where a knob is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Table {
    /// `[kernel]`.
    Kernel,
    /// `[sysctl]`.
    Sysctl,
}

/// The scenario with a knob at a value that it accepts, read as `--set` reads it.
pub(crate) fn with_knob(mut scenario: Scenario, table: Table, name: &str, value: &str) -> Scenario {
    let knobs = match table {
        Table::Kernel => &mut scenario.kernel.switches,
        Table::Sysctl => &mut scenario.sysctl,
    };
    // Of several values of a key the last one counts.
    knobs.0.push((name.to_string(), scalar(value)));
    scenario
}

/// Cgroups that have a policy of their own, to which the kernel's switches do not apply.
pub(crate) fn untouched(scenario: &Scenario) -> Vec<&str> {
    scenario.memcg.iter().filter(|memcg| memcg.policy.is_some()).map(|memcg| memcg.path.as_str()).collect()
}

/// One switch turned to one value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Turn {
    /// The switch's place in [`SWITCHES`].
    pub(crate) index: usize,
    pub(crate) value: String,
}

impl Turn {
    pub(crate) fn switch(&self) -> &'static Switch {
        &SWITCHES[self.index]
    }
}

impl std::fmt::Display for Turn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}={}", self.switch().name, self.value)
    }
}

/// One `--switch`: a switch or all of a seam, and which values; all worth trying if it names none.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Wanted {
    switches: Vec<usize>,
    values: Vec<String>,
}

impl FromStr for Wanted {
    type Err = String;

    fn from_str(text: &str) -> Result<Wanted, String> {
        let (name, values) = match text.split_once('=') {
            Some((name, values)) => (name, values.split(',').map(|value| value.trim().to_string()).collect()),
            None => (text, Vec::new()),
        };
        let name = name.trim();
        let name = name.strip_prefix("kernel.").unwrap_or(name);
        let is_meant = |switch: &Switch| switch.name == name || seam(switch) == name;
        let switches: Vec<usize> = (0..SWITCHES.len()).filter(|&index| is_meant(&SWITCHES[index])).collect();
        let Some(&first) = switches.first() else { return Err(unknown(name)) };
        let is_seam = SWITCHES[first].name != name;
        if is_seam && !values.is_empty() {
            return Err(format!("`{name}` is a seam of several switches, which share no values"));
        }
        for value in &values {
            check(&SWITCHES[first], value)?;
        }
        Ok(Wanted { switches, values })
    }
}

/// The first part of a switch's name.
pub(crate) fn seam(switch: &Switch) -> &'static str {
    switch.name.split_once('.').map_or(switch.name, |(seam, _)| seam)
}

fn unknown(name: &str) -> String {
    let names: Vec<&str> = SWITCHES.iter().map(|switch| switch.name).collect();
    // A name without its seam is as good a guess as a misspelt one.
    let short = |name: &'static str| name.split_once('.').map_or(name, |(_, name)| name);
    let meant = nearest(name, names.iter().copied()).or_else(|| {
        let nearest = nearest(name, names.iter().map(|name| short(name)))?;
        names.iter().copied().find(|name| short(name) == nearest)
    });
    let seam = name.split_once('.').map_or(name, |(seam, _)| seam);
    let help = match meant {
        // `lru.*` is a way to say `lru`.
        _ if name.strip_prefix(seam) == Some(".*")
            && SWITCHES.iter().any(|switch| self::seam(switch) == seam) =>
        {
            format!("all of a seam are its name, `{seam}`")
        }
        Some(meant) => format!("did you mean `{meant}`? `pageout keys kernel.` lists all"),
        None => format!("all switches: {}", names.join(", ")),
    };
    format!("there is no switch `{name}`; {help}")
}

fn check(switch: &Switch, value: &str) -> Result<(), String> {
    if switch.set(&mut Policy::classic_6_12(), value) {
        return Ok(());
    }
    let (allowed, words) = match switch.values {
        Values::Bool => ("true, false".to_string(), &["true", "false"][..]),
        Values::Choice(words) => (words.join(", "), words),
        Values::Number(least, most) => (format!("{least} to {most}"), &[][..]),
    };
    let help = nearest(value, words.iter().copied()).map(|meant| format!("did you mean `{meant}`? "));
    Err(format!("`{}` can't be `{value}`; {}It takes: {allowed}", switch.name, help.unwrap_or_default()))
}

/// What to turn: all that was asked for, or everything, in the order of [`SWITCHES`], other than to what it is already.
pub(crate) fn turns(policy: &Policy, wanted: &[Wanted]) -> anyhow::Result<Vec<Turn>> {
    let mut turns = Vec::new();
    for (index, switch) in SWITCHES.iter().enumerate() {
        let asked: Vec<&Wanted> = wanted.iter().filter(|wanted| wanted.switches.contains(&index)).collect();
        if asked.is_empty() && !wanted.is_empty() {
            continue;
        }
        let own = switch.get(policy);
        let mut values: Vec<String> = Vec::new();
        if asked.is_empty() || asked.iter().any(|wanted| wanted.values.is_empty()) {
            values = switch.alternatives(policy);
        }
        for value in asked.iter().flat_map(|wanted| &wanted.values) {
            if *value != own && !values.contains(value) {
                values.push(value.clone());
            }
        }
        anyhow::ensure!(
            !values.is_empty(),
            "`{}` is `{own}` in this scenario already: there is nothing to compare it with",
            switch.name
        );
        turns.extend(values.into_iter().map(|value| Turn { index, value }));
    }
    Ok(turns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(wanted: &[&str]) -> Vec<String> {
        let wanted: Vec<Wanted> = wanted.iter().map(|text| text.parse().unwrap()).collect();
        turns(&Policy::mglru_6_12(), &wanted).unwrap().iter().map(Turn::to_string).collect()
    }

    #[test]
    fn every_switch_is_turned_to_everything_but_what_it_is() {
        let all = named(&[]);
        assert!(SWITCHES.iter().all(|switch| {
            let own = format!("{}={}", switch.name, switch.get(&Policy::mglru_6_12()));
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
            ("harvest.bloom_fliter", &["no switch", "did you mean `harvest.bloom_filter`?"][..]),
            ("lru.*", &["no switch `lru.*`", "all of a seam are its name, `lru`"]),
            ("bloom_filter", &["did you mean `harvest.bloom_filter`?"]),
            ("colour", &["no switch `colour`", "all switches: harvest.rmap"]),
            ("balance.rule=costs", &["did you mean `cost`?", "It takes: cost, feedback, swappiness"]),
            ("lru.generations=65", &["can't be `65`", "2 to 64"]),
            ("harvest.rmap=", &["can't be ``", "true, false"]),
            ("harvest=true", &["seam of several switches"]),
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
        assert!(turns(&Policy::mglru_6_12(), &wanted).unwrap_err().to_string().contains("already"));
    }
}
