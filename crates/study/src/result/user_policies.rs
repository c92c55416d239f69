//! Figures that the user's own policies report for pages of the machine.

use pageout_engine::Engine;
use serde::Serialize;

use crate::result::run_result::Counters;

/// A policy that kept a group's pages on a node, with the figures that it reports.
#[derive(Debug, Clone, Serialize)]
pub struct OwnPolicyResult {
    /// The policy.
    pub policy: String,
    /// The path of the group.
    pub memcg: String,
    /// The node.
    pub node: u8,
    /// Its figures by name, `fallbacks` among them where it may be helped out.
    pub figures: Counters,
}

/// The policies with figures among those that had a page to keep.
pub(super) fn of(engine: &Engine) -> Vec<OwnPolicyResult> {
    let telling = engine.figures().guests().filter(|guest| !guest.figures.is_empty());
    let result = telling.map(|guest| OwnPolicyResult {
        policy: guest.policy.to_string(),
        memcg: guest.memcg,
        node: guest.node.0,
        figures: guest.figures.into_iter().map(|(name, value)| (name, value.into())).collect(),
    });
    result.collect()
}

impl OwnPolicyResult {
    /// Whose pages it kept: those of `/a`, or of `/a on node 1` where not all are on one.
    pub fn place(&self, all: &[OwnPolicyResult]) -> String {
        match all.iter().any(|other| other.node != self.node) {
            true => format!("{} on node {}", self.memcg, self.node),
            false => self.memcg.clone(),
        }
    }
}

/// The figures of all of them: by name, and with whose pages it kept where several tell some.
pub fn named(policies: &[OwnPolicyResult]) -> Vec<(String, f64)> {
    let all = policies.iter().flat_map(|of| {
        of.figures.iter().map(move |(name, value)| {
            let name = match policies.len() {
                1 => name.clone(),
                _ => format!("{name} of {}", of.place(policies)),
            };
            (name, value.as_f64().unwrap_or(f64::NAN))
        })
    });
    all.collect()
}
