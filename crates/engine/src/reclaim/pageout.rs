//! Dirty pages of files, and pages under writeback, when reclaim meets them: does it write, skip them, or wait?
//!
//! ```text
//!   being written   kswapd meets it again where all are being written ─► passed by, and kswapd waits
//!                   cgroup v1: met again ─► its write is waited for          2010: kept as it is
//!                   else ─► marked, passed by; the write's end brings it to the cold end
//!   dirty           may be written by this reclaimer, now ─► its write begins, marked likewise
//!                   may not ─► marked, passed by            2010: kept, and counted for the flusher
//!                   may, but its file system leaves that to the flusher ─► counted as written, and kept, still dirty
//! ```
//! A page that reclaim writes is a separate request, as its neighbours in the file are elsewhere in the list. If reclaim writes, the device seeks.
//!
//! A task that submits a request to a full queue sleeps. In 2010 it kept file pages instead while the queue was congested, and kswapd slept for it.
//! The rule names no kind of page. Pages of swap are still written here: the check of a file page uses the queue of its file system's device, and
//! swap does not belong to a file system. [reclaim 5.1, 5.2, 5.5; machine 9.4]
//!
//! The cover letter of June 2010 (<https://lore.kernel.org/lkml/1277811288-5195-1-git-send-email-mel@csn.ul.ie/>) states that XFS and
//! btrfs ignore the pages that reclaim hands them, until the last two patches of its series. Reclaim counts and traces a write when the
//! call has returned without an error. So it also counts a write that a file system has declined in this way. [reclaim 5.1]

use crate::core::Core;
use crate::lru::FolioReferences;
use crate::memory::folio::{Folio, FolioFlags};
use crate::reclaim::scan_control::half_more;
use crate::reclaim::shrink::ReclaimStat;
use crate::reclaim::tally::Stall;
use crate::reclaim::{Lumpy, PRIORITY_DEFAULT, ScanControl, Why};
use crate::stat::Stat;
use crate::state::State;
use crate::story::{Because, Tracepoint, Verdict};
use crate::units::{FileId, LruType, Pfn};
use crate::writeback::WritebackReason;
use pageout_rules::reclaim::{AnonWriteback, CongestedQueue, FileWriteback, LaptopMode, Stalls, Writepage};

/// Pages that reclaim has begun to write, by who did: tasks on their way to a page, kswapd, reclaim for a group.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Pageouts {
    /// Reclaim for the machine by a task that needs a page.
    pub direct: u64,
    /// Reclaim for the machine by a task, in a pass that waits for each write.
    pub direct_sync: u64,
    /// Pages that kswapd began to write.
    pub kswapd: u64,
    /// Reclaim for a group, and on request.
    pub group: u64,
    /// Pages among all of these that their file system marked dirty again instead.
    pub redirtied: u64,
}

impl Core {
    /// The verdict on a folio that is being written: the list turns faster than the device writes.
    pub(super) fn judge_writeback(
        &mut self,
        pfn: Pfn,
        sc: &mut ScanControl,
        stat: &mut ReclaimStat,
    ) -> Verdict {
        let folio = self.mm.memory.folios[pfn];
        debug_assert!(folio.has(FolioFlags::WRITEBACK), "{pfn:?} is judged as being written, and is not");
        let was_met = folio.has(FolioFlags::RECLAIM);
        if self.mm.memcgs[sc.by.target].policy.reclaim.stalls == Stalls::CongestionWait {
            if sc.by.may_enter_fs {
                sc.wait_if_sync(pfn);
            }
            return self.verdict(pfn, Verdict::Keep, Because::BeingWritten);
        }
        if sc.by.is_kswapd() && was_met && self.writes_of[folio.node.index()].is_writeback {
            stat.tally.immediate += folio.pages();
        } else if self.mm.is_throttled_at_source(sc) || !was_met || !sc.by.may_enter_fs {
            // Out of the way with it; the write's end brings it to the tail.
            self.mm.memory.change_reclaim(pfn, true);
            stat.tally.writeback += folio.pages();
        } else {
            // Nothing has slowed down those who dirtied the group's pages, so that here is nothing but such.
            sc.waits.stall = Some(Stall::Folio(pfn));
            return self.verdict(pfn, Verdict::Keep, Because::BeingWritten);
        }
        self.verdict(pfn, Verdict::Activate, Because::BeingWritten)
    }

    /// The verdict on an unused dirty file page.
    pub(super) fn judge_dirty_file(
        &mut self,
        pfn: Pfn,
        references: FolioReferences,
        sc: &mut ScanControl,
        stat: &mut ReclaimStat,
    ) -> Verdict {
        let folio = self.mm.memory.folios[pfn];
        debug_assert!(
            folio.has(FolioFlags::DIRTY | FolioFlags::INDEXED),
            "{pfn:?} is judged as a dirty page of a file: {folio:?}"
        );
        debug_assert_eq!(folio.mapped, 0, "{pfn:?} is written by reclaim while it is mapped");
        let rule = self.mm.memcgs[sc.by.target].policy.reclaim.file_writeback;
        if !self.may_write_file(&folio, rule, sc) {
            if matches!(rule, FileWriteback::Any | FileWriteback::NotDirect) {
                stat.tally.refused += folio.pages();
                return self.verdict(pfn, Verdict::Keep, Because::MayNotWrite);
            }
            // Out of the way until it is written.
            self.mm.memory.change_reclaim(pfn, true);
            self.mm.count_node(folio.node, Stat::NrVmscanImmediateReclaim, folio.pages() as i64);
            return self.verdict(pfn, Verdict::Activate, Because::FlusherWrites);
        }
        if references == FolioReferences::ReclaimClean {
            return self.verdict(pfn, Verdict::Keep, Because::NotWorthAWrite);
        }
        if !sc.by.may_enter_fs {
            return self.verdict(pfn, Verdict::Keep, Because::MayNotEnterFileSystem);
        }
        if !self.folio_freeze(pfn) {
            // Anyone else's reference may be used to change the page under the write.
            return self.verdict(pfn, Verdict::Keep, Because::Held { references: folio.refs });
        }
        let verdict = self.write_file_page(pfn, sc, stat);
        self.folio_unfreeze(pfn);
        verdict
    }

    /// The verdict on a dirty page that reclaim may write, and has frozen.
    fn write_file_page(&mut self, pfn: Pfn, sc: &mut ScanControl, stat: &mut ReclaimStat) -> Verdict {
        let folio = self.mm.memory.folios[pfn];
        if !self.may_write_to_queue(sc) {
            return self.verdict(pfn, Verdict::Keep, Because::QueueCongested);
        }
        self.count_pageout(folio.pages(), sc);
        self.mm.count_node(folio.node, Stat::NrVmscanWrite, folio.pages() as i64);
        let is_sync = sc.hands.lumpy == Lumpy::Sync;
        self.trace(folio.node, |_| Tracepoint::WriteFolio { pfn, kind: LruType::File, is_sync });
        stat.written += folio.pages();
        if self.mm.memcgs[sc.by.target].policy.reclaim.writepage == Writepage::Redirties {
            // No write is in flight that could be waited for, nor would its end move the page to the cold end.
            self.pageouts.redirtied += folio.pages();
            return self.verdict(pfn, Verdict::Keep, Because::Redirtied);
        }
        self.start_file_write(pfn, WritebackReason::Pageout);
        assert!(
            self.mm.memory.folios[pfn].has(FolioFlags::WRITEBACK),
            "reclaim has begun a write that is not in flight"
        );
        // Only now: of a clean page the bit is the mark of readahead.
        self.mm.memory.change_reclaim(pfn, true);
        sc.wait_if_sync(pfn);
        self.verdict(pfn, Verdict::Keep, Because::WriteBegun)
    }

    fn may_write_file(&self, folio: &Folio, rule: FileWriteback, sc: &ScanControl) -> bool {
        sc.may_write_now()
            && match rule {
                FileWriteback::Any => true,
                FileWriteback::NotDirect => !sc.by.is_task_for_machine(),
                FileWriteback::KswapdOnly => sc.by.is_kswapd() && sc.priority < PRIORITY_DEFAULT - 2,
                FileWriteback::SeenTwice => {
                    let is_dirty = self.writes_of[folio.node.index()].is_dirty;
                    sc.by.is_kswapd() && folio.has(FolioFlags::RECLAIM) && is_dirty
                }
                FileWriteback::Never => false,
            }
            && !self.is_resting(FileId(folio.owner))
    }

    /// Returns true if a reclaimer writes a page of a file although the device has much to do already. [reclaim 5.2]
    fn may_write_to_queue(&self, sc: &ScanControl) -> bool {
        let rule = self.mm.memcgs[sc.by.target].policy.reclaim.congested_queue;
        !self.io.is_congested || rule == CongestedQueue::Waits || sc.by.is_kswapd() || sc.by.writes_file
    }

    /// A reclaimer has begun to write this many pages.
    pub(super) fn count_pageout(&mut self, pages: u64, sc: &ScanControl) {
        let by = &mut self.pageouts;
        *match sc.by.why {
            Why::Direct | Why::Node if sc.hands.lumpy == Lumpy::Sync => &mut by.direct_sync,
            Why::Direct | Why::Node => &mut by.direct,
            Why::Kswapd => &mut by.kswapd,
            _ => &mut by.group,
        } += pages;
    }
}

impl State {
    /// Counts an isolated folio as dirty or being written, if it is a file's.
    #[inline]
    pub(super) fn tally_folio(&self, folio: &Folio, stat: &mut ReclaimStat) {
        let state = FolioFlags::DIRTY | FolioFlags::WRITEBACK;
        if !folio.flags().intersects(state)
            || folio.lru_type() != LruType::File
            || folio.has(FolioFlags::ANON)
        {
            return;
        }
        let pages = folio.pages();
        stat.tally.dirty += pages;
        if !folio.has(FolioFlags::WRITEBACK) {
            stat.tally.unqueued_dirty += pages;
        } else if folio.has(FolioFlags::RECLAIM) {
            stat.tally.congested += pages;
        }
    }

    /// In laptop mode a reclaimer begins without writing.
    pub(super) fn spare_disk(&self, sc: &mut ScanControl) {
        let rule = self.config.policy.machine.laptop_mode;
        sc.means.spares_disk = self.is_laptop_mode() && rule != LaptopMode::Ignored;
    }

    /// The reclaimer writes when it does not get on without. [reclaim 2.1; machine 9.3]
    pub(super) fn stop_sparing_disk(&self, sc: &mut ScanControl) {
        if !sc.means.spares_disk {
            return;
        }
        sc.means.spares_disk = match self.config.policy.machine.laptop_mode {
            LaptopMode::Priority => sc.priority >= PRIORITY_DEFAULT - 2,
            LaptopMode::Scanned if sc.by.is_kswapd() => {
                sc.nr_scanned <= half_more(sc.nr_reclaimed).max(2 * self.config.reclaim_batch)
            }
            LaptopMode::Scanned => sc.nr_scanned <= half_more(sc.nr_to_reclaim),
            LaptopMode::Ignored => false,
        };
    }

    /// Returns true if a reclaimer may write a page to swap; if not, it counts it for the flusher, which can't help it.
    pub(super) fn may_write_anon(&self, pages: u64, sc: &ScanControl, stat: &mut ReclaimStat) -> bool {
        if !sc.may_write_now() {
            return false;
        }
        let rule = self.memcgs[sc.by.target].policy.reclaim.anon_writeback;
        let may = rule == AnonWriteback::Any || !sc.by.is_task_for_machine();
        if !may {
            stat.tally.refused += pages;
        }
        may
    }
}
