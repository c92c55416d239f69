//! All policies, by name: a row makes one available wherever a name is accepted. Custom policies are registered in addition (`own.rs`).

use crate::{Fifo, Lru, Policy, S3Fifo, Sieve};
use std::fmt;

/// A policy with a name.
pub struct Listed {
    /// Its name in scenarios and on the command line.
    pub name: &'static str,
    /// A description of one or two sentences.
    pub doc: &'static str,
    /// The publication.
    pub source: &'static str,
    /// Creates one. Its only randomness is this seed.
    pub make: &'static Make,
    /// The hash of the file with its code, if it is a custom one: another hash may be another policy.
    pub hash: Option<&'static str>,
}

/// A function that creates a policy from a seed.
pub type Make = dyn Fn(u64) -> Box<dyn Policy> + Send + Sync;

/// All policies.
pub const POLICIES: &[Listed] = &[
    Listed {
        name: "fifo",
        doc: "One queue in order of arrival; uses have no effect. Not a kernel's: a baseline for comparison.",
        source: "Belady, IBM Systems Journal 5(2), 1966, https://doi.org/10.1147/sj.52.0078",
        make: &|_| Box::new(Fifo::default()),
        hash: None,
    },
    Listed {
        name: "lru",
        doc: "One list in exact order of access, without a second chance: the textbook LRU. A reference, not a kernel's.",
        source: "Mattson and others, IBM Systems Journal 9(2), 1970, https://doi.org/10.1147/sj.92.0078",
        make: &|_| Box::new(Lru::default()),
        hash: None,
    },
    Listed {
        name: "s3-fifo",
        doc: "A small queue that most new pages leave unused, a main queue, and the names of evicted pages: S3-FIFO. Not a kernel's.",
        source: "Yang and others, SOSP 2023, https://dl.acm.org/doi/10.1145/3600006.3613147",
        make: &|_| Box::new(S3Fifo::default()),
        hash: None,
    },
    Listed {
        name: "sieve",
        doc: "One queue and a hand that spares used pages: SIEVE. Not a kernel's; it shows the limits of the policy interface.",
        source: "Zhang and others, NSDI 2024, https://www.usenix.org/conference/nsdi24/presentation/zhang-yazhuo",
        make: &|_| Box::new(Sieve::default()),
        hash: None,
    },
];

impl Listed {
    /// Returns the policy of this name, listed or custom.
    pub fn by_name(name: &str) -> Option<&'static Listed> {
        POLICIES.iter().find(|listed| listed.name == name).or_else(|| Listed::own(name))
    }
}

/// Names are unique.
impl PartialEq for Listed {
    fn eq(&self, other: &Listed) -> bool {
        self.name == other.name
    }
}

impl Eq for Listed {}

impl fmt::Debug for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::check;

    #[test]
    fn every_listed_policy_keeps_the_contract() {
        for listed in POLICIES {
            if let Err(broken) = check(listed.make) {
                panic!("{}: {broken}", listed.name);
            }
        }
    }

    #[test]
    fn every_listed_policy_has_a_name_of_its_own_and_a_public_source() {
        for (at, listed) in POLICIES.iter().enumerate() {
            assert!(POLICIES[..at].iter().all(|other| other != listed), "{}", listed.name);
            assert!(listed.source.contains("https://"), "{}", listed.name);
        }
    }
}
