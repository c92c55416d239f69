//! libFuzzer on the target that `PAGEOUT_FUZZ_TARGET` names.

#![no_main]

use std::sync::LazyLock;

static TARGET: LazyLock<pageout_fuzz::Target> = LazyLock::new(|| {
    let name = std::env::var("PAGEOUT_FUZZ_TARGET").expect("PAGEOUT_FUZZ_TARGET names a target");
    pageout_fuzz::by_name(&name).unwrap_or_else(|| panic!("there is no target {name}"))
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| TARGET(bytes));
