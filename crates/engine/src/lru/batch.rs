//! Per-CPU folio batches: what stands between an access and the LRU lists.
//!
//! Taking the list lock for each folio would be too expensive. So folios wait in small per-CPU batches. They move when a batch is full (31
//! folios), or when reclaim on that CPU is about to scan the lists. A model without batches gets two things wrong. A folio in the add
//! batch is on no list, so reclaim can't find it and it can't be activated in the usual way. And a folio in any batch has one reference
//! too many to be freed. [reclaim 1.2; reclaim-6.12 1.2]
//!
//! ```text
//!   lru_add ── add batch ──┐                         drained in this order by the CPU's own reclaim:
//!   activate ── activate ──┼── full, or drained ──► lists     add, move_tail, deactivate_file, deactivate, lazyfree, activate
//!   ...                    ┘
//! ```

use crate::core::Core;
use crate::lru::generations::AccessBy;
use crate::lru::{AddedFor, Arrival, CountsUse, two_lists};
use crate::memory::folio::{FolioFlags, UseBits};
use crate::memory::table::Mark;
use crate::stat::Stat;
use crate::state::State;
use crate::story::PageEvent;
use crate::units::{CpuId, Pfn};
use pageout_rules::lru::{Lru, References};
use pageout_rules::zswap::WritebackRotation;

/// The batches, in the order in which they are drained.
#[doc(alias = "folio_batch")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Batch {
    /// New folios, which are on no list yet.
    Add = 0,
    /// Written folios that reclaim needs next (`rotate`).
    MoveTail = 1,
    /// File folios that could not be dropped immediately (`fadvise(DONTNEED)`).
    DeactivateFile = 2,
    /// Folios said to be cold (`madvise(COLD)`).
    Deactivate = 3,
    /// Anonymous folios whose contents may be forgotten (`madvise(FREE)`).
    LazyFree = 4,
    /// Folios accessed twice (classic).
    Activate = 5,
}

impl Batch {
    const DRAIN_ORDER: [Batch; 6] = [
        Batch::Add,
        Batch::MoveTail,
        Batch::DeactivateFile,
        Batch::Deactivate,
        Batch::LazyFree,
        Batch::Activate,
    ];
}

/// Outcome of the move of folios to the cold end after their write has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rotations {
    /// Folios queued for the cold end. Those that arrived there are counted as `pgrotated`.
    pub queued: u64,
    /// Folios not queued, or not moved when the queue was drained, as they were on no list: in an add batch of a CPU, or isolated.
    pub not_listed: u64,
    /// Folios that were locked, written again, or unevictable meanwhile.
    pub unfit: u64,
    /// Active folios, which the fix of February 2024 spares.
    pub active: u64,
    /// Folios that were dropped from memory instead.
    pub dropped: u64,
}

/// The reason why a folio does not go to the cold end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unrotated {
    /// The folio is on no list: in an add batch, or in a reclaimer's hands.
    NotListed,
    /// The folio is locked, dirty or unevictable.
    Unfit,
    /// The folio is active.
    Active,
}

impl Core {
    /// Hands a new folio over to the lists.
    #[doc(alias = "folio_add_lru")]
    #[inline]
    pub(crate) fn lru_add(&mut self, pfn: Pfn, added_for: AddedFor) {
        if added_for == AddedFor::Fault {
            self.mm.lru_faulted_in(pfn);
        }
        debug_assert!(
            !self.mm.memory.folios[pfn].has(FolioFlags::LRU),
            "{pfn:?} is added to the lists, but is already on one"
        );
        debug_assert!(
            self.mm.memory.folios[pfn].has(FolioFlags::CHARGED),
            "{pfn:?} is added to the lists of a group that does not pay"
        );
        self.batch_queue(Batch::Add, pfn);
    }

    /// Asks for a folio to become active. Not for one that is isolated (LRU clear): its holder decides.
    #[doc(alias = "folio_activate")]
    #[inline]
    pub(crate) fn lru_activate(&mut self, pfn: Pfn) {
        let folio = &self.mm.memory.folios[pfn];
        if folio.has(FolioFlags::LRU)
            && !folio.has(FolioFlags::UNEVICTABLE)
            && !self.mm.memory.has_use(pfn, UseBits::ACTIVE)
        {
            self.mm.memory.folios.prefetch_links(pfn);
            self.batch_queue(Batch::Activate, pfn);
        }
    }

    /// Asks for a folio whose write has ended to go to the cold end, because reclaim wanted it before.
    #[doc(alias = "folio_rotate_reclaimable")]
    pub(crate) fn lru_rotate(&mut self, pfn: Pfn) {
        let may_be_unlisted =
            self.mm.config.policy.machine.zswap.writeback_rotation == WritebackRotation::RotateUnlisted;
        let why = self.mm.unrotated(pfn, may_be_unlisted).filter(|&why| {
            // Its holder may have finished when the batch is drained.
            !(may_be_unlisted && why == Unrotated::NotListed)
        });
        match why {
            Some(why) => self.not_rotated(pfn, why),
            None => {
                self.out.rotation_queued();
                self.batch_queue(Batch::MoveTail, pfn);
            }
        }
    }

    fn not_rotated(&mut self, pfn: Pfn, why: Unrotated) {
        self.out.not_rotated(why);
        self.tell(pfn, |_| PageEvent::NotRotated { why });
    }

    /// Asks for a folio to become inactive (`madvise(COLD)`).
    pub(crate) fn lru_deactivate(&mut self, pfn: Pfn) {
        if self.mm.memory.folios[pfn].has(FolioFlags::LRU) && self.mm.may_deactivate(pfn) {
            self.batch_queue(Batch::Deactivate, pfn);
        }
    }

    /// Asks for a file folio to be reclaimed soon (`fadvise(DONTNEED)` on a page in use).
    pub(crate) fn lru_deactivate_file(&mut self, pfn: Pfn) {
        let folio = &self.mm.memory.folios[pfn];
        if folio.has(FolioFlags::LRU) && !folio.has(FolioFlags::UNEVICTABLE) {
            self.batch_queue(Batch::DeactivateFile, pfn);
        }
    }

    /// Makes an anonymous folio's contents forgettable (`madvise(FREE)`).
    pub(crate) fn lru_lazyfree(&mut self, pfn: Pfn) {
        let folio = &self.mm.memory.folios[pfn];
        if folio.has(FolioFlags::ANON | FolioFlags::SWAPBACKED | FolioFlags::LRU)
            && !folio.has(FolioFlags::SWAPCACHE)
        {
            self.batch_queue(Batch::LazyFree, pfn);
        }
    }

    #[inline(always)]
    fn batch_queue(&mut self, batch: Batch, pfn: Pfn) {
        let folio = &mut self.mm.memory.folios[pfn];
        debug_assert!(!folio.has(FolioFlags::KERNEL), "{pfn:?} is the kernel's, and waits for a list");
        folio.refs += 1;
        // A large folio's accounting is too far off to wait.
        let is_large = folio.order > 0;
        let queued = &mut self.mm.cpus[self.by.cpu.index()].batches.batches[batch as usize];
        queued.push(pfn);
        let (waiting, full) = (queued.len(), self.mm.config.folio_batch);
        debug_assert!(waiting <= full, "{waiting} folios wait in a batch of {full}");
        self.tell(pfn, |_| PageEvent::Queued { batch, waiting, full });
        if waiting >= full || is_large {
            let begun = self.out.begin();
            self.batch_drain(self.by.cpu, batch);
            if batch == Batch::Activate {
                self.out.end_marking(begun);
            }
        }
    }

    /// Drains all batches of the current CPU, as reclaim does before each look at the lists.
    pub(crate) fn lru_add_drain(&mut self) {
        self.lru_add_drain_cpu(self.by.cpu);
    }

    /// Drains those of a CPU.
    pub(crate) fn lru_add_drain_cpu(&mut self, cpu: CpuId) {
        for batch in Batch::DRAIN_ORDER {
            self.batch_drain(cpu, batch);
        }
    }

    /// Returns true if folios wait in a batch of the current CPU.
    pub(crate) fn lru_add_pending(&self) -> bool {
        self.has_batched(self.by.cpu)
    }

    /// Returns true if folios wait in a batch of a CPU.
    pub(crate) fn has_batched(&self, cpu: CpuId) -> bool {
        self.mm.cpus[cpu.index()].batches.iter().next().is_some()
    }

    fn batch_drain(&mut self, cpu: CpuId, batch: Batch) {
        let mut queued = std::mem::take(&mut self.mm.cpus[cpu.index()].batches.batches[batch as usize]);
        if !queued.is_empty() {
            self.out.count.batch_drains(1);
        }
        for pfn in queued.drain(..) {
            let folio = &mut self.mm.memory.folios[pfn];
            debug_assert!(folio.refs > 0, "{pfn:?} waits in a batch that has no reference to it");
            let refs = folio.refs;
            folio.refs -= 1;
            debug_assert_eq!(folio.refs + 1, refs, "{pfn:?} leaves a batch, and with it one reference");
            // Its owner may have gone while it waited here.
            if self.release_if_unused(pfn) {
                continue;
            }
            if batch == Batch::Add {
                self.lru_place(pfn, Arrival::Added);
            } else if batch == Batch::MoveTail && self.is_rotation_over(pfn) {
                continue;
            } else if self.mm.memory.folios[pfn].has(FolioFlags::LRU) {
                self.batch_move(batch, pfn);
            }
            // Otherwise isolated meanwhile: its holder decides.
        }
        let late = &self.mm.cpus[cpu.index()].batches.batches[batch as usize];
        debug_assert!(late.is_empty(), "a batch fills while it is drained");
        // Give the buffer back, so that a batch allocates once.
        self.mm.cpus[cpu.index()].batches.batches[batch as usize] = queued;
    }

    /// Returns true if a folio that was queued for the cold end no longer goes there.
    fn is_rotation_over(&mut self, pfn: Pfn) -> bool {
        let looks_again =
            self.mm.config.policy.machine.zswap.writeback_rotation == WritebackRotation::RotateUnlisted;
        let why = match looks_again {
            true => self.mm.unrotated(pfn, true),
            false => (!self.mm.memory.folios[pfn].has(FolioFlags::LRU)).then_some(Unrotated::NotListed),
        };
        if let Some(why) = why {
            self.not_rotated(pfn, why);
        }
        why.is_some()
    }

    /// A listed folio should be evicted next. The record of its use is forgotten in a way.
    fn move_to_cold_end(&mut self, pfn: Pfn, forget: impl FnOnce(&mut Core)) {
        if let Lru::Guest(_) = self.mm.lru_of(self.mm.lruvec_of(pfn)) {
            forget(self);
            self.guest_cold(pfn);
        } else {
            self.lru_unlink(pfn);
            forget(self);
            self.lru_place(pfn, Arrival::Rotated);
        }
    }

    fn batch_move(&mut self, batch: Batch, pfn: Pfn) {
        let (lruvec, pages) = (self.mm.lruvec_of(pfn), self.mm.memory.folios[pfn].pages() as i64);
        let flags = self.mm.memory.folios[pfn].flags();
        if flags.contains(FolioFlags::UNEVICTABLE) {
            return;
        }
        self.tell(pfn, |_| PageEvent::Drained { batch });
        let was_active = self.mm.memory.has_use(pfn, UseBits::ACTIVE);
        let may_deactivate = self.mm.may_deactivate(pfn);
        match batch {
            Batch::Add => unreachable!("new folios are placed, not moved"),
            Batch::MoveTail => {
                self.move_to_cold_end(pfn, |core| core.mm.memory.remove_use(pfn, UseBits::ACTIVE));
                self.mm.count_node(self.mm.memory.folios[pfn].node, Stat::Pgrotated, pages);
            }
            Batch::DeactivateFile => {
                if self.mm.memory.folios[pfn].mapped > 0 {
                    return;
                }
                // A folio that still has to be written can't go now; its write's end will bring it to the tail.
                if flags.intersects(FolioFlags::DIRTY | FolioFlags::WRITEBACK) {
                    self.lru_unlink(pfn);
                    self.mm.forget_use(pfn);
                    self.mm.memory.change_reclaim(pfn, true);
                    self.lru_place(pfn, Arrival::Added);
                } else {
                    self.move_to_cold_end(pfn, |core| core.mm.forget_use(pfn));
                    self.mm.count_node(self.mm.memory.folios[pfn].node, Stat::Pgrotated, pages);
                }
                if may_deactivate {
                    self.count(lruvec, Stat::Pgdeactivate, pages);
                }
            }
            Batch::Deactivate => {
                if !may_deactivate {
                    return;
                }
                self.lru_unlink(pfn);
                self.mm.forget_use(pfn);
                self.lru_place(pfn, Arrival::Added);
                self.count(lruvec, Stat::Pgdeactivate, pages);
            }
            Batch::LazyFree => {
                // Reclaim may have given it a slot meanwhile.
                if flags.contains(FolioFlags::SWAPCACHE)
                    || !flags.contains(FolioFlags::ANON | FolioFlags::SWAPBACKED)
                {
                    return;
                }
                self.lru_unlink(pfn);
                self.mm.forget_use(pfn);
                self.mm.assert_isolated(pfn);
                self.mm.memory.folios[pfn].clear(FolioFlags::SWAPBACKED);
                self.lru_place(pfn, Arrival::Added);
                self.count(lruvec, Stat::Pglazyfree, pages);
            }
            Batch::Activate => {
                if was_active {
                    return;
                }
                self.lru_unlink(pfn);
                self.mm.memory.add_use(pfn, UseBits::ACTIVE);
                self.lru_place(pfn, Arrival::Added);
                self.count(lruvec, Stat::Pgactivate, pages);
            }
        }
    }

    /// Records an access through a file descriptor, whatever the page's state: the slow form of what `run_hits` does in
    /// the word where it can.
    #[doc(alias = "folio_mark_accessed")]
    #[inline]
    pub(crate) fn mark_accessed(&mut self, pfn: Pfn) {
        self.mark_accessed_by(pfn, self.mm.mark_of(pfn));
    }

    /// `folio_mark_accessed` if the folio's [`Mark`] is known. Never inlined: misses and some hits use it, and find the same code.
    #[inline(never)]
    pub(crate) fn mark_accessed_by(&mut self, pfn: Pfn, mark: Mark) {
        match mark {
            Mark::Classic => {
                let lruvec = self.mm.lruvec_of(pfn);
                if two_lists::accessed(&mut self.view_mut(lruvec), pfn) {
                    self.mm.workingset_age(lruvec, self.mm.memory.folios[pfn].pages());
                }
            }
            Mark::EveryAccess | Mark::Visited | Mark::Count(_) => {
                self.mark_otherwise(pfn, mark);
            }
        }
    }

    /// `folio_mark_accessed` for LRUs other than Linux's two lists.
    #[inline(never)]
    fn mark_otherwise(&mut self, pfn: Pfn, mark: Mark) {
        match mark {
            Mark::Classic => unreachable!("two lists are marked in two steps"),
            Mark::EveryAccess => self.lru_accessed(pfn),
            Mark::Visited => self.mm.memory.add_use(pfn, UseBits::REFERENCED),
            Mark::Count(References::Frequency) => {
                if !self.mm.memory.folios[pfn].has(FolioFlags::UNEVICTABLE) {
                    self.frequency_accessed(pfn, AccessBy::Descriptor);
                }
            }
            Mark::Count(references) => {
                if !self.mm.memory.folios[pfn].has(FolioFlags::UNEVICTABLE) {
                    let use_bits = self.mm.memory.use_bits(pfn);
                    self.mm.memory.set_use_bits(pfn, references.accessed(use_bits));
                }
            }
        }
    }

    /// Returns whether the folio is in the local add batch, newest first: only that batch can be searched without a lock.
    pub(super) fn is_in_add_batch(&self, pfn: Pfn) -> bool {
        self.mm.cpus[self.by.cpu.index()].batches.batches[Batch::Add as usize]
            .iter()
            .rev()
            .any(|&queued| queued == pfn)
    }
}

impl State {
    /// Why a folio can't go to the cold end, if so.
    fn unrotated(&self, pfn: Pfn, spares_active: bool) -> Option<Unrotated> {
        let folio = &self.memory.folios[pfn];
        if folio.flags().intersects(FolioFlags::LOCKED | FolioFlags::DIRTY | FolioFlags::UNEVICTABLE) {
            Some(Unrotated::Unfit)
        } else if spares_active && self.memory.has_use(pfn, UseBits::ACTIVE) {
            Some(Unrotated::Active)
        } else {
            (!folio.has(FolioFlags::LRU)).then_some(Unrotated::NotListed)
        }
    }

    /// Active, or among generations, where there is always an older one.
    fn may_deactivate(&self, pfn: Pfn) -> bool {
        self.memory.has_use(pfn, UseBits::ACTIVE) || self.lru_of(self.lruvec_of(pfn)) == Lru::Generations
    }

    /// A folio on no list is marked as cold: the record of its use is over. If one number counts its uses, the count restarts at 0.
    fn forget_use(&mut self, pfn: Pfn) {
        self.memory.remove_use(pfn, UseBits::ACTIVE | UseBits::REFERENCED);
        if self.mark_of(pfn) == Mark::Count(References::Frequency) {
            self.memory.remove_use(pfn, UseBits::WORKINGSET | UseBits::COUNTER);
        }
    }
}
