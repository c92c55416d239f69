#!/usr/bin/env bash
# All tests, the documentation's examples included; then those through the program that take long without optimisation, with a release.
set -euo pipefail
cd "$(dirname "$0")/.."
set -x
cargo test --locked --workspace
cargo build --locked --release --bin pageout
PAGEOUT_BINARY=$PWD/${CARGO_TARGET_DIR:-target}/release/pageout cargo test --locked -p pageout-lab --test cli -- --ignored
