//! The vocabulary between the engine and the machine that carries its decisions out.

pub(crate) mod step; // accesses in; done, again or wait out
pub(crate) mod op; // operations on pages
pub(crate) mod gate; // frames that others look at, taken from them or left
pub(crate) mod accessed_bits; // accessed bits that the host has
pub(crate) mod queue; // in which order they may be carried out
pub(crate) mod work; // counts of work to price
