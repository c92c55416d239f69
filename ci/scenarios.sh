#!/usr/bin/env bash
# Every shipped scenario runs, and so do all combinations of mechanisms; all print the same bytes twice, on one thread and on two.
# The known bugs show where they should.
set -euo pipefail
cd "$(dirname "$0")/.."
echo "+ cargo build --locked --release --bin pageout"
cargo build --locked --release --bin pageout
pageout=${CARGO_TARGET_DIR:-target}/release/pageout
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
for scenario in scenarios/*.toml scenarios/mglru-v4/*-small.toml; do
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
# The mechanisms of the two families in all combinations, and each turned alone.
mixed=(scenarios/heap-index-data.toml --repeat 2 --json --set 'task.db.object.*.workload.ops=20_000')
for command in crossover ablate; do
    for jobs in 1 2; do
        "$pageout" "$command" "${mixed[@]}" --set kernel.profile=mglru@6.12 --jobs "$jobs" > "$results/$jobs"
    done
    cmp "$results/1" "$results/2"
    echo "$command: every combination ends well, same bytes on one thread and on two"
done
for scenario in $(grep -l '^\[\[expect\]\]' scenarios/regressions/*.toml); do
    for jobs in 1 2; do
        "$pageout" compare "$scenario" --json --jobs "$jobs" > "$results/$jobs"
    done
    cmp "$results/1" "$results/2"
    echo "$scenario: as expected, same bytes each time"
done
