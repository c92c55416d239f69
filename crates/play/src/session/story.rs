//! The page that is followed: what has happened to it, in the words of `pageout explain`.

use pageout_engine::{
    Figures, LruType, MemcgId, PageEvent, PageName, PagePlace, StoryEvent, StoryFilter, Told, Whereabouts,
};
use pageout_sim::scenario::Scenario;
use pageout_sim::{Machine, Observer};
use pageout_study::explain::{Names, PageReport, Run, page_story, stories, type_name};
use serde_json::{Value, json};

/// Steps at each end of a story.
const STEPS: u32 = 12;

/// All events of a page so far.
pub(super) struct Followed {
    page: PageName,
    events: Vec<StoryEvent>,
}

impl Followed {
    /// Has the machine record the page's events from now on.
    pub(super) fn new(page: PageName, machine: &mut Machine) -> Followed {
        machine.tell_story(StoryFilter::Pages([page].into()));
        Followed { page, events: Vec::new() }
    }

    /// The story as `explain --page` prints it for a run that ends now, and its counts: evictions, and fills from a device or with zeroes.
    pub(super) fn told(&self, scenario: &Scenario, machine: &Machine, names: &Names, width: usize) -> Value {
        let count = |is: fn(&PageEvent) -> bool| self.pages().filter(|(_, event)| is(event)).count();
        let group = self.pages().next_back().map(|(memcg, _)| memcg);
        let path = group.and_then(|group| {
            machine.engine().figures().memcgs().find(|(id, _)| *id == group).map(|(_, path)| path)
        });
        json!({
            "text": self.text(scenario, machine, names, width),
            "place": place(machine.engine().figures(), self.page),
            "group": path,
            "is_anon": self.last_kind() == Some(LruType::Anon),
            "evictions": count(|event| matches!(event, PageEvent::Evicted { .. })),
            "fills": count(|event| matches!(event, PageEvent::Filled { .. })),
        })
    }

    fn last_kind(&self) -> Option<LruType> {
        self.events.iter().rev().find_map(|told| match &told.told {
            Told::Page { state, .. } => Some(state.kind),
            _ => None,
        })
    }

    /// The page's own events, each with the group of the page.
    fn pages(&self) -> impl DoubleEndedIterator<Item = (MemcgId, &PageEvent)> {
        self.events.iter().filter_map(|told| match &told.told {
            Told::Page { event, .. } => Some((told.memcg, event)),
            _ => None,
        })
    }

    fn text(&self, scenario: &Scenario, machine: &Machine, names: &Names, width: usize) -> String {
        let (story, since) = page_story(self.page, &self.events, STEPS);
        let now = machine.engine().figures().page_state(self.page);
        let report = PageReport {
            title: names.notation(self.page),
            eviction: None,
            back: None,
            story,
            since,
            now,
            head: now.and_then(|now| names.head(self.page, now.huge?)),
        };
        stories(&Run::of(scenario, machine), &[report], None, width)
    }
}

impl Observer for Followed {
    fn story(&mut self, event: &StoryEvent) {
        self.events.push(event.clone());
    }
}

/// Where a page is, with its state if it is in memory.
pub(super) fn place(figures: Figures<'_>, page: PageName) -> Value {
    let place = figures.page_place(page);
    let name = match place {
        PagePlace::Unknown => "not in memory",
        PagePlace::Evicted => "evicted",
        PagePlace::Compressed => "in zswap",
        PagePlace::Swapped => "on swap",
        PagePlace::Present(_) => "in memory",
    };
    let Some(state) = figures.page_state(page) else { return json!({ "name": name }) };
    let kind = type_name(state.kind);
    let list = match state.place {
        Whereabouts::NoList => "on no list".to_string(),
        Whereabouts::Unevictable => "unevictable".to_string(),
        Whereabouts::Inactive => format!("inactive {kind} list"),
        Whereabouts::Active => format!("active {kind} list"),
        Whereabouts::SingleList => "the policy's list".to_string(),
        Whereabouts::Generation { seq, oldest, youngest, .. } => {
            format!("{kind} generation {seq} of {oldest} to {youngest}")
        }
    };
    json!({
        "name": name, "list": list, "referenced": state.referenced, "active": state.active, "workingset": state.workingset,
        "accessed": state.accessed, "tier": state.tier, "counter": state.counter,
        "pfn": match place { PagePlace::Present(pfn) => Some(pfn.0), _ => None },
    })
}
