//! An account of CPU time: how much of the kernel's work was done, and what each kind of it took.
//!
//! A profile says where a kernel's time goes by its functions. Here the same is read off the prices: each unit of work and each
//! operation costs so much ([`Costs`]), and an account holds how many there were.

use std::ops::{AddAssign, Sub};

use pageout_engine::{Nanos, Op, Work};

use crate::cost::Costs;

/// Work and operations that take CPU time.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Account {
    pub(crate) work: Work,
    zeroed: u64,
    compressed: u64,
    decompressed: u64,
    copied: u64,
}

impl Account {
    /// Adds an operation; transfers take time of a device instead.
    pub(crate) fn add(&mut self, op: &Op) {
        match *op {
            Op::Zero { pages, .. } => self.zeroed += u64::from(pages),
            Op::WriteSwapNow { .. } | Op::ZswapStore { .. } => self.compressed += 1,
            Op::ReadSwapNow { .. } | Op::ZswapLoad { .. } => self.decompressed += 1,
            Op::Copy { pages, .. } => self.copied += u64::from(pages),
            Op::ReadFile { .. }
            | Op::WriteFile { .. }
            | Op::ReadSwap { .. }
            | Op::WriteSwap { .. }
            | Op::ZswapFree { .. }
            | Op::FreeFrame { .. }
            | Op::FreeSlot { .. } => {}
        }
    }

    /// CPU time by what it was spent on, in the order of the price table.
    pub(crate) fn spent(&self, costs: &Costs) -> Vec<(&'static str, Nanos)> {
        let ops = [
            ("zeroed", self.zeroed * costs.zero),
            ("compressed", self.compressed * costs.compress),
            ("decompressed", self.decompressed * costs.decompress),
            ("copied", self.copied * costs.migrate),
        ];
        let mut spent = costs.price_each(&self.work);
        spent.extend(ops.map(|(name, spent)| (name, Nanos(spent))));
        spent
    }
}

impl AddAssign for Account {
    fn add_assign(&mut self, other: Account) {
        self.work += other.work;
        self.zeroed += other.zeroed;
        self.compressed += other.compressed;
        self.decompressed += other.decompressed;
        self.copied += other.copied;
    }
}

impl Sub for Account {
    type Output = Account;

    fn sub(self, other: Account) -> Account {
        Account {
            work: self.work - other.work,
            zeroed: self.zeroed - other.zeroed,
            compressed: self.compressed - other.compressed,
            decompressed: self.decompressed - other.decompressed,
            copied: self.copied - other.copied,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pageout_engine::Pfn;

    #[test]
    fn what_was_spent_adds_up_to_the_prices_of_work_and_operations() {
        let costs = Costs::xeon_vm();
        let work = Work { scanned: 7, rmap_steps: 5, reclaimed: 3, ..Work::default() };
        let op = Op::Zero { pfn: Pfn(0), pages: 4 };
        let mut account = Account { work, ..Account::default() };
        account.add(&op);
        let spent = account.spent(&costs);
        let all = spent.iter().fold(Nanos::ZERO, |sum, (_, spent)| sum + *spent);
        assert_eq!(all, costs.price(&work) + costs.price_op(&op));
        assert!(spent.contains(&("rmap_steps", Nanos(5 * costs.rmap_step))));
        assert!(spent.contains(&("zeroed", Nanos(4 * costs.zero))));
    }
}
