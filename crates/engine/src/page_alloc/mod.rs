//! The page allocator: which pages of each zone are free, and which requests may have them. [machine 2]

mod alloc; // the tries of a request, and what is counted
mod buddy; // free blocks of a zone, by order and migrate type
pub(crate) mod compact; // what a zone remembers of compaction
mod fallback; // what a type does that has none
pub(crate) mod slow_path; // what a request does that no zone can serve at once
pub(crate) mod info; // zones as those outside see them
mod pcp; // pages that CPUs keep for themselves
pub(crate) mod request; // what is asked for, and by what right
pub(crate) mod watermark; // how much of a zone stays free
pub(crate) mod zone; // parts of a node's memory by who can reach them
pub(crate) mod zonelist; // in which order zones are tried
pub(crate) mod zones; // all of them, and the fast path
