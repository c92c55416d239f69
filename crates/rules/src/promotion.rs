//! Rules of the promotion of page cache. [tiering 7]

use crate::choice::choice;

choice! {
    /// The position of a newly isolated page in its task's list.
    PromotionOrder {
        /// Behind the others, so that pages are copied in the order in which they are read.
        Tail = "tail",
        /// Before the others, as up to the second posting.
        Head = "head",
    }
}

choice! {
    /// When an isolated page is promoted.
    PromotionWhen {
        /// When its reader returns to user space.
        Return = "return",
        /// Immediately, in the middle of the access that finds it hot.
        Access = "access",
    }
}

choice! {
    /// Which node a page goes to.
    PromotionTarget {
        /// The node that was chosen when the page was isolated.
        Chosen = "chosen",
        /// All go to the node of the CPU on which the task returns to user space, as in the posting.
        Local = "local",
    }
}
