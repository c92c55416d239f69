//! Counts of work: what the engine did since the start, for the machine to price.
//!
//! The engine knows no time; a machine multiplies these by its cost table. What a call took is how much more it is after it.

macro_rules! work {
    ($($(#[$doc:meta])* $field:ident,)*) => {
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

            /// The sum of all units, each times its factor.
            #[inline]
            pub fn times(&self, factors: &Work) -> u64 {
                0 $(+ self.$field * factors.$field)*
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

work! {
    /// Page faults taken (minor and major).
    faults,
    /// read(2)/write(2) calls of a page that was not a plain hit.
    file_calls,
    /// Pages charged to a memcg beyond the per-CPU stock (walks of the ancestors' counters).
    charges,
    /// Folios inserted into a page cache or swap cache.
    inserted,
    /// Per-CPU batches drained.
    batch_drains,
    /// Folios moved between or within LRU lists.
    list_moves,
    /// Folios that reclaim looked at.
    scanned,
    /// Page-table entries looked at through the reverse map.
    rmap_steps,
    /// Upper page-table entries that a walk came by.
    upper_entries,
    /// Page-table entries looked at side by side: in walks, and around an entry found young.
    ptes_walked,
    /// Page-table entries marked so that the next access through them faults.
    ptes_marked,
    /// Such faults.
    hint_faults,
    /// Page-table entries removed by reclaim, one by one.
    unmapped,
    /// Page-table entries that a process gave up, a table at a time, with the anonymous pages and slots behind them.
    zapped,
    /// Pages of files that became dirty.
    dirtied,
    /// Pages of files whose write was begun.
    written,
    /// Pages reclaimed.
    reclaimed,
    /// Reclaim calls ended.
    reclaim_calls,
    /// Frames that compaction came by.
    compact_scanned,
    /// read(2)s of pages while `kernel.numa_balancing` has tiers in mind.
    marked_with_tiering,
    /// Pages in use whose tier was looked up when they were read again.
    tiers_looked_up,
    /// Pages that were promoted in the order opposite to that in which they were read.
    migrated_backwards,
    /// Hotness records written.
    hotness_recorded,
    /// Hotness records that kmigrated came by.
    hotness_walked,
    /// Statistics flushes, in memcgs flushed.
    stat_flushes,
}

/// What some of the work was for, since the start: parts of all that was done, by the functions that a profile of a kernel would
/// name. Whatever these call is theirs too.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WorkFor {
    /// Moving pages that were used to younger lists: a full batch of activations.
    pub marking: Work,
    /// Aging: active lists shortened, generations opened, page tables walked for it.
    pub aging: Work,
}
