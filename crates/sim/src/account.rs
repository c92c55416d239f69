//! An account of CPU time: how much of each kind of the kernel's work was done, and the time that it took.
//!
//! A profile shows the time of each function of the kernel. Here the same follows from the prices: each unit of work and each operation has a
//! price ([`Costs`]), and an account holds their counts.

use std::ops::{AddAssign, Sub};

use pageout_engine::{Nanos, Op, Work, WorkFor};

use crate::cost::Costs;
use crate::report::Spent;

/// Work and operations that take CPU time.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Account {
    pub(crate) work: Work,
    /// Parts of the work, by what it was for.
    pub(crate) work_for: WorkFor,
    pub(crate) carried: Carried,
}

/// Operations that take CPU time: pages of each kind.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Carried {
    zeroed: u64,
    compressed: u64,
    decompressed: u64,
    copied: u64,
    /// As parts of huge pages.
    copied_huge: u64,
}

impl Carried {
    /// Adds an operation. Returns what it takes: nothing for transfers, which take time of a device instead.
    pub(crate) fn add(&mut self, op: &Op, costs: &Costs) -> Nanos {
        let (count, pages, price) = match *op {
            Op::Zero { pages, .. } | Op::Clear { pages, .. } => {
                (&mut self.zeroed, u64::from(pages), costs.zero)
            }
            Op::WriteSwapNow { .. } | Op::ZswapStore { .. } => (&mut self.compressed, 1, costs.compress),
            Op::ReadSwapNow { .. } | Op::ZswapLoad { .. } => (&mut self.decompressed, 1, costs.decompress),
            Op::Copy { pages: 1, .. } => (&mut self.copied, 1, costs.migrate),
            Op::Copy { pages, .. } => (&mut self.copied_huge, u64::from(pages), costs.migrate_huge),
            Op::ReadFile { .. }
            | Op::WriteFile { .. }
            | Op::ReadSwap { .. }
            | Op::WriteSwap { .. }
            | Op::ZswapMove { .. }
            | Op::ZswapFree { .. }
            | Op::FreeFrame { .. }
            | Op::PunchHole { .. }
            | Op::FreeSlot { .. } => return Nanos::ZERO,
        };
        *count += pages;
        Nanos(pages * price)
    }
}

impl Account {
    /// CPU time by what it was spent on.
    pub(crate) fn spent(&self, costs: &Costs) -> Spent {
        let Carried { zeroed, compressed, decompressed, copied, copied_huge } = self.carried;
        let carried = [
            ("zeroed", zeroed * costs.zero),
            ("compressed", compressed * costs.compress),
            ("decompressed", decompressed * costs.decompress),
            ("copied", copied * costs.migrate + copied_huge * costs.migrate_huge),
        ];
        let mut by_unit = costs.price_each(&self.work);
        by_unit.extend(carried.map(|(name, spent)| (name, Nanos(spent))));
        let [marking, aging] = [&self.work_for.marking, &self.work_for.aging].map(|work| costs.price(work));
        Spent { by_unit, marking, aging }
    }
}

impl AddAssign for Account {
    fn add_assign(&mut self, other: Account) {
        self.work += other.work;
        self.work_for += other.work_for;
        self.carried.zeroed += other.carried.zeroed;
        self.carried.compressed += other.carried.compressed;
        self.carried.decompressed += other.carried.decompressed;
        self.carried.copied += other.carried.copied;
        self.carried.copied_huge += other.carried.copied_huge;
    }
}

impl Sub for Account {
    type Output = Account;

    fn sub(self, other: Account) -> Account {
        Account {
            work: self.work - other.work,
            work_for: self.work_for - other.work_for,
            carried: Carried {
                zeroed: self.carried.zeroed - other.carried.zeroed,
                compressed: self.carried.compressed - other.carried.compressed,
                decompressed: self.carried.decompressed - other.carried.decompressed,
                copied: self.carried.copied - other.carried.copied,
                copied_huge: self.carried.copied_huge - other.carried.copied_huge,
            },
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
        let carried = account.carried.add(&op, &costs);
        let spent = account.spent(&costs).by_unit;
        let all = spent.iter().fold(Nanos::ZERO, |sum, (_, spent)| sum + *spent);
        assert_eq!(all, costs.price(&work) + carried);
        assert!(spent.contains(&("rmap_steps", Nanos(5 * costs.rmap_step))));
        assert!(spent.contains(&("zeroed", Nanos(4 * costs.zero))));
    }
}
