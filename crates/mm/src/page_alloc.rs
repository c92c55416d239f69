//! Free memory: zones with their watermarks and reserves, the buddy allocator of each, and pages that CPUs keep. [machine 2]

mod buddy; // free blocks of a zone, by order and migrate type
pub mod compact; // what a zone remembers of compaction
mod fallback; // what a type does that has none
pub mod free_memory; // as it was found on a machine
pub mod info; // zones as those outside see them
mod pcp; // pages that CPUs keep for themselves
pub mod request; // what is asked for, and by what right
pub mod watermark; // how much of a zone stays free
pub mod zone; // parts of a node's memory by who can reach them
pub mod zonelist; // in which order zones are tried
pub mod zones; // all of them, and the fast path
