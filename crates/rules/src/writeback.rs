//! Rules of writeback that differ from kernel to kernel: who is slowed down or writes, how much of a file is a turn, and who asks
//! flushers. [machine 5, 9.3]

use crate::choice::choice;

choice! {
    /// What happens to who dirties more pages of files than may be dirty.
    DirtyRule {
        /// The writer sleeps, so that it is no faster than the device. Since Linux 3.1.
        Sleeps = "sleeps",
        /// The writer writes pages itself. 2010.
        Writes = "writes",
    }
}

choice! {
    /// How much of a file the flusher writes before it turns to the next one.
    FlusherChunk {
        /// As much as the device writes in half a second, and 4 MiB at least: seeks are rare, and a round over many files is long.
        HalfASecond = "half_a_second",
        /// 1024 pages, so that no file waits for long; on a disk each turn is a seek. 2010. [machine 9.3]
        Pages1024 = "1024_pages",
    }
}

choice! {
    /// What comes of a request to the flusher while another one waits for it.
    FlusherRequests {
        /// Nothing: the one that waits is for all that is dirty, and one is enough. Linux 6.12.
        One = "one",
        /// The request waits, too: each is for so many pages, and is done. 2010. [machine 9.3]
        Queue = "queue",
    }
}

/// What is done about dirty pages. It is one for all groups: that of the profile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WritebackRules {
    /// What happens to who dirties too many.
    pub dirty_throttle: DirtyRule,
    /// How much of a file is written before the next one.
    pub flusher_chunk: FlusherChunk,
    /// What comes of a request to the flusher while another one waits.
    pub flusher_requests: FlusherRequests,
    /// A page that will be written comes from a node that has few of them, where there is one.
    pub node_limit: bool,
    /// A group that dirties files of others has those written when it is over its limits.
    pub foreign_flush: bool,
    /// A file that another group writes for seconds becomes that group's.
    pub inode_switching: bool,
}

impl WritebackRules {
    /// Linux 6.12.
    pub(crate) fn linux_6_12() -> WritebackRules {
        WritebackRules {
            dirty_throttle: DirtyRule::Sleeps,
            flusher_chunk: FlusherChunk::HalfASecond,
            flusher_requests: FlusherRequests::One,
            node_limit: true,
            foreign_flush: true,
            inode_switching: true,
        }
    }

    /// Mid-2010, when limits were the machine's alone.
    pub(crate) fn linux_2_6_35() -> WritebackRules {
        WritebackRules {
            dirty_throttle: DirtyRule::Writes,
            flusher_chunk: FlusherChunk::Pages1024,
            flusher_requests: FlusherRequests::Queue,
            node_limit: false,
            foreign_flush: false,
            inode_switching: false,
        }
    }
}
