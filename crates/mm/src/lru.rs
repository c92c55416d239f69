//! The lists of a group on a node, whichever LRU keeps them: two lists, generations, or a guest. [reclaim 1.4, 4.1]

pub mod lruvec; // the lists of one memcg on one node, their costs and ages
pub mod generations; // generations, and how often a page was used
pub mod guest; // a policy that keeps the pages instead of lists

pub use generations::{CountsUse, GenerationLists, Place, ladder, with_frequency};
