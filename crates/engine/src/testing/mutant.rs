//! Engines with a known bug, which the byte machine must reject: the test of the test.
//!
//! Each bug is a `mutant!` at the place where it would be made. The bytes must show it, so the machine
//! compares nothing but contents: no invariants, no check of the order of operations.

use super::machine::Checks;
use super::tests::{first_failure, first_failure_huge};

/// A bug to build into an engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mutant {
    /// `accessed/rmap.rs`: the entry's dirty bit isn't taken over, so that a page written since it was swapped in is dropped.
    DirtyLostAtUnmap,
    /// `reclaim/shrink_list.rs`, `io.rs`: a page counts as written when its write has started. The device then writes
    /// whatever its frame holds later.
    FrameReusedBeforeWritten,
    /// `access/fill.rs`: a slot is given up when the read of it has started.
    SlotFreedBeforeRead,
    /// `access/read_ahead.rs`: a page that is read ahead can be used before its read has ended.
    ReadaheadNotAwaited,
    /// `migrate.rs`: a folio's old frame is given up before its contents are copied.
    FrameFreedBeforeCopied,
    /// `migrate.rs`: entries still lead to the old frame, which is free.
    OldFrameFreedWhileMapped,
    /// `migrate.rs`: that a page was written since its contents were last saved doesn't move with it.
    DirtyLostAtMigration,
    /// `migrate.rs`: a folio moves although a task is in the middle of a write to it, which goes to the old frame.
    WrittenDuringCopy,
    /// `huge_memory.rs`: all pages of a huge page that becomes single ones are its first.
    SplitLeadsToFirst,
    /// `access/read_ahead.rs`: a page that readahead meets is dropped to be read again, though it is dirty.
    DirtyDroppedByReadahead,
    /// `page_cache.rs`: a frame goes back to the allocator twice.
    FreedTwice,
    /// `writeback/dirty.rs`: a page that was written again while it was being written counts as clean when that write ends.
    CleanAfterRewrite,
    /// `reclaim/shrink_list.rs`: a dirty page of a file is freed as if it were clean.
    DirtyFilePageFreed,
    /// `reclaim/shrink_list.rs`: a page is freed although the compressed device had no memory for it.
    FreedWithoutRoom,
    /// `zswap/store.rs`: the entry of a slot that is freed, or that is written to the device, stays until the next one replaces it.
    EntryInvalidatedLate,
    /// `page_cache.rs`: a slot is given up although a write to it is in flight.
    SlotFreedBeforeWritten,
    /// `writeback/fsync.rs`: fsync doesn't wait for pages under writeback.
    FsyncForgetsWriteback,
    /// `page_cache/truncate.rs`: a page goes although a write of it is in flight, which then writes whatever its frame holds over
    /// the hole.
    FlushEndsAfterTruncation,
    /// `writeback/sync.rs`: sync waits for what flushers have written for it, and not for what was being written before.
    SyncForgetsWriteback,
    /// `writeback/dirty.rs`: a write that has failed is never reported.
    WriteErrorLost,
    /// `writeback/retry.rs`: a page that could not be written, and is to be kept, counts as clean.
    FailedWriteForgotten,
}

impl Mutant {
    /// Returns true if writes may end of which the engine knows nothing any more.
    pub(crate) fn forgets_writes(self) -> bool {
        matches!(self, Mutant::FrameReusedBeforeWritten | Mutant::FlushEndsAfterTruncation)
    }
}

/// Random runs within which a bug must show. Most show in the first hundred.
const RUNS: u64 = 5000;

/// How the first of the runs that a bug makes fail fails.
fn rejection(mutant: Mutant, seeds: &mut impl Iterator<Item = u64>) -> String {
    let found = first_failure(Some(mutant), Checks::Contents, seeds);
    found.unwrap_or_else(|| panic!("{RUNS} random runs didn't notice {mutant:?}")).1
}

/// The bytes show a bug, if not in the first run that fails, where flags of a folio may trip over it before.
fn check(mutant: Mutant) {
    check_from(mutant, 0);
}

/// The same, from the seed `first` on: of a rare bug the runs before are known to show nothing.
fn check_from(mutant: Mutant, first: u64) {
    let mut seeds = first..first + RUNS;
    while !rejection(mutant, &mut seeds).contains("reads as") {}
}

#[test]
fn a_dirty_bit_lost_at_unmap_is_noticed() {
    check(Mutant::DirtyLostAtUnmap);
}

#[test]
fn a_frame_reused_before_it_was_written_is_noticed() {
    check(Mutant::FrameReusedBeforeWritten);
}

#[test]
fn a_slot_freed_before_it_was_read_is_noticed() {
    check(Mutant::SlotFreedBeforeRead);
}

#[test]
fn a_page_used_before_its_readahead_has_ended_is_noticed() {
    check(Mutant::ReadaheadNotAwaited);
}

#[test]
fn a_frame_freed_before_it_was_copied_is_noticed() {
    check(Mutant::FrameFreedBeforeCopied);
}

#[test]
fn an_old_frame_freed_while_it_is_mapped_is_noticed() {
    check(Mutant::OldFrameFreedWhileMapped);
}

#[test]
fn a_dirty_bit_lost_at_migration_is_noticed() {
    check(Mutant::DirtyLostAtMigration);
}

#[test]
fn a_write_to_a_page_that_is_being_copied_is_noticed_if_it_is_lost() {
    check(Mutant::WrittenDuringCopy);
}

/// Two entries that lead to a page trip over each other's count of them, mostly before a byte is lost.
#[test]
fn a_huge_page_whose_parts_are_all_its_first_is_noticed() {
    assert!(first_failure_huge(Mutant::SplitLeadsToFirst, 0..RUNS).is_some());
}

#[test]
fn a_dirty_page_dropped_by_readahead_is_noticed() {
    check(Mutant::DirtyDroppedByReadahead);
}

/// Two owners of a frame trip over each other's flags, mostly before a byte is lost.
#[test]
fn a_frame_freed_twice_is_noticed() {
    rejection(Mutant::FreedTwice, &mut (0..RUNS));
}

/// The write that ends finds that its page has no slot. Before a byte is lost the slot has to be reused while the write is in flight.
#[test]
fn a_slot_freed_before_it_was_written_is_noticed() {
    let said = rejection(Mutant::SlotFreedBeforeWritten, &mut (0..RUNS));
    assert!(said.contains("has no place to go"), "{said}");
}

#[test]
fn a_write_during_writeback_that_is_forgotten_is_noticed() {
    check(Mutant::CleanAfterRewrite);
}

#[test]
fn a_dirty_page_of_a_file_that_is_freed_unwritten_is_noticed() {
    check(Mutant::DirtyFilePageFreed);
}

#[test]
fn a_page_freed_that_found_no_room_to_be_compressed_is_noticed() {
    check(Mutant::FreedWithoutRoom);
}

#[test]
fn an_fsync_that_forgets_pages_under_writeback_is_noticed() {
    check(Mutant::FsyncForgetsWriteback);
}

#[test]
fn a_sync_that_forgets_pages_under_writeback_is_noticed() {
    check(Mutant::SyncForgetsWriteback);
}

#[test]
fn a_write_error_that_nobody_is_told_of_is_noticed() {
    check(Mutant::WriteErrorLost);
}

#[test]
fn a_failed_write_that_is_to_be_kept_and_is_not_is_noticed() {
    check_from(Mutant::FailedWriteForgotten, 2300);
}

#[test]
fn a_flush_that_ends_after_truncation_is_noticed() {
    check(Mutant::FlushEndsAfterTruncation);
}

#[test]
fn a_compressed_page_that_outlives_its_slot_is_noticed() {
    check(Mutant::EntryInvalidatedLate);
}

/// In the runs that show most of the bugs above.
#[test]
fn the_engine_without_a_bug_is_not_rejected() {
    assert_eq!(first_failure(None, Checks::Contents, 0..100), None);
}
