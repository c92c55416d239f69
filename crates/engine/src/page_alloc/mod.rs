//! Where free memory is.

pub(crate) mod frames; // which frames are free
