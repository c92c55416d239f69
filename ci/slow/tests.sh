#!/usr/bin/env bash
# Runs slow tests through the program (`#[ignore]`) with a release, tests of the feature `parquet`, all recorded runs, and the fuzzer. Not part of
# .ci/run.
set -euo pipefail
cd "$(dirname "$0")/../.."
set -x
cargo build --locked --release --bin pageout
PAGEOUT_BINARY=$(realpath "${CARGO_TARGET_DIR:-target}/release/pageout") cargo test --locked -p pageout-lab --test cli --test examples -- --ignored
# And those of a feature that is off.
cargo test --locked -p pageout-workload --features parquet parquet
cargo test --locked -p pageout-lab --features parquet parquet
# All recorded runs, those repeated as well.
ci/gate/validate.sh all
# Every scenario twice.
ci/gate/scenarios.sh all
# What the fuzzer once failed on, and a look at what is new.
cargo clippy --manifest-path fuzz/Cargo.toml --all-targets -- -D warnings
ci/slow/fuzz.sh 10
