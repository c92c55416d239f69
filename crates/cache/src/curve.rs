//! Curves: misses by the size of memory, as cheaply as theory allows.
//!
//! LRU is a stack algorithm: what a smaller memory holds, a larger one holds too, so one pass gives every size. [`marks`] is for a choice of
//! sizes, [`distances`] for all. OPT is one, too, but a heap a size is fast enough ([`crate::Opt`]). All other policies take a run a size;
//! [`sampling`] estimates those from a few of the pages. By the curves of several tenants [`split`] divides a memory.
//!
//! Source: R. L. Mattson and others, *Evaluation Techniques for Storage Hierarchies*, IBM Systems Journal 9(2), 1970,
//! <https://doi.org/10.1147/sj.92.0078>.

pub mod distances;
pub mod marks;
pub mod sampling;
pub mod split;
