#!/usr/bin/env bash
# Runs all tests, including the examples of the documentation; ci/slow/python.sh tests the Python package. Tests of the program use a release
# build, which users run and which simulates twice as fast. `cargo test` alone uses the build with assertions.
set -euo pipefail
cd "$(dirname "$0")/../.."
set -x
# Side by side: each alone leaves a CPU idle at times.
cargo build --locked --release --bin pageout &
ended=0
cargo test --locked --no-run || ended=$?
wait $! || ended=$?
[[ $ended -eq 0 ]]
# Some tests wait, for a program or a device: twice as many as there are CPUs keep these busy.
export RUST_TEST_THREADS=$((2 * $(nproc)))
PAGEOUT_BINARY=$(realpath "${CARGO_TARGET_DIR:-target}/release/pageout") cargo test --locked
