//! A version of the kernel and its lists, as a query over the eras of all rules.

use crate::config::PARAMETERS;
use crate::era::{GENERATIONS_SINCE, Held, Lists, held};
use crate::policy::{Policy, Profile};
use crate::switch::{BASE, SWITCHES};
use crate::version::Version;
use std::fmt;

/// A version with one of its kinds of lists: `mglru@6.12.117`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kernel {
    /// The version.
    pub version: Version,
    /// Its lists.
    pub lists: Lists,
}

impl Kernel {
    /// The kernel of a name like `classic@6.8`. `None`: that is none, or none known here, or it has no such lists.
    pub fn parse(name: &str) -> Option<Kernel> {
        let (lists, version) = name.split_once('@')?;
        let kernel = Kernel { version: Version::parse(version)?, lists: Lists::by_name(lists)? };
        kernel.exists().then_some(kernel)
    }

    /// The version that a name stands for, or begins with.
    pub fn of_name(name: &str) -> Option<Kernel> {
        Profile::by_name(name).map(Profile::kernel).or_else(|| Kernel::parse(name))
    }

    /// Returns the reason why a name that looks like a version with its lists is invalid; `None` if it does not look like that.
    pub fn why_not(name: &str) -> Option<String> {
        if name == "classic@2.6.35-nodirect" {
            return Some(format!("`{name}` is called classic@2010-nodirect"));
        }
        let (lists, version) = name.split_once('@')?;
        let lists = Lists::by_name(lists)?;
        Some(match Version::parse(version) {
            None => format!("`{version}` is not a known kernel version; {}", Version::KNOWN),
            Some(version) => {
                let kernel = Kernel { version, lists };
                format!("{kernel} does not have MGLRU, which came with {}", GENERATIONS_SINCE.series())
            }
        })
    }

    /// Returns whether the version has such lists.
    pub fn exists(self) -> bool {
        self.lists == Lists::Classic || self.version >= GENERATIONS_SINCE
    }

    /// Every rule's value in this version. An unknown value is that of the next version for which it is known. A rule that has no effect in this
    /// version has the value that its eras name for that, or its default.
    pub fn policy(self) -> Policy {
        let mut policy = BASE;
        for switch in SWITCHES {
            if let Some(value) = value_of(switch.held(self.version, self.lists)) {
                assert!(switch.set(&mut policy, value), "{} takes what its eras say", switch.name);
            }
        }
        policy
    }

    /// The parameters that were others in this version than they are by default.
    pub fn parameters(self) -> Vec<(&'static str, &'static str)> {
        let known = PARAMETERS.iter().filter_map(|parameter| {
            Some((parameter, value_of(held(parameter.eras, self.version, self.lists))?))
        });
        let default = crate::config::Config::default();
        known
            .filter(|(parameter, value)| parameter.get(&default) != *value)
            .map(|(parameter, value)| (parameter.name, value))
            .collect()
    }
}

/// The value that stands for what was.
fn value_of(held: Held) -> Option<&'static str> {
    match held {
        Held::Value(value, _) => Some(value),
        Held::NotKnown { next, .. } => Some(next),
        Held::Rests(value) => value,
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.lists.name(), self.version)
    }
}
