//! Weights of nice values: the share of a contended CPU that a task gets.

use pageout_engine::Nanos;

/// Weight of nice 0. Virtual run time is CPU time in units of this weight.
const NICE_0: u64 = 1024;

/// How much of a contended CPU a task gets, relative to the others there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Weight(u64);

impl Weight {
    /// Each step of nice is worth a factor of 5/4: two tasks one step apart get 5/9 and 4/9 of their CPU, which is about a tenth less or more than a
    /// half. The kernel's table rounds these powers in its own way, by up to 1 %.
    ///
    /// # Panics
    /// When there is no such nice value.
    pub(super) fn of_nice(nice: i8) -> Weight {
        assert!((-20..=19).contains(&nice), "there is no nice {nice}");
        let steps = u32::from(nice.unsigned_abs());
        let (up, down) = (5u128.pow(steps), 4u128.pow(steps));
        let (times, by) = if nice < 0 { (up, down) } else { (down, up) };
        Weight(((u128::from(NICE_0) * times + by / 2) / by) as u64)
    }

    /// Virtual run time of so much CPU time.
    pub(super) fn virtual_time(self, span: Nanos) -> u64 {
        if self.0 == NICE_0 {
            span.0
        } else {
            (u128::from(span.0) * u128::from(NICE_0) / u128::from(self.0)) as u64
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_powers_of_five_quarters_around_1024() {
        let of = |nice| Weight::of_nice(nice).0;
        assert_eq!([of(-20), of(-1), of(0), of(1), of(5), of(19)], [88_818, 1280, 1024, 819, 336, 15]);
    }

    #[test]
    fn the_heavier_a_task_the_slower_its_virtual_time() {
        let millisecond = |nice| Weight::of_nice(nice).virtual_time(Nanos(1_000_000));
        assert_eq!((millisecond(0), millisecond(-1), millisecond(1)), (1_000_000, 800_000, 1_250_305));
    }
}
