#!/usr/bin/env bash
# Every shipped scenario runs, and prints the same bytes twice, on one thread and on two.
set -euo pipefail
cd "$(dirname "$0")/.."
echo "+ cargo build --locked --release --bin pageout"
cargo build --locked --release --bin pageout
pageout=${CARGO_TARGET_DIR:-target}/release/pageout
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
for scenario in scenarios/*.toml; do
    for try in first second; do
        "$pageout" run "$scenario" --json > "$results/$try"
    done
    for jobs in 1 2; do
        "$pageout" compare "$scenario" --vary seed=1,2 --json --jobs "$jobs" > "$results/$jobs"
    done
    if ! cmp "$results/first" "$results/second" || ! cmp "$results/1" "$results/2"; then
        echo "$scenario differs from run to run" >&2
        exit 1
    fi
    echo "$scenario: same bytes each time"
done
