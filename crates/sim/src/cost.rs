//! The cost table: nanoseconds of CPU time for every unit of work that the engine counts.
//!
//! The engine says how much it did ([`Work`]); this table says how long that took. A few figures are measured end to end
//! (a first touch, a reclaimed page). The prices of units are chosen to add up to them; the tests below are those sums.
//!
//! ```text
//!   first touch of anonymous memory   1,900 = fault + zero + list move + 1/31 drain + 1/64 charge
//!   reclaim of a clean file page        660 = scan + reclaim + 1/53 call, drain, charge and insertion
//!   the same, mapped once             + 550 = rmap step + unmap, if no page is looked at twice
//! ```
//! Sources, row by row, in the fields' documentation: M measured on one machine (2 vCPU Xeon 2.5 GHz virtual machine, Linux 6.18), S from the seeds'
//! own tables, T typical of the hardware, D derived here from a row, E estimated without one. Not modelled: contention on locks, the TLB, and caches
//! other than in these averages.
//!
//! A device's measured latency includes the submission, the interrupt and the two context switches. They are not charged again
//! here.

use pageout_engine::{Nanos, PAGE_SIZE, Work};

use crate::memory::LINE;

/// The way in which a task reaches an object; it decides the cost of a hit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Channel {
    /// `read(2)`/`write(2)` of single pages.
    #[default]
    File,
    /// `read(2)`/`write(2)` of this many pages in one call.
    FileCalls {
        /// Pages of the call; at least 1.
        pages: u32,
    },
    /// Loads and stores through a mapping, anonymous or of a file.
    Mapped,
}

/// Declares the table once: a row is a field, a line of the reference of keys, and the value that was measured.
macro_rules! costs {
    ($($unit:ident: $measured:literal, $doc:literal;)*) => {
        /// Nanoseconds for each unit of work. Every value is valid.
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub struct Costs {
            $(#[doc = $doc] pub $unit: u64,)*
        }

        impl Costs {
            /// Name and documentation of each row.
            pub const ROWS: &[(&str, &str)] = &[$((stringify!($unit), $doc)),*];

            /// The machine that the M column was measured on, as it stands.
            pub fn xeon_vm() -> Costs {
                Costs { $($unit: $measured,)* }
            }

            /// Every row times `numerator / denominator`.
            pub fn scaled(self, numerator: u64, denominator: u64) -> Costs {
                Costs { $($unit: self.$unit * numerator / denominator,)* }
            }

            /// The row of this name.
            pub fn row(&mut self, name: &str) -> Option<&mut u64> {
                match name {
                    $(stringify!($unit) => Some(&mut self.$unit),)*
                    _ => None,
                }
            }
        }
    };
}

costs! {
    file_hit: 860,
        "Hit, by read(2) or write(2) of single pages. Row \"read(2) of 4 KiB, cached, random\": 860, M.";
    sequential_hit: 515,
        "A page of a large read(2) or write(2). Rows \"sequential read(2), 1 MiB buffer, cached\": 515, M, and \"linear read(2), 128 GiB in DRAM\": 226, S. A single page costs more because of the call, which the pages of a larger one share.";
    mapped_hit: 173,
        "Hit through a mapping. Row \"dependent load, DRAM\": 173, M; 80 to 110 on bare metal, T.";
    fault: 950,
        "Page fault, entry to exit, with the folio's allocation but without zeroing. Row \"minor fault on a cached file page\": 500 to 1,000, T; its upper half, D, so that the sum of a first access matches.";
    file_call: 300,
        "Additional work of a `read(2)` that misses: allocation, submission, a second look-up. E: 300.";
    zero: 910,
        "Zeroing a page. Row \"anonymous first touch (fault + zeroing)\": 1,900, M, less the fault and its shares, D.";
    charge: 100,
        "Walk of a memcg's ancestors to charge a batch: a handful of contended atomic additions. E: 100.";
    insert: 100,
        "Insertion of a folio in the page cache or swap cache. E: 100, an index walk and a few stores.";
    batch_drain: 200,
        "Lock and loop of one per-CPU batch drain; the folios are list moves. E: 200.";
    list_move: 30,
        "Moving a folio to another list. Row \"list move under the lruvec lock\": 20 to 60, T.";
    scan: 150,
        "Scanning a folio in reclaim: isolation and verdict. Part of row \"direct memcg reclaim, clean unmapped file page, all in\": 660 per page, M, D.";
    rmap_step: 150,
        "Finding one mapping of a page by the reverse map, and testing its accessed bit. Row \"rmap step to test an accessed bit\": 100 to 250, T.";
    upper_entry: 10,
        "An upper page-table entry that a walk visits. E: 10, one entry of a line that the next ones share, and a few tests.";
    pte_walked: 4,
        "A page-table entry scanned together with its neighbours. T: 2 to 5, because one cache line holds 8 of them.";
    pte_young: 0,
        "Additional cost of an entry that a walk found young: clearing it, and another generation for its folio. E: 0, because no measurement on a processor without emulation is known.";
    pte_marked: 30,
        "Marking a page-table entry, with the time in its folio. E: 30, an atomic exchange in each of two lines, as a list move.";
    hint_fault: 300,
        "Additional cost of a hint fault compared with another page fault. Row \"hint fault (PROT_NONE, no migration)\": 1,000 to 1,500, T; the middle of it less a fault, D.";
    unmap: 400,
        "Removing a page-table entry with its share of the TLB flush. Row \"the same, mapped once\": 1,212 less 660, M, less one rmap step, D.";
    zap: 170,
        "Zapping a page-table entry and freeing its page, as part of a complete table. Row \"MADV_DONTNEED, bulk\": 170, M.";
    dirty: 150,
        "Making a clean file page dirty: flags, tags in the index, counters. E: 150, as one and a half insertions.";
    write_page: 300,
        "Starting to write a file page: finding it, write-protecting it, adding it to a request, and its part of the completion. E: 300, the same as for a read. The transfer is the device's.";
    reclaim: 450,
        "Removing a page from its cache, leaving a shadow, uncharging and freeing it. The rest of the 660, M, D.";
    reclaim_call: 2_650,
        "Entering and leaving one reclaim call. Part of the 35 us for a call of 53 pages, M, D.";
    compact_scan: 10,
        "A frame that compaction scans: its record. E: 10, a line of memory read in order and a few tests.";
    tiering_mark: 5,
        "Additional cost of a page's read(2) while balancing handles tiers. Rows \"linear read(2), 128 GiB in DRAM\" and \"balancing on\", S: 2.35 % of 226.";
    tier_lookup: 5,
        "Looking up the tier of a page in use that is read again. S: two published passes, with all pages in the top tier and all features on, take 4.66 % more than the base on average; less the row above.";
    migrate_backwards: 200,
        "Additional cost of a page that is promoted in the order opposite to that of reading. S: \"around 20 %\" of a pass that migrates all pages that it reads, (291 + 710) per page.";
    damon_page: 100,
        "Looking up a page that a scheme of DAMON acts on, by its frame: its record and a reference to it. A page that is tested for use costs an rmap step per mapping more. As for damon_sample.";
    damon_sample: 100,
        "Looking up the page that DAMON samples in a region. Row 1.8 of the notes on DAMON: 250 per check, less one rmap step, D. A region has one sample, whatever its size, so machine.page_stands_for does not multiply it.";
    damon_sample_step: 150,
        "Finding and testing one mapping of such a page: the same as rmap_step, but not multiplied either.";
    hotness_record: 40,
        "Writing a page's hotness record: reading its folio and an atomic update. E: 40, two lines of memory.";
    hotness_walk: 1,
        "A hotness record that kmigrated scans: read in order, 64 to a line with records of one byte. E: 1.";
    stat_flush: 1_000,
        "Flushing one memcg's statistics: some hundred counters per CPU. E: 1,000.";
    compress: 3_250,
        "Compressing a page for a synchronous swap device or zswap. Row \"lzo-rle in kernel\": 2.5 to 4 us, T.";
    decompress: 1_250,
        "Decompressing a page from there. Row \"lzo-rle in kernel\": 1 to 1.5 us, T.";
    migrate: 1_243,
        "Migrating a page that is not mapped: isolating it, copying, putting it back. Row \"migration of one 4 KiB page, batched, inline\": 710, S, on a server; 7/4 of that here.";
    migrate_entry: 2_925,
        "Additional cost of each page-table entry of a migrated page: unmapping, its share of flushed translations, mapping. Row \"migration throughput by folio size\", T: 4 KiB with one thread at 1.72 GB/s on a server are 2,381 ns, 1,671 more than the row above; 7/4 of that here.";
    migrate_huge: 663,
        "Migrating a page as part of a huge one. Row \"migration throughput by folio size\", T: 2 MiB with one thread at 10.73 GB/s on a server are 382 ns per page, less the entry of all 512; 7/4 of that here.";
    wake_up: 20_000,
        "From the wake-up of a sleeping task by another task to its first instruction on an idle CPU: an interrupt there, leaving idle, a switch. E: 20,000, of the 5 to 50 us on hardware. A wake-up by a device is part of the device's latency.";
    context_switch: 1_500,
        "Taking the CPU from one task and giving it to another. Row \"context switch, same CPU\": 1,000 to 2,000, M.";
}

/// The time of a migration's copy, as a part of what one thread takes: for a page by itself, and for a page of a huge one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CopyRates {
    page: (u64, u64),
    huge: (u64, u64),
}

/// Row "migration throughput by folio size", T. A batch of 4 KiB pages moves at 2.04 GB/s instead of 1.72 (2,008 ns each and 2,381). A batch of 2 MiB
/// pages moves at 37.1 GB/s instead of 10.73 (56.5 and 195.4 us). 1,671 ns of each are the entry's.
pub const COPIED_BY_16_THREADS: CopyRates = CopyRates { page: (337, 710), huge: (54_857, 193_776) };

/// Row "migration throughput by folio size", T: by DMA at 1.19 GB/s (3,442 ns) for 4 KiB pages and 55.5 GB/s (37.8 us) for 2 MiB pages.
pub const COPIED_BY_DMA: CopyRates = CopyRates { page: (1_771, 710), huge: (36_115, 193_776) };

impl Costs {
    /// The names [`Costs::profile`] knows.
    pub const PROFILES: &[&str] =
        &["xeon-vm", "server-2025", "phenom-2010", "tiered-2025", "qemu-tcg", "free"];

    /// The profile of this name.
    pub fn profile(name: &str) -> Option<Costs> {
        match name {
            "xeon-vm" => Some(Costs::xeon_vm()),
            "server-2025" => Some(Costs::server_2025()),
            "phenom-2010" => Some(Costs::phenom_2010()),
            "tiered-2025" => Some(Costs::tiered_2025()),
            "qemu-tcg" => Some(Costs::qemu_tcg()),
            "free" => Some(Costs::free()),
            _ => None,
        }
    }

    /// A bare-metal server of 2025. CPU-bound rows are 1.5 to 2 times faster than the virtual machine's, so 4/7 of them. The dependent load is the
    /// middle of the bare-metal range, and the linear read is the page-cache promotion seed's own.
    pub fn server_2025() -> Costs {
        // Records are read in order, at the speed of memory: that is not faster, and scaled it would be nothing.
        let hotness_walk = Costs::xeon_vm().hotness_walk;
        Costs { mapped_hit: 95, sequential_hit: 226, hotness_walk, ..Costs::xeon_vm().scaled(4, 7) }
    }

    /// The machine of the page-cache promotion seed, a server with 768 GB of DRAM and 256 GB of CXL memory. It is as above, with the unchanged rows
    /// that were measured on it. The cost of a promoted page that is not mapped comes from the first eight of ten published passes. Without their
    /// time without promotion (236 ns per page in the top tier, 301 in the other, both with all mechanisms on), they leave 2.79 s for 4,194,304
    /// pages. That is 666 ns, of which 21 are a list move and a share of a drain.
    pub fn tiered_2025() -> Costs {
        let measured = Costs::xeon_vm();
        Costs {
            migrate: 645,
            tiering_mark: measured.tiering_mark,
            tier_lookup: measured.tier_lookup,
            migrate_backwards: measured.migrate_backwards,
            ..Costs::server_2025()
        }
    }

    /// A four-core Phenom of 2010, bare metal: E. CPU-bound rows are 1.5 times those of the virtual machine (half its instructions per cycle, at 3
    /// GHz against 2.5 and without nested paging). The dependent load is that of bare metal, 100, since DRAM latency has hardly changed.
    pub fn phenom_2010() -> Costs {
        Costs { mapped_hit: 100, ..Costs::xeon_vm().scaled(3, 2) }
    }

    /// An emulated processor (QEMU without hardware virtualisation): 20 times the virtual machine, D. A reclaimed page then takes the 10 to 15 us and
    /// a cached read the 10 to 30 us that recordings of it show; a wake-up is in the middle of 200 to 400 us, likewise. A migrated page takes 14.2
    /// us, its entry included: with that the recorded runs of memory tiering are reproduced. With 83 us, 20 times the hardware's time, two of four
    /// are not. Few processors have translations to flush there, and copying waits for memory and not for the emulator. An entry that a walk finds
    /// young takes 200 ns: five recorded walks of 16,384 entries took 3 to 11 ms, which leaves 15 to 390 ns each, 196 in the middle.
    pub fn qemu_tcg() -> Costs {
        Costs {
            wake_up: 300_000,
            migrate: 14_200,
            migrate_entry: 0,
            pte_young: 200,
            ..Costs::xeon_vm().scaled(20, 1)
        }
    }

    /// Nothing takes time: for runs where only counts matter. Tasks are then ordered by event sequence alone.
    pub fn free() -> Costs {
        Costs::xeon_vm().scaled(0, 1)
    }

    /// With migrated pages copied by another than the one who moves them.
    pub fn copying(self, by: CopyRates) -> Costs {
        let of = |price: u64, (numerator, denominator): (u64, u64)| price * numerator / denominator;
        Costs { migrate: of(self.migrate, by.page), migrate_huge: of(self.migrate_huge, by.huge), ..self }
    }

    /// The price of one unit of each kind of work.
    fn unit_prices(&self) -> Work {
        // Named one by one, so that a new unit of work does not compile until it has a price.
        Work {
            faults: self.fault,
            file_calls: self.file_call,
            charges: self.charge,
            inserted: self.insert,
            // A folio is inserted at the price of a page, whatever its size.
            inserted_tails: 0,
            batch_drains: self.batch_drain,
            list_moves: self.list_move,
            scanned: self.scan,
            rmap_steps: self.rmap_step,
            damon_pages: self.damon_page,
            damon_samples: self.damon_sample,
            damon_sample_steps: self.damon_sample_step,
            upper_entries: self.upper_entry,
            ptes_walked: self.pte_walked,
            ptes_young: self.pte_young,
            ptes_marked: self.pte_marked,
            hint_faults: self.hint_fault,
            unmapped: self.unmap,
            zapped: self.zap,
            dirtied: self.dirty,
            written: self.write_page,
            reclaimed: self.reclaim,
            reclaim_calls: self.reclaim_call,
            compact_scanned: self.compact_scan,
            marked_with_tiering: self.tiering_mark,
            tiers_looked_up: self.tier_lookup,
            migrated_backwards: self.migrate_backwards,
            entries_migrated: self.migrate_entry,
            hotness_recorded: self.hotness_record,
            hotness_walked: self.hotness_walk,
            stat_flushes: self.stat_flush,
        }
    }

    /// CPU time that the work took.
    pub fn price(&self, work: &Work) -> Nanos {
        self.price_often(work) + self.price_rarely(work)
    }

    /// What its units took that any access may count.
    #[inline]
    pub(crate) fn price_often(&self, work: &Work) -> Nanos {
        Nanos(work.often_times(&self.unit_prices()))
    }

    /// What the others took.
    #[cold]
    pub(crate) fn price_rarely(&self, work: &Work) -> Nanos {
        Nanos(work.rarely_times(&self.unit_prices()))
    }

    /// What each unit of the work takes, under its name.
    pub(crate) fn price_each(&self, work: &Work) -> Vec<(&'static str, Nanos)> {
        let prices = self.unit_prices();
        work.iter()
            .zip(prices.iter())
            .map(|((name, units), (_, price))| (name, Nanos(units * price)))
            .collect()
    }

    /// CPU time of an access itself, when its page is in memory.
    pub fn hit(&self, channel: Channel) -> Nanos {
        Nanos(match channel {
            Channel::File => self.file_hit,
            Channel::FileCalls { pages } => {
                let call = self.file_hit.saturating_sub(self.sequential_hit);
                self.sequential_hit.min(self.file_hit) + call / u64::from(pages.max(1))
            }
            Channel::Mapped => self.mapped_hit,
        })
    }

    /// Bytes a second that a CPU moves at most, of pages that stand for so many each; `None` where moving them takes no time.
    pub(crate) fn bandwidth(&self, stands_for: u64) -> Option<u64> {
        let pages = [self.file_hit, self.sequential_hit, self.zero, self.migrate, self.migrate_huge];
        let takes = pages.map(|nanos| (PAGE_SIZE, nanos)).into_iter().chain([(LINE, self.mapped_hit)]);
        let rate = |(bytes, nanos): (u64, u64)| {
            (bytes * stands_for * 1_000_000_000).checked_div(nanos).unwrap_or(u64::MAX)
        };
        takes.clone().any(|(_, nanos)| nanos > 0).then(|| takes.map(rate).max().unwrap_or(0))
    }

    /// The costs where a page stands for so many: all that is done page by page takes as much longer. What is done by call, by batch or by task
    /// is not, so a machine pays less for it the more a page stands for (`Costs::of_calls`). Nor is a sample of DAMON: a machine has as many
    /// regions as the full one, and each has one sample.
    pub fn of_pages(self, stands_for: u64) -> Costs {
        Costs {
            reclaim_call: self.reclaim_call,
            batch_drain: self.batch_drain,
            stat_flush: self.stat_flush,
            wake_up: self.wake_up,
            context_switch: self.context_switch,
            damon_sample: self.damon_sample,
            damon_sample_step: self.damon_sample_step,
            ..self.clone().scaled(stands_for, 1)
        }
    }

    /// Time of what [`Costs::of_pages`] does not multiply, in so much work, switches of tasks and wake-ups.
    pub(crate) fn of_calls(&self, work: &Work, switches: u64, wake_ups: u64) -> Nanos {
        let calls = work.reclaim_calls * self.reclaim_call
            + work.batch_drains * self.batch_drain
            + work.stat_flushes * self.stat_flush;
        Nanos(calls + switches * self.context_switch + wake_ups * self.wake_up)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn per_page(work: Work, pages: u64) -> u64 {
        Costs::xeon_vm().price(&work).0 / pages
    }

    /// A reclaim call of the measured size over clean file pages.
    const CALL: Work = Work {
        scanned: 53,
        reclaimed: 53,
        reclaim_calls: 1,
        // What the last step does for the page that all this made room for, and the drain before the scan.
        charges: 1,
        inserted: 1,
        inserted_tails: 0,
        batch_drains: 1,
        faults: 0,
        file_calls: 0,
        list_moves: 0,
        rmap_steps: 0,
        damon_pages: 0,
        damon_samples: 0,
        damon_sample_steps: 0,
        upper_entries: 0,
        ptes_walked: 0,
        ptes_young: 0,
        ptes_marked: 0,
        hint_faults: 0,
        unmapped: 0,
        zapped: 0,
        dirtied: 0,
        written: 0,
        compact_scanned: 0,
        marked_with_tiering: 0,
        tiers_looked_up: 0,
        migrated_backwards: 0,
        entries_migrated: 0,
        hotness_recorded: 0,
        hotness_walked: 0,
        stat_flushes: 0,
    };

    #[test]
    fn a_first_touch_adds_up_to_the_measured_1900() {
        let touch =
            Work { faults: 31 * 64, list_moves: 31 * 64, batch_drains: 64, charges: 31, ..Work::default() };
        let zero = Costs::xeon_vm().zero;
        let sum = per_page(touch, 31 * 64) + zero;
        assert!((1_890..=1_910).contains(&sum), "{sum}");
    }

    #[test]
    fn a_reclaimed_clean_file_page_adds_up_to_the_measured_660() {
        let sum = per_page(CALL, 53);
        assert!((655..=665).contains(&sum), "{sum}");
        let call = Costs::xeon_vm().price(&CALL).0;
        assert!((34_000..=36_000).contains(&call), "{call}");
    }

    #[test]
    fn a_reclaimed_page_mapped_once_adds_up_to_the_measured_1212() {
        let sum = per_page(Work { rmap_steps: 53, unmapped: 53, ..CALL }, 53);
        assert!((1_200..=1_220).contains(&sum), "{sum}");
    }

    /// Gigabytes a second at which so many pages migrate that are mapped once, in folios of `size`.
    fn migration_rate(costs: &Costs, size: u64) -> f64 {
        let page = if size == 1 { costs.migrate } else { costs.migrate_huge };
        (size * 4096) as f64 / (size * page + costs.migrate_entry) as f64
    }

    #[test]
    fn mapped_pages_migrate_at_the_published_rates_by_size_and_by_who_copies() {
        let server = Costs::server_2025();
        for (costs, single, huge) in [
            (server.clone(), 1.72, 10.73),
            (server.clone().copying(COPIED_BY_16_THREADS), 2.04, 37.1),
            (server.clone().copying(COPIED_BY_DMA), 1.19, 55.5),
        ] {
            for (size, published) in [(1, single), (512, huge)] {
                let ours = migration_rate(&costs, size);
                assert!(
                    (ours / published - 1.0).abs() < 0.01,
                    "{size} pages: {ours} GB/s, published {published}"
                );
            }
        }
    }

    /// 3.0 s for 16 GiB of page cache that nothing maps.
    #[test]
    fn pages_that_nothing_maps_migrate_at_the_price_of_the_letter() {
        assert_eq!(Costs::server_2025().migrate, 710);
    }

    #[test]
    fn what_is_not_multiplied_is_what_is_told_of_calls() {
        let costs = Costs::xeon_vm();
        let work =
            Work { scanned: 53, reclaimed: 53, reclaim_calls: 3, batch_drains: 5, stat_flushes: 7, ..CALL };
        let pages = Work { reclaim_calls: 0, batch_drains: 0, stat_flushes: 0, ..work };
        let by_page = costs.price(&work).0 - costs.of_calls(&work, 0, 0).0;
        assert_eq!(by_page, costs.price(&pages).0);
        let many = costs.clone().of_pages(64);
        assert_eq!(many.of_calls(&work, 2, 4), costs.of_calls(&work, 2, 4));
        assert_eq!(many.price(&work).0 - many.of_calls(&work, 0, 0).0, 64 * by_page);
        let samples = Work { damon_samples: 11, damon_sample_steps: 13, ..Work::default() };
        assert_eq!(many.price(&samples), costs.price(&samples), "a region has one sample, whatever its size");
        let by_scheme = Work { damon_pages: 11, rmap_steps: 13, ..Work::default() };
        assert_eq!(costs.price(&by_scheme), costs.price(&samples), "the same look");
        assert_eq!(many.price(&by_scheme).0, 64 * costs.price(&by_scheme).0, "a scheme looks at all pages");
    }

    #[test]
    fn the_free_profile_charges_nothing() {
        let free = Costs::free();
        assert_eq!(free.price(&CALL), Nanos::ZERO);
        assert_eq!(free.hit(Channel::File), Nanos::ZERO);
        assert_eq!(free.zero, 0);
    }

    #[test]
    fn bare_metal_is_between_half_and_two_thirds_of_the_virtual_machine() {
        let (vm, server) = (Costs::xeon_vm(), Costs::server_2025());
        for (slow, fast) in
            [(vm.file_hit, server.file_hit), (vm.fault, server.fault), (vm.compress, server.compress)]
        {
            assert!(fast * 2 >= slow && fast * 3 <= slow * 2, "{slow} {fast}");
        }
    }

    #[test]
    fn every_profile_is_known_by_name() {
        assert!(Costs::PROFILES.iter().all(|name| Costs::profile(name).is_some()));
        assert_eq!(Costs::profile("abacus"), None);
    }
}
