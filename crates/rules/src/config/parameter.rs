//! One parameter: its name for scenarios, what it accepts, why its default is what it is, and what `ablate` does with it.

use super::error::{ConfigError, check_range};
use super::{Config, PARAMETERS};
use crate::choice::Values;
use crate::era::Era;
use crate::history::{Line, history};

/// The authority that sets a parameter: the first part of its name for scenarios.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Section {
    /// The buyer of the hardware, or the builder of the kernel.
    Machine,
    /// The kernel's source, or its command line.
    Kernel,
    /// The administrator, while it runs.
    Sysctl,
    /// No authority: an input that a recording did not record.
    Recording,
}

/// A parameter of the kernel or of the machine: its name, its field of [`Config`], its range and its meaning.
pub struct Parameter {
    /// The authority that sets the parameter: hardware, the kernel's source or command line, or the administrator.
    pub section: Section,
    /// Name in messages and scenarios.
    pub name: &'static str,
    /// The values that the parameter accepts.
    pub values: Values,
    /// Unit; empty for words.
    pub unit: &'static str,
    /// Meaning of the parameter.
    pub doc: &'static str,
    /// The reason for the default.
    pub reason: &'static str,
    /// Values by version; empty if all known versions have the default.
    pub eras: &'static [Era],
    /// Treatment by `ablate`, if it is a mechanism of memory tiers or a rule of one, rather than a size.
    pub mechanism: Option<Mechanism>,
    pub(super) get: fn(&Config) -> String,
    pub(super) set: fn(&mut Config, &str) -> Option<()>,
}

/// A mechanism that is chosen for the machine as a whole, because all groups share its tiers of memory.
pub struct Mechanism {
    /// The values that `ablate` tries if the parameter is a number. If it is a word, `ablate` tries all its words.
    tries: &'static [&'static str],
    /// The scenario that shows an effect of the mechanism. `None` only where nothing shows one, which its documentation then says.
    pub shown_by: Option<Shown>,
}

/// A run of a shipped scenario that a mechanism changes.
pub struct Shown {
    /// The scenario, as a path below `scenarios/`.
    pub scenario: &'static str,
    /// The variant of that scenario; `None` for the scenario without a variant.
    pub variant: Option<&'static str>,
    /// The value that changes it there.
    pub value: &'static str,
}

impl Mechanism {
    /// Nothing shows it.
    pub(crate) const UNSEEN: Mechanism = Mechanism { tries: &[], shown_by: None };

    pub(super) const fn shown(
        scenario: &'static str,
        variant: Option<&'static str>,
        value: &'static str,
    ) -> Mechanism {
        Mechanism { tries: &[], shown_by: Some(Shown { scenario, variant, value }) }
    }

    pub(super) const fn trying(self, tries: &'static [&'static str]) -> Mechanism {
        Mechanism { tries, ..self }
    }
}

impl Parameter {
    /// The parameter of this name.
    pub fn by_name(name: &str) -> Option<&'static Parameter> {
        PARAMETERS.iter().find(|parameter| parameter.name == name)
    }

    /// The parameter's value.
    pub fn get(&self, config: &Config) -> String {
        (self.get)(config)
    }

    /// Returns which value it had in which versions, in words. Empty for a parameter without eras.
    pub fn history(&self) -> Vec<Line> {
        history(self.eras)
    }

    /// Sets it; false, changing nothing, where it doesn't accept the value.
    pub fn set(&self, config: &mut Config, value: &str) -> bool {
        self.values.holds(value) && (self.set)(config, value).is_some()
    }

    /// The values worth trying instead of the current one; none if it is not a mechanism.
    pub fn alternatives(&self, config: &Config) -> Vec<String> {
        let Some(mechanism) = &self.mechanism else { return Vec::new() };
        let values = match self.values {
            Values::Bool => &["false", "true"],
            Values::Choice(words) => words,
            Values::Number(..) => mechanism.tries,
        };
        let own = self.get(config);
        values.iter().filter(|value| **value != own).map(|value| (*value).to_owned()).collect()
    }

    pub(super) fn check(&self, config: &Config) -> Result<(), ConfigError> {
        let Values::Number(least, most) = self.values else { return Ok(()) };
        let value = self.get(config).parse().expect("what has a range is a number");
        check_range(self.name, value, least.into(), most.into())
    }
}
