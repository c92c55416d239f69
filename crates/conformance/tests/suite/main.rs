//! What every machine must hold to, on the one that does one thing after the other.

/// The promises are written for any machine; these are of this one.
#[track_caller]
fn check(text: &str) {
    pageout_conformance::check::<pageout_conformance::ByHand>(text);
}

#[path = "../../promises/mod.rs"]
mod promises; // texts, command and answer line by line
