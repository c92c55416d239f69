//! Serving accesses: what a task is in the middle of, from the first touch of a page to its end.

pub(crate) mod engine; // the facade a machine holds
pub(crate) mod task; // what each task is in the middle of
pub(crate) mod access; // hits: what an access to a resident page writes
pub(crate) mod fault; // misses: from the absent page to the mapped one
pub(crate) mod advice; // mlock, munmap, madvise, fadvise
