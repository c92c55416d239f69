//! Rules of harvest: how accessed bits are found. [reclaim 4.5]

use crate::choice::choice;
use crate::declare::rules;

choice! {
    /// The hints after which uses of a mapping's pages do not count as recency (`vma_has_recency`).
    Recency {
        /// MADV_SEQUENTIAL: no use of such a mapping counts. With MADV_RANDOM, uses count if the reverse map finds them or if they exist at exit, but
        /// walks skip the mapping, and a fault does not count as a use. POSIX_FADV_NOREUSE has no effect.
        Sequential = "sequential",
        /// MADV_SEQUENTIAL, MADV_RANDOM, and POSIX_FADV_NOREUSE of the open file: reclaim does not even look
        /// for uses.
        AllAdvice = "all_advice",
    }
}

choice! {
    /// What a look around does with the page-table entries that it finds young.
    Neighbours {
        /// A look around promotes fewer than 15 pages of older generations through the activation batch, and
        /// makes 15 or more youngest directly. The page that reclaim is checking has its entry among those
        /// looked at. That entry counts as a second use, so reclaim activates the page.
        AtOnce = "6.1",
        /// A look around promotes all of them through the activation batch. Reclaim keeps the page that it is
        /// checking if this was its first use.
        Batched = "6.12",
    }
}

rules! {
    /// How accessed bits are found.
    AccessedBits at group.harvest as ACCESSED_BITS {
    }
    "harvest.rmap": rmap: bool = true,
        [true => ".." "A B C D", false => "never" ""],
        Some(("program-code.toml", "false")),
        "Reclaim asks the reverse map whether a mapped page that it has isolated was used. Without it such a page looks idle. The switch shows what accessed bits are worth.";
    "harvest.page_table_walk": page_table_walk: bool = false,
        [false => "two_lists .." "A B C D", true => "generations 6.1.." "A B C D M"],
        Some(("mechanisms.toml", "false")),
        "Page tables are walked to find used pages. With MGLRU this happens when generations age; with the classic LRU, once per turn of the inactive list. The cost of a walk grows with the number of pages accessed. Without it only the reverse map finds used pages, one by one.";
    "harvest.non_leaf_young": non_leaf_young: bool = false,
        [false => "two_lists .." "A B C D", true => "generations 6.1.." "A B C D"],
        Some(("mechanisms.toml", "false")),
        "A walk skips page tables whose upper entry was not accessed. Some processors do not record accesses in upper entries.";
    "harvest.bloom_filter": bloom_filter: bool = true,
        [true => "6.1.." "A B C D", false => "never" ""],
        Some(("mechanisms.toml", "false")),
        "A walk skips page tables in which the previous walk found fewer than one young entry in eight.";
    "harvest.look_around": look_around: bool = false,
        [false => "two_lists .." "A B C D", true => "generations 6.1.." "A B C D"],
        Some(("mechanisms.toml", "false")),
        "When the reverse map finds a young entry, the 64 entries around it are checked too.";
    "harvest.neighbours": neighbours: Neighbours = Neighbours::Batched,
        [Neighbours::AtOnce => "generations 6.1..6.1" "A", Neighbours::Batched => "generations 6.12.." "B C"],
        Some(("mechanisms.toml", "6.1")),
        "What a look-around does with the young entries that it finds. `6.1`: it makes 15 or more pages youngest directly, and reclaim activates the page that it is checking. `6.12`: it promotes each page through the activation batch, and reclaim keeps the page that it is checking. That page ends in the same generation, but keeps its swap slot and is not counted as activated.";
    "harvest.recency": recency: Recency = Recency::AllAdvice,
        [Recency::Sequential => "..6.2" "A", Recency::AllAdvice => "6.3.." "B m"],
        Some(("regressions/c14-random-uses-that-counted.toml", "sequential")),
        "Which hints make uses through a mapping count for nothing, so that its program loses pages sooner than others. `sequential`: madvise(MADV_SEQUENTIAL) alone; after MADV_RANDOM, uses count if the reverse map finds them. `all_advice`: both, and POSIX_FADV_NOREUSE of the open file.";
    "harvest.mm_skip": mm_skip: bool = true,
        [true => "6.1.." "A B C D", false => "never" ""],
        Some(("groups-by-age.toml", "false")),
        "A walk skips address spaces that have not run since the last walk. Their page tables have no young entries, so this saves time. It changes what is reclaimed only if walks overtake each other.";
}

impl AccessedBits {
    /// Returns whether accessed bits are also cleared where reclaim did not ask for them.
    #[inline]
    pub fn sees_elsewhere(self) -> bool {
        self.page_table_walk || self.look_around
    }
}
