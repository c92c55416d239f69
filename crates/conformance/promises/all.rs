//! Promises of the engine, seen from outside: each test is a text with its expected answers. They belong to no crate: a crate with a
//! machine includes them, with a `check` that runs a text on it.

mod access; // descriptors, mappings, advice
mod dirty; // dirty pages of files: who writes them, who waits
mod exit; // what is left of a process that has ended
mod generations_pass; // how much a pass scans, when it ages
mod kernel_memory; // nodes of tables, stacks, and who pays for them
mod limits; // charging, protection, memory.high, out of memory
mod oom; // who is killed for want of memory
mod machine; // kswapd, direct reclaim, and those who wait for them
mod refault; // shadows and the working set
mod removal; // groups that go before their pages
mod sieve; // a policy that is not a kernel's
mod statistics; // how old a reader's numbers are
mod threads; // several tasks in one address space
mod swap;
mod swap_areas; // slots, the swap cache, transfers that fail
mod truncate; // pages that a file no longer has
mod zram;
mod zswap; // compressed swap in memory
