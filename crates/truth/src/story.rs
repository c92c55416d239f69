//! The events of one page of a simulated run, as the engine reported them. The caller puts them into words.

use std::collections::BTreeMap;

use pageout_engine::{MemcgId, Nanos, PageName, PageState, StoryEvent};

/// The steps of a page's life up to an access.
#[derive(Clone, Debug)]
pub struct Story {
    /// The page.
    pub page: PageName,
    /// The name for readers, such as "Page 17".
    pub title: String,
    /// The engine's events of it and of its lists, in order.
    pub events: Vec<StoryEvent>,
    /// Its state at the end; `None` if it is not in memory.
    pub now: Option<PageState>,
    /// Paths of the groups.
    pub groups: BTreeMap<MemcgId, String>,
    /// The run's policy, as the recording names it.
    pub policy: String,
    /// Accesses from the first to the end.
    pub accesses: u64,
    /// The time of the end.
    pub end: Nanos,
}
