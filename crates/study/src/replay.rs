//! Replays of traces: misses of policies at sizes of memory, in the simulated machine, under textbook policies, or on real files.
//!
//! ```text
//!   Ask ─▶ one kernel policy, one trace              ─▶ Alone         all figures of each size
//!       ─▶ textbook policies, or several of anything ─▶ Comparison    policies by sizes, one table per trace
//!       ─▶ `by` a column                             ─▶ Tenants       shares of one memory, and its best split
//!       ─▶ `live` files                              ─▶ Live          real reads next to simulated ones
//! ```
//! Each size of a kernel policy is a scenario made in memory. [`bench`](crate::bench) runs the textbook policies.

mod ask; // the question
mod setup; // the scenario of a size
mod reading; // traces, and when their accesses start
mod point; // figures of a size in the machine
mod bound; // OPT next to policies that read ahead
mod estimate; // what takes long is estimated first
mod alone; // one policy and one trace
mod comparison; // several policies or traces
mod tenants; // several that share a memory
mod untimed; // misses and counters without a clock
#[cfg(target_os = "linux")]
mod live; // on real files

use pageout_sim::scenario::keys::Limit;
use pageout_workload::trace::Footprint;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::bench::{Policy, parse_sizes};
use crate::error::Error;
use crate::watch::Watcher;
pub use alone::Alone;
use alone::Came;
pub use ask::{Ask, parse_speed};
pub(crate) use bound::is_below;
pub use bound::{Below, Bound};
pub use comparison::{Cell, Comparison, OfTrace};
#[cfg(target_os = "linux")]
pub use live::{Live, OnFile, Row};
pub use point::{Figures, OpenLoop, Point};
pub use setup::PAGES_MIN;
pub(crate) use setup::{Setup, check, pages};
pub use tenants::{Cell as TenantsCell, OfTrace as TenantsOfTrace, Sums, Tenants};
pub use untimed::LeftOut;
pub(crate) use untimed::remark as untimed_remark;

/// The result of a replay, by the shape of its question.
pub enum Answer {
    /// One kernel policy over one trace.
    Alone(Box<Alone>),
    /// Several policies or traces, or textbook policies.
    Comparison(Comparison),
    /// Tenants that share a memory.
    Tenants(Tenants),
    /// Real files.
    #[cfg(target_os = "linux")]
    Live(Live),
    /// The scenario of the replay, as TOML: nothing was run.
    Scenario(String),
}

/// Replays traces under every policy at every size. Errors: an option makes no sense, a trace can't be read, a signal came while one was read.
/// Runs that fail are part of the answer.
pub fn ask(ask: &Ask, watcher: &dyn Watcher) -> Result<Answer, Error> {
    ask.check()?;
    let policies = ask.policies()?;
    // The options are checked before a trace is read, which may take a while.
    for policy in &policies {
        let Policy::Machine { profile, .. } = policy else { continue };
        let setup = Setup { ask, trace: &ask.traces[0], profile, has_neighbours: true };
        let mut template = setup.scenario(&Footprint::default(), PAGES_MIN)?;
        template.task[0].object.push(setup.object(Some(1)));
        check(&template)?;
    }
    let limits = parse_sizes(&ask.memory)?;
    if !ask.live.is_empty() {
        return on_files(ask, &policies, &limits, watcher);
    }
    if let Some(by) = &ask.by {
        return tenants::tenants(ask, by, policies, &limits, watcher).map(Answer::Tenants);
    }
    if ask.is_alone(&policies)
        && let [Policy::Machine { name, profile }] = &policies[..]
    {
        return Ok(match alone::alone(ask, name, profile, &limits, watcher)? {
            Came::Figures(answer) => Answer::Alone(answer),
            Came::Scenario(text) => Answer::Scenario(text),
        });
    }
    let policies = bound::with_bound(ask, policies);
    comparison::run::comparison(ask, policies, &limits, watcher).map(Answer::Comparison)
}

#[cfg(target_os = "linux")]
fn on_files(
    ask: &Ask,
    policies: &[Policy],
    limits: &[Limit],
    watcher: &dyn Watcher,
) -> Result<Answer, Error> {
    live::live(ask, policies, limits, watcher).map(Answer::Live)
}

#[cfg(not(target_os = "linux"))]
fn on_files(_: &Ask, _: &[Policy], _: &[Limit], _: &dyn Watcher) -> Result<Answer, Error> {
    Err(Error::asked("--live: the live page cache runs on Linux only"))
}

impl Answer {
    /// Returns whether no part has a figure. [`Self::failure`] has the reason.
    pub fn is_nothing(&self) -> bool {
        match self {
            Answer::Alone(answer) => answer.is_nothing(),
            Answer::Comparison(answer) => answer.is_nothing(),
            Answer::Tenants(answer) => answer.is_nothing(),
            _ => false,
        }
    }

    /// Returns the reason why the answer is incomplete: runs failed, or a signal came.
    pub fn failure(&self) -> Option<Error> {
        match self {
            Answer::Alone(answer) => answer.failure(),
            Answer::Comparison(answer) => answer.failure(),
            Answer::Tenants(answer) => answer.failure(),
            _ => None,
        }
    }

    /// Checks the sums that an answer satisfies. Errors: the first one that is wrong.
    pub fn check(&self) -> Result<(), String> {
        match self {
            Answer::Alone(answer) => answer.check(),
            Answer::Comparison(answer) => answer.check(),
            Answer::Tenants(answer) => answer.check(),
            #[cfg(target_os = "linux")]
            Answer::Live(answer) => answer.check(),
            Answer::Scenario(_) => Ok(()),
        }
    }

    /// As JSON.
    pub fn json(&self) -> Value {
        match self {
            Answer::Alone(answer) => answer.json(),
            Answer::Comparison(answer) => answer.json(),
            Answer::Tenants(answer) => answer.json(),
            #[cfg(target_os = "linux")]
            Answer::Live(answer) => answer.json(),
            Answer::Scenario(text) => json!({ "text": text }),
        }
    }
}

impl Serialize for Answer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json().serialize(serializer)
    }
}
