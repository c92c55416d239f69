//! An array of zeroes, some of which are something else.
//!
//! ```text
//!   flat   [ 0 ][ 3 ][ 0 ][ 0 ] ...                                        from the allocator: one look-up
//!
//!   tree   tops         [ directory ][ none ][ directory ] ...             for a host that counts memory (`table_memory.rs`):
//!          directories  [ chunk ][ none ][ none ][ chunk ] ... 128         what is zero takes none, but for 8 bytes for 4096 entries
//!          chunks       [ 0 ][ 3 ] ... 32
//! ```
//! Tables by node of a file of 1 TiB have 4 million entries. If pages of it are read here and there, each lies in another page of a flat array. So the
//! array would be in memory before the cache is full.

use crate::memory::table_memory::{Counted, TableMemory};

/// Entries of a chunk.
const CHUNK: usize = 32;
/// Chunks of a directory.
const DIRECTORY: usize = 128;
/// Entries below a directory.
const TOP: usize = CHUNK * DIRECTORY;

/// Bytes that an allocation of a `T` counts: it has a head, and the allocator keeps free pieces between others.
const fn allocated<T>() -> usize {
    size_of::<T>() + size_of::<T>() / 4 + 16
}

/// An array of `len` entries, zeroes at first.
#[derive(Debug)]
pub struct Sparse<T>(Form<T>);

#[derive(Debug)]
enum Form<T> {
    Flat(Vec<T>),
    Tree(Tree<T>),
}

#[derive(Debug)]
struct Tree<T> {
    len: usize,
    tops: Vec<Option<Box<Directory<T>>>>,
    counted: Counted,
}

#[derive(Debug)]
struct Directory<T> {
    /// Chunks that there are.
    used: usize,
    chunks: [Option<Box<Chunk<T>>>; DIRECTORY],
}

#[derive(Debug)]
struct Chunk<T> {
    /// Entries that are not zero.
    used: usize,
    entries: [T; CHUNK],
}

impl<T: Copy + Default + PartialEq> Sparse<T> {
    /// Zeroes, as many as this.
    pub fn new(len: usize, memory: &TableMemory) -> Sparse<T> {
        if !memory.is_counted() {
            return Sparse(Form::Flat(vec![T::default(); len]));
        }
        let mut tree = Tree { len: 0, tops: Vec::new(), counted: Counted::allocated(memory, 0) };
        tree.resize(len);
        Sparse(Form::Tree(tree))
    }

    /// Returns how many entries there are, zeroes included.
    #[inline(always)]
    pub fn len(&self) -> usize {
        match &self.0 {
            Form::Flat(entries) => entries.len(),
            Form::Tree(tree) => tree.len,
        }
    }

    /// Returns whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns an entry.
    ///
    /// # Panics
    /// Panics beyond the end.
    #[inline(always)]
    pub fn get(&self, at: usize) -> T {
        match &self.0 {
            Form::Flat(entries) => entries[at],
            Form::Tree(tree) => tree.get(at),
        }
    }

    /// Replaces an entry.
    ///
    /// # Panics
    /// Panics beyond the end.
    #[inline(always)]
    pub fn set(&mut self, at: usize, entry: T) {
        match &mut self.0 {
            Form::Flat(entries) => entries[at] = entry,
            Form::Tree(tree) => tree.set(at, entry),
        }
    }

    /// Changes the number of entries. New ones are zeroes. If there are fewer, those that go must be zeroes.
    pub fn resize(&mut self, len: usize) {
        match &mut self.0 {
            Form::Flat(entries) if len <= entries.len() => entries.truncate(len),
            Form::Flat(entries) => {
                // Zeroes behind what there was take memory where they are first written.
                let mut to = vec![T::default(); len];
                to[..entries.len()].copy_from_slice(entries);
                *entries = to;
            }
            Form::Tree(tree) => tree.resize(len),
        }
    }

    /// The entries that are not zero, with their places, in order.
    pub fn iter(&self) -> impl Iterator<Item = (usize, T)> {
        let (flat, tree) = match &self.0 {
            Form::Flat(entries) => (Some(entries), None),
            Form::Tree(tree) => (None, Some(tree)),
        };
        let flat = flat.into_iter().flat_map(|entries| entries.iter().copied().enumerate());
        let tree = tree.into_iter().flat_map(Tree::iter);
        flat.chain(tree).filter(|(_, entry)| *entry != T::default())
    }

    /// Bytes that it takes at most.
    pub fn bytes(&self) -> usize {
        match &self.0 {
            Form::Flat(entries) => size_of_val(&**entries),
            Form::Tree(tree) => tree.counted.bytes() as usize,
        }
    }
}

impl<T: Copy + Default + PartialEq> Clone for Sparse<T> {
    fn clone(&self) -> Sparse<T> {
        match &self.0 {
            Form::Flat(entries) => Sparse(Form::Flat(entries.clone())),
            Form::Tree(tree) => {
                let mut to = Sparse::new(tree.len, tree.counted.memory());
                tree.iter().for_each(|(at, entry)| to.set(at, entry));
                to
            }
        }
    }
}

impl<T: Copy + Default + PartialEq> Tree<T> {
    #[inline(never)]
    fn get(&self, at: usize) -> T {
        assert!(at < self.len, "there is no entry {at}");
        let directory = self.tops[at / TOP].as_ref();
        let chunk = directory.and_then(|directory| directory.chunks[at / CHUNK % DIRECTORY].as_ref());
        chunk.map_or(T::default(), |chunk| chunk.entries[at % CHUNK])
    }

    fn set(&mut self, at: usize, entry: T) {
        assert!(at < self.len, "there is no entry {at}");
        let is_zero = entry == T::default();
        let top = &mut self.tops[at / TOP];
        let directory = match top {
            Some(directory) => directory,
            None if is_zero => return,
            None => {
                self.counted.add(allocated::<Directory<T>>());
                top.insert(Box::new(Directory { used: 0, chunks: [const { None }; DIRECTORY] }))
            }
        };
        let place = &mut directory.chunks[at / CHUNK % DIRECTORY];
        let chunk = match place {
            Some(chunk) => chunk,
            None if is_zero => return,
            None => {
                self.counted.add(allocated::<Chunk<T>>());
                directory.used += 1;
                place.insert(Box::new(Chunk { used: 0, entries: [T::default(); CHUNK] }))
            }
        };
        let before = std::mem::replace(&mut chunk.entries[at % CHUNK], entry);
        chunk.used += usize::from(!is_zero);
        chunk.used -= usize::from(before != T::default());
        if chunk.used > 0 {
            return;
        }
        *place = None;
        self.counted.sub(allocated::<Chunk<T>>());
        directory.used -= 1;
        if directory.used == 0 {
            *top = None;
            self.counted.sub(allocated::<Directory<T>>());
        }
    }

    fn resize(&mut self, len: usize) {
        debug_assert!(
            self.iter().all(|(at, entry)| at < len || entry == T::default()),
            "an entry is cut off"
        );
        let before = self.tops.capacity();
        self.tops.resize_with(len.div_ceil(TOP), || None);
        self.tops.shrink_to_fit();
        self.len = len;
        let of_top = size_of::<Option<Box<Directory<T>>>>();
        self.counted.add(self.tops.capacity() * of_top);
        self.counted.sub(before * of_top);
    }

    fn iter(&self) -> impl Iterator<Item = (usize, T)> {
        let directories = self.tops.iter().enumerate();
        let directories = directories.filter_map(|(at, top)| Some((at * TOP, top.as_ref()?)));
        let chunks = directories.flat_map(|(first, directory)| {
            let chunks = directory.chunks.iter().enumerate();
            chunks.filter_map(move |(at, chunk)| Some((first + at * CHUNK, chunk.as_ref()?)))
        });
        chunks.flat_map(|(first, chunk)| (first..).zip(chunk.entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::table_memory::{TableHost, WordArray};
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

    /// A host that only counts.
    #[derive(Default)]
    struct Counting(AtomicI64);

    impl TableHost for Counting {
        fn reserve(&self, _: usize) -> Option<Arc<dyn WordArray>> {
            None
        }

        fn count_words(&self, _: i64) {}

        fn count_allocated(&self, bytes: i64) {
            self.0.fetch_add(bytes, Relaxed);
        }
    }

    proptest! {
        #[test]
        fn both_forms_are_the_same_array(
            sizes in prop::collection::vec(1..40_000usize, 1..5),
            changes in prop::collection::vec((0..40_000usize, 0..3u16), 1..200),
        ) {
            let host = Arc::new(Counting::default());
            for memory in [TableMemory::default(), TableMemory::of(host.clone())] {
                let mut sizes = sizes.clone();
                sizes.sort_unstable();
                let (mut sparse, mut model) = (Sparse::new(0, &memory), BTreeMap::new());
                for len in sizes {
                    sparse.resize(len);
                    for (at, entry) in changes.iter().map(|&(at, entry)| (at % len, entry)) {
                        sparse.set(at, entry);
                        model.insert(at, entry);
                        prop_assert_eq!(sparse.get(at), entry);
                    }
                    model.retain(|_, entry| *entry != 0);
                    prop_assert_eq!(sparse.iter().collect::<BTreeMap<_, _>>(), model.clone());
                    prop_assert_eq!(sparse.len(), len);
                }
                if memory.is_counted() {
                    prop_assert_eq!(host.0.load(Relaxed), sparse.bytes() as i64);
                }
                let last = model.last_key_value().map_or(0, |(at, _)| at + 1);
                sparse.resize(last);
                model.keys().for_each(|&at| sparse.set(at, 0));
                if memory.is_counted() {
                    prop_assert_eq!(sparse.bytes(), last.div_ceil(TOP) * size_of::<usize>());
                }
            }
            prop_assert_eq!(host.0.load(Relaxed), 0);
        }
    }

    #[test]
    fn entries_far_apart_take_little_memory() {
        let memory = TableMemory::of(Arc::new(Counting::default()));
        let mut sparse: Sparse<u64> = Sparse::new(4 << 20, &memory);
        assert!(sparse.bytes() <= 8 << 10, "{} bytes without an entry", sparse.bytes());
        (0..1000).for_each(|at| sparse.set(at * 4000, 7));
        assert!(sparse.bytes() < 2 << 20, "{} bytes", sparse.bytes());
    }
}
