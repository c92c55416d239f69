#!/usr/bin/env bash
# All tests, the documentation's examples included; those of the Python package are those of ci/slow/python.sh. The tests of the program are of a release,
# which users run, and which simulates twice as fast; `cargo test` alone makes them of the build with assertions.
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
