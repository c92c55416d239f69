#!/usr/bin/env bash
# Builds with a profile of the program's own runs (profile-guided optimisation): what a miss passes through then lies side by side and
# fits into the first cache, which is a fifth of its time. Published speeds say whether they are of such a build.
# Usage: ci/guided.sh pageout | budgets     builds the program, or the benchmark of the budgets, and prints the path of what it built.
# Needs llvm-profdata of this very compiler: rustup component add llvm-tools
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-$PWD/target}
what=${1:?"what to build: pageout or budgets"}

merge="$(rustc --print target-libdir)/../bin/llvm-profdata"
if [ ! -x "$merge" ]; then
    echo "there is no llvm-profdata for this compiler; install it: rustup component add llvm-tools" >&2
    exit 1
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Builds into a folder with more flags for the compiler, and prints the path of what came out.
build() {
    export CARGO_TARGET_DIR=$1 RUSTFLAGS=$2
    if [ "$what" = pageout ]; then
        cargo build -q --locked --profile measured -p pageout-lab >&2
        echo "$1/measured/pageout"
    else
        cargo bench -q --locked -p pageout-sim --bench budgets --no-run --message-format=json | sed -n 's/.*"executable":"\([^"]*\)".*/\1/p'
    fi
}

# Runs of many kinds, none of which is one that is measured: smaller ones, of other seeds.
train() {
    if [ "$what" = budgets ]; then
        "$1" --small --tsv
        return
    fi
    cargo build --release -q --locked -p pageout-workload --example zipf_oracle_general >&2
    "$target/release/examples/zipf_oracle_general" 131072 1500000 0.9 7 > "$work/zipf.oracleGeneral"
    "$1" trace convert --quiet "$work/zipf.oracleGeneral" "$work/zipf.pgt"
    for trace in "$work"/zipf.{oracleGeneral,pgt}; do
        "$1" replay "$trace" --memory 20%,30% --quiet
        "$1" replay "$trace" --memory 30% --policy mglru --quiet
    done
    for name in database heap-index-data kernel-build mapped-or-read writeback-from-reclaim whole-machine zipf-under-limit zswap; do
        "$1" run "scenarios/$name.toml" --seed 7 --quiet
    done
}

case "$what" in
    pageout | budgets) ;;
    *) echo "unknown: $what; known are pageout and budgets" >&2; exit 1 ;;
esac
instrumented=$(build "$target/guided/instrumented" "-Cprofile-generate=$work/raw")
(unset RUSTFLAGS; CARGO_TARGET_DIR=$target train "$instrumented" > /dev/null)
"$merge" merge -o "$target/guided/$what.profdata" "$work/raw"
build "$target/guided" "-Cprofile-use=$target/guided/$what.profdata"
