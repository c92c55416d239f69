//! What every machine must hold to, on those that are here.

mod bytes; // inputs of the machine that holds the contents of all pages
#[path = "../../src/bytes/pool.rs"]
mod pool; // the bytes of compressed pages, with their test

/// The promises are written for any machine; these are of this one.
#[track_caller]
fn check(text: &str) {
    pageout_conformance::check::<pageout_conformance::ByHand>(text);
}

#[path = "../../promises/all.rs"]
mod promises; // texts, command and answer line by line
