//! Records of hot pages: when a page is hot, what a record says, and where records are. [tiering 3]

mod hotness; // when a page is hot, as configured
pub mod record; // a record's layouts, and what a report makes of it
pub mod sections; // where records are

pub use record::Hotness;
pub use sections::Records;

use crate::config::Config;
use crate::units::{NodeId, TaskId};

/// State of hot-page tracking.
pub struct Pghot {
    /// Reports of each page.
    pub records: Records,
    /// klruscand, and kmigrated of all nodes that have one, once the machine has started them.
    pub threads: Vec<TaskId>,
    /// kmigrated of nodes whose hot pages find no free memory, each with the node that is full.
    pub waiting_for_room: Vec<(NodeId, TaskId)>,
}

impl Pghot {
    /// Nothing was reported yet.
    pub fn new(config: &Config) -> Pghot {
        Pghot {
            records: Records::new(Hotness::of(config).layout),
            threads: Vec::new(),
            waiting_for_room: Vec::new(),
        }
    }
}
