//! Rules of harvest: how accessed bits are found. [reclaim 4.5]

/// How accessed bits are found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Harvest {
    /// From the folio that reclaim has in its hands, through the reverse map. Without it every mapped page looks idle
    /// there: it shows what accessed bits are worth.
    pub rmap: bool,
    /// From address spaces: when generations age, and once a turn of inactive lists.
    pub page_table_walk: bool,
    /// A walk passes by tables whose upper entry's accessed bit says that nothing below was used. Some processors don't
    /// set it.
    pub non_leaf_young: bool,
    /// A walk passes by tables in which the last one found too little.
    pub bloom_filter: bool,
    /// Where the reverse map finds an entry young, its neighbours are looked at too.
    pub look_around: bool,
    /// A walk passes by address spaces that have not run since the last one.
    pub mm_skip: bool,
}

impl Harvest {
    /// Whether accessed bits are also cleared where reclaim did not ask for them.
    #[inline]
    pub fn sees_elsewhere(self) -> bool {
        self.page_table_walk || self.look_around
    }

    pub(crate) fn rmap_only() -> Harvest {
        Harvest {
            page_table_walk: false,
            non_leaf_young: false,
            look_around: false,
            ..Harvest::page_table_walk()
        }
    }

    pub(crate) fn page_table_walk() -> Harvest {
        Harvest {
            rmap: true,
            page_table_walk: true,
            non_leaf_young: true,
            bloom_filter: true,
            look_around: true,
            mm_skip: true,
        }
    }
}
