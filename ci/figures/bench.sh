#!/usr/bin/env bash
# Measures the speed budgets, and the whole process of `pageout replay`, next to libCacheSim's LRU (PyPI wheel `libcachesim`, native reader,
# oracleGeneral, object size ignored). The accesses are the same, and the programs alternate in one run. Not part of .ci/run: a timing is a figure to
# read, not a test to pass.
# Usage: ci/figures/bench.sh [ROUNDS [all|budgets|process|textbook [release|plain|guided]]]
# The process is by default of the build that README's command makes; ci/figures/measured.sh has the others. A benchmark of the budgets
# that is not guided is plain.
set -euo pipefail
cd "$(dirname "$0")/../.."
rounds=${1:-5}
part=${2:-all}
how=${3:-release}
target=${CARGO_TARGET_DIR:-target}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q 'libcachesim==0.3.5'
cargo build --release -q -p pageout-workload --example zipf_oracle_general
zipf() { "$target/release/examples/zipf_oracle_general" 1048576 "$1" 0.99 1; }
bench() { "$work/venv/bin/python" ci/figures/bench.py "$@"; }

if [ "$part" = all ] || [ "$part" = budgets ]; then
    budgets=$(ci/figures/measured.sh budgets "${how/release/plain}")
    zipf 20000000 > "$work/budgets.oracleGeneral"
    bench budgets "$rounds" "$budgets" "$work/budgets.oracleGeneral"
    rm "$work/budgets.oracleGeneral"
fi
if [ "$part" != budgets ]; then
    if [ "$part" != process ]; then
        textbook=$(cargo bench -q --locked -p pageout-cache --bench speed --no-run --message-format=json)
        textbook=$(sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' <<< "$textbook")
    fi
    pageout=$(ci/figures/measured.sh pageout "$how")
    zipf 10000000 > "$work/zipf.oracleGeneral"
    "$pageout" trace convert --quiet "$work/zipf.oracleGeneral" "$work/zipf.pgt"
    [ "$part" = textbook ] || bench process "$rounds" "$pageout" "$work/zipf"
    [ "$part" = process ] || bench textbook "$rounds" "$pageout" "$work/zipf" "$textbook"
fi
