#!/usr/bin/env bash
# The speed budgets beside libCacheSim's LRU (PyPI wheel `libcachesim`, native reader, oracleGeneral, object size ignored) on
# the same accesses, interleaved in one run. Not part of .ci/run: a timing is a figure to read, not a test to pass.
# Usage: ci/bench.sh [ROUNDS]
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q 'libcachesim==0.3.5'
cargo build --release -q -p pageout-workload --example zipf_oracle_general
cargo bench -q -p pageout-sim --bench budgets --no-run
"${CARGO_TARGET_DIR:-target}"/release/examples/zipf_oracle_general 1048576 20000000 0.99 1 > "$work/zipf.oracleGeneral"
"$work/venv/bin/python" ci/bench.py "$work/zipf.oracleGeneral" "${1:-5}"
