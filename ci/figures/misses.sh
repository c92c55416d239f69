#!/usr/bin/env bash
# Compares misses of textbook policies with those of libCacheSim 0.3.5 (PyPI wheel `libcachesim`) on the same accesses, object sizes ignored. They must be equal if a
# policy leaves no choice. If a paper leaves one, they must be within 1 % with parameters that `pageout keys policy` names. W-TinyLFU is only
# printed: the reason of its difference is unknown. Not part of .ci/run: it takes a trace of yours, and the network. Misses on the recorded sequences are a test: crates/lab/tests/cli/bench.rs.
# Usage: ci/figures/misses.sh TRACE.oracleGeneral[.zst]...
set -euo pipefail
cd "$(dirname "$0")/../.."
(($# > 0)) || { echo "LEFT OUT: no trace is named (ci/figures/misses.sh TRACE.oracleGeneral.zst...), so nothing was compared" >&2; exit 0; }
for trace in "$@"; do
    [[ -r $trace ]] || { echo "$trace can't be read" >&2; exit 2; }
done
target=${CARGO_TARGET_DIR:-target}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python3 -m venv "$work/venv"
if ! "$work/venv/bin/pip" install -q 'libcachesim==0.3.5'; then
    echo "LEFT OUT: libcachesim 0.3.5 can't be installed here, so nothing was compared" >&2
    exit 0
fi
cargo build --release -q
"$work/venv/bin/python" ci/figures/misses.py "$target/release/pageout" "$@"
