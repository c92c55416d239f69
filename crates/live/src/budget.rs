//! The budget: how many frames it allows, and how large it may become.
//!
//! ```text
//!   budget   ┃ code, words of files, slots ┃ data about all frames of the arena ┃ frames in use          ┃
//!   arena                                                                      ┃ frames in use          ┃ frames without memory   ┃
//!                                                                               ◀── Memory::set_budget ──▶                    budget_max
//! ```
//! If no size of files was declared, tables of files may outgrow what is set aside for them. Then the balloon takes further frames ([`crate::tables`]).
//!
//! The arena is mapped once, for the largest budget. Frames that a smaller budget does not allow are in the engine's balloon, and have no memory. The
//! data about them exists in any case, so it is part of each budget.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use pageout_engine::PAGE_SIZE;

use crate::cgroup::Share;
use crate::error::Error;
use crate::sync::{Condvar, Mutex};
use crate::tables::Tables;

/// Memory of the engine that does not grow with frames and files: its code, its counters, and the stacks of threads. Tests of the resident set print its parts:
/// up to 2.8 MiB of code in a build for tests, and 0.4 MiB of data. The system can drop code, and the first cache of a process brings it in.
const FIXED_BYTES: u64 = 27 << 17;
/// Memory per frame in addition to its page: its record, its links and place on lists, its gate.
const FRAME_BYTES: u64 = 72;
/// Memory per page of a file, cached or not: its word, and a share of the data about its neighbours. While words move, they exist twice for a moment.
const FILE_PAGE_BYTES: u64 = 9;
/// With a swap file: the code of its use, which the system can drop as well.
const SWAP_BYTES: u64 = 128 << 10;
/// Bytes per slot of the swap file: the owner of its page (8), its word (8), its group (2), and its bits.
const SLOT_BYTES: u64 = 20;
/// With zswap, bytes per slot in addition: the compressed copy of its page.
const ZSWAP_SLOT_BYTES: u64 = 4;
/// With fewer frames, a node could not satisfy its watermarks.
pub(crate) const FRAMES_MIN: u64 = 1024;
/// Frames that are left to pages however much tables take: as many as several accesses at the same time need.
const FRAMES_BESIDE_TABLES: u64 = 256;
/// Slack of tables: the balloon takes frames for them below the first, and gives frames back above the last. Either leaves the second.
const SLACK: [u64; 3] = [256 << 10, 512 << 10, 1 << 20];
/// Bytes that are set aside for tables if no size of files was declared: these, and some for each frame. So the balloon takes no frame for files of which
/// each range of 2 MiB has a quarter in memory.
const TABLES_MIN: u64 = 512 << 10;
const TABLES_OF_FRAME: u64 = 32;

/// Size of all files and regions that may be open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Files {
    /// As declared, in bytes: memory for their tables is reserved.
    Declared(u64),
    /// Any, as long as their tables fit in the budget.
    Any,
}

/// What a budget has to hold in addition to frames.
pub(crate) struct Records {
    pub(crate) files: Files,
    /// Slots of the swap file.
    pub(crate) slots: u64,
    /// With zswap, bytes of its buffers.
    pub(crate) zswap: Option<u64>,
    /// With zswap, bytes for each frame: records of the compressed pages in it.
    pub(crate) of_page: u64,
}

impl Records {
    /// Bytes that do not depend on the number of frames.
    fn of_all(&self) -> u64 {
        let of_slot = SLOT_BYTES + self.zswap.map_or(0, |_| ZSWAP_SLOT_BYTES);
        let of_tables = match self.files {
            Files::Declared(bytes) => bytes / PAGE_SIZE * FILE_PAGE_BYTES,
            Files::Any => TABLES_MIN,
        };
        let fixed = FIXED_BYTES + self.zswap.unwrap_or(0) + of_tables;
        let of_swap = if self.slots > 0 { SWAP_BYTES } else { 0 };
        fixed.saturating_add(of_swap).saturating_add(self.slots.saturating_mul(of_slot))
    }

    /// Bytes for each frame.
    fn of_frame(&self) -> u64 {
        let of_tables = if self.files == Files::Any { TABLES_OF_FRAME } else { 0 };
        FRAME_BYTES + self.of_page + of_tables
    }
}

/// The division of a budget.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Plan {
    /// Bytes that each budget needs for other purposes than frames.
    set_aside: u64,
    /// Frames of the arena.
    pub(crate) frames_max: u64,
    /// Frames of slow memory among them, whose number is fixed.
    slow: u64,
    /// The largest budget.
    pub(crate) most: u64,
    /// Bytes of it for tables, if these may outgrow them.
    tables: Option<u64>,
}

impl Plan {
    /// The plan for budgets of up to `most` bytes, with these records, and so many frames of slow memory.
    ///
    /// # Errors
    /// [`Error::BudgetTooSmall`].
    pub(crate) fn new(most: u64, records: &Records, slow: u64) -> Result<Plan, Error> {
        let (of_all, of_frame) = (records.of_all(), records.of_frame());
        let frames_max = most.saturating_sub(of_all) / (PAGE_SIZE + of_frame);
        if frames_max < FRAMES_MIN.saturating_add(slow) {
            let frames = FRAMES_MIN.saturating_add(slow).saturating_mul(PAGE_SIZE + of_frame);
            return Err(Error::BudgetTooSmall { least: frames.saturating_add(of_all) });
        }
        let tables = (records.files == Files::Any).then_some(TABLES_MIN + frames_max * TABLES_OF_FRAME);
        Ok(Plan { set_aside: of_all + frames_max * of_frame, frames_max, slow, most, tables })
    }

    /// The least budget.
    pub(crate) fn least(&self) -> u64 {
        self.bytes(FRAMES_MIN + self.slow)
    }

    /// The budget with which so many frames can be used.
    pub(crate) fn bytes(&self, frames: u64) -> u64 {
        self.set_aside + frames * PAGE_SIZE
    }

    /// Frames that a budget allows.
    ///
    /// # Errors
    /// [`Error::BudgetTooSmall`], [`Error::BudgetBeyondArena`].
    pub(crate) fn frames(&self, budget: u64) -> Result<u64, Error> {
        if budget > self.most {
            return Err(Error::BudgetBeyondArena { budget, most: self.most });
        }
        let frames = (budget.saturating_sub(self.set_aside) / PAGE_SIZE).min(self.frames_max);
        if frames < FRAMES_MIN + self.slow {
            return Err(Error::BudgetTooSmall { least: self.least() });
        }
        Ok(frames)
    }
}

/// The budget as it is now.
pub(crate) struct Budget {
    pub(crate) plan: Plan,
    bytes: AtomicU64,
    /// Frames that the budget allows. Changed under the engine's lock.
    frames: AtomicU64,
    pub(crate) tables: Arc<Tables>,
    /// Frames that tables have of these. Changed by who has `changes`.
    of_tables: AtomicU64,
    /// Only one thread changes the budget at a time.
    pub(crate) changes: Mutex<()>,
    /// The limit that the budget follows.
    pub(crate) follows: Option<Share>,
    /// True if the thread that follows it is to end.
    pub(crate) stops: Mutex<bool>,
    pub(crate) wake: Condvar,
}

impl Budget {
    /// The largest budget of a plan.
    pub(crate) fn new(plan: Plan, follows: Option<Share>, tables: Arc<Tables>) -> Budget {
        Budget {
            plan,
            bytes: AtomicU64::new(plan.most),
            frames: AtomicU64::new(plan.frames_max),
            tables,
            of_tables: AtomicU64::new(0),
            changes: Mutex::default(),
            follows,
            stops: Mutex::new(false),
            wake: Condvar::new(),
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    pub(crate) fn set_bytes(&self, bytes: u64) {
        self.bytes.store(bytes, Relaxed);
    }

    /// Frames for pages, fast and slow.
    pub(crate) fn frames(&self) -> u64 {
        self.allowed().saturating_sub(self.of_tables())
    }

    /// Frames that the budget allows, those of tables included.
    pub(crate) fn allowed(&self) -> u64 {
        self.frames.load(Relaxed)
    }

    /// Frames that tables have.
    pub(crate) fn of_tables(&self) -> u64 {
        self.of_tables.load(Relaxed)
    }

    pub(crate) fn set_of_tables(&self, frames: u64) {
        self.of_tables.store(frames, Relaxed);
    }

    /// Frames that tables can have of so many.
    pub(crate) fn of_tables_max(&self, allowed: u64) -> u64 {
        allowed.saturating_sub(FRAMES_BESIDE_TABLES + self.plan.slow)
    }

    /// Frames that tables should have, if this is another number than they have. `more`: bytes that are about to be added.
    #[inline]
    pub(crate) fn due_to_tables(&self, more: u64) -> Option<u64> {
        let (reserved, now) = (self.plan.tables?, self.of_tables());
        let (bytes, covered) = (self.tables.bytes_with(more), reserved + now * PAGE_SIZE);
        let [least, wanted, most] = SLACK;
        if bytes.saturating_add(least) <= covered && (now == 0 || bytes.saturating_add(most) > covered) {
            return None;
        }
        let due = bytes.saturating_add(wanted).saturating_sub(reserved).div_ceil(PAGE_SIZE);
        Some(due.min(self.of_tables_max(self.allowed()))).filter(|&due| due != now)
    }

    /// Returns whether tables may take this many bytes more with the frames that they have.
    #[inline]
    pub(crate) fn has_room_for_tables(&self, more: u64) -> bool {
        self.covers_tables(more, 0)
    }

    /// Returns whether they may do so, and enough is left for accesses in progress.
    pub(crate) fn has_slack_for_tables(&self, more: u64) -> bool {
        self.covers_tables(more, SLACK[0])
    }

    #[inline]
    fn covers_tables(&self, more: u64, slack: u64) -> bool {
        let Some(reserved) = self.plan.tables else { return true };
        self.tables.bytes_with(more).saturating_add(slack) <= reserved + self.of_tables() * PAGE_SIZE
    }

    /// Bytes that tables may take at most.
    pub(crate) fn tables_max(&self) -> u64 {
        self.plan.tables.unwrap_or(0) + self.of_tables_max(self.allowed()) * PAGE_SIZE
    }

    pub(crate) fn set_frames(&self, frames: u64) {
        self.frames.store(frames, Relaxed);
    }

    /// Pages that guards may hold of so many frames.
    pub(crate) fn pins_of(frames: u64) -> u64 {
        frames / 4
    }

    /// Pages that guards may hold.
    pub(crate) fn pins_max(&self) -> u64 {
        Budget::pins_of(self.frames())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn records(files: u64, slots: u64, has_zswap: bool) -> Records {
        let (zswap, of_page) = if has_zswap { (Some(1 << 20), 288) } else { (None, 0) };
        Records { files: Files::Declared(files), slots, zswap, of_page }
    }

    #[test]
    fn budgets_of_a_plan_allow_the_frames_that_fit() {
        let plan = Plan::new(64 << 20, &records(256 << 20, 1000, false), 0).unwrap();
        assert_eq!(plan.frames(64 << 20).unwrap(), plan.frames_max);
        assert_eq!(plan.frames(plan.least()).unwrap(), FRAMES_MIN);
        for frames in [FRAMES_MIN, 5000, plan.frames_max - 1] {
            assert_eq!(plan.frames(plan.bytes(frames)).unwrap(), frames);
            assert_eq!(plan.frames(plan.bytes(frames) + PAGE_SIZE - 1).unwrap(), frames);
        }
        assert!(
            matches!(plan.frames(plan.least() - 1), Err(Error::BudgetTooSmall { least }) if least == plan.least())
        );
        assert!(matches!(plan.frames((64 << 20) + 1), Err(Error::BudgetBeyondArena { .. })));
    }

    #[test]
    fn least_budget_of_a_plan_is_the_one_that_its_error_names() {
        let cases = [(0, 0, 0), (1 << 40, 0, 0), (1 << 30, 100_000, 0), (1 << 30, 7, 2000)];
        let cases = cases.into_iter().flat_map(|case| [(case, false), (case, true)]);
        for ((files, slots, slow), has_zswap) in cases {
            let least = match Plan::new(0, &records(files, slots, has_zswap), slow) {
                Err(Error::BudgetTooSmall { least }) => least,
                other => panic!("{other:?}"),
            };
            assert!(Plan::new(least - 1, &records(files, slots, has_zswap), slow).is_err());
            let plan = Plan::new(least, &records(files, slots, has_zswap), slow).unwrap();
            assert_eq!(plan.frames(least).unwrap(), FRAMES_MIN + slow);
            assert!(plan.least() <= least);
        }
    }
}
