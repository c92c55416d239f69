#!/usr/bin/env bash
# Compares the textbook policies with those of libCacheSim (PyPI wheel `libcachesim`, object size ignored): the same trace, memory for the same
# number of objects, every batch of one page. Fails unless the misses are equal.
# Usage: ci/slow/exactness.sh TRACE.oracleGeneral.zst [OBJECTS...]
set -euo pipefail
trace=$(realpath "$1")
shift
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q 'libcachesim==0.3.5'
cargo build --release -q -p pageout-lab
zstd -dq "$trace" -o "$work/trace.oracleGeneral"
pageout=${CARGO_TARGET_DIR:-target}/release/pageout
"$pageout" replay "$trace" --ignore-size --memory 2MiB --read-ahead-kb 0 --print-scenario > "$work/trace.toml"
"$work/venv/bin/python" ci/slow/exactness.py "$pageout" "$work" "${@:-512 8192}"
