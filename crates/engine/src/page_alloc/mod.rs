//! Free memory: which pages are free, and who may have them.

mod alloc; // the tries of a request, and what is counted
pub(crate) mod frames; // which frames of a zone are free
pub(crate) mod info; // zones as those outside see them
pub(crate) mod request; // what is asked for, and by what right
pub(crate) mod watermark; // how much of a zone stays free
pub(crate) mod zone; // parts of a node's memory by who can reach them
mod zonelist; // in which order zones are tried
pub(crate) mod zones; // all of them, and the fast path
