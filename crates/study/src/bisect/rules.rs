//! Rules that differ between two versions, where the scenario leaves them to the version.

use pageout_engine::{Config, Kernel, Lists, PARAMETERS, Parameter, SWITCHES, Version, When};
use pageout_sim::scenario::Scenario;

use crate::known::{self, Row};
use crate::scenario::switches::{Knob, Turn};

/// A rule that differs between the two versions, where the scenario leaves it to them.
pub struct Rule {
    /// The rule.
    pub knob: Knob,
    /// Its value in the older version.
    pub from: String,
    /// Its value in the newer one.
    pub to: String,
    /// The version with which the later value came, if that is known.
    pub since: Option<Version>,
    /// The source of both values.
    pub known: [String; 2],
}

impl Rule {
    /// The version with which the later value came: a series where it is its first.
    pub fn since_text(&self) -> Option<String> {
        let text = self.since?.to_string();
        Some(
            text.strip_suffix(".0")
                .filter(|series| series.contains('.'))
                .map_or(text.clone(), str::to_string),
        )
    }

    /// The rule at one of its two values.
    pub(super) fn turn(&self, is_later: bool) -> Turn {
        let value = if is_later { &self.to } else { &self.from };
        Turn { knob: self.knob, value: value.clone() }
    }
}

/// Rules that differ between two versions.
pub(super) struct Differing {
    /// Those that may change something, in the order in which they came. Rules without a known date come last.
    pub(super) rules: Vec<Rule>,
    /// Names of the others: rules that only the lists read which the scenario does not have.
    pub(super) unread: Vec<&'static str>,
}

/// The lists that a scenario has in both versions; nothing where it may have both kinds.
fn lists_of(from: &Scenario, to: &Scenario, configs: [&Config; 2]) -> Option<Lists> {
    let [before, after] = configs.map(|config| config.policy.natural_lists());
    let has_both = [from, to].iter().any(|scenario| {
        let is_of_lists = |path: &String| path.contains("lru_gen");
        scenario.memcg.iter().any(|memcg| memcg.policy.is_some())
            || scenario.event.iter().any(|event| event.write.as_ref().is_some_and(is_of_lists))
    });
    before.filter(|_| before == after && !has_both)
}

/// All rules that differ.
pub(super) fn rules_between(from: &Scenario, to: &Scenario) -> Differing {
    let config = |scenario: &Scenario| scenario.engine_config().expect("the scenario was checked");
    let (before, after): (Config, Config) = (config(from), config(to));
    let (old, new) = (kernel_of(from), kernel_of(to));
    let [rows_old, rows_new] = [old, new].map(known::rows);
    let parameters = PARAMETERS.iter().filter(|parameter| !parameter.eras.is_empty());
    let knobs = SWITCHES.iter().map(Knob::Switch).chain(parameters.map(Knob::Parameter));
    let differing = knobs.filter(|knob| knob.get(&before) != knob.get(&after));
    let mut rules: Vec<Rule> = differing
        .map(|knob| {
            let row = |rows: &[Row], kernel: Kernel| {
                let row = rows.iter().find(|row| row.name == knob.name()).expect("every rule has a row");
                row.how(kernel.version)
            };
            let eras = match knob {
                Knob::Switch(switch) => switch.eras,
                Knob::Parameter(Parameter { eras, .. }) => eras,
            };
            let later = knob.get(&after);
            let era = eras.iter().find(|era| era.value == later && era.holds(new.version, new.lists));
            let since = era.and_then(|era| match era.when {
                When::Versions(from, _) if from > old.version => Some(from),
                _ => None,
            });
            let known = [row(&rows_old, old), row(&rows_new, new)];
            Rule { knob, from: knob.get(&before), to: knob.get(&after), since, known }
        })
        .collect();
    rules.sort_by_key(|rule| (rule.since.is_none(), rule.since));
    let lists = lists_of(from, to, [&before, &after]);
    let is_read = |rule: &Rule| match rule.knob {
        Knob::Switch(switch) => lists.is_none_or(|lists| switch.only_with().is_none_or(|only| only == lists)),
        Knob::Parameter(_) => true,
    };
    let (rules, unread): (Vec<Rule>, Vec<Rule>) = rules.into_iter().partition(is_read);
    Differing { rules, unread: unread.iter().map(|rule| rule.knob.name()).collect() }
}

/// The kernel that a scenario names.
pub(super) fn kernel_of(scenario: &Scenario) -> Kernel {
    Kernel::of_name(&scenario.kernel.name()).expect("versions alone are bisected")
}
