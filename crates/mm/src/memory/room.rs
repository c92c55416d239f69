//! Checks that the system grants the address space that tables will take.

use crate::config::ConfigError;
use crate::memory::nodes::{NodeKind, Nodes};
use crate::memory::table::Table;
use crate::memory::table_memory::TableMemory;

/// Refuses a table of this many pages, and what it consists of in a kernel, that the system has no address space for.
pub fn check_table(
    what: &'static str,
    kind: NodeKind,
    pages: u64,
    memory: &TableMemory,
) -> Result<(), ConfigError> {
    if !memory.is_counted() {
        return check_room(what, pages, Table::bytes_for(pages) + Nodes::bytes_for(kind, pages));
    }
    // All else takes memory as it is used, and the host counts it.
    let bytes = Table::bytes_for(pages);
    if memory.grants(pages) { Ok(()) } else { Err(ConfigError::NoRoom { what, pages, bytes }) }
}

/// Refuses tables that the system has no address space for. An allocation that fails ends the process, so it is tried first,
/// together with some more that the machine needs while it runs.
pub fn check_room(what: &'static str, pages: u64, bytes: u64) -> Result<(), ConfigError> {
    /// Tables smaller than that are many, and trying takes a system call.
    const SMALL: u64 = 1 << 20;
    const SPARE: u64 = 64 << 20;
    if bytes < SMALL {
        return Ok(());
    }
    let mut tried: Vec<u8> = Vec::new();
    let granted = usize::try_from(bytes + SPARE).is_ok_and(|bytes| tried.try_reserve_exact(bytes).is_ok());
    // Without this the compiler leaves out an allocation that is never used.
    std::hint::black_box(&mut tried);
    if granted { Ok(()) } else { Err(ConfigError::NoRoom { what, pages, bytes }) }
}
