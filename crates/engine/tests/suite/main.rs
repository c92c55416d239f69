//! The engine from outside, as one program: linking it once is most of what building tests takes.

mod readahead; // what is read before anyone asks for it, by the table of cases
mod swap_readahead; // the same of swapped pages
mod large_folios; // folios of several pages in the page cache
mod hits; // the fast path beside the slow one
mod accesses; // frames that accesses name
mod tlb;
mod zones; // translations that hide accesses
mod reserve; // what a zone keeps free
mod plug; // swap writes held back
mod lru_gen; // the kernel files of MGLRU
mod story; // telling changes nothing
mod kernel_memory; // what the kernel takes for itself
mod start_state; // a machine that goes on from where another was found
mod metadata; // bytes a page
mod failing_device; // a device that fails beside one that works
mod seam; // what a machine with threads asks for beside accesses
mod words; // page words that other threads read
mod anon; // anonymous mappings that change
mod forgotten_groups; // numbers of groups that are used again
mod compressed; // a host that compresses
mod citations; // documents that comments name
mod kernel_functions; // the page that says where a function of the kernel is
mod kernel_files; // the page of kernel files

mod reader; // a task that reads a file: what the models below are compared on
mod exact; // guests: policies that are not a kernel's
mod guests; // what they are told, and one that lies
mod classic_model; // the two lists, written a second time
mod generations_model; // generations, written a second time
mod readahead_model; // readahead, written a second time
