//! Curves: misses by the size of memory, as cheaply as theory allows.
//!
//! LRU is a stack algorithm: a larger memory holds all pages of a smaller one, so one pass gives every size. [`marks`] is for a choice of sizes,
//! [`distances`] for all. OPT is one, too, but one heap per size is fast enough ([`crate::Opt`]). All other policies need one run per size;
//! [`sampling`] estimates those from a part of the pages. [`split`] divides a memory by the curves of several tenants.
//!
//! Source: R. L. Mattson and others, *Evaluation Techniques for Storage Hierarchies*, IBM Systems Journal 9(2), 1970,
//! <https://doi.org/10.1147/sj.92.0078>.

pub mod distances;
pub mod marks;
pub mod sampling;
pub mod split;
