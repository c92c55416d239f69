//! A frame: where each folio is, as words to draw.
//!
//! Lists come in the order of groups and nodes, each from its hot end to its cold end. A folio is two words, its first frame and its state:
//!
//! ```text
//!   bit   0           1       2           3      4          5       6     7..8     9..12   13..20  21..24
//!         referenced  active  workingset  dirty  writeback  locked  anon  counter  order   group   node
//! ```
//! With objects, the words of their pages follow, one each: 0 unknown, 1 evicted, 2 on swap, 3 in zswap. From 4 on the page is in memory, and the
//! bits from 3 on are the number of its list, from 1.

use std::collections::BTreeMap;

use pageout_engine::{Figures, ListName, ListPlace, LruType, MemcgId, PageName, PagePlace};
use pageout_study::explain::Range;
use serde_json::{Value, json};

/// Pages of an object that a frame shows at most; of a larger object it shows the first ones.
const OBJECT_PAGES_MAX: u64 = 1 << 18;
/// Pages of all objects that a frame shows at most; later objects are left out.
const OBJECTS_PAGES_MAX: u64 = 1 << 21;

/// Puts the words of all lists into `words`, and those of objects if there are `ranges`. Returns what the words are of.
pub(crate) fn frame(figures: Figures<'_>, ranges: Option<&[Range]>, words: &mut Vec<u32>) -> Value {
    words.clear();
    let groups: BTreeMap<MemcgId, u32> = figures.memcgs().map(|(id, _)| id).zip(0..).collect();
    // Folios of a removed group are shown as the root's.
    let group_of = |memcg: MemcgId| groups.get(&memcg).copied().unwrap_or(0);
    let mut lists: Vec<(ListName, usize, u64)> = Vec::new();
    // By frame, which list it is on, from 1.
    let mut list_of: Vec<u16> = Vec::new();
    figures.visit_lists(&mut |name, pfn| {
        let folio = figures.folio(pfn);
        if lists.last().is_none_or(|(last, ..)| *last != name) {
            lists.push((name, words.len() / 2, 0));
        }
        let list = lists.len();
        lists[list - 1].2 += 1 << folio.order;
        let flags = [
            folio.referenced,
            folio.active,
            folio.workingset,
            folio.dirty,
            folio.writeback,
            folio.locked,
            folio.kind == LruType::Anon,
        ];
        let bits = (0..).zip(flags).fold(0, |bits, (at, is_set)| bits | u32::from(is_set) << at);
        let more = u32::from(folio.counter) << 7
            | u32::from(folio.order & 15) << 9
            | (group_of(folio.memcg) & 255) << 13
            | (u32::from(folio.node.0) & 15) << 21;
        words.extend([pfn.0, bits | more]);
        if ranges.is_some() {
            let at = pfn.0 as usize;
            if list_of.len() <= at {
                list_of.resize(at + 1, 0);
            }
            list_of[at] = list.min(usize::from(u16::MAX)) as u16;
        }
    });
    let rows: Vec<Value> = lists
        .iter()
        .map(|(name, at, pages)| {
            let (place, seq) = match name.place {
                ListPlace::Inactive => ("inactive", None),
                ListPlace::Active => ("active", None),
                ListPlace::Generation(seq) => ("generation", Some(seq)),
                ListPlace::SingleList => ("list", None),
                ListPlace::Unevictable => ("unevictable", None),
                ListPlace::NoList => ("none", None),
            };
            json!({
                "group": group_of(name.memcg), "node": name.node.0, "kind": kind(name.kind), "place": place, "seq": seq,
                "at": at, "pages": pages,
            })
        })
        .collect();
    let folios = words.len() / 2;
    let mut objects = Vec::new();
    let mut left = OBJECTS_PAGES_MAX;
    for range in ranges.unwrap_or_default() {
        let shown = range.pages.min(OBJECT_PAGES_MAX).min(left);
        left -= shown;
        objects.push(json!({ "name": range.name, "at": words.len(), "pages": shown, "all": range.pages }));
        for page in 0..shown {
            words.push(match figures.page_place(page_of(range, page)) {
                PagePlace::Unknown => 0,
                PagePlace::Evicted => 1,
                PagePlace::Swapped => 2,
                PagePlace::Compressed => 3,
                PagePlace::Present(pfn) => {
                    4 | u32::from(list_of.get(pfn.0 as usize).copied().unwrap_or(0)) << 3
                }
            });
        }
    }
    json!({ "folios": folios, "lists": rows, "objects": objects })
}

/// A page of a file or an object by its number there.
pub(crate) fn page_of(range: &Range, at: u64) -> PageName {
    match range.first {
        PageName::File { file, page } => PageName::File { file, page: page + at },
        PageName::Anon { mm, page } => PageName::Anon { mm, page: page + at },
    }
}

/// The type as the kernel's counters name it.
pub(crate) fn kind(of: LruType) -> &'static str {
    pageout_study::explain::type_name(of)
}
