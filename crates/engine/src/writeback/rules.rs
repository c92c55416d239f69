//! What eras do to who dirties more than may be dirty. [machine 5.4, 9.3]

use crate::switch::choice;

choice! {
    /// What happens to who dirties more pages of files than may be dirty.
    DirtyRule {
        /// It sleeps, so that it is no faster than the device. Since Linux 3.1.
        Sleeps = "sleeps",
        /// It writes itself. 2010.
        Writes = "writes",
    }
}
