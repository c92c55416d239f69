//! Compressed pages in memory, packed by size: the kernel's zsmalloc, as far as what it takes goes.
//!
//! ```text
//!   length ─► + 8 bytes, rounded up to a size class ─► a zspage of that class with room, else a new one of 1 to 8 pages
//!
//!   class of 3264 bytes    [ page ][ page ][ page ][ page ]       4 pages hold 5 objects, with 64 bytes left over
//!                          [  0  ][  1  ][  2  ][  3  ][  4  ]
//! ```
//! An object may lie across two pages, so a size that fits a page badly wastes little in a longer zspage. Its length depends on the size alone.
//! Classes of equal length and equal number of objects are one. The fullest of the zspages with free places is filled first, so that others become
//! empty and give their pages back. [tiering-zswap-6.12 1.1]
//!
//! Freed objects leave holes. Reclaim can have the objects of a class *compacted*. Those of the emptiest zspages move into the holes of the fullest,
//! until less than a zspage of holes is left (`kmem/zspools.rs`). So a handle names an object, not its place. A host that keeps the objects' bytes asks for
//! the place ([`ZsPool::place`]), and is notified of each move ([`Compacted`]).

use crate::memory::numbered::Numbered;
use crate::units::{PAGE_SIZE, Pfn};
use std::collections::BTreeSet;
use std::ops::Range;

/// Smallest object, and the step from class to class.
const SIZE_MIN: u64 = 32;
const SIZE_STEP: u64 = 16;
const SIZES: usize = ((PAGE_SIZE - SIZE_MIN) / SIZE_STEP) as usize + 1;
/// Data of an object in addition to its contents: its owner.
const HANDLE_BYTES: u64 = 8;
/// Pages of the longest zspage.
pub const ZSPAGE_PAGES_MAX: usize = 8;

/// An object in the pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Handle {
    /// Bytes that it takes.
    pub length: u16,
    /// The object's number in its class.
    object: u32,
}

impl Handle {
    /// In a number that is not 0.
    pub(super) fn pack(self) -> u64 {
        1 << 63 | u64::from(self.length) << 32 | u64::from(self.object)
    }

    pub(super) fn unpack(packed: u64) -> Option<Handle> {
        (packed >> 63 != 0).then_some(Handle { length: (packed >> 32) as u16, object: packed as u32 })
    }
}

/// The pages of a zspage, as many as its class has.
pub type ZspagePages = [Pfn; ZSPAGE_PAGES_MAX];

/// Frames and offset of an object's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ObjectPlace {
    /// The frame of its first byte, and the one that has the rest if it lies across two pages; else twice the same.
    pub frames: [Pfn; 2],
    /// Its first byte in the first frame.
    pub offset: u16,
    /// Its bytes.
    pub length: u16,
}

impl ObjectPlace {
    /// Returns its parts: the frame of each, and the bytes of that frame. There is one part, or two.
    pub fn parts(self) -> impl Iterator<Item = (Pfn, Range<usize>)> {
        let (start, end) = (usize::from(self.offset), usize::from(self.offset) + usize::from(self.length));
        let page = PAGE_SIZE as usize;
        let parts = [(self.frames[0], start..end.min(page)), (self.frames[1], 0..end.saturating_sub(page))];
        parts.into_iter().filter(|(_, bytes)| !bytes.is_empty())
    }
}

/// The outcome of compaction.
#[derive(Default, Debug)]
pub struct Compacted {
    /// Pages of zspages that have become empty.
    pub freed: Vec<Pfn>,
    /// Objects that have moved, in order: from where, and to where. As long as the moves are not carried out, the old places keep their bytes.
    pub moved: Vec<(ObjectPlace, ObjectPlace)>,
    /// No class has a zspage of free places any more.
    pub is_over: bool,
}

struct Zspage {
    objects: Vec<u32>,
    pages: ZspagePages,
    /// Positions from this one on were never used.
    unused_from: u16,
    /// Positions before that without an object.
    free: Vec<u16>,
}

/// Where an object is.
#[derive(Clone, Copy, Default)]
struct InZspage {
    zspage: u32,
    /// Its position there.
    at: u16,
}

struct Class {
    pages: u8,
    objects_max: u16,
    /// Bytes of an object's position.
    size: u16,
    /// By object: its zspage, and its position there.
    places: Numbered<InZspage>,
    zspages: Numbered<Zspage>,
    /// Zspages with free places: how many places, and which zspage. The fullest is the first.
    partial: BTreeSet<(u16, u32)>,
    /// Objects that fit into them.
    room: u64,
}

/// A pool of objects.
pub struct ZsPool {
    /// By size, from the smallest: the class.
    class_of: [u8; SIZES],
    classes: Vec<Class>,
    pages: u64,
    /// Work that calls of its shrinker have left undone.
    pub deferred: u64,
}

/// The pages of a zspage for objects of this size, and how many it holds.
fn layout(size: u64) -> (u64, u64) {
    let waste = |pages: &u64| pages * PAGE_SIZE % size;
    let pages = if size.is_power_of_two() {
        1
    } else {
        (1..=ZSPAGE_PAGES_MAX as u64).min_by_key(waste).expect("there is a shortest")
    };
    (pages, pages * PAGE_SIZE / size)
}

impl Default for ZsPool {
    /// A pool that holds nothing.
    fn default() -> ZsPool {
        let (mut class_of, mut classes) = ([0; SIZES], Vec::new());
        let mut last = None;
        // From the largest, so that a class is as large as the largest size that is laid out like it.
        for at in (0..SIZES).rev() {
            let size = SIZE_MIN + at as u64 * SIZE_STEP;
            let (pages, objects) = layout(size);
            if last != Some((pages, objects)) {
                classes.push(Class {
                    pages: pages as u8,
                    objects_max: objects as u16,
                    size: size as u16,
                    places: Numbered::default(),
                    zspages: Numbered::default(),
                    partial: BTreeSet::new(),
                    room: 0,
                });
                last = Some((pages, objects));
            }
            class_of[at] = (classes.len() - 1) as u8;
        }
        ZsPool { class_of, classes, pages: 0, deferred: 0 }
    }
}

impl ZsPool {
    fn class(&self, length: u16) -> usize {
        let size = (u64::from(length) + HANDLE_BYTES).clamp(SIZE_MIN, PAGE_SIZE);
        self.class_of[(size - SIZE_MIN).div_ceil(SIZE_STEP) as usize].into()
    }

    /// Returns whether an object of this length has a page for itself.
    pub fn is_huge(&self, length: u16) -> bool {
        self.classes[self.class(length)].objects_max == 1
    }

    /// Pages that an object of this length needs: none, or a zspage.
    pub fn wanted(&self, length: u16) -> usize {
        let class = &self.classes[self.class(length)];
        if class.partial.is_empty() { class.pages.into() } else { 0 }
    }

    /// Stores an object; `pages` are as many as were wanted.
    pub fn store(&mut self, length: u16, pages: &[Pfn]) -> Handle {
        let at = self.class(length);
        assert!(u64::from(length) <= PAGE_SIZE, "an object of {length} bytes is stored");
        assert_eq!(pages.len(), self.wanted(length), "pages for an object, and those that it needs");
        let class = &mut self.classes[at];
        if !pages.is_empty() {
            let mut zspage = Zspage {
                objects: Vec::new(),
                pages: ZspagePages::default(),
                unused_from: 0,
                free: Vec::new(),
            };
            zspage.pages[..pages.len()].copy_from_slice(pages);
            let id = class.zspages.insert(zspage);
            class.partial.insert((class.objects_max, id));
            class.room += u64::from(class.objects_max);
            self.pages += pages.len() as u64;
        }
        let object = class.places.insert(InZspage::default());
        let &(_, fullest) = class.partial.first().expect("what was wanted has been given");
        class.put(object, fullest);
        self.assert_pages_counted();
        Handle { length, object }
    }

    /// The place of an object's bytes, until it is freed or moved.
    pub fn place(&self, handle: Handle) -> ObjectPlace {
        let class = &self.classes[self.class(handle.length)];
        class.place(handle.object, handle.length)
    }

    /// Frees an object. The pages of its zspage, if it was the last one there.
    #[must_use]
    pub fn free(&mut self, handle: Handle) -> Option<(ZspagePages, usize)> {
        let at = self.class(handle.length);
        let class = &mut self.classes[at];
        let pages = class.take(handle.object);
        let _ = class.places.remove(handle.object);
        assert!(
            pages.is_none() || self.pages >= u64::from(class.pages),
            "a pool of {} pages loses more",
            self.pages
        );
        self.pages -= if pages.is_some() { u64::from(class.pages) } else { 0 };
        let freed = pages.map(|pages| (pages, class.pages.into()));
        self.assert_pages_counted();
        freed
    }

    /// Zspages have come or gone: the pool has as many pages as they.
    #[inline]
    fn assert_pages_counted(&self) {
        if cfg!(debug_assertions) {
            let of_class = |class: &Class| class.zspages.len() as u64 * u64::from(class.pages);
            let pages: u64 = self.classes.iter().map(of_class).sum();
            assert_eq!(self.pages, pages, "pages of a pool, and of its zspages");
        }
    }

    /// Objects in the pool.
    pub fn objects(&self) -> u64 {
        self.classes.iter().map(|class| class.places.len() as u64).sum()
    }

    /// Pages that compaction would free.
    pub fn compactable(&self) -> u64 {
        let of_class = |class: &Class| class.room / u64::from(class.objects_max) * u64::from(class.pages);
        self.classes.iter().map(of_class).sum()
    }

    /// Moves objects of the emptiest zspages into the fullest, class by class, until each class has less than a zspage of free places, or so many
    /// objects have moved. Another call goes on from there.
    #[doc(alias = "zs_compact")]
    #[must_use]
    pub fn compact(&mut self, most: usize) -> Compacted {
        let Compacted { mut freed, mut moved, .. } = Compacted::default();
        let mut is_over = true;
        for class in &mut self.classes {
            while class.room >= u64::from(class.objects_max) {
                if moved.len() == most {
                    is_over = false;
                    break;
                }
                let (from, to) = (class.partial.last(), class.partial.first());
                let (&(_, from), &(_, to)) = from.zip(to).expect("there is room");
                let emptiest = class.zspages.get(from).expect("a zspage with room is there");
                let object = *emptiest.objects.last().expect("no zspage is empty");
                assert_ne!(from, to, "an object moves to the zspage that it is in");
                let before = class.place(object, class.size);
                let pages = class.take(object);
                class.put(object, to);
                moved.push((before, class.place(object, class.size)));
                freed.extend(pages.iter().flat_map(|pages| &pages[..class.pages.into()]));
            }
        }
        self.pages -= freed.len() as u64;
        self.assert_pages_counted();
        Compacted { freed, moved, is_over }
    }

    /// Pages that it takes.
    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// The frames that it takes, for checkers.
    pub fn frames(&self) -> impl Iterator<Item = Pfn> {
        let of_class = |class: &Class| {
            let pages = usize::from(class.pages);
            class
                .zspages
                .iter()
                .flat_map(move |(_, zspage)| zspage.pages[..pages].to_vec())
                .collect::<Vec<_>>()
        };
        self.classes.iter().flat_map(of_class)
    }

    /// Panics unless the zspages are those of the objects, and no zspage is empty or too full.
    pub fn check_invariants(&self, objects: impl Iterator<Item = Handle>) {
        let mut held = vec![std::collections::BTreeMap::<u32, BTreeSet<u32>>::new(); self.classes.len()];
        for handle in objects {
            let at = self.class(handle.length);
            let InZspage { zspage, .. } = *self.classes[at].object(handle.object);
            assert!(held[at].entry(zspage).or_default().insert(handle.object), "an object has one owner");
        }
        let mut pages = 0;
        for (class, held) in self.classes.iter().zip(held) {
            let mut room_of_all = 0;
            assert_eq!(held.len(), class.zspages.len(), "zspages without an object");
            for (id, zspage) in class.zspages.iter() {
                let objects = zspage.objects.iter().copied().collect();
                assert_eq!(Some(&objects), held.get(&id), "objects of zspage {id}");
                let at = |&object: &u32| class.object(object).at;
                let mut positions: BTreeSet<u16> = zspage.objects.iter().map(at).collect();
                assert_eq!(
                    positions.len(),
                    zspage.objects.len(),
                    "objects of zspage {id} that lie on others"
                );
                positions.extend(&zspage.free);
                let used = positions.iter().copied().eq(0..zspage.unused_from);
                assert!(used && zspage.unused_from <= class.objects_max, "positions of zspage {id}");
                let room = class.room_of(zspage);
                assert_eq!(class.partial.contains(&(room, id)), room > 0, "zspage {id} has room");
                pages += u64::from(class.pages);
                room_of_all += u64::from(room);
            }
            assert_eq!(class.room, room_of_all, "room of a class");
        }
        assert_eq!(self.pages, pages, "pages of the pool");
    }
}

impl Class {
    fn room_of(&self, zspage: &Zspage) -> u16 {
        self.objects_max - zspage.objects.len() as u16
    }

    /// Where an object is.
    fn object(&self, object: u32) -> &InZspage {
        self.places.get(object).expect("an object is freed once")
    }

    /// The place of this many bytes of an object.
    fn place(&self, object: u32, length: u16) -> ObjectPlace {
        let InZspage { zspage, at } = *self.object(object);
        let zspage = self.zspages.get(zspage).expect("an object is in a zspage");
        let first = usize::from(at) * usize::from(self.size);
        let (page, offset) = (first / PAGE_SIZE as usize, (first % PAGE_SIZE as usize) as u16);
        let last = (first + usize::from(length).max(1) - 1) / PAGE_SIZE as usize;
        ObjectPlace { frames: [zspage.pages[page], zspage.pages[last]], offset, length }
    }

    /// Puts an object into a zspage with a free place.
    fn put(&mut self, object: u32, id: u32) {
        let zspage = self.zspages.get_mut(id).expect("a zspage with room is there");
        let room = self.objects_max - zspage.objects.len() as u16;
        assert!(room > 0, "an object is put into zspage {id}, which is full");
        zspage.objects.push(object);
        let at = zspage.free.pop().unwrap_or_else(|| {
            zspage.unused_from += 1;
            zspage.unused_from - 1
        });
        *self.places.get_mut(object).expect("it has a number") = InZspage { zspage: id, at };
        let was_partial = self.partial.remove(&(room, id));
        assert!(was_partial, "zspage {id} has room for {room} and is not found by it");
        if room > 1 {
            self.partial.insert((room - 1, id));
        }
        assert!(self.room > 0, "a class without room takes an object");
        self.room -= 1;
        self.assert_found_by_room(id);
    }

    /// Takes an object out of its zspage. The pages of that, if it was the last one there.
    fn take(&mut self, object: u32) -> Option<ZspagePages> {
        let InZspage { zspage: id, at: position } = *self.object(object);
        let zspage = self.zspages.get_mut(id).expect("an object is in a zspage");
        let room = self.objects_max - zspage.objects.len() as u16;
        let at = zspage.objects.iter().position(|&other| other == object).expect("an object is freed once");
        zspage.objects.swap_remove(at);
        zspage.free.push(position);
        let was_partial = self.partial.remove(&(room, id));
        assert_eq!(was_partial, room > 0, "zspage {id} has room for {room}, or is found by it");
        self.room += 1;
        if !zspage.objects.is_empty() {
            self.partial.insert((room + 1, id));
            self.assert_found_by_room(id);
            return None;
        }
        let pages = zspage.pages;
        let _ = self.zspages.remove(id);
        assert!(self.room >= u64::from(self.objects_max), "a class has less room than its empty zspage");
        self.room -= u64::from(self.objects_max);
        Some(pages)
    }

    /// A zspage has got an object, or lost one: it is found by its free places, or is full.
    #[inline]
    fn assert_found_by_room(&self, id: u32) {
        if cfg!(debug_assertions) {
            let zspage = self.zspages.get(id).expect("a zspage with objects is there");
            let room = self.room_of(zspage);
            assert_eq!(
                self.partial.contains(&(room, id)),
                room > 0,
                "zspage {id} has {room} free slots, but the index by free slots differs"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// The sizes that a class has are told apart by one rule, so a few that can be worked out by hand say it all.
    #[test]
    fn a_zspage_is_as_long_as_wastes_least() {
        assert_eq!(layout(32), (1, 128));
        assert_eq!(layout(2048), (1, 2));
        assert_eq!(layout(4096), (1, 1));
        assert_eq!(layout(3264), (4, 5), "64 bytes are left of four pages");
        assert_eq!(layout(2720), (2, 3), "32 bytes are left of two pages");
        assert_eq!(layout(1536), (3, 8), "nothing is left of three pages");
        assert_eq!(layout(48), (3, 256));
    }

    #[test]
    fn sizes_laid_out_alike_share_a_class_and_what_hardly_shrinks_takes_a_page() {
        let pool = ZsPool::default();
        assert_eq!(pool.class(4000), pool.class(4088));
        assert!(pool.is_huge(4096) && pool.is_huge(4000) && !pool.is_huge(3256));
        assert_eq!(pool.class(24), pool.class(0), "32 bytes");
        assert_ne!(pool.class(24), pool.class(25));
        // Each class ends where the layout changes.
        let layouts: BTreeSet<(u64, u64)> =
            (0..SIZES).map(|at| layout(SIZE_MIN + at as u64 * SIZE_STEP)).collect();
        assert!(pool.classes.len() >= layouts.len());
    }

    /// As many as a recorded pool held, of the mean length there: 11 objects of 2224 bytes in 6 pages. That pool took 3714 pages,
    /// its objects being of all lengths.
    #[test]
    fn objects_of_2213_bytes_cost_little_more_than_their_bytes() {
        let mut pool = ZsPool::default();
        let mut next = 0;
        for _ in 0..6736 {
            let pages: Vec<Pfn> = (next..).take(pool.wanted(2213)).map(Pfn).collect();
            next += pages.len() as u32;
            pool.store(2213, &pages);
        }
        assert_eq!((6736 * 2213_u64).div_ceil(PAGE_SIZE), 3640, "pages of bytes");
        assert_eq!(pool.pages(), 6736_u64.div_ceil(11) * 6);
    }

    /// Bytes of an object, one of each step from class to class: the frame of each, and its place there.
    fn bytes_of(place: ObjectPlace) -> impl Iterator<Item = (Pfn, usize)> {
        let step = SIZE_STEP as usize;
        place.parts().flat_map(move |(pfn, bytes)| bytes.step_by(step).map(move |at| (pfn, at)))
    }

    #[test]
    fn object_across_two_pages_has_two_parts() {
        let mut pool = ZsPool::default();
        let pages: Vec<Pfn> = (0..pool.wanted(3200)).map(|page| Pfn(70 + page as u32)).collect();
        pool.store(3200, &pages);
        let second = pool.store(3200, &[]);
        let place = pool.place(second);
        let parts: Vec<_> = place.parts().collect();
        assert_eq!(parts, [(Pfn(70), 3264..4096), (Pfn(71), 0..2368)]);
    }

    proptest! {
        /// Against objects in a plain list: whatever is stored, freed and compacted, each zspage holds what it may and none is
        /// empty, and pages that were given are given back.
        #[test]
        fn pages_are_those_of_the_objects(
            steps in prop::collection::vec((0..9u8, 0..=4096u16, any::<prop::sample::Index>()), 1..300),
        ) {
            let mut pool = ZsPool::default();
            let mut objects: Vec<Handle> = Vec::new();
            let mut held: BTreeSet<Pfn> = BTreeSet::new();
            // What is in each byte of a frame: the number of the object that was stored there.
            let mut bytes: BTreeMap<(Pfn, usize), u32> = BTreeMap::new();
            let mut stored: Vec<u32> = Vec::new();
            let (mut next, mut number) = (0, 0);
            for (what, length, which) in steps {
                if what == 0 {
                    let before = (pool.pages(), pool.compactable());
                    let most = usize::from(length) % 5 + 1;
                    let mut given_back = 0;
                    loop {
                        let Compacted { freed, moved, is_over } = pool.compact(most);
                        prop_assert!(is_over || moved.len() == most, "it ends early");
                        for (from, to) in moved {
                            let moved: Vec<u32> = bytes_of(from).map(|byte| bytes.get(&byte).copied().unwrap_or(0)).collect();
                            bytes.extend(bytes_of(to).zip(moved));
                        }
                        given_back += freed.len() as u64;
                        for pfn in freed {
                            prop_assert!(held.remove(&pfn), "{pfn:?} is given back twice");
                        }
                        if is_over {
                            break;
                        }
                        pool.check_invariants(objects.iter().copied());
                    }
                    prop_assert_eq!((pool.pages(), pool.compactable()), (before.0 - before.1, 0));
                    prop_assert_eq!(given_back, before.1, "what it promised");
                } else if what < 5 && !objects.is_empty() {
                    stored.swap_remove(which.index(objects.len()));
                    let handle = objects.swap_remove(which.index(objects.len()));
                    if let Some((pages, count)) = pool.free(handle) {
                        for pfn in &pages[..count] {
                            prop_assert!(held.remove(pfn), "{pfn:?} is given back twice");
                        }
                    }
                } else {
                    let pages: Vec<Pfn> = (next..).take(pool.wanted(length)).map(Pfn).collect();
                    next += pages.len() as u32;
                    held.extend(&pages);
                    let handle = pool.store(length, &pages);
                    number += 1;
                    bytes.extend(bytes_of(pool.place(handle)).map(|byte| (byte, number)));
                    objects.push(handle);
                    stored.push(number);
                }
                pool.check_invariants(objects.iter().copied());
                prop_assert_eq!(pool.frames().collect::<BTreeSet<Pfn>>(), held.clone());
                prop_assert_eq!(pool.pages(), held.len() as u64);
            }
            for (&handle, number) in objects.iter().zip(&stored) {
                let place = pool.place(handle);
                prop_assert_eq!(place.length, handle.length);
                prop_assert!(bytes_of(place).all(|byte| bytes[&byte] == *number && held.contains(&byte.0)));
            }
        }
    }
}
