//! Rules of writeback that differ from kernel to kernel: who is slowed down or writes, how much of a file is a turn, and who asks
//! flushers. [machine 5, 9.3]

use crate::choice::choice;
use crate::declare::rules;
use crate::reclaim::FlushRule;

choice! {
    /// What happens to a task that dirties more pages of files than may be dirty.
    DirtyRule {
        /// The writer sleeps, so that it is no faster than the device.
        Sleeps = "sleeps",
        /// The writer writes pages itself.
        Writes = "writes",
    }
}

choice! {
    /// How much of a file the flusher writes before it turns to the next one.
    FlusherChunk {
        /// The flusher writes as much as the device writes in half a second, at least 4 MiB. Seeks are rare,
        /// and a round over many files is long.
        HalfASecond = "half_a_second",
        /// The flusher writes 1024 pages, so that no file waits for long. On a disk each turn is a seek.
        /// [machine 9.3]
        Pages1024 = "1024_pages",
    }
}

choice! {
    /// Treatment of a request to the flusher while another one waits for it.
    FlusherRequests {
        /// Nothing: the waiting request is for all that is dirty, and one is enough.
        One = "one",
        /// The request waits, too. Each is for a number of pages, and is done. [machine 9.3]
        Queue = "queue",
    }
}

choice! {
    /// State of a file page after its write failed.
    FailedWrite {
        /// The page is clean: what was written is lost when the page is reclaimed, and fsync has reported the
        /// error once. All kernels.
        Clean = "clean",
        /// The page is dirty: it is written again later, reclaim can't drop it, and fsync fails until a program
        /// acknowledges the error.
        Dirty = "dirty",
    }
}

rules! {
    /// What is done about dirty pages.
    WritebackRules at machine.writeback as WRITEBACK {
    }
    "writeback.dirty_throttle": dirty_throttle: DirtyRule = DirtyRule::Sleeps,
        [DirtyRule::Writes => "..3.0" "S", DirtyRule::Sleeps => "3.1.." "S"],
        Some(("writeback-from-reclaim.toml", "writes")),
        "What happens to a task that exceeds the dirty limit. `sleeps`: it sleeps, so that it is no faster than the device. `writes`: it writes half as much again as it has dirtied itself, and anonymous memory that can be swapped counts as memory that could be dirty. One value applies to all groups: that of the profile.";
    "writeback.flusher_chunk": flusher_chunk: FlusherChunk = FlusherChunk::HalfASecond,
        [FlusherChunk::Pages1024 => "..3.0" "S", FlusherChunk::HalfASecond => "3.2.." "A B C"],
        Some(("files-of-another-group.toml", "1024_pages")),
        "How much of a file the flusher writes before it turns to the next one: what the device writes in half a second, at least 4 MiB (half_a_second), or 4 MiB (1024_pages). With half_a_second, many files on a slow disk take turns less often, and the pages of waiting files grow old. One value applies to all groups: that of the profile.";
    "writeback.flusher_requests": flusher_requests: FlusherRequests = FlusherRequests::One,
        [FlusherRequests::Queue => "..4.14" "M", FlusherRequests::One => "4.15.." "A M"],
        Some(("files-of-another-group.toml", "queue")),
        "What happens to a write request of reclaim while another one waits for the flusher. `one`: nothing, because the waiting request covers all dirty pages. `queue`: it waits, too, and each request is for a number of pages. A flusher that is asked for fewer pages than are dirty then continues for as long as it is asked. One value applies to all groups: that of the profile.";
    "writeback.failed_write": failed_write: FailedWrite = FailedWrite::Clean,
        [FailedWrite::Clean => ".." "m", FailedWrite::Dirty => "never" ""],
        Some(("failing-file-disk.toml", "dirty")),
        "What state a file page has after its write failed. Clean, as in all kernels: its contents are lost when it is reclaimed. Dirty: its contents are kept and written again after one second, then after twice as long each time, up to half a minute. Each fsync of the file then fails until the error is acknowledged. Memory that a broken device keeps dirty is not available to others. One value applies to all groups: that of the profile.";
    "writeback.stat_flush": stat_flush: FlushRule = FlushRule::WorkerLate,
        [FlushRule::Updates => "5.16..6.7" "m", FlushRule::GroupUpdates => "6.8..6.8" "m", FlushRule::WorkerLate => "6.9.." "S m"],
        Some(("regressions/w2-room-that-statistics-hide.toml", "6.1")),
        "When tasks that are throttled or write flush the statistics behind a group's dirty limits. `6.1`: if the CPUs have counted enough updates of all groups since the last flush. `6.8`: if they have counted enough updates of the group and its descendants. `6.12`: only if the periodic worker is late by a whole period. With old numbers, some writers below their limits sleep, and others above theirs continue. Fresh numbers cost CPU time at every turn, and more with each group.";
    "writeback.node_limit": node_limit: bool = true,
        [false => "..3.2" "m", true => "3.3.." "m"],
        Some(("dirty-pages-over-nodes.toml", "false")),
        "A file page that will be written is not allocated from a node that has more than vm.dirty_ratio of its own memory dirty, if another node has a free page. Without it, writers fill the nearest node with pages that reclaim can't free.";
    "writeback.foreign_flush": foreign_flush: bool = true,
        [false => "..5.3" "m", true => "5.4.." "m"],
        Some(("files-of-another-group.toml", "false")),
        "A group over its dirty limit has all files written that it has dirtied in the last 30 s, whichever group owns them. Without it, its writers sleep, and its pages stay dirty until they are half a minute old or their owner exceeds its own limit.";
    "writeback.inode_switching": inode_switching: bool = true,
        [false => "..4.1" "m", true => "4.2.." "m"],
        Some(("files-of-another-group.toml", "true")),
        "If another group writes most of a file for more than a second, the file is then written back on behalf of that group. Without it, the file stays with the group that dirtied it first.";
}
