//! placeholder
#![forbid(unsafe_code)]
fn main() {}
