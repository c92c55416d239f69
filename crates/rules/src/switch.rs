//! Switches: every mechanism and every era's rule under a name that scenarios set, profiles bundle and `ablate` turns.
//!
//! One row a switch in [`SWITCHES`]: its name, what it accepts, what it does and why one would turn it, and the shipped
//! scenario whose result it changes. The first part of a name is the seam it belongs to.

use crate::balance::{BalanceRule, CostRule, RefTierGains, SwappinessZero, TierReference, TypeRule};
use crate::choice::Values;
use crate::lru::{
    AbortScope, AfterAging, AgeAtDefault, AgingRule, CloseEmpty, DirtyAtTail, FaultIn, Gauges, Interface,
    Lru, NewAnon, NewFile, OfflineAging, ProtectTo, References, Rejected, RejectedUse, RmapPromote,
    RoundSize, ScanBudget, ScanReturn, Switching, TypeFallback,
};
use crate::policy::Policy;
use crate::reclaim::{
    AnonOnly, AnonWriteback, AwakeNodes, CompactGap, CongestedQueue, DemotionFull, DemotionMems,
    FileWriteback, FlushRule, FlusherWake, GivesUp, KswapdReset, LaptopMode, NoioAnon, OfflinePages,
    OnSignal, ProtectionRule, Stalls, TreeWalk, V1Throttle, Writepage, ZoneSkip,
};
use crate::workingset::{RefaultActivate, Restore, ShadowCount, Workingset};
use crate::writeback::{DirtyRule, FlusherChunk, FlusherRequests};
use crate::zswap::{Incompressible, WorkerWalk, WritebackRotation, ZswapProtection};

/// A row of the table of switches.
pub struct Switch {
    /// The switch's name; the part before the dot is the seam.
    pub name: &'static str,
    /// The values that the switch accepts.
    pub values: Values,
    /// What the switch does, and why one would turn it.
    pub doc: &'static str,
    /// The shipped scenario whose result it changes, as a path below `scenarios/`, and the value that changes it there. `None`
    /// only where nothing shows it, which its documentation then says.
    pub shown_by: Option<(&'static str, &'static str)>,
    get: fn(&Policy) -> String,
    set: fn(&mut Policy, &str) -> Option<()>,
}

impl Switch {
    /// The switch of this name.
    pub fn by_name(name: &str) -> Option<&'static Switch> {
        SWITCHES.iter().find(|switch| switch.name == name)
    }

    /// The switch's value in a policy.
    pub fn get(&self, policy: &Policy) -> String {
        (self.get)(policy)
    }

    /// The values worth trying instead of the one that it has in a policy.
    pub fn alternatives(&self, policy: &Policy) -> Vec<String> {
        let mut values: Vec<String> = match self.values {
            Values::Bool => vec!["false".into(), "true".into()],
            Values::Choice(words) => words.iter().map(|word| (*word).to_owned()).collect(),
            Values::Number(least, most) => [least, 3, 8, most].map(|value| value.to_string()).into(),
        };
        values.retain(|value| *value != self.get(policy));
        values
    }

    /// Sets it; false, changing nothing, where it doesn't accept the value.
    pub fn set(&self, policy: &mut Policy, value: &str) -> bool {
        self.values.holds(value) && (self.set)(policy, value).is_some()
    }
}

macro_rules! switch {
    ($name:literal, bool $($field:ident).+, $shown_by:expr, $doc:literal) => {
        Switch {
            name: $name,
            values: Values::Bool,
            doc: $doc,
            shown_by: $shown_by,
            get: |policy| policy.$($field).+.to_string(),
            set: |policy, value| {
                policy.$($field).+ = value.parse().ok()?;
                Some(())
            },
        }
    };
    ($name:literal, $choice:ty: $($field:ident).+, $shown_by:expr, $doc:literal) => {
        Switch {
            name: $name,
            values: Values::Choice(<$choice>::NAMES),
            doc: $doc,
            shown_by: $shown_by,
            get: |policy| policy.$($field).+.name().to_owned(),
            set: |policy, value| {
                policy.$($field).+ = <$choice>::by_name(value)?;
                Some(())
            },
        }
    };
}

/// All switches of a policy.
pub const SWITCHES: &[Switch] = &[
    switch!("harvest.rmap", bool harvest.rmap, Some(("program-code.toml", "false")),
        "Reclaim asks through the reverse map whether a mapped page in its hands was used. Without it such a page looks idle: what accessed bits are worth."),
    switch!("harvest.page_table_walk", bool harvest.page_table_walk, Some(("mechanisms.toml", "false")),
        "Page tables are walked for used pages: when generations age, or on two lists once a turn of the inactive ones. A walk costs by the number of pages accessed. Without it only the reverse map finds used pages, one by one."),
    switch!("harvest.non_leaf_young", bool harvest.non_leaf_young, Some(("mechanisms.toml", "false")),
        "A walk passes by page tables whose upper entry was not accessed. Some processors don't record that."),
    switch!("harvest.bloom_filter", bool harvest.bloom_filter, Some(("mechanisms.toml", "false")),
        "A walk passes by page tables in which the last one found fewer than one young entry in eight."),
    switch!("harvest.look_around", bool harvest.look_around, Some(("mechanisms.toml", "false")),
        "Where the reverse map finds a young entry, the 64 around it are looked at too."),
    switch!("harvest.mm_skip", bool harvest.mm_skip, Some(("groups-by-age.toml", "false")),
        "A walk passes by address spaces that have not run since the last one. What it leaves out has no young entries, so this saves time, and changes what is reclaimed where walks overtake each other."),
    switch!("lru.lists", Lru: lru, Some(("mechanisms.toml", "two_lists")),
        "Which lists there are, whatever the other three seams do."),
    Switch {
        name: "lru.generations",
        values: Values::Number(2, 64),
        doc: "At most so many generations exist. Linux: 4. More tell ages apart more finely and age more often.",
        shown_by: Some(("tiers-of-read-pages.toml", "8")),
        get: |policy| policy.generations.count_max.to_string(),
        set: |policy, value| {
            policy.generations.count_max = value.parse().ok()?;
            Some(())
        },
    },
    switch!("lru.tiers", bool generations.tiers, Some(("tiers-of-read-pages.toml", "false")),
        "Pages read repeatedly through file descriptors are spared if their tier refaults more. Without it, use through a descriptor counts for nothing."),
    switch!("lru.full_count", bool generations.full_count, Some(("tiers-of-read-pages.toml", "false")),
        "Pages with a full count of reads are spared whatever the controller says (since 6.7). Without it their tier decides. If the controller is off, nothing else spares a page."),
    switch!("lru.references", References: generations.references, Some(("mechanisms.toml", "6.16")),
        "How accesses are counted and what a young entry does: the ladder and the walk's steps of 6.12 or 6.16, or one count for reads and mapped use alike that promotes pages by itself (fg3, the proposal of 2026)."),
    switch!("lru.read_promotion", bool generations.read_promotion, Some(("gets-among-scans.toml", "false")),
        "A page read twice leaves the oldest generation, and one read so often that its count is full moves to the next. Without it only the controller can spare a page that is read. Only with the references of fg3."),
    switch!("lru.gauges", Gauges: generations.gauges, Some(("gets-among-scans.toml", "generations")),
        "Which pages count as active: those of the two youngest generations, so that the gauges jump when one is opened, or those accessed three times (fg3, and only with its references). Reclaim for the machine begins the more gently the more is inactive."),
    switch!("lru.fault_in", FaultIn: generations.fault_in, Some(("mechanisms.toml", "like_read")),
        "A fault brings a page in, and it goes to the youngest generation (6.12), the second youngest (6.16), where read pages go, or where pages go that were read once unless it was in use when it was evicted (since 7.2)."),
    switch!("lru.rejected", Rejected: generations.rejected, Some(("mechanisms.toml", "second_youngest")),
        "Reclaim could not free a page, and it goes to the youngest generation (6.12) or the second youngest (6.16)."),
    switch!("lru.rejected_use", RejectedUse: generations.rejected_use, Some(("mechanisms-2026.toml", "lost")),
        "Reclaim could not free a page, and what was counted of its use is lost (6.12), stays unless it would be in the oldest generation again (6.16), or is lost in any case (queued for the release after 7.3)."),
    switch!("lru.rmap_promote", RmapPromote: generations.rmap_promote, Some(("mechanisms-2026.toml", "second_seen")),
        "Reclaim finds a mapped page used that was seen used before: it is in use (6.16), or only if it was accessed more than once, and is activated with one access more otherwise (since 7.2). Only with the references of 6.16."),
    switch!("lru.new_file", NewFile: generations.new_file, Some(("regressions/m6-files-used-twice.toml", "oldest")),
        "A read brings a page in, and it goes to the oldest generation (before 6.7) or to the second oldest while the window is full (6.12). In 6.16 it matters whether it was in use when evicted, since 7.2 also whether it was accessed before it is on a list, with fg3 whether it was twice."),
    switch!("lru.new_anon", NewAnon: generations.new_anon, Some(("mechanisms.toml", "second_oldest")),
        "A page that needs a write before it can be freed goes to the second oldest generation (before 6.7) or the second youngest. With only three generations both are the same."),
    switch!("lru.protect_to", ProtectTo: generations.protect_to, Some(("mechanisms.toml", "head")),
        "Which end of the next generation a protected page goes to: tail (6.12) or head (6.16)."),
    switch!("lru.dirty", DirtyAtTail: generations.dirty, Some(("regressions/m3-dirty-pages-of-cgroup-v1.toml", "isolate")),
        "A page at the old end that is dirty or being written is isolated and activated (up to 6.13, and since 7.2, where it is not forgotten meanwhile that it is to come back when it is written), or moved to the next generation, where it is soon met again (6.14 to 7.1)."),
    switch!("lru.aging", AgingRule: generations.aging, Some(("regressions/m12-idle-memory-out-of-reach.toml", "6.16")),
        "When eviction stops to age: by sizes, while the window is neither full nor used up (6.1 to 6.13), whenever it isn't full (6.16), or only when it is used up (as posted in 2021)."),
    switch!("lru.scan_budget", ScanBudget: generations.pass.scan_budget, Some(("mechanisms-2026.toml", "recompute")),
        "When a pass counts what it may scan: before each round (up to 7.1), or once, less what is protected (since 7.2). A pass that has nothing to scan then doesn't age either."),
    switch!("lru.round", RoundSize: generations.pass.round, Some(("mechanisms-2026.toml", "4096_pages")),
        "How many pages a round of eviction may look at: 4096 (up to 7.1), or 64 and no more than the pass still wants (since 7.2). With 4096, a pass over a small group that was to take one page takes 64."),
    switch!("lru.scan_return", ScanReturn: generations.pass.scan_return, Some(("mechanisms-2026.toml", "isolated_or_exhausted")),
        "What a round that spares all it looks at counts as: nothing, and the pass ends (up to 7.1), or what it looked at (since 7.2)."),
    switch!("lru.close_empty", CloseEmpty: generations.pass.close_empty, Some(("mechanisms-2026.toml", "after")),
        "Whether a round closes empty generations only when it has isolated (up to 7.1), or also before it does (since 7.2)."),
    switch!("lru.age_at_default", AgeAtDefault: generations.pass.age_at_default, None,
        "Where only the generations are left that eviction spares, the first priority leaves aging to the next (up to 7.1), or ages at once (since 7.2). It saves a priority, and no shipped scenario's counters change."),
    switch!("lru.after_aging", AfterAging: generations.pass.after_aging, Some(("mechanisms-2026.toml", "stop")),
        "A pass that has aged is over (up to 7.1), or goes on to evict (since 7.2)."),
    switch!("lru.offline_aging", OfflineAging: generations.pass.offline_aging, None,
        "What a removed group has left ages only where nothing else can be evicted (up to 7.1), or as any other (since 7.2). All that such a group has is to be scanned from the first priority on, so it is mostly gone before it could age, and no shipped scenario's counters change."),
    switch!("lru.type_fallback", TypeFallback: generations.pass.type_fallback, Some(("mechanisms-2026.toml", "no_isolation")),
        "A round changes to the other type where the one that the controller chose gave nothing to isolate (up to 7.1), or only where there was nothing of it to look at (since 7.2)."),
    switch!("lru.isolate_io_check", bool generations.pass.isolate_io_check, Some(("noio-isolation.toml", "false")),
        "A reclaimer that may do no I/O passes by anonymous pages that are dirty or in no swap cache, among them those that could be forgotten (up to 7.1), or takes them like others and keeps what it can't free (since 7.2)."),
    switch!("lru.abort_scope", AbortScope: generations.pass.abort_scope, Some(("mechanisms-2026.toml", "root")),
        "Whose passes over generations end once the target is reached: those for the machine (up to 7.0), or all (since 7.1). Before, a group of 2 million pages gave 640 for 32."),
    switch!("lru.memcg_lru", bool generations.memcg_lru, Some(("groups-by-age.toml", "false")),
        "Reclaim for the whole machine comes by groups that keep generations in the order of the memcg LRU: those that were aged or had nothing to give come last. Without it, it walks the tree of groups, as two lists do."),
    switch!("lru.interface", Interface: generations.interface, None,
        "How commands written to lru_gen are read. 6.12: `+` of a generation that exists already succeeds and does nothing. 6.16: it opens the next, and swappiness `max` is allowed. Reclaim itself decides the same, so no shipped scenario's counters change."),
    switch!("lru.switching", Switching: generations.switching, Some(("regressions/m5-switch-at-the-limit.toml", "new_only")),
        "/sys/kernel/mm/lru_gen/enabled moves pages between generations and two lists. Meanwhile reclaim walks both, or the new ones only: this ends in a false OOM at a limit."),
    switch!("lru.memcg_lru_restart", bool generations.memcg_lru_restart, Some(("groups-by-age.toml", "true")),
        "Reclaim that has emptied the old generation of groups goes on with the next, and ages groups again that it has just aged (before 6.8)."),
    switch!("lru.executable_protection", bool executable_protection, Some(("program-code.toml", "false")),
        "A page of a program's code stays active after one use. 6.16 dropped this for generations, where used pages are young anyway; 7.3 has it again, as there a page has to be found used twice by then."),
    switch!("reclaim.proactive_counters", bool proactive_counters, Some(("proactive-reclaim.toml", "true")),
        "What memory.reclaim scans and takes is counted as pgscan_proactive and pgsteal_proactive (since 6.15); before, as direct reclaim."),
    switch!("reclaim.stat_flush", FlushRule: reclaim.stat_flush, Some(("regressions/premature-oom.toml", "6.1")),
        "A pass over two lists decides by statistics. It flushes them first if the periodic worker is late by a whole period (6.12), or if the CPUs have counted enough updates since the last flush (6.1, far more often)."),
    switch!("reclaim.tree_walk", TreeWalk: reclaim.tree_walk, Some(("regressions/c1-a-walk-of-all-groups.toml", "full")),
        "Which groups a call looks at: its part of a walk that reclaimers share, and all of them if that gave nothing (since 6.10), all of them each time (5.19 to 6.9), or its part only (before)."),
    switch!("reclaim.protection", ProtectionRule: reclaim.protection, Some(("regressions/m9-protection-of-grandchildren.toml", "as_visited")),
        "Reclaim for the machine that comes by groups in the order of the memcg LRU goes by protection as it is (queued for the release after 7.3), by what was worked out for the parent when reclaim last came by that, so that a group below a group is not protected before (up to 6.10), or by what kswapd has worked out last, whoever reclaims (6.11 to 7.3)."),
    switch!("reclaim.isolation_limit", bool reclaim.isolation_limit, Some(("regressions/c6-too-many-isolated.toml", "false")),
        "A task waits once that would reclaim while others have a large part of a type in their hands (since 2.6.32). Without it, what is left on the lists looks like all there is."),
    switch!("reclaim.zone_skip", ZoneSkip: reclaim.zone_skip, Some(("regressions/c2-passing-by-other-zones.toml", "unbounded")),
        "A reclaimer that needs a page of a lower zone, as the kernel does for itself, passes by pages of higher ones on its way down a list: 32,768 for a batch, after which it takes whatever comes, or without a bound (kernels before, with the list locked all the time)."),
    switch!("reclaim.awake_nodes", AwakeNodes: reclaim.awake_nodes, Some(("regressions/n1-a-node-that-others-keep-short.toml", "passed_by")),
        "What the first try of a request makes of a node whose kswapd is awake: it takes memory there down to the low mark (up to 6.17), or passes it by where another node has room (since 6.18). The rule is the machine's."),
    switch!("reclaim.drain_before_giving_up", bool reclaim.drain_before_giving_up, Some(("regressions/premature-oom.toml", "true")),
        "A call that found nothing empties the batches of its CPU and starts over. No kernel does so. Pages in a batch are on no list, so reclaim can't find them. This only puts the end off, until the pages in the batch are active too."),
    switch!("reclaim.force_active_anon", bool reclaim.force_active_anon, Some(("regressions/premature-oom.toml", "true")),
        "If a pass has only active anonymous pages to scan, and the call found nothing in any other way, forced deactivation reaches them. No kernel does so: there a pass begins only with inactive or file pages."),
    switch!("reclaim.flush_after_failure", bool reclaim.flush_after_failure, Some(("regressions/premature-oom.toml", "true")),
        "A call that reclaimed nothing brings its group's statistics up to date, so that the next attempt decides by fresh ones. No kernel does so."),
    switch!("reclaim.demote_file", bool reclaim.demote_file, Some(("demotion.toml", "false")),
        "Pages of files are demoted to slower memory like others. No kernel has it otherwise; false is what those ask for who would read a file again rather than have it on slow memory: reclaim then drops them as if there were no slower memory."),
    switch!("reclaim.demotion_full", DemotionFull: reclaim.demotion_full, Some(("demotion.toml", "reclaim_target")),
        "What becomes of pages that are to be demoted while slower memory is full: they are swapped out or dropped, although colder pages stay there (all kernels), or the coldest of the slower memory goes first."),
    switch!("reclaim.offline", OfflinePages: reclaim.offline, Some(("removed-groups.toml", "keep")),
        "The pages of a removed group stay on its own lists until they are reclaimed there (up to 7.0), or are its parent's at once, at the cold end of the lists (since 7.1)."),
    switch!("reclaim.demotion_mems", DemotionMems: reclaim.demotion_mems, Some(("regressions/t1-demotion-out-of-the-cpuset.toml", "nearest_only")),
        "Whether demotion keeps to the nodes of a cgroup (cpuset.mems): it does not ask (up to 6.18), it asks for the nearest ones alone, so that a group without them is not demoted at all, or any slower node of the group will do (since 2026)."),
    switch!("reclaim.file_writeback", FileWriteback: reclaim.file_writeback, Some(("writeback-from-reclaim.toml", "any")),
        "Which reclaimers write dirty pages of files that they meet: any that may enter a file system (up to 3.1), all but tasks that reclaim for the machine (the series of 2010 against deep stacks), kswapd in earnest (3.2 to 4.10), kswapd where it meets a page twice among dirty ones only (4.11 to 6.15, on file systems that write single pages), nobody (since 6.16, and on ext4 and XFS before). With the first two a page that may not be written is kept, otherwise it is activated."),
    switch!("reclaim.anon_writeback", AnonWriteback: reclaim.anon_writeback, Some(("writeback-from-reclaim.toml", "not_direct")),
        "Which reclaimers write pages to swap: any, or all but tasks that reclaim for the machine, as the third posting of the series of 2010 had it."),
    switch!("reclaim.anon_only", AnonOnly: reclaim.anon_only, Some(("regressions/anon-only-takes-files.toml", "or_file")),
        "What memory.reclaim does with swappiness=max, which asks for anonymous memory only: it does not know it (up to 6.14), takes file memory where no anonymous page can be swapped or demoted (6.15 to 7.1), or takes nothing there (since 7.2)."),
    switch!("reclaim.on_signal", OnSignal: reclaim.on_signal, Some(("regressions/reclaim-past-its-timeout.toml", "goes_on")),
        "A signal comes for whoever has asked memory.reclaim: the request goes on until it has all or gives up, however long that takes (up to 7.0), or ends after its batch, and its write fails with EINTR (since 7.1 or 7.2). What was reclaimed by then stays reclaimed. A signal comes when the `timeout` of an event is over."),
    switch!("reclaim.flusher_wake", FlusherWake: reclaim.flusher_wake, Some(("writeback-from-reclaim.toml", "never")),
        "When reclaim asks the flushers to write all that is dirty: never (generations before 6.10), after a pass that met nothing but dirty pages of files (generations of 6.12), after such a batch (two lists), or when a call has looked at half as much again as it wants (2010; so many pages only)."),
    switch!("reclaim.batch_tallies", bool reclaim.batch_tallies, None,
        "What batches of generations meet that is dirty or being written adds up to what reclaim of a group goes by when it is through with a node, as that of two lists does (since 7.2): it waits a tick while all dirty pages that it met were met before. Without it reclaim of generations waits for nobody who writes. It decides only where most of what could be reclaimed on a node is dirty or being written, and no shipped scenario's counters change by it."),
    switch!("reclaim.v1_throttle", V1Throttle: reclaim.v1_throttle, Some(("regressions/m3-dirty-pages-of-cgroup-v1.toml", "after_pass")),
        "Whether reclaim for a group of cgroup v1 waits for writes when it has asked for them: no (generations before 7.1), after the pass (7.1), after the batch (two lists)."),
    switch!("reclaim.stalls", Stalls: reclaim.stalls, Some(("writeback-from-reclaim.toml", "congestion_wait")),
        "How reclaimers wait for pages under writeback: for a reason and until it is gone (since 5.16), or for a tenth of a second or until a device's queue is no longer congested, whatever the reason (2010)."),
    switch!("reclaim.congested_queue", CongestedQueue: reclaim.congested_queue, None,
        "What a reclaimer does with a dirty page of a file whose device has nearly as many requests as it takes: it submits the write and sleeps until there is room (today, as far as reclaim writes at all), or keeps the page, unless it is kswapd or in the middle of a write of its own (2010). It decides only where tasks write what they meet (reclaim.file_writeback = any), and no shipped scenario's counters change in other profiles than those of 2010."),
    switch!("reclaim.writepage", Writepage: reclaim.writepage, None,
        "What a file system does with a page that reclaim hands it to write: it writes it, or it marks it dirty again and leaves it to the flusher, while reclaim counts it as written (XFS and btrfs of mid-2010, and most of ext4). It decides only where reclaim writes files at all (reclaim.file_writeback = any, not_direct, kswapd_only or seen_twice), and no shipped scenario's counters change by it alone."),
    switch!("reclaim.laptop_mode", LaptopMode: reclaim.laptop_mode, Some(("laptop-mode.toml", "ignored")),
        "What vm.laptop_mode is to reclaim: it writes nothing above priority 9 (up to 7.x), nothing until it has looked at half as many pages again as it wants, and then has all written (2010), or it is nothing to it (by 7.3)."),
    switch!("reclaim.gate", bool reclaim.gate, Some(("regressions/c1-a-walk-of-all-groups.toml", "false")),
        "Tasks that need a page wait for kswapd where less than half of the minimum is free. Without it (2010) they go on to reclaim for themselves, and may use up what kswapd needs for its own work."),
    switch!("reclaim.compact_gap", CompactGap: reclaim.compact_gap, Some(("huge-pages-under-load.toml", "capped")),
        "How many pages reclaim for a block frees before it leaves the rest to compaction: twice the block (up to 7.1), or no more than 32 (since 7.2)."),
    switch!("reclaim.lumpy", bool reclaim.lumpy, Some(("huge-pages-under-load.toml", "true")),
        "Who needs a block of pages reclaims whole blocks around the oldest pages, used or not, and waits for what is being written (2007 to 2012, on two lists). Without it, single pages are reclaimed and compaction moves the others out of the way."),
    switch!("reclaim.gives_up", GivesUp: reclaim.gives_up, None,
        "When a request that finds no page asks for someone's end: after 16 rounds without any (since 4.7), or when six times as many pages were looked at as there are on the lists, and none was freed meanwhile (2010). It decides where tasks may not write what they meet and wait for kswapd, as in the series of 2010: 16 rounds are soon over then. No shipped scenario's counters change."),
    switch!("reclaim.clean_only", bool reclaim.clean_only, None,
        "On two lists, a page of a file that was read once before and is not used now is taken only if it needs no write (up to 7.2). Where reclaim writes no files, such a page is kept for the flusher in any case, and no shipped scenario's counters change."),
    switch!("reclaim.noio_anon", NoioAnon: reclaim.noio_anon, Some(("regressions/noio-scans-anon.toml", "skip_low_swapcache")),
        "A reclaimer that may do no I/O scans anonymous memory on two lists although it can free none of it (up to 7.3), or leaves it alone while less than a 64th of it is in the swap cache (queued for the release after)."),
    switch!("reclaim.swap_cache_bypass", bool reclaim.swap_cache_bypass, Some(("mechanisms-2026.toml", "true")),
        "An anonymous page is read back from a synchronous swap device without the swap cache, and its slot is freed at once (4.15 to 6.19). Since 7.0 it stands in the swap cache until it is mapped: what its group's lists take it for meanwhile is a page that could be freed."),
    switch!("reclaim.kswapd_reset", KswapdReset: reclaim.kswapd_reset, None,
        "Where kswapd has given up on a node, it tries again when anyone reclaims a page there (up to 6.19), or only once enough is free (since 7.0). It decides over kswapd's time more than over pages, and no shipped scenario's counters change."),
    switch!("reclaim.machine_counts", bool reclaim.machine_counts, None,
        "What is scanned and taken for a group counts in /proc/vmstat, too (7.3), or only in memory.stat. It decides nothing, so no group's counters change."),
    switch!("reclaim.swap_ahead_drain", bool reclaim.swap_ahead_drain, None,
        "Who has read ahead from swap empties its CPU's batches, so that what was read is found on its list at once (up to 7.1). It takes locks for pages that may never be used. Such pages are found a little later, and no shipped scenario's counters change."),
    switch!("writeback.dirty_throttle", DirtyRule: writeback.dirty_throttle, Some(("writeback-from-reclaim.toml", "writes")),
        "Who dirties more than may be dirty sleeps, so that it is no faster than the device (since 3.1), or writes half as much again as it has dirtied itself (2010), where anonymous memory that can be swapped counts as memory that could be dirty. It is one for all groups: that of the profile."),
    switch!("writeback.flusher_chunk", FlusherChunk: writeback.flusher_chunk, Some(("files-of-another-group.toml", "1024_pages")),
        "How much of a file the flusher writes before it turns to the next one: what the device writes in half a second, at least 4 MiB (6.12), or 4 MiB (2010). Many files on a slow disk then take turns less often, and pages of those that wait grow old. It is one for all groups: that of the profile."),
    switch!("writeback.flusher_requests", FlusherRequests: writeback.flusher_requests, Some(("files-of-another-group.toml", "queue")),
        "What comes of a request of reclaim for writes while another one waits for the flusher: nothing, as the one that waits is for all that is dirty (6.12), or it waits, too, and each is for so many pages (2010). A flusher that is asked for less than there is then goes on for as long as it is asked. It is one for all groups: that of the profile."),
    switch!("writeback.node_limit", bool writeback.node_limit, Some(("dirty-pages-over-nodes.toml", "false")),
        "A page of a file that will be written is not taken from a node with more than vm.dirty_ratio of its own memory dirty, if another has one to spare. Without it, writers fill the nearest node with pages that reclaim can't free."),
    switch!("writeback.foreign_flush", bool writeback.foreign_flush, Some(("files-of-another-group.toml", "false")),
        "A group that is over its dirty limit has files written that it has dirtied in the last 30 s, whosever they are. Without it, its writers sleep, and its pages stay dirty until those are half a minute old or their owner is over its own limit."),
    switch!("writeback.inode_switching", bool writeback.inode_switching, Some(("files-of-another-group.toml", "true")),
        "A file that another group writes most of for more than a second is written back on behalf of that one from then on. Without it, it stays with the group that dirtied it first."),
    switch!("workingset.recency", Workingset: workingset, Some(("regressions/m13-no-refault-distance.toml", "distance")),
        "Which refaults say that a page was evicted too early: by distance (classic), by the oldest generation (6.12), by any generation (6.16), or none."),
    switch!("workingset.restore", Restore: generations.restore, Some(("tiers-of-read-pages.toml", "full")),
        "Pages that come back soon can get their use restored. Before 6.7: pages with a full count, as in use. 6.12: also those with one use less, and their count is full again. Only with the references of 6.12."),
    switch!("workingset.refault_activate", RefaultActivate: generations.refault_activate, Some(("mechanisms-2026.toml", "fault")),
        "Which pages that a fault brings back soon count as activated: all (6.16 to 7.1), or those that were in use when they were evicted (since 7.2). Only with the references of 6.16, where it is a counter and decides nothing."),
    switch!("workingset.shadow_count", ShadowCount: generations.shadow_count, Some(("gets-among-scans.toml", "four")),
        "What a shadow remembers of a page's count: all of it, or 4 at most, so that the controller takes refaults of the uppermost tier for those of the next. Only with the references of fg3, whose count goes to 7."),
    switch!("balance.rule", BalanceRule: balance.rule, Some(("mechanisms.toml", "cost")),
        "How anonymous memory is weighed against file memory: by running costs (classic), by the refault controller (MGLRU), by swappiness alone."),
    switch!("balance.cost", CostRule: balance.cost, Some(("swappiness.toml", "counters")),
        "When running costs are brought up to date: at each event, for a group and all above it (up to 7.2), or as a pass begins, from counters as of their last flush (since 7.3), which takes no lock and does not forget an early burst for a later one."),
    switch!("balance.swappiness_zero", SwappinessZero: balance.swappiness_zero, Some(("regressions/c9-swappiness-zero.toml", "one_part")),
        "What a swappiness of 0 means to running costs: a group never swaps for its own limit, and the machine does only when it is short of file memory (since 3.5), or a small part of the pressure is anonymous memory's all the same."),
    switch!("balance.controller", bool balance.controller, Some(("tiers-of-read-pages.toml", "false")),
        "Refaults decide which tiers are protected and which type is taken. Without it swappiness alone decides, and only pages with a full count are spared."),
    switch!("balance.smoothing", bool balance.smoothing, Some(("mechanisms.toml", "false")),
        "The controller remembers earlier generations, each half as much as the next. Without it only the present one counts."),
    switch!("balance.type_rule", TypeRule: balance.type_rule, Some(("mechanisms.toml", "6.16")),
        "How the controller picks the type: the one with the older generation first, then tier 0 against tier 0 (6.12), or all tiers by refaults alone (6.16)."),
    switch!("balance.ref_tier_gains", RefTierGains: balance.ref_tier_gains, Some(("tiers-of-read-pages.toml", "2:3")),
        "How much worse than tier 0 a tier may fare before it is protected: 1:2 (6.12, and fg3) or 2:3 (6.16)."),
    switch!("balance.tier_reference", TierReference: balance.tier_reference, Some(("gets-among-scans.toml", "tier_0")),
        "What a tier is compared with before it is protected: tier 0 (up to 7.3), the tier below, or all tiers below together (fg3). What is posted of fg3 leaves open which of the last two."),
    switch!("zswap.protection", ZswapProtection: zswap.protection, Some(("zswap.toml", "6.8")),
        "How the dynamic shrinker is kept from writing back what will be wanted again: by a number of entries (6.8), or by a second chance for each and as many less as pages had to be read from the device (6.12)."),
    switch!("zswap.same_filled", bool zswap.same_filled, Some(("zswap.toml", "true")),
        "A page of one word repeated is kept as that word and takes nothing of the pool (before 6.12)."),
    switch!("zswap.incompressible", Incompressible: zswap.incompressible, Some(("regressions/z3-pool-full.toml", "store")),
        "A page that does not shrink goes to the device, or is stored as it is (6.18), so that it is not swapped out before older ones."),
    switch!("zswap.worker", WorkerWalk: zswap.worker, Some(("regressions/z2-first-groups-only.toml", "restart")),
        "How the worker that empties a full pool goes through groups: from the first each time and no further than a removed one (restart, 6.10), on from where it was (cursor, 6.12), or 32 entries at a time (batch, 6.18)."),
    switch!("zswap.proactive_shrink", bool zswap.proactive_shrink, Some(("regressions/z3-pool-full.toml", "true")),
        "The worker begins 1 % above the accept threshold, so that the pool hardly ever is full and hot pages need not pass cold ones on the way to the device. Proposed, in no kernel."),
    switch!("zswap.writeback_rotation", WritebackRotation: zswap.writeback_rotation, Some(("regressions/z1-written-back-at-the-head.toml", "rotate_unlisted")),
        "A page that was written back goes to the cold end of its list if it is on one when its write ends (baseline), is queued for that in any case (the fix of February 2024), is dropped (newer kernels), or is dropped and leaves the shadow of its last use, which nobody has come back to yet (in no kernel)."),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::PROFILES;

    #[test]
    fn every_switch_can_be_set_to_what_it_accepts_and_reads_back() {
        for switch in SWITCHES {
            for value in switch.values.ends() {
                let mut policy = (PROFILES[0].policy)();
                assert!(switch.set(&mut policy, &value), "{} = {value}", switch.name);
                assert_eq!(switch.get(&policy), value);
            }
        }
    }

    #[test]
    fn what_a_switch_does_not_accept_changes_nothing() {
        for switch in SWITCHES {
            for value in ["", "perhaps", "1", "65"] {
                let mut policy = Policy::mglru_6_12();
                assert!(!switch.set(&mut policy, value), "{} = {value}", switch.name);
                assert_eq!(policy, Policy::mglru_6_12());
            }
        }
    }
}
