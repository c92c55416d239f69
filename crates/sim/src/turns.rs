//! Turns: tasks that go through one sequence of accesses together. A task that has made an access hands the turn on to the task with the next one.
//!
//! ```text
//!   sequence   a a b a b b      task a makes two, wakes b and parks; b makes one, wakes a and parks; ...
//! ```
//! So what several tasks, each with a cgroup of its own, did to one memory is replayed in the order in which they did it.

use std::sync::Arc;

/// What a task knows of the turns that it takes.
pub(crate) struct Turn {
    /// Its number among those that take turns.
    pub(crate) own: u16,
    /// Whose each access is.
    pub(crate) order: Arc<[u16]>,
    /// Its own accesses, in total.
    all: u64,
    /// Number of its own accesses from the next one on, as far as the lookahead goes.
    pub(crate) granted: u64,
}

impl Turn {
    pub(crate) fn new(own: u16, order: Arc<[u16]>) -> Turn {
        let all = order.iter().filter(|&&whose| whose == own).count() as u64;
        Turn { own, order, all, granted: 0 }
    }
}

/// Accesses that are granted at a time.
const GRANTED_MAX: usize = 4096;

/// Where the sequence is, and who waits.
#[derive(Default)]
pub(crate) struct Turns {
    /// The next access.
    next: usize,
    /// By number: accesses that were counted.
    made: Vec<u64>,
    /// By number: the task, if it has parked.
    parked: Vec<Option<u32>>,
}

/// What a task that comes by is to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Comes {
    /// The next access is its own, or there is none.
    GoesOn,
    /// It is another's. If that one has parked before, it is to be woken. This one parks, unless it has made all of its own.
    PassesOn { woken: Option<u32>, parks: bool },
}

impl Turns {
    /// Task `index` comes by, having made this many accesses in total.
    pub(crate) fn comes(&mut self, index: u32, turn: &mut Turn, made: u64) -> Comes {
        let own = usize::from(turn.own);
        if self.made.len() <= own {
            self.made.resize(own + 1, 0);
            self.parked.resize(own + 1, None);
        }
        self.next += (made - self.made[own]) as usize;
        self.made[own] = made;
        let rest = &turn.order[self.next.min(turn.order.len())..];
        match rest.first() {
            Some(&whose) if whose != turn.own => {
                let parks = made < turn.all;
                self.parked[own] = parks.then_some(index);
                let woken = self.parked.get_mut(usize::from(whose)).and_then(Option::take);
                Comes::PassesOn { woken, parks }
            }
            _ => {
                let of_own = rest.iter().take(GRANTED_MAX).take_while(|&&whose| whose == turn.own);
                turn.granted = of_own.count() as u64;
                Comes::GoesOn
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_has_the_next_access_goes_on_and_all_others_park() {
        let order: Arc<[u16]> = [0, 0, 1, 0, 1, 1].into();
        let (mut a, mut b) = (Turn::new(0, Arc::clone(&order)), Turn::new(1, order));
        let mut turns = Turns::default();
        let parks = |woken| Comes::PassesOn { woken, parks: true };
        assert_eq!(turns.comes(11, &mut b, 0), parks(None), "a has not come by, so nobody is woken");
        assert_eq!((turns.comes(10, &mut a, 0), a.granted), (Comes::GoesOn, 2));
        assert_eq!(turns.comes(10, &mut a, 2), parks(Some(11)));
        assert_eq!((turns.comes(11, &mut b, 0), b.granted), (Comes::GoesOn, 1));
        assert_eq!(turns.comes(11, &mut b, 1), parks(Some(10)));
        assert_eq!((turns.comes(10, &mut a, 2), a.granted), (Comes::GoesOn, 1));
        let last = Comes::PassesOn { woken: Some(11), parks: false };
        assert_eq!(turns.comes(10, &mut a, 3), last, "it has made all of its own");
        assert_eq!((turns.comes(11, &mut b, 1), b.granted), (Comes::GoesOn, 2));
        assert_eq!(turns.comes(11, &mut b, 3), Comes::GoesOn, "the sequence is over");
    }
}
