//! What kernels did otherwise than the simulator does, with the versions in which they did: rules that no switch has. [kernels 2]
//!
//! A row is for who reads a result of another version: this differed there, and the run has it as the doc says. Where not enough is known to
//! write a rule, the doc says that. A row that becomes a rule leaves this table.

use crate::era::{Era, Known, Lists, When};
use crate::history::between;
use crate::version::Version;

/// A rule of some versions that is not modelled.
#[derive(Clone, Copy, Debug)]
pub struct Unmodelled {
    era: Era,
    /// Behaviour of these versions, and the behaviour here.
    pub doc: &'static str,
}

impl Unmodelled {
    /// Returns its subject.
    pub fn name(&self) -> &'static str {
        self.era.value
    }

    /// The lists it is about; `None`: both.
    pub fn lists(&self) -> Option<Lists> {
        self.era.lists
    }

    /// Returns whether a version with lists of this kind had it.
    pub fn holds(&self, version: Version, lists: Lists) -> bool {
        self.era.holds(version, lists)
    }

    /// The versions that had it.
    pub fn span(&self) -> String {
        self.era.span()
    }

    /// Returns the source of knowledge about it in a version.
    pub fn known_at(&self, version: Version) -> Known {
        self.era.known_at(version)
    }

    /// The versions that had it, in words: `MGLRU of 6.1`.
    pub fn words(&self) -> String {
        match self.era.when {
            When::Versions(from, to) => between(self.era.lists, from, to),
            _ => self.era.span(),
        }
    }

    /// The versions in whose sources it was read, or else how it is known.
    pub fn sources(&self) -> String {
        self.era.sources()
    }
}

macro_rules! unmodelled {
    ($($name:literal $span:literal $marks:literal: $doc:literal;)*) => {
        /// All of them, by what they change: what is evicted, how long tasks stall, what is counted.
        pub const UNMODELLED: &[Unmodelled] =
            &[$(Unmodelled { era: Era::new($name, $span, $marks), doc: $doc }),*];
    };
}

unmodelled! {
    "statistics: propagation of a CPU's updates" "7.2.." "C D":
        "A CPU stops propagating its updates at the first ancestor whose statistics may already be flushed. Here it reports to all ancestors.";
    "advice: rights of the caller" ".." "A B C D":
        "madvise(MADV_PAGEOUT) on a shared mapping has no effect unless the caller owns the file or may write it, and only the process itself may ask for MADV_FREE. Here every caller may do both.";
    "advice: MADV_COLD and MADV_PAGEOUT" "6.12.." "B":
        "An active page is marked as part of the working set before it is deactivated. Here it is not, as in 6.1.";
    "advice: POSIX_FADV_NOREUSE of reads" "6.3.." "B m":
        "A read(2) of such an open file does not mark the page as accessed. Here it does, and only uses through mappings do not count.";
    "pages of exiting processes" "6.10.." "B m":
        "An anonymous page that only an exiting or reaped process maps is kept for the moment instead of swapped. Here it is swapped.";
    "charges of dying tasks" "6.12.." "B":
        "A victim of the OOM killer that the reaper is done with fails its charges immediately, and memory.high does not slow down a dying task. Here its charges succeed, and memory.high slows it down.";
    "demotion by request" "..6.1" "A":
        "memory.reclaim reclaims pages that should be demoted but found no free memory. Here, as in 6.12, they stay.";
    "pages expected to be pinned" "7.2.." "C":
        "An anonymous page that is expected to be pinned is activated before it gets a swap slot. Here pins are found after that.";
    "congestion: one mark" "..6.6" "A m":
        "kswapd and reclaim for a group share one congestion flag of a node, which every reclaimer for a group clears at its end. Here, as since 6.7, there are two flags, and memory.reclaim on the root does not clear kswapd's.";
    "shadows of anonymous pages" "7.2.." "C":
        "They live in the swap table and keep fewer bits of time, so that distances on large machines are rounded. Here they have the same bits as shadows of file pages.";
    "swap: first store to a page" "6.1..6.1" "A":
        "A page that a load brings back from swap is mapped read-only, and its first store faults a second time. Here, as in 6.12, it is mapped for stores as well, so that there are fewer minor faults.";
    "generations: unevictable pages" "generations 6.3..6.6" "E":
        "Eviction moves an unevictable page that it finds to the unevictable list. Here, as in 6.1.192 and 6.12, it skips the page.";
    "MGLRU: walkers that wait" "generations 6.1..6.1" "A":
        "A task that loses the race for a walk of page tables waits for the winner at priority 10 and below. Here, as in 6.12, it does not wait.";
    "generations: pass of 6.1" "generations 6.1..6.2" "A":
        "kswapd ages all groups before each priority, and tests min_ttl_ms then. Here kswapd ages as since 6.3; lru.abort_scope decides how a pass ends.";
    "MGLRU: dirty pages of 6.1" "generations 6.1..6.1" "A":
        "A dirty file page at the old end goes to the head of the next generation, with locked ones, and no pass wakes the flusher. Here lru.dirty and reclaim.flusher_wake model that, except for locked pages.";
    "generations: reclaim without I/O" "generations 6.6..6.6" "E":
        "A reclaimer that may do no I/O behaves as with a swappiness of 1. Here, as in 6.12, files come first unless swappiness decides otherwise.";
    "MGLRU: eviction by command" "generations 6.1..6.16" "M":
        "A `-` command of lru_gen evicts whole rounds, which is more than was asked for. Here, as since 6.17, it evicts no more than that.";
    "MGLRU: budget of protected groups" "generations 7.2.." "C":
        "memory.min and memory.low reduce the budget of a pass in proportion. Here a group is either skipped or not.";
    "free pages of CPUs" "..6.6" "A m":
        "A CPU keeps free pages up to a fixed number (the low watermark over the CPUs of the node), takes one batch at a time, and gives back more each time. Here, as since 6.7, the number adapts.";
    "free pages of a zone below its high watermark" "..6.6" "A m":
        "CPUs keep their free pages when a zone falls below its high watermark. Here they give them back, as since 6.7.";
    "reserve for large blocks" "..6.1" "A":
        "The whole reserve for blocks of pages counts as unusable, free or not. Here only its free pages do.";
    "min_free_kbytes over zones" "..6.1" "A":
        "It is spread over all zones, including the movable one. Here that one gets a 1024th of its pages.";
    "blocks of another type" "..6.9" "A m":
        "A request that takes pages out of a block of another type takes all free pages there. It takes the block if half of it is free or compatible. Here, as since 6.10, the block is either claimed or left.";
    "vm.defrag_mode" "6.15.." "C":
        "kswapd balances by whole free blocks if it is on. It is off by default, and the file does not exist here.";
    "readahead: decision" "..6.0" "m":
        "A miss and a marked page decide alike, as in 6.1 (readahead.window=one_function). Here, as since 6.12, each decides for itself.";
    "readahead: end of a file" "6.16.." "C D":
        "A window that ends at the end of the file has no marker, a read that fails does not shrink it, and asynchronous windows are aligned. Here they are as in 6.12, and aligned on devices whose files have large folios.";
    "readahead: no memory" "..6.1" "A":
        "If no page is available for a window, the next window is tried. Here readahead ends with that window.";
    "readahead: misses of mappings" "..6.7" "A m":
        "A cached page near a fault counts in favour of readahead. Here, as in 6.12, it does not if it is part of the working set. It is not known whether 6.8 or 6.9 changed it.";
    "position of a read" "..6.4" "A m":
        "The position that readahead uses moves with each piece of a read(2) that is copied. Here it moves at the end of the call.";
    "swap slots" "7.2.." "C":
        "CPUs keep no stock of free slots. Here each CPU has 64, as up to 6.14.";
    "swap slots of an SSD" "..6.1" "A":
        "They are taken in order from a run of 512 slots that a CPU owns. Here they come from lists of clusters.";
    "zram and the swap cache" "..6.2" "A m":
        "A page is written to zram by a synchronous call. Here a request is submitted, and reclaim waits for it. In both cases the page is freed in the same batch.";
    "zswap: pool's own eviction" "..6.5" "A":
        "The pool chooses what it evicts: zbud the page whose entries are oldest, zsmalloc none up to 6.1. Here the worker takes the oldest entries of each group in turn.";
    "zswap: entries that stay" "..6.5" "A":
        "An entry stays in the pool when its page is read back, until the slot is freed. Here it leaves the pool.";
    "zswap: shrinker" "..6.7" "A":
        "There is no shrinker and no list per group. Here there is one if zswap.shrinker_enabled turns it on.";
    "tiers: mappings that are skipped" "..6.3" "A m":
        "Balancing marks pages of all mappings. Here, as since 6.4, it skips mappings that the task has not used lately.";
    "tiers: pgdemote per group" "..6.9" "A m":
        "Demoted pages are counted for the machine alone. Here they are also counted per group.";
    "migration page by page" "..6.2" "A m":
        "Pages are migrated one by one, and each flushes translations. Here a batch flushes once.";
    "writeback: share of an idle device" "7.2.." "C":
        "The minimum share of an idle device also counts when the kernel checks whether the device is over its limit. Here it counts for the writer's rate alone.";
    "writeback: a lost start" "..7.0" "I":
        "A bug report of March 2026 describes a start of background writeback that gets lost. The circumstances and the affected versions are not known here, so there is no rule.";
    "writeback: single pages of file systems" "..6.2" "A m":
        "ext4 writes a page that reclaim hands it if its blocks are allocated, and redirties others. Here reclaim.file_writeback and reclaim.writepage apply to all files alike.";
    "waiting of 5.15 and before" "2.6.36..5.15" "m":
        "Reclaimers sleep because of congestion, a tenth of a second at most. Here they wait for specific reasons, as since 5.16, unless reclaim.stalls is set otherwise.";
    "overreclaim" "2.6.36..6.0" "m":
        "Once the target is reached, the rest of a pass is adjusted to proportion once and then scanned to its end (fixed by f53af4285d77). Here, as since 6.1, it is tested after each batch.";
    "statistics before 5.16" "..5.15" "I m":
        "Reclaim reads counters that CPUs update in batches. Here the rule of 5.15 is that of 6.12, and older behaviour is not known.";
    "charge stocks of several groups" "6.16.." "C":
        "A CPU holds a stock of charges for seven groups. Here it holds one for a single group, as in earlier versions.";
    "kswapd's CPUs" "7.2.." "C":
        "kswapd runs on any CPU. Here on those of its node.";
    "counters of later versions" "7.3.." "D":
        "MGLRU pages that were isolated and not reclaimed count as pgrotate_*. Here only those of the classic LRU do.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_has_a_name_of_its_own_and_says_what_is_done_here() {
        for (at, row) in UNMODELLED.iter().enumerate() {
            assert!(
                UNMODELLED[..at].iter().all(|other| other.name() != row.name()),
                "{} is there twice",
                row.name()
            );
            let is_told = ["Here", "here"].iter().any(|word| row.doc.contains(word));
            assert!(is_told, "{} does not say what is done here", row.name());
        }
    }

    #[test]
    fn a_row_is_of_its_versions_and_lists() {
        let of = |name: &str| UNMODELLED.iter().find(|row| row.name() == name).unwrap();
        let version = |text| Version::parse(text).unwrap();
        let waits = of("MGLRU: walkers that wait");
        assert!(waits.holds(version("6.1.192"), Lists::Mglru));
        assert!(!waits.holds(version("6.1.192"), Lists::Classic));
        assert!(!waits.holds(version("6.12"), Lists::Mglru));
        assert_eq!(waits.known_at(version("6.1.192")), Known::Recorded);
    }
}
