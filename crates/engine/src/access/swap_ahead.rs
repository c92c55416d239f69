//! Swap readahead as a part of an access: page after page is taken in around the one that is wanted.
//!
//! ```text
//!   swapped page is absent ─▶ begin_swap_readahead ─▶ which pages: `swap/readahead.rs`
//!                             swap_ahead ─▶ each: allocate, charge (may reclaim, in steps), swap cache, read     ─▶ find again
//! ```
//! The wanted page is one of them, in its place. If no page has to wait, all reads of a batch are submitted together, so neighbouring
//! slots are one request. If one round of reclaim can't free memory for a page, the batch ends, because no task has asked for that page.
//! (No source specifies how much effort the kernel makes.) If the wanted page is still absent then, it is read by itself. [machine 1.11]

use crate::access::hits::Object;
use crate::access::miss::{Source, Stop};
use crate::access::task::Current;
use crate::memory::folio::UseBits;
use crate::memory::mm::Backing;
use crate::memory::table::{Entry, SwapEntry};
use crate::page_alloc::request::Gfp;
use crate::story::{Filled, PageEvent, PageName};
use crate::swap::Owner;
use crate::swap::readahead::SwapReadahead;
use crate::units::{FileId, MmId, Pfn};

/// The allocation flags for the neighbours of a wanted page.
const NEIGHBOUR: Gfp = Gfp::KERNEL.union(Gfp::NORETRY).union(Gfp::NOWARN);

impl Current<'_> {
    /// A swapped page is absent: decides what to read with it. False where that has been tried, or it is to be read by itself.
    #[cold]
    pub(super) fn begin_swap_readahead(&mut self, entry: SwapEntry) -> bool {
        let attempt = &mut self.task.attempt;
        if std::mem::replace(&mut attempt.progress.has_read_ahead, true) {
            return false;
        }
        let batch = match self.swapped_place() {
            Some((mm, vma, page)) => self.core.mm.swap_readahead(mm, vma, page, entry),
            None => self.core.mm.swap_cluster_readahead(entry),
        };
        self.task.attempt.swap_readahead = batch;
        batch.is_some()
    }

    /// Where the accessed page is in anonymous memory: address space, mapping, page there.
    fn swapped_place(&self) -> Option<(MmId, usize, u64)> {
        let page = self.task.attempt.page;
        match *self.task.accessed() {
            Object::Mapping { mm, vma, start, .. }
                if self.core.mm.memory.mm(mm).vmas[vma].backing == Backing::Anon =>
            {
                Some((mm, vma, start + page))
            }
            _ => None,
        }
    }

    /// An access has found its page in the swap cache, unless it is mapped already.
    #[cold]
    pub(super) fn found_in_swap_cache(&mut self, pfn: Pfn) {
        if std::mem::replace(&mut self.task.attempt.progress.has_seen_mark, true) {
            return;
        }
        let place = self.swapped_place();
        let is_mapped = place.is_some_and(|(mm, _, page)| {
            !matches!(self.core.mm.memory.mm(mm).table.word(page).decode(), Entry::Swap(_))
        });
        if !is_mapped {
            self.core.mm.swap_cache_found(pfn, place);
        }
    }

    /// Takes in the pages of a batch as far as it goes without waiting.
    #[cold]
    pub(super) fn swap_ahead(&mut self) -> Result<(), Stop> {
        let mut batch = self.task.attempt.swap_readahead.expect("a batch is under way");
        while !batch.is_over() {
            match self.add_swap_ahead(&mut batch) {
                Ok(()) => {}
                Err(Stop::Pause(pause)) => {
                    self.task.attempt.swap_readahead = Some(batch);
                    return Err(Stop::Pause(pause));
                }
                Err(Stop::Oom(_) | Stop::NoRoom | Stop::Dying) => break,
            }
        }
        self.task.attempt.swap_readahead = None;
        self.give_back();
        if self.core.mm.memcgs[self.memcg()].policy.reclaim.swap_ahead_drain {
            // The pages that were read must be on their list immediately.
            self.core.lru_add_drain();
        }
        Ok(())
    }

    /// Reads the next page of a batch, or goes past it.
    fn add_swap_ahead(&mut self, batch: &mut SwapReadahead) -> Result<(), Stop> {
        let reader = self.memcg();
        let Some(entry) = self.core.mm.swap_neighbour(batch) else {
            if self.task.attempt.is_reclaiming() {
                // Another task was faster while this one reclaimed. There is no way out of a reclaim call but its end.
                self.prepare(reader, None, NEIGHBOUR)?;
            }
            // The next page may be paid for by another group.
            self.give_back();
            batch.go_on();
            return Ok(());
        };
        let payer = self.core.mm.payer_of(entry, reader);
        let Some(pfn) = self.prepare(payer, Some(Source::Swap(entry)), NEIGHBOUR)? else {
            return Ok(());
        };
        let attempt = &mut self.task.attempt;
        attempt.frame = None;
        let charged = attempt.charged;
        let is_wanted = batch.is_wanted(entry);
        if is_wanted {
            self.hold_for(pfn);
        }
        if self.core.is_telling() {
            let with = if is_wanted { Filled::Swap } else { Filled::SwapReadahead };
            let (reclaim_calls, reclaimed) = (charged.reclaim_calls, charged.reclaimed);
            let name = name_of(self.core.mm.memory.swap.owner(entry));
            self.core.tell_filled(
                pfn,
                name,
                PageEvent::Filled { with, task: self.id, reclaim_calls, reclaimed },
            );
        }
        self.core.mm.memory.name_after_slot(pfn, entry);
        self.core.swap_cache_read(pfn, entry, None, self.added_for());
        let is_refault = self.core.mm.memory.has_use(pfn, UseBits::WORKINGSET);
        self.task.attempt.progress.submits_refault |= is_refault;
        if is_wanted {
            self.task.attempt.progress.started_read = true;
        } else {
            self.core.mm.memory.folios[pfn].refs -= 1;
            if !batch.is_advised() {
                self.core.mm.swap_read_ahead(pfn);
            }
        }
        batch.go_on();
        Ok(())
    }
}

fn name_of(owner: Owner) -> PageName {
    let page = owner.index.into();
    match owner.is_anon {
        true => PageName::Anon { mm: MmId(owner.owner), page },
        false => PageName::File { file: FileId(owner.owner), page },
    }
}
