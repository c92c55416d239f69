//! The event queue: the next event by (time, sequence number).
//!
//! Virtual time is the time of the event being handled and nothing else moves it. Two events of the same nanosecond happen in the order in which they
//! were pushed, so a run depends on nothing but its inputs. Time never goes back: an event in the past is a bug of the code that pushed it, and is
//! caught here.
//!
//! ```text
//!   push ─▶ due before all others? ─▶ first ─┐
//!                └─▶ heap ───────────────────┴▶ pop
//! ```
//! A pushed event is often the next one that is due: a task that waits for its read, on an otherwise idle machine. It is kept apart, and never enters
//! the heap.
//!
//! The heap is our own because every miss of every task goes through it twice. The standard library's heap writes a new entry in
//! parts and reads it back as a whole. Waiting for those stores took longer than everything else here together.

use pageout_engine::Nanos;

/// Future events of a small, copyable kind `E`, and the present time.
#[derive(Debug)]
pub(crate) struct EventQueue<E> {
    /// When the next event is due; [`NEVER`] while there is none.
    next_at: Nanos,
    /// An event that is due before all of those in the heap; not always is there one.
    first: Option<Entry<E>>,
    /// A binary heap: an entry is due before both of its children, 2i + 1 and 2i + 2.
    heap: Vec<Entry<E>>,
    pushed: u64,
    now: Nanos,
}

/// Beyond the end of all time.
pub(crate) const NEVER: Nanos = Nanos(u64::MAX);

/// An event with its key.
#[derive(Clone, Copy, Debug)]
struct Entry<E> {
    at: Nanos,
    sequence: u64,
    event: E,
}

impl<E> Entry<E> {
    fn is_before(&self, other: &Entry<E>) -> bool {
        (self.at, self.sequence) < (other.at, other.sequence)
    }
}

impl<E: Copy> Default for EventQueue<E> {
    fn default() -> EventQueue<E> {
        EventQueue { next_at: NEVER, first: None, heap: Vec::new(), pushed: 0, now: Nanos::ZERO }
    }
}

impl<E: Copy> EventQueue<E> {
    /// The present: the time of the event popped last, or what [`EventQueue::advance`] was given since.
    pub(crate) fn now(&self) -> Nanos {
        self.now
    }

    /// When the next event is due; [`NEVER`] if there is none.
    #[inline]
    pub(crate) fn next_at(&self) -> Nanos {
        self.next_at
    }

    /// Makes `event` happen at `at`, behind every event already due then.
    ///
    /// # Panics
    /// When `at` is in the past.
    pub(crate) fn push(&mut self, at: Nanos, event: E) {
        assert!(at >= self.now, "event at {at:?} is in the past of {:?}", self.now);
        let entry = Entry { at, sequence: self.pushed, event };
        self.pushed += 1;
        // Among equal times, the one that was pushed earlier comes first.
        if self.next_at <= at {
            return self.sift_up(entry);
        }
        self.next_at = at;
        if let Some(second) = self.first.replace(entry) {
            self.sift_up(second);
        }
    }

    /// Puts an entry into the heap.
    #[inline(never)]
    fn sift_up(&mut self, entry: Entry<E>) {
        let mut hole = self.heap.len();
        self.heap.push(entry);
        while hole > 0 {
            let parent = (hole - 1) / 2;
            if !entry.is_before(&self.heap[parent]) {
                break;
            }
            self.heap[hole] = self.heap[parent];
            hole = parent;
        }
        self.heap[hole] = entry;
    }

    /// The earliest event; its time becomes the present.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(Nanos, E)> {
        let first = match self.first.take() {
            Some(first) => first,
            None => self.pop_heap()?,
        };
        self.now = first.at;
        self.next_at = self.heap.first().map_or(NEVER, |entry| entry.at);
        Some((first.at, first.event))
    }

    /// Takes the earliest entry out of the heap.
    #[inline(never)]
    fn pop_heap(&mut self) -> Option<Entry<E>> {
        let last = self.heap.pop()?;
        let Some(&first) = self.heap.first() else { return Some(last) };
        self.sift_down(last);
        Some(first)
    }

    /// Fills the hole at the top with `entry`, at the cost of its descendants that are due before it.
    fn sift_down(&mut self, entry: Entry<E>) {
        let mut hole = 0;
        loop {
            let left = 2 * hole + 1;
            let Some(mut child) = self.heap.get(left) else { break };
            let mut place = left;
            if let Some(right) = self.heap.get(left + 1).filter(|right| right.is_before(child)) {
                (child, place) = (right, left + 1);
            }
            if !child.is_before(&entry) {
                break;
            }
            self.heap[hole] = *child;
            hole = place;
        }
        self.heap[hole] = entry;
    }

    /// Returns true if something already queued happens before an event pushed now for `at` would.
    #[inline]
    fn is_due_by(&self, at: Nanos) -> bool {
        self.next_at <= at
    }

    /// Moves the present to `to` without an event: how a task goes on inline. It stays where it is, and the answer is false, if
    /// something is due before or at `to`.
    ///
    /// # Panics
    /// When `to` is in the past.
    #[inline]
    #[must_use]
    pub(crate) fn advance(&mut self, to: Nanos) -> bool {
        assert!(to >= self.now, "time would go back from {:?} to {to:?}", self.now);
        let is_free = !self.is_due_by(to);
        if is_free {
            self.now = to;
        }
        is_free
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pageout_workload::rng::SplitMix64;

    #[test]
    fn events_come_in_time_order_and_ties_in_push_order() {
        let mut queue = EventQueue::default();
        for (at, name) in [(30, 'c'), (10, 'a'), (20, 'x'), (20, 'y'), (10, 'b'), (20, 'z')] {
            queue.push(Nanos(at), name);
        }
        let order: String = std::iter::from_fn(|| queue.pop()).map(|(_, name)| name).collect();
        assert_eq!(order, "abxyzc");
        assert_eq!(queue.now(), Nanos(30));
    }

    #[test]
    fn a_new_event_does_not_overtake_one_of_the_same_time() {
        let mut queue = EventQueue::default();
        queue.push(Nanos(5), 'a');
        assert!(queue.is_due_by(Nanos(5)) && !queue.is_due_by(Nanos(4)));
        assert!(queue.advance(Nanos(4)));
        queue.push(Nanos(5), 'b');
        assert_eq!(queue.pop(), Some((Nanos(5), 'a')));
    }

    #[test]
    fn the_heap_agrees_with_a_sorted_list() {
        let mut queue = EventQueue::default();
        let mut list: Vec<(u64, u32)> = Vec::new();
        let mut generator = SplitMix64::new(1);
        for event in 0..20_000 {
            let at = queue.now().0 + generator.below(50);
            queue.push(Nanos(at), event);
            // Behind those of the same time.
            list.insert(list.partition_point(|known| known.0 <= at), (at, event));
            // As many pops as pushes in the long run, in lots, so that the queue is now long and now empty.
            let lot = if generator.below(100) == 0 { 200 } else { 0 };
            for _ in 0..lot.min(list.len()) {
                let (at, event) = list.remove(0);
                assert_eq!(queue.pop(), Some((Nanos(at), event)));
            }
            assert_eq!(
                (queue.heap.len() + usize::from(queue.first.is_some()), queue.next_at()),
                (list.len(), list.first().map_or(NEVER, |next| Nanos(next.0)))
            );
        }
    }

    #[test]
    #[should_panic(expected = "in the past")]
    fn an_event_in_the_past_is_refused() {
        let mut queue = EventQueue::default();
        queue.push(Nanos(5), ());
        queue.pop();
        queue.push(Nanos(4), ());
    }

    #[test]
    fn time_does_not_pass_over_an_event() {
        let mut queue = EventQueue::default();
        queue.push(Nanos(5), ());
        assert!(!queue.advance(Nanos(5)));
        assert_eq!(queue.now(), Nanos(0));
    }
}
