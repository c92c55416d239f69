#!/usr/bin/env bash
# Runs the engine with random actions on the byte machine, more than a test should: optimised, with every check. Not part of .ci/run, whose tests
# have hundreds of runs.
# Usage: ci/slow/long.sh [RUNS]     5,000 of each kind
set -euo pipefail
cd "$(dirname "$0")/../.."
export PAGEOUT_RUNS=${1:-5000} CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS=true CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS=true
set -x
cargo test --locked --release -p pageout-engine --lib testing::tests::
cargo test --locked --release -p pageout-conformance --test suite no_input_of_random_bytes
