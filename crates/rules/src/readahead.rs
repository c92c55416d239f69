//! Rules of readahead that differ from kernel to kernel: how a read chooses the further pages to read, and in folios of which size. [kernels 3.1;
//! machine 1.3 to 1.5; folios 1.2, 1.4]

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

choice! {
    /// From where readahead knows the order of the folios that it read last.
    ReadaheadOrder {
        /// From the folio with the mark. It grows before it is used: the first window has folios of order 2.
        MarkedFolio = "marked_folio",
        /// From the open file. The first window has single pages.
        Stored = "stored",
    }
}

choice! {
    /// Which files MADV_HUGEPAGE on a mapping reads 2 MiB of at a time.
    HugeAdviceFiles {
        /// Any file: one without large folios in single pages.
        Any = "any_file",
        /// Files whose file system has large folios, and as long as misses do not stop it.
        LargeFolios = "large_folio_files",
    }
}

choice! {
    /// What a fault on an executable mapping reads.
    ReadaheadExec {
        /// The pages around, like any fault.
        Around = "around",
        /// The pages from there on, without a mark. On processors whose programs are best mapped in folios of a size, in these.
        Ahead = "ahead",
    }
}
