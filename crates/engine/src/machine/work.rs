//! Counts of work: what the engine did since the start, for the machine to price.
//!
//! The engine knows no time; a machine multiplies these by its cost table. The work of a call is the difference of the counts before and after it.
//!
//! A machine asks after every call. Most units belong to rare work, such as reclaim, and are marked so. Code that counts one (`Meter` in
//! `access/out.rs`) records that; otherwise they need not be multiplied again.

macro_rules! often {
    ($sum:expr, rarely) => {
        0
    };
    ($sum:expr) => {
        $sum
    };
}

macro_rules! rarely {
    ($sum:expr, rarely) => {
        $sum
    };
    ($sum:expr) => {
        0
    };
}

macro_rules! work {
    ($($(#[$doc:meta])* $field:ident $(: $how:ident)?,)*) => {
        /// Work done, in units that a cost table can price; each only grows.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        pub struct Work {
            $($(#[$doc])* pub $field: u64,)*
        }

        impl Work {
            /// The names of all fields, in order.
            pub const NAMES: &[&str] = &[$(stringify!($field)),*];

            /// All fields with their names.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($field), self.$field)),*].into_iter()
            }

            /// The sum of the units that any access may count, each times its factor.
            #[inline]
            pub fn often_times(&self, factors: &Work) -> u64 {
                0 $(+ often!(self.$field * factors.$field $(, $how)?))*
            }

            /// The sum of the others: [`crate::Engine::take_rare_work`] says whether there are more of them.
            pub fn rarely_times(&self, factors: &Work) -> u64 {
                0 $(+ rarely!(self.$field * factors.$field $(, $how)?))*
            }
        }

        impl std::ops::AddAssign for Work {
            fn add_assign(&mut self, other: Work) {
                $(self.$field += other.$field;)*
            }
        }

        impl std::ops::Sub for Work {
            type Output = Work;

            fn sub(self, other: Work) -> Work {
                Work { $($field: self.$field - other.$field),* }
            }
        }
    };
}

/// Hands the units of work to a macro.
macro_rules! units_of_work {
    ($to:ident) => {
        $to! {
            /// Page faults taken (minor and major).
            faults,
            /// read(2)/write(2) calls of a page that was not a plain hit.
            file_calls,
            /// Pages charged to a memcg beyond the per-CPU stock (walks of the ancestors' counters).
            charges,
            /// Folios inserted into a page cache or swap cache.
            inserted,
            /// Pages of inserted folios behind the first.
            inserted_tails: rarely,
            /// Per-CPU batches drained.
            batch_drains,
            /// Folios moved between or within LRU lists.
            list_moves,
            /// Folios that reclaim looked at.
            scanned: rarely,
            /// Page-table entries looked at through the reverse map.
            rmap_steps: rarely,
            /// Pages that a scheme of DAMON has looked up.
            damon_pages: rarely,
            /// Pages that DAMON has looked up for its samples: one per region, whatever the region's size.
            damon_samples: rarely,
            /// Page-table entries that it has looked at for its samples.
            damon_sample_steps: rarely,
            /// Upper page-table entries that a walk came by.
            upper_entries: rarely,
            /// Page-table entries looked at side by side: in walks, and around an entry found young.
            ptes_walked,
            /// Page-table entries that a walk found young.
            ptes_young: rarely,
            /// Page-table entries marked so that the next access through them faults.
            ptes_marked: rarely,
            /// Hint faults taken.
            hint_faults: rarely,
            /// Page-table entries removed by reclaim, one by one.
            unmapped: rarely,
            /// Page-table entries that a process gave up, a table at a time, with the anonymous pages and slots behind them; and pages of
            /// files that were truncated.
            zapped: rarely,
            /// Pages of files that became dirty.
            dirtied: rarely,
            /// Pages of files whose write was begun.
            written: rarely,
            /// Pages reclaimed.
            reclaimed: rarely,
            /// Reclaim calls ended.
            reclaim_calls: rarely,
            /// Frames that compaction came by.
            compact_scanned: rarely,
            /// read(2)s of pages while `kernel.numa_balancing` has tiers in mind.
            marked_with_tiering: rarely,
            /// Pages in use whose tier was looked up when they were read again.
            tiers_looked_up: rarely,
            /// Pages that were promoted in the order opposite to that in which they were read.
            migrated_backwards: rarely,
            /// Page-table entries that led to a migrated page, and lead to its new place.
            entries_migrated: rarely,
            /// Hotness records written.
            hotness_recorded: rarely,
            /// Hotness records that kmigrated came by.
            hotness_walked: rarely,
            /// Statistics flushes, in memcgs flushed.
            stat_flushes: rarely,
        }
    };
}

units_of_work!(work);
pub(crate) use units_of_work;

/// Parts of [`Work`], by purpose, since the start: by the functions that a profile of a kernel would
/// name. Whatever these call is theirs too.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WorkFor {
    /// Moving pages that were used to younger lists: a full batch of activations.
    pub marking: Work,
    /// Aging: active lists shortened, generations opened, page tables walked for it.
    pub aging: Work,
}

impl std::ops::AddAssign for WorkFor {
    fn add_assign(&mut self, other: WorkFor) {
        self.marking += other.marking;
        self.aging += other.aging;
    }
}

impl std::ops::Sub for WorkFor {
    type Output = WorkFor;

    fn sub(self, other: WorkFor) -> WorkFor {
        WorkFor { marking: self.marking - other.marking, aging: self.aging - other.aging }
    }
}
