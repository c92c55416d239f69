//! The policies of a comparison, from text: `lru,s3-fifo:small=0.1,promote=2,opt,classic@6.12,lru@machine`.

use pageout_cache::{Choice, POLICIES};
use pageout_engine::PROFILES;
use pageout_policy::Listed;

use crate::Error;
use crate::scenario::nearest::nearest;

/// The era of a policy of the full simulator that is not a kernel's: `lru@machine`.
const MACHINE: &str = "@machine";

/// A policy to compare.
#[derive(Clone, PartialEq, Debug)]
pub enum Policy {
    /// It sees page numbers, and answers hit or miss.
    Textbook(Choice),
    /// It runs in the simulated machine.
    Machine {
        /// As it was asked for.
        name: String,
        /// What `kernel.profile` calls it.
        profile: String,
    },
}

impl Policy {
    /// Returns its name, with the parameters as they were asked for.
    pub fn name(&self) -> String {
        match self {
            Policy::Textbook(choice) => choice.to_string(),
            Policy::Machine { name, .. } => name.clone(),
        }
    }

    /// The name in tables: OPT (Belady) is not a policy.
    pub fn label(&self) -> String {
        let bound = if self.is_bound() { " (bound)" } else { "" };
        format!("{}{bound}", self.name())
    }

    /// Returns true if it knows the future.
    pub fn is_bound(&self) -> bool {
        matches!(self, Policy::Textbook(choice) if choice.is_bound())
    }

    /// The policy, where it needs no machine.
    pub fn textbook(&self) -> Option<&Choice> {
        match self {
            Policy::Textbook(choice) => Some(choice),
            Policy::Machine { .. } => None,
        }
    }

    /// Returns true if it is a custom policy, whose code is not part of this program.
    pub fn is_own(&self) -> bool {
        self.own().is_some()
    }

    /// The hash of the file that its code is in, where it was brought.
    pub fn hash(&self) -> Option<&'static str> {
        self.own()?.hash
    }

    fn own(&self) -> Option<&'static Listed> {
        match self {
            Policy::Textbook(choice) => choice.own(),
            Policy::Machine { profile, .. } => Listed::own(profile),
        }
    }

    fn parse(text: &str) -> Result<Policy, Error> {
        let name = text.split(':').next().unwrap_or_default();
        let is_textbook = POLICIES.iter().any(|row| row.name == name);
        if name.contains('@') || !is_textbook && PROFILES.iter().any(|profile| profile.name == text) {
            let profile = match text.strip_suffix(MACHINE) {
                Some(name) if pageout_engine::Policy::by_name(name).is_some() => name,
                Some(name) => {
                    let there = POLICIES.iter().map(|row| row.name);
                    let there = there.filter(|name| pageout_engine::Policy::by_name(name).is_some());
                    let there = there.chain(Listed::brought().into_iter().map(|listed| listed.name));
                    return Err(Error::asked(format!(
                        "unknown policy `{name}` of the full simulator in `{text}`\nhelp: use a kernel policy (such as classic@6.12) or one of {}",
                        there.map(|name| format!("{name}{MACHINE}")).collect::<Vec<_>>().join(", ")
                    )));
                }
                None => text,
            };
            return Ok(Policy::Machine { name: text.to_string(), profile: profile.to_string() });
        }
        match text.parse::<Choice>() {
            Ok(choice) => Ok(Policy::Textbook(choice)),
            Err(wrong) if is_textbook => Err(Error::asked(wrong.to_string())),
            Err(wrong) if Listed::own(name).is_some() => Err(Error::asked(wrong.to_string())),
            Err(_) => {
                let textbook = || POLICIES.iter().map(|row| row.name);
                let machine = PROFILES.iter().map(|profile| profile.name);
                let own: Vec<&str> = Listed::brought().into_iter().map(|listed| listed.name).collect();
                let hint = nearest(name, textbook().chain(machine).chain(own.iter().copied()));
                let hint = hint.map(|name| format!("\nhelp: did you mean `{name}`?")).unwrap_or_default();
                let own = match own.is_empty() {
                    true => String::new(),
                    false => format!("custom policies: {}; ", own.join(", ")),
                };
                Err(Error::asked(format!(
                    "unknown policy `{name}`{hint}\nhelp: {own}textbook policies: {} (`pageout keys policy`); policies of the full \
                     simulator have an @, for example classic@6.12, mglru@6.12, lru@machine (`pageout keys kernel.profile`)",
                    textbook().collect::<Vec<_>>().join(", ")
                )))
            }
        }
    }
}

/// The policies of a list, or of several, in their order. A part that is `name=value` goes on with the parameters of the policy before it.
pub fn parse_policies(texts: &[String]) -> Result<Vec<Policy>, Error> {
    let mut parts: Vec<String> = Vec::new();
    for text in texts {
        let mut takes_more = false;
        for part in text.split(',').map(str::trim) {
            if part.is_empty() {
                return Err(Error::asked(format!(
                    "--policy {text}: empty name\nhelp: remove the extra comma"
                )));
            }
            let goes_on = takes_more && part.contains('=') && !part.contains(':');
            match parts.last_mut().filter(|_| goes_on) {
                Some(before) => *before += &format!(",{part}"),
                None => parts.push(part.to_string()),
            }
            takes_more = goes_on || part.contains(':');
        }
    }
    let mut policies: Vec<Policy> = Vec::new();
    for part in parts {
        let policy = Policy::parse(&part).map_err(|error| Error::asked(format!("--policy: {error}")))?;
        if let Some(same) = policies.iter().find(|known| **known == policy) {
            let (one, other) = (same.name(), policy.name());
            return Err(Error::asked(match one == other {
                true => format!("--policy: found `{one}` twice, expected it once"),
                false => format!("--policy: `{one}` and `{other}` are the same policy, expected it once"),
            }));
        }
        policies.push(policy);
    }
    Ok(policies)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        let policies = parse_policies(&[text.to_string()]).unwrap();
        policies.iter().map(Policy::label).collect()
    }

    fn wrong(text: &str) -> String {
        parse_policies(&[text.to_string()]).unwrap_err().to_string()
    }

    #[test]
    fn a_comma_separates_policies_and_parameters_alike() {
        assert_eq!(
            names("lru,s3-fifo:small=0.2,promote=1,opt,classic@6.12,2q:in=0.5,lru@machine"),
            ["lru", "s3-fifo:small=0.2,promote=1", "opt (bound)", "classic@6.12", "2q:in=0.5", "lru@machine"]
        );
        let of_two = parse_policies(&["lru".to_string(), "sieve@machine".to_string()]).unwrap();
        assert_eq!(of_two[1], Policy::Machine { name: "sieve@machine".into(), profile: "sieve".into() });
    }

    #[test]
    fn who_is_misspelt_or_named_twice_is_told() {
        assert!(wrong("lur").contains("did you mean `lru`?"), "{}", wrong("lur"));
        assert!(wrong("classic").contains("did you mean `classic@6.12`?"), "{}", wrong("classic"));
        assert!(wrong("lru,opt,lru").contains("found `lru` twice"));
        assert!(wrong("clock,clock:bits=1").contains("`clock` and `clock:bits=1` are the same policy"));
        assert!(wrong("lru,,opt").contains("empty name"));
        assert!(wrong("arc@machine").contains("sieve@machine"), "{}", wrong("arc@machine"));
        assert!(wrong("s3-fifo:small=2").contains("small must be a number from 0 to 1 (default 0.1)"));
        assert!(wrong("lru,promote=2").contains("unknown policy `promote=2`"), "{}", wrong("lru,promote=2"));
    }
}
