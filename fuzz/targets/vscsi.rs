#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pageout_fuzz::run("vscsi", bytes));
