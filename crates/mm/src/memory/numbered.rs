//! Values by number: a value keeps its number, and a number whose value was removed is given out again.
//!
//! ```text
//!   chunks   [ value ][ free ][ value ] ...    [ value ][ free ] ...     512 numbers each: a new chunk moves no value
//!                        ▲                                 │
//!                        └──────── freed before ───────────┘ ◀── freed last, and given out next
//! ```
//! A vector that grows copies everything to fresh memory, and takes both meanwhile. A machine with threads would do that while it holds its lock:
//! 30,000 compressed pages took 0.6 ms, most of it for page faults.

/// Values of a chunk.
const CHUNK: usize = 512;

#[derive(Debug)]
enum Cell<T> {
    Value(T),
    /// No value; the number that was freed before this one.
    Free(Option<u32>),
}

/// Values by number.
#[derive(Debug)]
pub struct Numbered<T> {
    chunks: Vec<Vec<Cell<T>>>,
    /// The number that was freed last.
    free: Option<u32>,
    len: usize,
}

impl<T> Default for Numbered<T> {
    fn default() -> Numbered<T> {
        Numbered { chunks: Vec::new(), free: None, len: 0 }
    }
}

impl<T> Numbered<T> {
    /// Returns how many values there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if there is no value.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds a value. Returns its number.
    pub fn insert(&mut self, value: T) -> u32 {
        self.len += 1;
        if let Some(number) = self.free {
            let cell = self.cell_mut(number).expect("what is free was a value once");
            let Cell::Free(before) = std::mem::replace(cell, Cell::Value(value)) else {
                panic!("{number} is given out while it has a value")
            };
            self.free = before;
            return number;
        }
        if self.chunks.last().is_none_or(|chunk| chunk.len() == CHUNK) {
            // The first one grows: there are many arrays of few values.
            let room = if self.chunks.is_empty() { 0 } else { CHUNK };
            self.chunks.push(Vec::with_capacity(room));
        }
        let before = (self.chunks.len() - 1) * CHUNK;
        let chunk = self.chunks.last_mut().expect("there is one with room");
        chunk.push(Cell::Value(value));
        (before + chunk.len() - 1) as u32
    }

    /// Takes a value out, if there is one of this number.
    pub fn remove(&mut self, number: u32) -> Option<T> {
        let free = self.free;
        let cell = self.cell_mut(number)?;
        if matches!(cell, Cell::Free(_)) {
            return None;
        }
        let Cell::Value(value) = std::mem::replace(cell, Cell::Free(free)) else {
            unreachable!("it was looked at")
        };
        self.free = Some(number);
        self.len -= 1;
        Some(value)
    }

    fn cell_mut(&mut self, number: u32) -> Option<&mut Cell<T>> {
        self.chunks.get_mut(number as usize / CHUNK)?.get_mut(number as usize % CHUNK)
    }

    /// The value of a number, if there is one.
    #[inline]
    pub fn get(&self, number: u32) -> Option<&T> {
        match self.chunks.get(number as usize / CHUNK)?.get(number as usize % CHUNK)? {
            Cell::Value(value) => Some(value),
            Cell::Free(_) => None,
        }
    }

    /// The same, for a change.
    #[inline]
    pub fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        match self.cell_mut(number)? {
            Cell::Value(value) => Some(value),
            Cell::Free(_) => None,
        }
    }

    /// All values with their numbers, in order.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        (0..).zip(self.chunks.iter().flatten()).filter_map(|(number, cell)| match cell {
            Cell::Value(value) => Some((number, value)),
            Cell::Free(_) => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn values_and_numbers_are_those_of_a_vector_with_a_list_of_free_numbers(
            steps in prop::collection::vec((0_u8..5, 0_u32..2000), 1..2000),
        ) {
            let mut numbered = Numbered::default();
            let (mut values, mut free): (Vec<Option<u32>>, Vec<u32>) = (Vec::new(), Vec::new());
            for (kind, value) in steps {
                if kind < 3 {
                    let number = free.pop().unwrap_or_else(|| {
                        values.push(None);
                        values.len() as u32 - 1
                    });
                    values[number as usize] = Some(value);
                    prop_assert_eq!(numbered.insert(value), number);
                } else {
                    let before = values.get_mut(value as usize).and_then(Option::take);
                    free.extend(before.map(|_| value));
                    prop_assert_eq!(numbered.remove(value), before);
                }
                prop_assert_eq!(numbered.get(value), values.get(value as usize).and_then(Option::as_ref));
                prop_assert_eq!(numbered.get_mut(value).copied(), numbered.get(value).copied());
            }
            let all: Vec<(u32, u32)> =
                (0..).zip(&values).filter_map(|(number, value)| Some((number, (*value)?))).collect();
            prop_assert_eq!(numbered.len(), all.len());
            prop_assert_eq!(numbered.is_empty(), all.is_empty());
            prop_assert_eq!(numbered.iter().map(|(number, &value)| (number, value)).collect::<Vec<_>>(), all);
        }
    }
}
