//! Serving accesses: the stages of a task's access, from the first touch of a page to its end.

pub(crate) mod builder; // a machine's hardware, put together
pub(crate) mod engine; // the facade a machine holds
pub(crate) mod out; // what a machine collects
pub(crate) mod figures; // what there is to know of a machine
pub(crate) mod page_map; // folios in the order of their lists
mod files; // files come, grow, shrink and go
mod objects; // what a task accesses: open files and mappings
pub(crate) mod task; // what each task is in the middle of
pub(crate) mod hits; // hits: what an access to a resident page writes
mod kmem; // kernel memory that an access needs
pub(crate) mod proc; // what a reader of `/proc` takes
mod miss; // misses: finding the page, charging and allocating for it
mod huge; // huge pages at a fault
mod read_ahead; // readahead as a part of an access
mod swap_ahead; // the same of swapped pages
mod fill; // a new folio's contents
mod finish; // the page is in memory: the access is made
mod numa; // scans and hint faults of NUMA balancing
mod promote; // promotion before a task returns to user space
mod memstall; // what of it is owed to a shortage of memory
mod write; // writes to files: who waits, fsync and sync
mod truncate; // pages of a file that are to go
pub(crate) mod advice; // mlock, munmap, madvise, fadvise
mod anon; // anonymous mappings that change
mod start_state; // a machine as it was found
mod recorded; // what a player of recordings says of an access
mod dying; // how a killed task ends
mod exit; // the end of a task, and of its address space
