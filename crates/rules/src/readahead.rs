//! Rules of readahead that differ from kernel to kernel: how a read chooses the further pages to read. [kernels 3.1; machine 1.3 to 1.5]

use crate::choice::choice;

choice! {
    /// How a read decides which pages are read ahead.
    ReadaheadWindow {
        /// A miss and a marked page each decide in their own way.
        TwoFunctions = "two_functions",
        /// A miss and a marked page decide alike.
        OneFunction = "one_function",
    }
}
