//! [`Frames`]: the frames of a transfer, without an allocation if it is one frame, as of most misses.

use std::ops::Deref;

use pageout_engine::Pfn;

/// Vectors that are kept for later transfers: more are seldom in flight together.
const KEPT_MAX: usize = 16;

/// Frames of pages that follow each other, at least one.
pub(super) enum Frames {
    One([Pfn; 1]),
    Many(Vec<Pfn>),
}

impl From<Pfn> for Frames {
    fn from(pfn: Pfn) -> Frames {
        Frames::One([pfn])
    }
}

impl Deref for Frames {
    type Target = [Pfn];

    #[inline]
    fn deref(&self) -> &[Pfn] {
        match self {
            Frames::One(one) => one,
            Frames::Many(many) => many,
        }
    }
}

impl Frames {
    /// Appends a frame.
    pub(super) fn push(&mut self, pfn: Pfn) {
        match self {
            Frames::One([first]) => *self = Frames::Many(vec![*first, pfn]),
            Frames::Many(many) => many.push(pfn),
        }
    }

    /// Splits off the frames from a number on.
    pub(super) fn split_off(&mut self, at: usize) -> Frames {
        match self {
            Frames::One(_) => panic!("a single frame is split"),
            Frames::Many(many) => Frames::Many(many.split_off(at)),
        }
    }
}

/// Vectors that no transfer has at the moment.
#[derive(Default)]
pub(super) struct Spare(Vec<Vec<Pfn>>);

impl Spare {
    /// Frames in the order of an iterator, which has at least one.
    pub(super) fn collect(&mut self, mut frames: impl Iterator<Item = Pfn>) -> Frames {
        let first = frames.next().expect("a transfer has a frame");
        let Some(second) = frames.next() else { return Frames::One([first]) };
        let mut many = self.0.pop().unwrap_or_default();
        many.extend([first, second]);
        many.extend(frames);
        Frames::Many(many)
    }

    /// A transfer has ended.
    pub(super) fn give_back(&mut self, frames: Frames) {
        if let Frames::Many(mut many) = frames
            && self.0.len() < KEPT_MAX
        {
            many.clear();
            self.0.push(many);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pfns(numbers: impl IntoIterator<Item = u32>) -> Vec<Pfn> {
        numbers.into_iter().map(Pfn).collect()
    }

    #[test]
    fn frames_stay_in_order_and_their_vector_is_used_again() {
        let mut spare = Spare::default();
        let one = spare.collect(pfns([7]).into_iter());
        assert!(matches!(one, Frames::One(_)) && *one == *pfns([7]));
        let mut many = spare.collect(pfns(0..40).into_iter());
        assert_eq!(*many, *pfns(0..40));
        let rest = many.split_off(30);
        assert_eq!((&*many, &*rest), (&*pfns(0..30), &*pfns(30..40)));
        let at = many.as_ptr();
        spare.give_back(many);
        spare.give_back(one);
        assert_eq!(spare.collect(pfns(0..3).into_iter()).as_ptr(), at);
        let mut pushed = Frames::from(Pfn(1));
        (2..5).for_each(|pfn| pushed.push(Pfn(pfn)));
        assert_eq!(*pushed, *pfns(1..5));
    }
}
