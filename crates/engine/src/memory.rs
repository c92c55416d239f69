//! What is where: frames, folios, files, address spaces and swap together, and the questions that need more than one.

use crate::config::FileSpec;
use crate::file::File;
use crate::folio::{FolioFlags, FolioTable, Heat, PerFrame};
use crate::frames::Frames;
use crate::mm::Mm;
use crate::order::Place;
use crate::swap::Swap;
use crate::table::{Mark, NodeChange, SwapEntry, Word};
use crate::tlb::Tlb;
use crate::units::{FileId, MemcgId, MmId, NodeId, Pfn};

/// All memory of the machine.
pub(crate) struct Memory {
    pub(crate) folios: FolioTable,
    /// Where each folio is among the generations.
    pub(crate) places: PerFrame<Place>,
    pub(crate) frames: Frames,
    pub(crate) files: Vec<File>,
    pub(crate) mms: Vec<Mm>,
    pub(crate) swap: Swap,
}

impl Memory {
    pub(crate) fn new(node_pages: &[u64]) -> Memory {
        Memory {
            folios: FolioTable::default(),
            places: PerFrame::default(),
            frames: Frames::new(node_pages),
            files: Vec::new(),
            mms: Vec::new(),
            swap: Swap::default(),
        }
    }

    pub(crate) fn add_file(&mut self, spec: FileSpec) -> FileId {
        self.files.push(File::new(spec));
        FileId((self.files.len() - 1) as u32)
    }

    pub(crate) fn add_mm(&mut self, memcg: MemcgId, tlb: Option<Tlb>) -> MmId {
        self.mms.push(Mm::new(memcg, tlb));
        MmId((self.mms.len() - 1) as u32)
    }

    pub(crate) fn file(&self, file: FileId) -> &File {
        &self.files[file.index()]
    }

    pub(crate) fn file_mut(&mut self, file: FileId) -> &mut File {
        &mut self.files[file.index()]
    }

    pub(crate) fn mm(&self, mm: MmId) -> &Mm {
        &self.mms[mm.index()]
    }

    pub(crate) fn mm_mut(&mut self, mm: MmId) -> &mut Mm {
        &mut self.mms[mm.index()]
    }

    /// A frame with a fresh record.
    pub(crate) fn alloc(&mut self, order: u8, memcg: MemcgId) -> Option<Pfn> {
        let (node, pfn) = self.frames.alloc(order)?;
        self.folios.populate(pfn);
        let folio = &mut self.folios[pfn];
        *folio = Default::default();
        folio.node = node;
        folio.order = order;
        folio.memcg = memcg;
        Some(pfn)
    }

    pub(crate) fn nodes(&self) -> impl Iterator<Item = NodeId> {
        self.frames.nodes()
    }

    /// The slot of a folio in the swap cache.
    pub(crate) fn swap_entry(&self, pfn: Pfn) -> SwapEntry {
        let folio = &self.folios[pfn];
        debug_assert!(folio.has(FolioFlags::SWAPCACHE), "{pfn:?} has no slot");
        SwapEntry { swap: folio.swap, slot: folio.slot }
    }

    /// How hot the folio is, wherever that is kept.
    #[inline]
    pub(crate) fn heat(&self, pfn: Pfn) -> Heat {
        let folio = &self.folios[pfn];
        if folio.has(FolioFlags::INDEXED) {
            self.files[folio.owner as usize].index.word(folio.index.into()).heat()
        } else {
            folio.heat
        }
    }

    #[inline]
    pub(crate) fn is_hot(&self, pfn: Pfn, heat: Heat) -> bool {
        self.heat(pfn).contains(heat)
    }

    #[inline]
    pub(crate) fn heat_up(&mut self, pfn: Pfn, heat: Heat) {
        self.change_heat(pfn, |old| old | heat);
    }

    #[inline]
    pub(crate) fn cool_down(&mut self, pfn: Pfn, heat: Heat) {
        self.change_heat(pfn, |old| old - heat);
    }

    #[inline]
    pub(crate) fn set_heat(&mut self, pfn: Pfn, heat: Heat) {
        self.change_heat(pfn, |_| heat);
    }

    #[inline]
    pub(crate) fn change_heat(&mut self, pfn: Pfn, change: impl FnOnce(Heat) -> Heat) {
        let folio = &mut self.folios[pfn];
        if folio.has(FolioFlags::INDEXED) {
            let index = &mut self.files[folio.owner as usize].index;
            index.update(folio.index.into(), |word| *word = word.with_heat(change(word.heat())));
        } else {
            folio.heat = change(folio.heat);
        }
    }

    /// Puts a folio into the index of its file; from now on its heat lives there. Returns what was in the slot.
    pub(crate) fn index_insert(&mut self, pfn: Pfn, mark: Mark) -> (Word, NodeChange) {
        let folio = &mut self.folios[pfn];
        debug_assert!(!folio.flags.intersects(FolioFlags::INDEXED | FolioFlags::ANON));
        folio.flags |= FolioFlags::INDEXED;
        let mut word = Word::cached(pfn, folio.heat, mark);
        word.set_busy(folio.has(FolioFlags::LOCKED));
        self.files[folio.owner as usize].index.replace(folio.index.into(), word)
    }

    /// Takes a folio out of the index of its file, leaving `word`; its heat moves to its record.
    pub(crate) fn index_remove(&mut self, pfn: Pfn, word: Word) -> NodeChange {
        let folio = &mut self.folios[pfn];
        let (old, change) = self.files[folio.owner as usize].index.replace(folio.index.into(), word);
        debug_assert!(old.is_present() && old.pfn() == pfn);
        folio.heat = old.heat();
        folio.flags -= FolioFlags::INDEXED;
        change
    }
}
