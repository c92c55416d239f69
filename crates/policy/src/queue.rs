//! Queues of slots: what most policies stand their pages in. A slot is in one queue at most of those that share its links.
//!
//! ```text
//!     head  [ newest ] ⇄ [ ] ⇄ [ ] ⇄ [ oldest ]  tail
//! ```

use crate::Slot;

/// No slot.
const NONE: u32 = u32::MAX;

/// By slot: its neighbours towards the head and towards the tail. As large as the largest slot that was ever in a queue.
#[derive(Clone, Default, Debug)]
pub struct Links {
    at: Vec<[u32; 2]>,
}

/// A queue of slots, by links that it may share with others.
#[derive(Clone, Copy, Debug)]
pub struct Queue {
    head: u32,
    tail: u32,
    len: u32,
}

impl Default for Queue {
    fn default() -> Queue {
        Queue { head: NONE, tail: NONE, len: 0 }
    }
}

const TOWARDS_HEAD: usize = 0;
const TOWARDS_TAIL: usize = 1;

fn slot(number: u32) -> Option<Slot> {
    (number != NONE).then_some(Slot(number))
}

impl Links {
    /// The slot next to this one on the way to the head.
    #[inline]
    pub fn towards_head(&self, of: Slot) -> Option<Slot> {
        slot(self.at[of.index()][TOWARDS_HEAD])
    }

    fn set(&mut self, of: u32, side: usize, to: u32) {
        self.at[of as usize][side] = to;
    }

    fn put(&mut self, of: Slot, links: [u32; 2]) {
        if of.index() >= self.at.len() {
            self.at.resize(of.index() + 1, [NONE; 2]);
        }
        self.at[of.index()] = links;
    }
}

impl Queue {
    /// Returns how many slots are in it.
    #[inline]
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Returns whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The first one, which came last.
    #[inline]
    pub fn head(&self) -> Option<Slot> {
        slot(self.head)
    }

    /// The last one.
    #[inline]
    pub fn tail(&self) -> Option<Slot> {
        slot(self.tail)
    }

    /// Puts a slot that is in no queue before all others.
    #[inline]
    pub fn push_head(&mut self, links: &mut Links, of: Slot) {
        links.put(of, [NONE, self.head]);
        match self.head {
            NONE => self.tail = of.0,
            head => links.set(head, TOWARDS_HEAD, of.0),
        }
        self.head = of.0;
        self.len += 1;
    }

    /// Puts a slot that is in no queue behind all others.
    #[inline]
    pub fn push_tail(&mut self, links: &mut Links, of: Slot) {
        links.put(of, [self.tail, NONE]);
        match self.tail {
            NONE => self.head = of.0,
            tail => links.set(tail, TOWARDS_TAIL, of.0),
        }
        self.tail = of.0;
        self.len += 1;
    }

    /// Takes a slot out of it, which is in it.
    #[inline]
    pub fn remove(&mut self, links: &mut Links, of: Slot) {
        let [before, behind] = links.at[of.index()];
        match before {
            NONE => self.head = behind,
            before => links.set(before, TOWARDS_TAIL, behind),
        }
        match behind {
            NONE => self.tail = before,
            behind => links.set(behind, TOWARDS_HEAD, before),
        }
        self.len -= 1;
    }

    /// Puts a slot that is in it before all others.
    #[inline]
    pub fn move_head(&mut self, links: &mut Links, of: Slot) {
        if self.head != of.0 {
            self.remove(links, of);
            self.push_head(links, of);
        }
    }

    /// Its slots from the tail on.
    pub fn iter_from_tail(self, links: &Links) -> impl Iterator<Item = Slot> {
        std::iter::successors(self.tail(), |&of| links.towards_head(of))
    }

    /// Says what is wrong with it, if its links lead elsewhere or are not as many as it says.
    pub fn check(&self, links: &Links) -> Result<(), String> {
        let (mut behind, mut len) = (NONE, 0);
        let mut at = self.tail;
        while at != NONE && len <= self.len {
            if links.at[at as usize][TOWARDS_TAIL] != behind {
                return Err(format!("slot {at}: the link towards the tail does not lead back"));
            }
            (behind, at, len) = (at, links.at[at as usize][TOWARDS_HEAD], len + 1);
        }
        if (behind, len) != (self.head, self.len) {
            return Err(format!("{len} slots up to {behind} for {} up to {}", self.len, self.head));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Random;
    use std::collections::VecDeque;

    #[test]
    fn a_queue_has_its_slots_in_the_order_of_a_plain_one() {
        let (mut links, mut queue, mut plain) = (Links::default(), Queue::default(), VecDeque::new());
        let mut random = Random::new(3);
        for _ in 0..20_000 {
            let of = Slot(random.below(40) as u32);
            let at = plain.iter().position(|&other| other == of);
            match (at, random.below(3)) {
                (None, 0) => {
                    queue.push_tail(&mut links, of);
                    plain.push_back(of);
                }
                (None, _) => {
                    queue.push_head(&mut links, of);
                    plain.push_front(of);
                }
                (Some(at), 0) => {
                    queue.remove(&mut links, of);
                    plain.remove(at);
                }
                (Some(at), _) => {
                    queue.move_head(&mut links, of);
                    plain.remove(at);
                    plain.push_front(of);
                }
            }
            queue.check(&links).expect("it holds together");
            assert!(queue.iter_from_tail(&links).eq(plain.iter().rev().copied()));
            assert_eq!((queue.head(), queue.tail()), (plain.front().copied(), plain.back().copied()));
        }
    }
}
