//! Seam 2, the LRU: which lists an lruvec has, to which list a folio goes, and which list is scanned next. [reclaim 2, 4]
//!
//! An LRU answers six questions; everything else about reclaim is shared:
//!
//! | question | asked by |
//! |---|---|
//! | which list is a folio's? | `lru_place`, `lru_unlink`, `put_back` |
//! | what does an access through a file descriptor mean? | `mark_of`, `lru_accessed` |
//! | what does a young page-table entry, or a fault, mean? | `lru_young`, `lru_young_nearby`, `lru_faulted_in` |
//! | which pages may go next, and what follows from what became of them? | reclaim (`reclaim/shrink_lruvec.rs`), batch by batch |
//! | what follows from references found by reclaim? | `lru_referenced` |
//!
//! Reclaim calls the LRU, and no LRU calls reclaim. Linux has two families. The classic LRU (`two_lists.rs`) sees one lruvec through a
//! view and nothing else of the machine (`view.rs`). MGLRU scans address spaces and the whole group, so its functions are methods of the
//! core. Any other LRU is a guest: a file and a row in the crate `pageout_policy`, and nothing here (`guest.rs`).

pub(crate) mod batch; // per-CPU folio batches in front of the lists
mod seam; // the questions, and who answers them
pub(crate) mod generations; // pages of about the same age together
mod reparent; // a removed group's lists join its parent's
mod guest; // a policy that keeps the pages in its own way
mod switching; // from one family of lists to the other
pub(crate) mod two_lists; // active and inactive
mod view; // one lruvec, as a family sees it
mod start_state; // lists as they were found on a machine

pub use generations::GenerationInfo;
pub(crate) use generations::{
    GenerationRequest, GenerationWork, GenerationsNext, GenerationsPass, MIN_LRU_BATCH, Refused, Requested,
    WorkStep,
};
pub use guest::GuestFault;
pub(crate) use guest::{Nominated, page_of};
pub(crate) use pageout_mm::lru::*;
pub use start_state::{StartFolio, StartGenerations, StartList, StartLruvec};
pub use two_lists::Deactivation;

use crate::story::Because;

/// The reason why a folio goes to a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival {
    /// The folio is new, or its state has changed.
    Added,
    /// Reclaim could not free it, or had not meant to.
    PutBack,
    /// The folio is to be taken next: what made it wait is over.
    Rotated,
}

/// What a folio is added for.
#[doc(alias = "lru_gen_in_fault")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AddedFor {
    /// A fault on a mapping with recency: the folio is known to be in use.
    Fault,
    /// Anything else, readahead for others included.
    Other,
}

/// The verdict of an LRU on a folio, from the folio's references.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FolioReferences {
    Reclaim,
    /// Reclaim it only if that needs no write: it has been read once before.
    ReclaimClean,
    Keep(Because),
    Activate(Because),
}

/// By which rule a folio goes to the list that it goes to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PlaceRule {
    /// Locked into memory: it is counted, and on no list.
    Unevictable,
    /// Lists: the one that its ACTIVE bit names.
    ByState,
    /// Generations: a fault has added it, or reclaim could not free it, so it is in use.
    InUse,
    /// The folio needs a write before it can go, so it is of no use at the old end.
    NeedsWrite,
    /// The write of it has ended: to the cold end.
    Rotated,
    /// No process has mapped it: to the oldest.
    Oldest,
    /// To the second oldest, because the window of generations is full.
    WindowFull,
    /// To the second oldest, because it was in use when it was evicted.
    WasInUse,
    /// To the second oldest, because it was accessed as it came in, or since.
    Accessed,
}
