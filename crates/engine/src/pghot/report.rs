//! Reports to hot-page tracking: a source (hint faults, reads, klruscand, hardware) says that a page was accessed. [tiering 3.2, 3.6]
//!
//! ```text
//!   source on? ─▶ a node? ─▶ in a lower tier? ─▶ on a list? ─▶ not by its own node? ─▶ its head's record
//! ```
//! A source that samples or scans knows the page. A device that counts accesses to several pages together knows their range:
//! `record_range`.
//!
//! A report of a page that can't be promoted is not an error. Callable from anywhere: it takes nothing and moves
//! nothing.

use crate::config::Config;
use crate::core::Core;
use crate::memory::folio::FolioFlags;
use crate::pghot::record::Report;
use crate::stat::Stat;
use crate::state::State;
use crate::story::PageEvent;
use crate::units::{NodeId, Pfn};
use pageout_rules::pghot::{DefaultTarget, HintFaultRule, PghotQuirks};

/// A source of hot-page tracking, which reports that a page is in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// Hardware has sampled an access, or counted some.
    Hardware,
    /// klruscand found an accessed bit.
    PageTableScan,
    /// A page-table entry without permission was accessed.
    HintFault,
    /// read(2) of a page that was in use already.
    MarkAccessed,
}

/// There is no such node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct InvalidNode;

impl Source {
    const ALL: [Source; 4] =
        [Source::Hardware, Source::PageTableScan, Source::HintFault, Source::MarkAccessed];

    fn stat(self) -> Stat {
        match self {
            Source::Hardware => Stat::PghotRecordedHwhints,
            Source::PageTableScan => Stat::PghotRecordedPgtscans,
            Source::HintFault => Stat::PghotRecordedHintfaults,
            Source::MarkAccessed => Stat::PghotRecordedFma,
        }
    }
}

impl Source {
    /// Returns true if its reports are recorded.
    #[inline]
    pub(crate) fn is_heard(self, config: &Config) -> bool {
        let is_on = match self {
            Source::Hardware => config.pghot_record_hwhints_enable,
            Source::PageTableScan => config.pghot_record_pgtscans_enable,
            Source::HintFault => config.pghot_record_hintfaults_enable,
            Source::MarkAccessed => config.pghot_record_fma_enable,
        };
        is_on == 1
    }

    /// Returns true if anything is recorded.
    pub(crate) fn any_is_heard(config: &Config) -> bool {
        Source::ALL.iter().any(|source| source.is_heard(config))
    }
}

impl Core {
    /// A page was accessed `accesses` times, by a task on node `nid` if that is known. The time of the report counts,
    /// which may be later.
    #[doc(alias = "pghot_record_access")]
    pub(crate) fn record_accesses(
        &mut self,
        pfn: Pfn,
        nid: Option<NodeId>,
        source: Source,
        accesses: u32,
    ) -> Result<(), InvalidNode> {
        if nid.is_some_and(|nid| nid.index() >= self.mm.config.node_pages.len()) {
            return Err(InvalidNode);
        }
        let pfn = self.mm.memory.folio_of(pfn);
        // The record of a frame that is free knows no node.
        let (folio, node) = (self.mm.memory.folios[pfn], self.mm.memory.zones.node_of(pfn));
        // It may have been turned off since it noticed.
        if !source.is_heard(&self.mm.config) {
            return Ok(());
        }
        // The third posting counts what is reported, later ones what is recorded of it.
        let as_posted = self.mm.config.pghot_quirks == PghotQuirks::V3;
        if as_posted {
            self.mm.count_node(node, Stat::PghotRecordedAccesses, 1);
            self.mm.count_node(node, source.stat(), 1);
        }
        let is_at_home = nid == Some(node) && !as_posted;
        if self.mm.tiers.node_is_top_tier(node) || !folio.has(FolioFlags::LRU) || is_at_home {
            return Ok(());
        }
        if !as_posted {
            self.mm.count_node(node, Stat::PghotRecordedAccesses, 1);
            self.mm.count_node(node, source.stat(), 1);
        }
        let in_any_window = source == Source::HintFault
            && self.mm.config.pghot_hint_faults_in_any_window
            && self.mm.config.pghot_hint_faults == HintFaultRule::Counted;
        let report = Report { nid, accesses, now_ms: self.by.now.0 / 1_000_000, in_any_window };
        let hotness = super::Hotness::of(&self.mm.config);
        let records = &mut self.mm.pghot.records;
        let record = hotness.reported(records.get(pfn), &report);
        records.set(pfn, record);
        if self.mm.config.pghot_default_target == DefaultTarget::Block
            && let Some(nid) = nid
        {
            records.set_reporter(pfn, nid);
        }
        #[cfg(any(test, feature = "fault-injection"))]
        self.mm.check_record_changes();
        self.out.count.hotness_recorded(1);
        self.tell(pfn, |_| PageEvent::Reported { source, by: nid, accesses, is_ready: record.ready });
        Ok(())
    }

    /// Pages in a row were accessed `accesses` times in sum; the share of each is not known. Each gets an equal share, and pages that
    /// move as one get one report.
    pub(crate) fn record_range(
        &mut self,
        first: Pfn,
        pages: u32,
        nid: Option<NodeId>,
        source: Source,
        accesses: u32,
    ) -> Result<(), InvalidNode> {
        let share = accesses.div_ceil(pages);
        let mut at = first.0;
        while at < first.0 + pages {
            let head = self.mm.memory.folio_of(Pfn(at));
            // A free page, or a page in the middle of a free block, does not belong to a larger folio.
            let order =
                if self.mm.memory.is_head_in_use(head) { self.mm.memory.folios[head].order } else { 0 };
            let end = (head.0 + (1 << order)).clamp(at + 1, first.0 + pages);
            self.record_accesses(Pfn(at), nid, source, share.saturating_mul(end - at))?;
            at = end;
        }
        Ok(())
    }

    /// A page was read through a file descriptor.
    pub(crate) fn report_read(&mut self, pfn: Pfn) {
        if Source::MarkAccessed.is_heard(&self.mm.config) {
            let here = self.current_node();
            self.record_accesses(pfn, Some(here), Source::MarkAccessed, 1).expect("the node of a CPU exists");
        }
    }
}

impl State {
    /// A frame is free: the reports of its page are dropped.
    #[inline]
    pub(crate) fn pghot_forget(&mut self, pfn: Pfn) {
        if !self.pghot.records.is_empty() && self.config.pghot_clear_stale {
            self.pghot.records.clear(pfn);
        }
    }
}
