//! Rules of the promotion of page cache. [tiering 7]

use crate::choice::choice;

choice! {
    /// Where in a task's list a page goes that is set aside.
    PromotionOrder {
        /// Behind the others, so that pages are copied in the order in which they are read.
        Tail = "tail",
        /// Before the others, as up to the second posting.
        Head = "head",
    }
}

choice! {
    /// When a page that was set aside is promoted.
    PromotionWhen {
        /// When its reader returns to user space.
        Return = "return",
        /// At once, in the middle of the access that finds it hot.
        Access = "access",
    }
}

choice! {
    /// Which node a page goes to.
    PromotionTarget {
        /// The one that was chosen when it was set aside.
        Chosen = "chosen",
        /// All go to the node of the CPU on which the task returns to user space, as in the posting.
        Local = "local",
    }
}
