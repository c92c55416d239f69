#!/usr/bin/env bash
# Builds what published speeds are of, and prints its path: all crates as one unit; with `guided` by a profile of the program's own runs,
# too (profile-guided optimisation). The code of a miss then lies side by side, and nearly fits into the first cache.
# Usage: ci/figures/measured.sh pageout|budgets [plain|guided]     the program, or the benchmark of the budgets
#        ci/figures/measured.sh pageout profile                    the profile alone, for other builds of these crates (ci/release.sh)
#        ci/figures/measured.sh pageout release                    what README's command makes, crate by crate
# `guided` needs llvm-profdata of this very compiler: rustup component add llvm-tools
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "$0")/../.."
target=${CARGO_TARGET_DIR:-$PWD/target}
what=${1:-}
how=${2:-plain}
case "$what $how" in
    "pageout plain" | "pageout guided" | "budgets plain" | "budgets guided" | "pageout profile" | "pageout release") ;;
    *) echo "usage: ci/figures/measured.sh pageout|budgets [plain|guided], or ci/figures/measured.sh pageout profile|release" >&2; exit 1 ;;
esac

# Builds into a folder, with more flags for the compiler.
build() {
    export CARGO_TARGET_DIR=$1 RUSTFLAGS=$2
    if [ "$what" = pageout ]; then
        cargo build -q --locked --profile measured -p pageout-lab >&2
        echo "$1/measured/pageout"
    else
        local built
        built=$(cargo bench -q --locked -p pageout-sim --bench budgets --no-run --message-format=json)
        sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' <<< "$built"
    fi
}

# Runs the program for its profile: on other accesses than those that are measured, of other seeds, and fewer.
train() {
    if [ "$what" = budgets ]; then
        "$1" --small --tsv
        return
    fi
    RUSTC_WRAPPER='' cargo build --release -q --locked -p pageout-workload --example zipf_oracle_general >&2
    "$target/release/examples/zipf_oracle_general" 131072 1500000 0.9 7 > "$work/zipf.oracleGeneral"
    "$1" trace convert --quiet "$work/zipf.oracleGeneral" "$work/zipf.pgt"
    for trace in "$work"/zipf.{oracleGeneral,pgt}; do
        "$1" replay "$trace" --memory 20%,30% --quiet
        "$1" replay "$trace" --memory 30% --policy mglru@6.12 --quiet
    done
    for name in database heap-index-data kernel-build mapped-or-read writeback-from-reclaim whole-machine zipf-under-limit zswap; do
        "$1" run "scenarios/$name.toml" --seed 7 --quiet
    done
}

if [ "$how" = release ]; then
    cargo build -q --locked --release -p pageout-lab >&2
    echo "$target/release/pageout"
    exit
fi
if [ "$how" = plain ]; then
    build "$target" "${RUSTFLAGS:-}"
    exit
fi
merge="$(rustc --print target-libdir)/../bin/llvm-profdata"
if [ ! -x "$merge" ]; then
    echo "there is no llvm-profdata for this compiler; install it: rustup component add llvm-tools" >&2
    exit 1
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
raw=$target/guided/raw
# A profile has functions by name: both builds use the same names.
export RUSTC_WRAPPER=$PWD/ci/figures/names.sh
# Functions are counted before crates become one unit, so this build saves the time for that. Counters stand in the way of vectors, and
# the compiler of 1.95 falls over them (a SIGSEGV in LoopVectorize).
instrumented=$(CARGO_PROFILE_MEASURED_LTO=off CARGO_PROFILE_BENCH_LTO=off build "$target/guided/instrumented" "-Cprofile-generate=$raw -Cno-vectorize-loops")
rm -rf "$raw"
CARGO_TARGET_DIR=$target train "$instrumented" > /dev/null
"$merge" merge -o "$target/guided/$what.profdata" "$raw"
if [ "$how" = profile ]; then
    echo "$target/guided/$what.profdata"
    exit
fi
build "$target/guided" "-Cprofile-use=$target/guided/$what.profdata"
