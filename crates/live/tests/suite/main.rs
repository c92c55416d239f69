//! Promises of the page cache that need no process of their own. Those about the process's memory, its descriptors or its end have files beside this folder.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests that make files and threads")]

#[path = "../made/mod.rs"]
mod made; // files with known contents

mod reads;
mod writes;
mod pending; // reads under way while their thread does something else
mod readers; // the readers of one thread
mod guards;
mod io; // the idioms of the standard library
mod files; // identity of files, and what they give back
mod regions;
mod zswap;
mod slow_regions; // regions in two kinds of memory
mod small_groups;
mod set_budget;
mod counts; // figures by file and group
mod attacks; // calls as a hostile caller mixes them
