//! A policy with values for its parameters, from text: `lru`, `s3-fifo:small=0.05,promote=1`.

use crate::list::{Make, POLICIES, Parameter, Row};
use crate::{Bare, Opt, Simulation};
use pageout_policy::Listed;
use std::fmt;
use std::str::FromStr;

/// A policy with values for its parameters.
#[derive(Clone)]
pub struct Choice {
    of: Of,
    /// In the order of the row's parameters.
    values: Vec<f64>,
    /// The parameters as they were given: `small=0.1`, in that order.
    given: String,
}

/// Which policy it is.
#[derive(Clone, Copy)]
enum Of {
    Row(&'static Row),
    /// One that was brought.
    Own(&'static Listed),
}

/// The error of a text that should name a policy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wrong(String);

impl Choice {
    /// The name of the policy.
    pub fn name(&self) -> &'static str {
        match self.of {
            Of::Row(row) => row.name,
            Of::Own(listed) => listed.name,
        }
    }

    /// Returns the policy if it is a custom one.
    pub fn own(&self) -> Option<&'static Listed> {
        match self.of {
            Of::Row(_) => None,
            Of::Own(listed) => Some(listed),
        }
    }

    /// The values of its parameters.
    pub fn values(&self) -> impl Iterator<Item = (&'static Parameter, f64)> {
        let parameters = match self.of {
            Of::Row(row) => row.parameters,
            Of::Own(_) => &[],
        };
        parameters.iter().zip(self.values.iter().copied())
    }

    /// Returns whether it knows the future: a bound of all others.
    pub fn is_bound(&self) -> bool {
        matches!(self.of, Of::Row(Row { make: Make::Bound, .. }))
    }

    /// Returns whether a seed may change its behaviour: unknown for custom policies.
    pub fn may_draw(&self) -> bool {
        match self.of {
            Of::Row(row) => matches!(row.make, Make::Drawing(_)),
            Of::Own(_) => true,
        }
    }

    /// Creates an empty memory under it with this capacity, at least one page; none if it is a bound, which needs all accesses in advance.
    pub fn simulation(&self, capacity: u32, seed: u64) -> Option<Box<dyn Simulation>> {
        assert!(capacity > 0, "a memory has room for a page");
        match self.of {
            Of::Row(Row { make: Make::Simulation(make), .. }) => Some(make(capacity, &self.values)),
            Of::Row(Row { make: Make::Drawing(make), .. }) => Some(make(capacity, &self.values, seed)),
            Of::Row(Row { make: Make::Bound, .. }) => None,
            Of::Own(listed) => Some(Box::new(Bare::new((listed.make)(seed), capacity))),
        }
    }

    /// Returns the misses of accesses to dense page numbers with this capacity, at least one page.
    pub fn misses(&self, accesses: &[u32], capacity: u32, seed: u64) -> u64 {
        match self.simulation(capacity, seed) {
            Some(mut simulation) => simulation.run(accesses),
            None => Opt::new(accesses).misses(capacity),
        }
    }
}

impl Parameter {
    /// The values that may be chosen, in words.
    pub fn range(&self) -> String {
        let what = if self.is_whole { "a whole number" } else { "a number" };
        format!("{what} from {} to {}", self.min, self.max)
    }

    fn value(&self, policy: &str, text: &str) -> Result<f64, Wrong> {
        let value = text.parse::<f64>().ok().filter(|value| {
            (self.min..=self.max).contains(value) && (!self.is_whole || value.fract() == 0.0)
        });
        let wrong = || {
            let Parameter { name, default, .. } = self;
            Wrong(format!("{policy}:{name}={text}: {name} must be {} (default {default})", self.range()))
        };
        value.ok_or_else(wrong)
    }
}

impl FromStr for Choice {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<Choice, Wrong> {
        let (name, given) = match text.split_once(':') {
            Some((name, given)) => (name, Some(given)),
            None => (text, None),
        };
        let Some(row) = Row::by_name(name) else {
            if let Some(listed) = Listed::own(name) {
                return match given {
                    None => Ok(Choice { of: Of::Own(listed), values: Vec::new(), given: String::new() }),
                    Some(_) => {
                        Err(Wrong(format!("{text}: `{name}` is a custom policy, and has no parameters")))
                    }
                };
            }
            let known = || POLICIES.iter().map(|row| row.name);
            return Err(Wrong(format!("no policy is called `{name}`; {}", instead(name, known()))));
        };
        let mut values: Vec<f64> = row.parameters.iter().map(|parameter| parameter.default).collect();
        let mut is_given = vec![false; values.len()];
        for one in given.iter().flat_map(|given| given.split(',')) {
            let Some((key, value)) = one.split_once('=') else {
                return Err(Wrong(format!(
                    "{text}: found `{one}`, expected NAME=VALUE, as in `s3-fifo:small=0.1,promote=2`"
                )));
            };
            let known = || row.parameters.iter().map(|parameter| parameter.name);
            let Some(at) = known().position(|known| known == key) else {
                let instead = match known().next() {
                    Some(_) => instead(key, known()),
                    None => "it has none".to_owned(),
                };
                return Err(Wrong(format!("{name} has no parameter `{key}`; {instead}")));
            };
            if std::mem::replace(&mut is_given[at], true) {
                return Err(Wrong(format!("{text}: `{key}` is given twice")));
            }
            values[at] = row.parameters[at].value(name, value)?;
        }
        Ok(Choice { of: Of::Row(row), values, given: given.unwrap_or_default().to_owned() })
    }
}

/// The name with the parameters as they were given: text that [`Choice::from_str`] reads.
impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self.given.is_empty() {
            true => Ok(()),
            false => write!(f, ":{}", self.given),
        }
    }
}

impl fmt::Debug for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Equal policies have equal values, given or by default.
impl PartialEq for Choice {
    fn eq(&self, other: &Choice) -> bool {
        (self.name(), &self.values) == (other.name(), &other.values)
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Wrong {}

/// The nearest of the known names if one is near, and all of them.
fn instead(given: &str, known: impl Iterator<Item = &'static str> + Clone) -> String {
    let given = given.to_lowercase();
    let nearest = known.clone().map(|name| (edits(&given, name), name)).min();
    let nearest = nearest.filter(|(edits, name)| *edits <= 1 + name.len() / 4);
    let all = known.collect::<Vec<_>>().join(", ");
    match nearest {
        Some((_, name)) => format!("do you mean `{name}`? There are {all}"),
        None => format!("there are {all}"),
    }
}

/// How many letters to add, remove or change for one text to become the other.
fn edits(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (above, letter) in one.bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], above + 1);
        for (at, known) in other.bytes().enumerate() {
            let changed = diagonal + usize::from(letter != known);
            diagonal = row[at + 1];
            row[at + 1] = changed.min(diagonal + 1).min(row[at] + 1);
        }
    }
    row[other.len()]
}
