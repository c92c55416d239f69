//! The steps of a story that are kept: the first and the last, however many lie between them. Between two steps a page's lists go
//! through many decisions: of these, the last of each kind is kept, and how many there were.

use std::collections::{BTreeMap, VecDeque};

use pageout_engine::{
    ListsEvent, MemcgId, Nanos, NodeId, PageEvent, PageName, PageState, ScanBalance, StoryEvent, Told,
    TypeReason,
};

/// An eviction, by which a second run finds it again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Eviction {
    /// The page.
    pub page: PageName,
    /// The time of the eviction.
    pub at: Nanos,
}

/// The last evictions of a run.
pub(super) struct LastEvictions {
    count: usize,
    ring: VecDeque<Eviction>,
    total: u64,
}

impl LastEvictions {
    pub(super) fn new(count: usize) -> LastEvictions {
        LastEvictions { count, ring: VecDeque::new(), total: 0 }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Eviction> {
        self.ring.iter()
    }

    /// Evictions in the whole run.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    pub(super) fn hear(&mut self, event: &StoryEvent) {
        if let Told::Page { page, .. } = event.told {
            self.total += 1;
            if self.ring.len() == self.count {
                self.ring.pop_front();
            }
            self.ring.push_back(Eviction { page, at: event.at });
        }
    }
}

/// One step of a page, as often as it was taken in a row.
#[derive(Clone, Debug)]
pub struct Step {
    /// The time of the first.
    pub at: Nanos,
    /// The time of the last.
    pub until: Nanos,
    /// The number in a row.
    pub times: u64,
    /// The cgroup that the page was charged to.
    pub memcg: MemcgId,
    /// The node that the page was on.
    pub node: NodeId,
    /// The state of the page after the step.
    pub state: PageState,
    /// The event and its reason.
    pub event: PageEvent,
    /// The changes of its lists since the step before.
    pub since: Since,
}

/// The steps of a page that are kept.
#[derive(Clone, Default, Debug)]
pub struct PageStory {
    /// The first steps, oldest first.
    pub first: Vec<Step>,
    /// The last steps, oldest first; empty if all fit in `first`.
    pub last: VecDeque<Step>,
    /// Steps between the two.
    pub left_out: u64,
    /// Counts of the events of its lists up to its last step, and which lists these are.
    seen: Option<((MemcgId, NodeId), Counts)>,
}

impl PageStory {
    fn push(&mut self, step: Step, most: usize) {
        if let Some(before) = self.last.back_mut().or(self.first.last_mut())
            && before.event == step.event
            && (before.state, before.node) == (step.state, step.node)
        {
            before.times += 1;
            before.until = step.at;
            return;
        }
        if self.first.len() < most {
            self.first.push(step);
            return;
        }
        if self.last.len() == most {
            self.last.pop_front();
            self.left_out += 1;
        }
        self.last.push_back(step);
    }

    /// The last step that is kept.
    pub fn last_step(&self) -> Option<&Step> {
        self.last.back().or(self.first.last())
    }

    /// Kept steps, oldest first.
    pub fn steps(&self) -> impl DoubleEndedIterator<Item = &Step> {
        self.first.iter().chain(&self.last)
    }
}

/// The time in memory that ended in an eviction, and whether there was another.
pub(super) struct Residency {
    pub(super) eviction: Eviction,
    pub(super) story: PageStory,
    /// When the page was first needed again.
    pub(super) back: Option<Nanos>,
}

/// Kinds of decisions on lists that are counted: 6 reasons for each of two types, 8 balances, a soft limit, and a near node.
const KINDS: usize = 22;

/// Counts of the events of a group's lists so far.
#[derive(Clone, Copy, Default, Debug)]
struct Counts {
    opened: u64,
    closed: [u64; 2],
    decisions: [u64; KINDS],
}

/// Counts of events, with the last decision of each kind.
#[derive(Default, Debug)]
struct Tally {
    counts: Counts,
    youngest: u64,
    last: [Option<(Nanos, ListsEvent)>; KINDS],
}

/// The changes of lists between two moments.
#[derive(Clone, Default, Debug)]
pub struct Since {
    /// Generations opened.
    pub opened: u64,
    /// The last generation that was opened.
    pub youngest: u64,
    /// Generations closed, by type.
    pub closed: [u64; 2],
    /// Decisions: how often each kind was taken, and the last of them, the latest first.
    pub decisions: Vec<(u64, Nanos, ListsEvent)>,
}

impl Since {
    /// Returns true if nothing happened to them.
    pub fn is_empty(&self) -> bool {
        self.opened == 0 && self.closed == [0; 2] && self.decisions.is_empty()
    }
}

fn decision_kind(event: &ListsEvent) -> Option<usize> {
    match event {
        ListsEvent::GenerationOpened { .. } | ListsEvent::GenerationsClosed { .. } => None,
        ListsEvent::TypeChosen(choice) => {
            let reason = match choice.reason {
                TypeReason::NoSwap => 0,
                TypeReason::AnonIsOlder { .. } => 1,
                TypeReason::Swappiness(_) => 2,
                TypeReason::Refaults { .. } => 3,
                TypeReason::Shares { .. } => 4,
                TypeReason::OtherHadNothing { .. } => 5,
            };
            Some(2 * reason + choice.kind as usize)
        }
        ListsEvent::PassBegun { balance, .. } => Some(match balance {
            ScanBalance::NoSwap => 12,
            ScanBalance::SwappinessZero => 13,
            ScanBalance::Equal => 14,
            ScanBalance::CacheTrim => 15,
            ScanBalance::Fraction { .. } => 16,
            ScanBalance::FileIsTiny => 17,
            ScanBalance::AnonOnly => 18,
            ScanBalance::Nothing => 19,
        }),
        ListsEvent::AboveSoftLimit { .. } => Some(20),
        ListsEvent::NearNode { .. } => Some(21),
    }
}

impl Tally {
    fn note(&mut self, at: Nanos, event: &ListsEvent) {
        match event {
            ListsEvent::GenerationOpened { seq } => {
                self.counts.opened += 1;
                self.youngest = *seq;
            }
            ListsEvent::GenerationsClosed { kind, count, .. } => {
                self.counts.closed[*kind as usize] += count;
            }
            ListsEvent::TypeChosen(_)
            | ListsEvent::PassBegun { .. }
            | ListsEvent::AboveSoftLimit { .. }
            | ListsEvent::NearNode { .. } => {}
        }
        if let Some(kind) = decision_kind(event) {
            self.counts.decisions[kind] += 1;
            self.last[kind] = Some((at, event.clone()));
        }
    }

    fn since(&self, seen: &Counts) -> Since {
        let mut decisions: Vec<(u64, Nanos, ListsEvent)> = (0..KINDS)
            .filter_map(|kind| {
                let count = self.counts.decisions[kind] - seen.decisions[kind];
                let (at, event) = self.last[kind].clone().filter(|_| count > 0)?;
                Some((count, at, event))
            })
            .collect();
        decisions.sort_by_key(|&(_, at, _)| std::cmp::Reverse(at));
        Since {
            opened: self.counts.opened - seen.opened,
            youngest: self.youngest,
            closed: [0, 1].map(|kind| self.counts.closed[kind] - seen.closed[kind]),
            decisions,
        }
    }
}

/// Follows pages.
pub(super) struct Following {
    most: usize,
    stories: BTreeMap<PageName, PageStory>,
    lists: BTreeMap<(MemcgId, NodeId), Tally>,
    /// Evictions whose residency is wanted, rather than the whole story.
    wanted: Option<Vec<Residency>>,
    /// The last of those of each page, while it is not back.
    gone: BTreeMap<PageName, usize>,
}

impl Following {
    pub(super) fn new(steps: u32, evictions: Option<&LastEvictions>) -> Following {
        let residency =
            |&eviction: &Eviction| Residency { eviction, story: PageStory::default(), back: None };
        let wanted = evictions.map(|last| last.iter().map(residency).collect());
        let (stories, lists, gone) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Following { most: steps as usize, stories, lists, wanted, gone }
    }

    /// The story of a page, and what its lists went through after its last step.
    pub(super) fn into_page(mut self, page: PageName) -> (PageStory, Since) {
        let story = self.stories.remove(&page).unwrap_or_default();
        let since = match &story.seen {
            None => Since::default(),
            Some((lists, seen)) => {
                self.lists.get(lists).map_or_else(Since::default, |tally| tally.since(seen))
            }
        };
        (story, since)
    }

    pub(super) fn into_evictions(self) -> Vec<Residency> {
        self.wanted.unwrap_or_default()
    }

    pub(super) fn hear(&mut self, told: &StoryEvent) {
        let lists = (told.memcg, told.node);
        let tally = self.lists.entry(lists).or_default();
        let (page, state, event) = match &told.told {
            Told::Lists(event) => return tally.note(told.at, event),
            Told::Page { page, state, event } => (*page, *state, event),
            // Tracepoints do not belong to a page, and are not requested.
            Told::Tracepoint(_) => return,
        };
        let story = self.stories.entry(page).or_default();
        if let Some(wanted) = &mut self.wanted
            && matches!(event, PageEvent::Filled { .. })
        {
            // A new residency; the previous one has been reported if it was requested.
            *story = PageStory::default();
            if let Some(before) = self.gone.remove(&page) {
                wanted[before].back = Some(told.at);
            }
        }
        let since = match &story.seen {
            Some((seen, counts)) if *seen == lists => tally.since(counts),
            _ => Since::default(),
        };
        story.seen = Some((lists, tally.counts));
        let (at, memcg, node) = (told.at, told.memcg, told.node);
        let step = Step { at, until: at, times: 1, memcg, node, state, event: event.clone(), since };
        story.push(step, self.most);
        if let Some(wanted) = &mut self.wanted
            && matches!(event, PageEvent::Evicted { .. })
            && let Ok(from) = wanted.binary_search_by_key(&at, |residency| residency.eviction.at)
        {
            // One reclaim batch evicts many at the same time.
            let is_it = |&i: &usize| wanted[i].eviction == Eviction { page, at };
            let same = (0..=from).rev().take_while(|&i| wanted[i].eviction.at == at);
            let later = (from..wanted.len()).take_while(|&i| wanted[i].eviction.at == at);
            if let Some(found) = same.chain(later).find(is_it) {
                wanted[found].story = std::mem::take(story);
                self.gone.insert(page, found);
            }
        }
    }
}
