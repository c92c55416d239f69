//! Foreign inodes: files that a memcg dirties and another memcg's wb owns; who has them written, and when a file changes its wb.
//! [machine 5.8]
//!
//! ```text
//!   group A dirtied the file first: its wb writes it      group B dirties pages of it, which are charged to B
//!                      ▲                                           │ is noted: B, A's wb, when
//!                      │ foreign_flush: all of A's wb              ▼
//!                      └─────────────────────────────── B is over its limits, and throttled
//!   a round of writing the file: most pages are B's ─► a foreign slot ─► more than 8 of the last 16: the file is B's
//! ```
//! A page is charged to the group that brought it in, but a file has one wb. A group that dirties files of others fills its own
//! limits with pages that its own wb does not know. Its writers would sleep until another event starts a write. So a group
//! remembers whose files it dirties, and while its writers are throttled it has those written, too.
//!
//! That helps for files shared for a short time. A file may be handed over, for example from the group that unpacked it to the
//! group that works with it. It then moves to the wb of the group that dirties it, as `votes.rs` counts.
//!
//! The source is an outline and leaves open what follows. A flush is asked for once for what was noted, and covers all of the wb.
//! A fifth wb takes the place of that noted longest ago. A file goes over at the end of a round of writing it, with its transfers in
//! flight, not a while later.

use crate::core::Core;
use crate::memory::file::InodeList;
use crate::units::{FileId, MemcgId, Nanos, WbId};
use crate::writeback::Writeback;
use pageout_mm::votes::{ForeignHistory, Votes};
use std::collections::VecDeque;

/// Another group's wb whose files a group has dirtied, and when it did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ForeignWb {
    pub(super) wb: WbId,
    pub(super) at: Nanos,
}

/// As many are remembered of a group.
pub(super) const REMEMBERED: usize = 4;
/// Older pages are written by now.
const FORGOTTEN: Nanos = Nanos(30 * Nanos::SECOND.0);
/// The time is noted no more often than that.
const REFRESH: Nanos = Nanos::SECOND;

impl Writeback {
    /// Notes that a group dirties files that another's wb writes.
    fn note_foreign(&mut self, memcg: MemcgId, wb: WbId, now: Nanos) {
        let noted = &mut self.domain_mut(memcg).foreign;
        if let Some(known) = noted.iter_mut().find(|known| known.wb == wb) {
            if now.0 - known.at.0 >= REFRESH.0 {
                known.at = now;
            }
            return;
        }
        if noted.len() == REMEMBERED {
            let oldest = (0..noted.len()).min_by_key(|&at| noted[at].at).expect("there are some");
            noted.swap_remove(oldest);
        }
        noted.push(ForeignWb { wb, at: now });
    }
}

impl Core {
    /// A page that is charged to a group was dirtied, of a file that another's wb writes.
    #[doc(alias = "mem_cgroup_track_foreign_dirty")]
    #[cold]
    pub(super) fn track_foreign_dirty(&mut self, memcg: MemcgId, wb: WbId) {
        if self.mm.config.cgroup_version == 2 && self.mm.config.policy.machine.writeback.foreign_flush {
            let now = self.by.now;
            self.writeback.note_foreign(memcg, wb, now);
        }
    }

    /// A group is over its limits: what it has dirtied of others' files shall be written.
    #[doc(alias = "mem_cgroup_flush_foreign")]
    pub(super) fn flush_foreign(&mut self, memcg: MemcgId) {
        let noted = match self.writeback.domain(memcg) {
            Some(domain) if !domain.foreign.is_empty() => {
                std::mem::take(&mut self.writeback.domain_mut(memcg).foreign)
            }
            _ => return,
        };
        for ForeignWb { wb, at } in noted {
            if self.by.now.0 - at.0 < FORGOTTEN.0 && self.writeback.wb(wb).has_dirty_files() {
                self.ask_for_foreign_flush(wb);
            }
        }
    }

    /// A round of writing a file is over. It may belong to another wb afterwards.
    #[doc(alias = "wbc_detach_inode")]
    pub(super) fn end_votes(&mut self, file: FileId, votes: &Votes) {
        let rules = &self.mm.config.policy.machine.writeback;
        if self.mm.config.cgroup_version != 2 || !rules.inode_switching {
            return;
        }
        let inode = &mut self.mm.memory.files[file.index()].inode;
        let (Some(wb), bdi) = (inode.wb, inode.bdi) else { return };
        let bandwidth = self.writeback.wb(wb).rates.average;
        if let Some(memcg) = inode.foreign.add(votes, bandwidth)
            && self.mm.memcgs[memcg].is_online
            && self.writeback.bdis[bdi.index()].syncs == 0
        {
            self.switch_wb(file, memcg);
        }
    }

    /// A file becomes that of a group: its pages count for that one's wb from now on, and that one's worker finds it.
    fn switch_wb(&mut self, file: FileId, memcg: MemcgId) {
        let bdi = self.mm.memory.file(file).inode.bdi;
        let to = self.wb_for(bdi, memcg);
        let (ticks, hz) = (self.ticks(), u64::from(self.mm.config.hz));
        let inode = &mut self.mm.memory.files[file.index()].inode;
        let from = inode.wb.replace(to).expect("who dirties a file gives it a wb");
        inode.foreign = ForeignHistory::default();
        let (dirty, writeback) = (inode.dirty.count(), inode.writeback.count());
        let is_listed = inode.on != InodeList::None;
        if is_listed {
            inode.on = InodeList::Dirty;
        }
        let dirtied_when = inode.dirtied_when;
        assert!(from != to, "a file becomes that of the wb that has it");
        let of = self.writeback.wb_mut(from);
        assert!(of.nr_dirty >= dirty, "a wb has {} dirty pages, a file of it {dirty}", of.nr_dirty);
        assert!(
            of.nr_writeback >= writeback,
            "a wb has {} pages under writeback, a file of it {writeback}",
            of.nr_writeback
        );
        let (nr_dirty, nr_writeback) = (of.nr_dirty, of.nr_writeback);
        of.nr_dirty -= dirty;
        of.nr_writeback -= writeback;
        debug_assert_eq!(
            (of.nr_dirty + dirty, of.nr_writeback + writeback),
            (nr_dirty, nr_writeback),
            "pages of a file don't count for its former wb any more"
        );
        for list in [&mut of.b_dirty, &mut of.b_io, &mut of.b_more_io] {
            list.retain(|&listed| listed != file);
        }
        let all = [from, to].map(|wb| self.writeback.pages_of(wb));
        let had_dirty_files = self.writeback.wb(to).has_dirty_files();
        let files = &self.mm.memory.files;
        let of = &mut self.writeback.wbs[to.index()];
        if of.nr_writeback == 0 && writeback > 0 {
            of.rates.begin_writeback(ticks, hz);
        }
        of.nr_dirty += dirty;
        of.nr_writeback += writeback;
        debug_assert_eq!(
            [from, to].map(|wb| self.writeback.pages_of(wb)),
            [all[0], [all[1][0] + dirty, all[1][1] + writeback]],
            "pages of a file count for its new wb"
        );
        let of = &mut self.writeback.wbs[to.index()];
        if is_listed {
            insert_by_age(&mut of.b_dirty, file, |other| {
                files[other.index()].inode.dirtied_when <= dirtied_when
            });
            if !had_dirty_files {
                self.arm_periodic(to);
            }
        }
        self.assert_inode_listed(file);
    }
}

/// Puts a file before the first that is older or of the same age.
fn insert_by_age(b_dirty: &mut VecDeque<FileId>, file: FileId, is_no_newer: impl Fn(FileId) -> bool) {
    let at = b_dirty.iter().position(|&other| is_no_newer(other)).unwrap_or(b_dirty.len());
    b_dirty.insert(at, file);
}

#[cfg(test)]
mod tests {
    use super::*;

    const OTHER: MemcgId = MemcgId(2);

    #[test]
    fn a_fifth_wb_takes_the_place_of_that_noted_longest_ago() {
        let mut writeback = Writeback::default();
        let second = |second: u64| Nanos(second * Nanos::SECOND.0);
        for at in 0..4 {
            writeback.note_foreign(OTHER, WbId(at), second(at.into()));
        }
        writeback.note_foreign(OTHER, WbId(0), second(5));
        writeback.note_foreign(OTHER, WbId(1), Nanos(second(2).0 - 1)); // too soon to be noted
        writeback.note_foreign(OTHER, WbId(9), second(6));
        let mut noted: Vec<(u32, u64)> =
            writeback.domain(OTHER).unwrap().foreign.iter().map(|of| (of.wb.0, of.at.0)).collect();
        noted.sort_unstable();
        assert_eq!(noted, [0, 2, 3, 9].map(|wb| (wb, second([5, 0, 2, 3, 0, 0, 0, 0, 0, 6][wb as usize]).0)));
    }
}
