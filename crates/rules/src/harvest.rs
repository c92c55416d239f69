//! Rules of harvest: how accessed bits are found. [reclaim 4.5]

use crate::choice::choice;
use crate::switch::rules;

choice! {
    /// Which advice on a mapping takes the meaning from uses of its pages (`vma_has_recency`).
    Recency {
        /// Sequential: a use does not count, whoever finds it. Random: it counts where the reverse map finds it and at exit, but walks pass by the
        /// mapping, and a fault is no sign of use. POSIX_FADV_NOREUSE: none. Up to 6.2.
        Sequential = "sequential",
        /// Sequential, random, and POSIX_FADV_NOREUSE of the open file: uses are not even looked for. Since 6.3.
        AllAdvice = "all_advice",
    }
}

choice! {
    /// What a look around makes of the entries that it finds young.
    Neighbours {
        /// Fewer than 15 pages of older generations are promoted through the activation batch; more become youngest at once. The entry of the page in hand is among those
        /// looked at and counts as its second use, so that reclaim activates the page. 6.1.
        AtOnce = "6.1",
        /// All are promoted through the activation batch. The page in hand is kept where this was its first use. Since 6.12.
        Batched = "6.12",
    }
}

rules! {
    /// How accessed bits are found.
    Harvest at group.harvest as HARVEST {
    }
    "harvest.rmap": rmap: bool = true,
        [true => ".." "A B C D", false => "never" ""],
        Some(("program-code.toml", "false")),
        "Reclaim asks through the reverse map whether a mapped page in its hands was used. Without it such a page looks idle: what accessed bits are worth.";
    "harvest.page_table_walk": page_table_walk: bool = false,
        [false => "two_lists .." "A B C D", true => "generations 6.1.." "A B C D M"],
        Some(("mechanisms.toml", "false")),
        "Page tables are walked for used pages: when generations age, or on two lists once a turn of the inactive ones. A walk costs by the number of pages accessed. Without it only the reverse map finds used pages, one by one.";
    "harvest.non_leaf_young": non_leaf_young: bool = false,
        [false => "two_lists .." "A B C D", true => "generations 6.1.." "A B C D"],
        Some(("mechanisms.toml", "false")),
        "A walk passes by page tables whose upper entry was not accessed. Some processors don't record that.";
    "harvest.bloom_filter": bloom_filter: bool = true,
        [true => "6.1.." "A B C D", false => "never" ""],
        Some(("mechanisms.toml", "false")),
        "A walk passes by page tables in which the last one found fewer than one young entry in eight.";
    "harvest.look_around": look_around: bool = false,
        [false => "two_lists .." "A B C D", true => "generations 6.1.." "A B C D"],
        Some(("mechanisms.toml", "false")),
        "Where the reverse map finds a young entry, the 64 around it are looked at too.";
    "harvest.neighbours": neighbours: Neighbours = Neighbours::Batched,
        [Neighbours::AtOnce => "generations 6.1..6.1" "A", Neighbours::Batched => "generations 6.12.." "B C"],
        Some(("mechanisms.toml", "6.1")),
        "What a look around makes of what it finds. With 15 young neighbours or more they are youngest at once, and the page in hand is activated (6.1); or each is promoted through the activation batch, and the page in hand is kept (6.12), which is the same generation, without a swap slot given up and without a count of activations.";
    "harvest.recency": recency: Recency = Recency::AllAdvice,
        [Recency::Sequential => "..6.2" "A", Recency::AllAdvice => "6.3.." "B m"],
        Some(("regressions/c14-random-uses-that-counted.toml", "sequential")),
        "Which advice on a mapping takes the meaning from uses of its pages. madvise(MADV_SEQUENTIAL) alone, while uses of a mapping advised random count where the reverse map finds them (up to 6.2), or either and POSIX_FADV_NOREUSE of the open file (since 6.3): whoever says that uses tell nothing loses pages sooner to others.";
    "harvest.mm_skip": mm_skip: bool = true,
        [true => "6.1.." "A B C D", false => "never" ""],
        Some(("groups-by-age.toml", "false")),
        "A walk passes by address spaces that have not run since the last one. What it leaves out has no young entries, so this saves time, and changes what is reclaimed where walks overtake each other.";
}

impl Harvest {
    /// Whether accessed bits are also cleared where reclaim did not ask for them.
    #[inline]
    pub fn sees_elsewhere(self) -> bool {
        self.page_table_walk || self.look_around
    }
}
