//! Charging kernel memory: by the page where an object fills pages, by the byte where several share one.
//!
//! A CPU holds bytes of one group ahead. An object takes its bytes from there. If they don't suffice, a page is charged like any
//! other, and the bytes of it that the object does not need join the stock:
//!
//! ```text
//!   charge 584   stock of this group has them ──► take
//!                it has not                   ──► charge a page, stock += 4096, take
//!   free 584     stock += 584; above a page, the whole pages go back to the page stock
//!   other group  the stock's whole pages go back, its rest stays noted with its group until a CPU stocks for it again
//! ```
//! So usage moves in complete pages, about seven index nodes each. The charges of a removed group become its parent's. Objects
//! know the group that they were charged to, and the first group from there upwards that still exists pays. [machine 7]

use crate::audit::{Paid, Transition};
use crate::core::Core;
use crate::memcg::stock::ByteStock;
use crate::stat::Stat;
use crate::state::State;
use crate::units::{CpuId, MemcgId, NodeId, PAGE_SIZE};

impl Core {
    /// Bytes that this CPU has charged ahead to a group.
    #[inline]
    pub(crate) fn objcg_stock(&self, memcg: MemcgId) -> u64 {
        let stock = self.mm.cpus[self.by.cpu.index()].bytes;
        if stock.memcg == memcg { stock.bytes } else { 0 }
    }

    /// Pages that were charged to a group are kernel memory.
    pub(crate) fn objcg_charged(&mut self, memcg: MemcgId, pages: u64) {
        self.assert_paid(memcg, pages);
        let charges = self.open_charges(Transition::ChargeObject, memcg);
        self.mm.memcgs[memcg].kmem += pages;
        let more = Paid { bytes: (pages * PAGE_SIZE) as i64, ..Paid::pages(-(pages as i64)) };
        self.close_charges(charges, more);
        let group = &self.mm.memcgs[memcg];
        assert!(group.is_online, "{} is charged for kernel memory after it was removed", group.name);
        assert!(
            group.kmem <= group.usage,
            "{} has {} pages of the kernel's among {}",
            group.name,
            group.kmem,
            group.usage
        );
        self.kernel_count(memcg, pages as i64);
        self.mm.assert_kernel_counted(memcg);
    }

    pub(crate) fn objcg_uncharge_pages(&mut self, memcg: MemcgId, pages: u64) {
        if pages > 0 {
            let charges = self.open_charges(Transition::UnchargeObject, memcg);
            let kmem = self.mm.memcgs[memcg].kmem;
            assert!(kmem >= pages, "{pages} pages of the kernel's are uncharged of {kmem}");
            self.mm.memcgs[memcg].kmem -= pages;
            self.kernel_count(memcg, -(pages as i64));
            self.mm.assert_kernel_counted(memcg);
            self.stock_refill(memcg, pages);
            self.close_charges(charges, Paid::bytes(-((pages * PAGE_SIZE) as i64)));
        }
    }

    /// `kernel` of `memory.stat`. It is the group's as a whole, so it counts with the first node.
    fn kernel_count(&mut self, memcg: MemcgId, pages: i64) {
        let lruvec = self.mm.lruvecs.id(memcg, NodeId(0));
        self.count_memcg(lruvec, Stat::Kernel, pages);
    }

    /// Adds a page that was charged to the CPU's bytes.
    pub(crate) fn objcg_stock_page(&mut self, memcg: MemcgId) {
        self.objcg_charged(memcg, 1);
        self.objcg_refill(memcg, PAGE_SIZE, false);
    }

    /// Charges an object. If the CPU's stock doesn't suffice, the charge ignores limits: a caller that can wait ensures before
    /// that it does.
    #[doc(alias = "obj_cgroup_charge")]
    pub(crate) fn objcg_charge_now(&mut self, memcg: MemcgId, bytes: u64) {
        let charges = self.open_charges(Transition::ChargeObject, memcg);
        while self.objcg_stock(memcg) < bytes {
            self.charge_now(memcg);
            self.objcg_stock_page(memcg);
        }
        let stock = &mut self.mm.cpus[self.by.cpu.index()].bytes;
        // An entry of zswap that says one word has no bytes: they come out of any stock.
        assert!(
            bytes == 0 || (stock.memcg == memcg && stock.bytes >= bytes),
            "{bytes} bytes are taken of {stock:?}"
        );
        stock.bytes -= bytes;
        self.close_charges(charges, Paid::bytes(bytes as i64));
    }

    /// An object is freed.
    pub(crate) fn objcg_uncharge_bytes(&mut self, memcg: MemcgId, bytes: u64) {
        self.objcg_refill(memcg, bytes, true);
    }

    fn objcg_refill(&mut self, memcg: MemcgId, bytes: u64, may_uncharge: bool) {
        let charges = self.open_charges(Transition::UnchargeObject, memcg);
        let mut may_uncharge = may_uncharge;
        if self.mm.cpus[self.by.cpu.index()].bytes.memcg != memcg {
            self.objcg_drain(self.by.cpu);
            let rest = std::mem::take(&mut self.mm.memcgs[memcg].kmem_rest);
            self.mm.cpus[self.by.cpu.index()].bytes = ByteStock { memcg, bytes: rest };
            may_uncharge = true;
        }
        let stock = &mut self.mm.cpus[self.by.cpu.index()].bytes;
        assert_eq!(stock.memcg, memcg, "bytes of a group join those of another");
        stock.bytes += bytes;
        if may_uncharge && stock.bytes > PAGE_SIZE {
            let pages = stock.bytes / PAGE_SIZE;
            stock.bytes %= PAGE_SIZE;
            self.objcg_uncharge_pages(memcg, pages);
        }
        self.close_charges(charges, Paid::bytes(-(bytes as i64)));
        let (bytes, kmem) = (self.objcg_stock(memcg), self.mm.memcgs[memcg].kmem);
        assert!(bytes <= kmem * PAGE_SIZE, "a CPU holds {bytes} bytes of a group's {kmem} pages");
    }

    /// Gives back what a CPU has charged ahead in bytes, as far as that is whole pages.
    pub(crate) fn objcg_drain(&mut self, cpu: CpuId) {
        let charges = self.open_charges(Transition::Refill, self.mm.cpus[cpu.index()].bytes.memcg);
        let ByteStock { memcg, bytes } = std::mem::take(&mut self.mm.cpus[cpu.index()].bytes);
        self.mm.memcgs[memcg].kmem_rest += bytes % PAGE_SIZE;
        self.objcg_uncharge_pages(memcg, bytes / PAGE_SIZE);
        self.close_charges(charges, Paid::default());
    }
}

impl State {
    /// A group's kernel memory has changed: `kernel` of its `memory.stat` says as much.
    fn assert_kernel_counted(&self, memcg: MemcgId) {
        if cfg!(debug_assertions) {
            let nodes = self.lruvecs.nodes().map(|node| &self.lruvecs[self.lruvecs.id(memcg, node)]);
            let counted: i64 = nodes.map(|lruvec| lruvec.stat_local[Stat::Kernel as usize]).sum();
            let group = &self.memcgs[memcg];
            assert_eq!(
                counted, group.kmem as i64,
                "kernel memory of {}, as counted and as charged",
                group.name
            );
        }
    }
}
