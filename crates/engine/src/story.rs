//! Stories and tracepoints: which rule sent a page where it is, by which numbers, and the tracepoints that a kernel emits
//! meanwhile.
//!
//! Reclaim knows the reason of each decision, and forgets it immediately. A [`StoryFilter`] names pages. While one is set, the
//! slow paths record each decision on these pages as a [`StoryEvent`]: plain data, the decision and the numbers compared. The
//! lab puts it into words.
//!
//! ```text
//!   decision ── tell(pfn, || event) ── off: one test of a pointer that is null
//!                                 └── on, the page is followed: its state as the step found it, and the event
//!            ── tell_lists(lruvec, || event) ── decisions on whole lists (which type is next, a generation opened), of the
//!                                               lists on which a followed page has been
//!   work ────── trace(node, || event) ────────── what the kernel's own tracepoints tell, of all pages (`tracepoint.rs`)
//! ```
//! A hit tells nothing: its traces show in the state at the next step. Telling decides nothing and counts nothing, so a run is
//! the same with and without it. That makes it possible to ask about a run that has ended: run it again and listen to the pages
//! in question. Events are handed over after each call, so nothing here grows with the run.

mod event;
mod tracepoint;

use crate::lru::CountsUse;
use pageout_rules::lru::Lru;
use pageout_rules::workingset::Workingset;
use std::collections::BTreeSet;

use crate::balance::{Position, RefTierLimit, TypeReason};
use crate::core::Core;
use crate::lru::lruvec::LruvecId;
use crate::memory::folio::{Folio, FolioFlags, HUGE_PAGE_ORDER, UseBits};
use crate::memory::table::{Entry, Shadow};
use crate::state::State;
use crate::units::{FileId, LruType, MemcgId, MmId, NodeId, Pfn};
pub use event::{
    Because, Filled, FoundBy, Heat, ListsEvent, Locality, MigrateReason, MigrateRefusal, PageEvent, PageName,
    PageState, RefaultRule, Stamp, StoryEvent, StoryFilter, Told, TypeChoice, Verdict, Whereabouts,
};
pub use tracepoint::{
    Contig, FilePage, GfpFlags, InodeMark, InodeState, Kept, ListedInode, Shrinker, TracedInode, TracedPause,
    TracedRegion, TracedWb, TracedWork, Tracepoint, WritebackTracepoint,
};

/// The filter, and the recorded events that were not yet handed over.
#[derive(Default)]
pub(crate) struct Story {
    /// The pages to record, if any.
    filter: Option<StoryFilter>,
    /// A bit for each of their numbers, by its lowest twelve bits, which excludes nearly all other pages.
    numbers: Numbers,
    /// Tracepoints are recorded.
    is_traced: bool,
    events: Vec<StoryEvent>,
    /// Lists on which a followed page has been.
    lists: BTreeSet<LruvecId>,
    /// The choice of the current round.
    choice: Option<TypeChoice>,
    /// The verdicts on the pages of the current batch that stay, if tracepoints are recorded.
    kept: Kept,
}

/// A set of numbers that may hold others as well.
#[derive(Default)]
struct Numbers(Vec<u64>);

impl Numbers {
    const WORDS: u64 = 64;

    fn of(numbers: impl Iterator<Item = u64>) -> Numbers {
        let mut words = vec![0; Numbers::WORDS as usize];
        for number in numbers {
            let (word, bit) = Numbers::place(number);
            words[word] |= bit;
        }
        Numbers(words)
    }

    #[inline]
    fn may_have(&self, number: u64) -> bool {
        let (word, bit) = Numbers::place(number);
        self.0.get(word).is_some_and(|word| word & bit != 0)
    }

    #[inline]
    fn place(number: u64) -> (usize, u64) {
        let bits = u64::from(u64::BITS);
        ((number / bits % Numbers::WORDS) as usize, 1 << (number % bits))
    }
}

impl Story {
    fn follows(&self, page: PageName) -> bool {
        matches!(&self.filter, Some(StoryFilter::Pages(pages)) if pages.contains(&page))
    }

    /// Returns true if it may be one of the pages of a folio.
    fn may_follow(&self, folio: &Folio) -> bool {
        folio.order > 0 || self.numbers.may_have(folio.index.into())
    }
}

impl Core {
    /// Tells, from now on, what `filter` says; what it said before is forgotten.
    pub(crate) fn tell_story(&mut self, filter: StoryFilter) {
        let story = self.out.story.get_or_insert_default();
        story.numbers = match &filter {
            StoryFilter::Pages(pages) => Numbers::of(pages.iter().map(|page| page.number())),
            StoryFilter::Evictions(_) => Numbers::default(),
        };
        (story.filter, story.lists, story.choice) = (Some(filter), BTreeSet::new(), None);
    }

    /// Tells tracepoints from now on.
    pub(crate) fn tell_tracepoints(&mut self) {
        self.out.story.get_or_insert_default().is_traced = true;
    }

    /// Returns true if there are events since the last hand-over.
    #[inline]
    pub(crate) fn has_story(&self) -> bool {
        self.out.story.as_ref().is_some_and(|story| !story.events.is_empty())
    }

    /// Hands over the recorded events, in order.
    pub(crate) fn take_story(&mut self, into: &mut Vec<StoryEvent>) {
        if let Some(story) = &mut self.out.story {
            into.append(&mut story.events);
        }
    }

    /// Records an event of a page in memory, if it is followed.
    #[inline]
    pub(crate) fn tell(&mut self, pfn: Pfn, event: impl FnOnce(&Core) -> PageEvent) {
        if self.is_telling() && self.may_follow(pfn) {
            self.tell_followed(pfn, event);
        }
    }

    /// Returns true if a page of this folio may be followed. Nearly all who tell come no further than this test.
    #[cold]
    #[inline(never)]
    pub(crate) fn may_follow(&self, pfn: Pfn) -> bool {
        self.out.story.as_ref().is_some_and(|story| story.may_follow(&self.mm.memory.folios[pfn]))
    }

    #[cold]
    fn tell_followed(&mut self, pfn: Pfn, event: impl FnOnce(&Core) -> PageEvent) {
        let pages = self.followed_of(self.mm.name_of(pfn), self.mm.memory.folios[pfn].pages());
        if pages.is_empty() {
            return;
        }
        let event = event(self);
        self.push_pages(pfn, &pages, |_| (), &event);
    }

    /// The pages that are followed among so many from this one on.
    fn followed_of(&self, first: PageName, pages: u64) -> Vec<PageName> {
        let all = (0..pages).map(|at| first.next(at));
        all.filter(|&page| self.out.story.as_ref().is_some_and(|story| story.follows(page))).collect()
    }

    /// Tells the same of pages of a folio, whose states are changed in some way.
    fn push_pages(
        &mut self,
        pfn: Pfn,
        pages: &[PageName],
        change: impl Fn(&mut PageState),
        event: &PageEvent,
    ) {
        for &page in pages {
            let mut state = self.mm.state_of(pfn, page);
            change(&mut state);
            self.push_page(self.mm.lruvec_of(pfn), page, state, event.clone());
        }
    }

    fn push_page(&mut self, lruvec: LruvecId, page: PageName, state: PageState, event: PageEvent) {
        if let Some(story) = &mut self.out.story
            && matches!(story.filter, Some(StoryFilter::Pages(_)))
        {
            story.lists.insert(lruvec);
        }
        self.push_told(lruvec, Told::Page { page, state, event });
    }

    fn push_told(&mut self, lruvec: LruvecId, told: Told) {
        let (memcg, node) = (self.mm.lruvecs[lruvec].memcg, self.mm.lruvecs[lruvec].node);
        if let Some(story) = &mut self.out.story {
            story.events.push(StoryEvent { at: self.by.now, memcg, node, told });
        }
    }

    /// Records an event of complete lists, if a followed page has been there.
    #[inline]
    pub(crate) fn tell_lists(&mut self, lruvec: LruvecId, event: impl FnOnce(&Core) -> ListsEvent) {
        if self.out.story.as_ref().is_some_and(|story| story.lists.contains(&lruvec)) {
            let told = Told::Lists(event(self));
            self.push_told(lruvec, told);
        }
    }

    /// Returns true if anyone listens to what happens to pages.
    #[inline]
    pub(crate) fn is_telling(&self) -> bool {
        self.out.story.as_ref().is_some_and(|story| story.filter.is_some())
    }

    /// Returns true if anyone listens to tracepoints.
    #[inline]
    pub(crate) fn is_traced(&self) -> bool {
        self.out.story.as_ref().is_some_and(|story| story.is_traced)
    }

    /// Tells a tracepoint of a node.
    #[inline]
    pub(crate) fn trace<T: Into<Tracepoint>>(&mut self, node: NodeId, event: impl FnOnce(&Core) -> T) {
        if self.out.story.is_some() {
            self.trace_heard(node, event);
        }
    }

    #[cold]
    fn trace_heard<T: Into<Tracepoint>>(&mut self, node: NodeId, event: impl FnOnce(&Core) -> T) {
        if self.is_traced() {
            let told = Told::Tracepoint(event(self).into());
            let at = self.by.now;
            let story = self.out.story.as_mut().expect("it is traced");
            story.events.push(StoryEvent { at, memcg: MemcgId::ROOT, node, told });
        }
    }

    /// Adds a verdict to the sums of the current batch.
    #[inline]
    pub(crate) fn note_verdict(&mut self, pfn: Pfn, verdict: Verdict, because: Because) {
        if self.is_traced() {
            self.sum_verdict(pfn, verdict, because);
        }
    }

    #[cold]
    fn sum_verdict(&mut self, pfn: Pfn, verdict: Verdict, because: Because) {
        let folio = &self.mm.memory.folios[pfn];
        let (kind, pages) = (folio.lru_type(), folio.pages());
        let Some(Story { kept, .. }) = self.out.story.as_deref_mut() else { return };
        if verdict == Verdict::Activate {
            kept.nr_activate[kind as usize] += pages;
        }
        match because {
            Because::FlusherWrites => kept.nr_dirty += pages,
            Because::BeingWritten => kept.nr_writeback += pages,
            Because::StillMapped => kept.nr_unmap_fail += pages,
            Because::Used { .. } if verdict == Verdict::Keep => kept.nr_ref_keep += pages,
            _ => {}
        }
    }

    /// What has become of those of the batch that stay; the next batch begins.
    pub(crate) fn take_kept(&mut self) -> Kept {
        self.out.story.as_mut().map_or(Kept::default(), |story| std::mem::take(&mut story.kept))
    }

    /// Records that a task is about to get a page into this folio.
    #[cold]
    pub(crate) fn tell_filled(&mut self, pfn: Pfn, page: PageName, filled: PageEvent) {
        let PageEvent::Filled { with, .. } = filled else { unreachable!("the event is about filled pages") };
        let size = self.mm.memory.folios[pfn].pages();
        // The folio does not know yet what it is about to hold.
        let may_follow = |story: &Story| size > 1 || story.numbers.may_have(page.number());
        if !self.out.story.as_deref().is_some_and(may_follow) {
            return;
        }
        let pages = self.followed_of(page.of_folio(size), size);
        let is_file = matches!(with, Filled::File | Filled::Readahead);
        let kind = if is_file { LruType::File } else { LruType::Anon };
        self.push_pages(pfn, &pages, |state| state.kind = kind, &filled);
    }

    /// Records that a page leaves memory with a shadow.
    #[inline]
    pub(crate) fn tell_evicted(&mut self, pfn: Pfn, target: MemcgId, shadow: Shadow) {
        if self.is_telling() {
            self.tell_evicted_slowly(pfn, target, shadow);
        }
    }

    #[cold]
    fn tell_evicted_slowly(&mut self, pfn: Pfn, target: MemcgId, shadow: Shadow) {
        let (page, memcg) = (self.mm.name_of(pfn), self.mm.memory.folios[pfn].memcg);
        let is_told = match self.out.story.as_ref().and_then(|story| story.filter.as_ref()) {
            None => false,
            Some(StoryFilter::Pages(pages)) => self.may_follow(pfn) && pages.contains(&page),
            Some(StoryFilter::Evictions(None)) => true,
            Some(StoryFilter::Evictions(Some(of))) => self.mm.memcgs.ancestors(memcg).any(|id| id == *of),
        };
        if is_told {
            let policy = &self.mm.memcgs[memcg].policy;
            let references = policy.generations.references;
            let stamp = match policy.workingset {
                Workingset::Distance | Workingset::CountOnly => Stamp::Age(shadow.stamp),
                Workingset::OldestGeneration | Workingset::AnyGeneration => {
                    Stamp::OldestGeneration(shadow.stamp)
                }
            };
            let event = PageEvent::Evicted {
                target,
                stamp,
                workingset: shadow.workingset,
                refs: shadow.refs,
                tier: references.tier(shadow.refs, shadow.workingset) as u8,
                swapped: self.mm.memory.folios[pfn].has(FolioFlags::SWAPCACHE),
            };
            self.push_page(self.mm.lruvec_of(pfn), page, self.mm.state_of(pfn, page), event);
        }
    }

    /// Records the type that a round takes, and remembers it for the pages that the round meets.
    #[inline]
    pub(crate) fn tell_type(
        &mut self,
        lruvec: LruvecId,
        kind: LruType,
        limit: RefTierLimit,
        reason: TypeReason,
    ) {
        if self.out.story.as_ref().is_some_and(|story| story.lists.contains(&lruvec)) {
            let tiers = self.mm.ref_tier_positions(lruvec, kind, limit.gain);
            let choice = TypeChoice { kind, reason, limit, tiers };
            if let Some(story) = &mut self.out.story {
                story.choice = Some(choice);
            }
            self.push_told(lruvec, Told::Lists(ListsEvent::TypeChosen(choice)));
        }
    }

    /// Refaults of a tier as the current round has compared them.
    pub(crate) fn told_position(&self, tier: usize) -> Position {
        let choice = self.out.story.as_ref().and_then(|story| story.choice);
        choice.map_or(Position::default(), |choice| choice.tiers[tier])
    }
}

impl State {
    /// The state of a page; `None` while it is not in memory.
    pub(crate) fn page_state(&self, page: PageName) -> Option<PageState> {
        let word = match page {
            PageName::File { file, page } => self.memory.file(file).index.word(page),
            PageName::Anon { mm, page } => self.memory.mm(mm).table.word_if_any(page),
        };
        let pfn = match word.decode() {
            Entry::Present(pfn) if !word.is_zero_page() => pfn,
            Entry::Swap(entry) => self.memory.swap.cached(entry)?,
            _ => return None,
        };
        Some(self.state_of(pfn, page))
    }

    /// The first page of a folio, or its only one.
    fn name_of(&self, pfn: Pfn) -> PageName {
        let folio = &self.memory.folios[pfn];
        if folio.has(FolioFlags::ANON) {
            PageName::Anon { mm: MmId(folio.owner), page: folio.index.into() }
        } else {
            PageName::File { file: FileId(folio.owner), page: folio.index.into() }
        }
    }

    /// The state of a page, which this folio holds.
    fn state_of(&self, pfn: Pfn, page: PageName) -> PageState {
        let (folio, lruvec) = (&self.memory.folios[pfn], self.lruvec_of(pfn));
        let (use_bits, kind) = (self.memory.use_bits(pfn), folio.lru_type());
        let place = self.memory.places.get(pfn);
        let place = if let Some(generations) = &self.lruvecs[lruvec].generations
            && place.is_listed()
        {
            let (seq, listed) = generations.seqs_of(place);
            let (oldest, youngest) = (generations.min_seq[kind as usize], generations.max_seq);
            Whereabouts::Generation { seq, listed, oldest, youngest }
        } else if !folio.has(FolioFlags::LRU) {
            Whereabouts::NoList
        } else if folio.has(FolioFlags::UNEVICTABLE) {
            Whereabouts::Unevictable
        } else {
            match self.lru_of(lruvec) {
                Lru::Guest(_) => Whereabouts::SingleList,
                // With MGLRU these are on no list yet, or on the way to another.
                Lru::TwoLists | Lru::Generations if use_bits.contains(UseBits::ACTIVE) => Whereabouts::Active,
                Lru::TwoLists | Lru::Generations => Whereabouts::Inactive,
            }
        };
        let tier = (self.lru_of(lruvec) == Lru::Generations).then(|| {
            let references = self.generation_rules(lruvec).references;
            references.tier(references.refs(use_bits), use_bits.contains(UseBits::WORKINGSET)) as u8
        });
        PageState {
            kind,
            place,
            referenced: use_bits.contains(UseBits::REFERENCED),
            active: use_bits.contains(UseBits::ACTIVE),
            workingset: use_bits.contains(UseBits::WORKINGSET),
            counter: use_bits.counter(),
            tier,
            accessed: self.is_mapped_young(pfn),
            huge: (folio.order == HUGE_PAGE_ORDER).then(|| (page.number() % folio.pages()) as u16),
        }
    }
}
