#!/usr/bin/env bash
# Runs every scenario, a third of them twice to compare the bytes. All combinations of mechanisms run on one thread and on two. Known bugs must
# show, and predictions must be reproduced.
#
#   ci/gate/scenarios.sh        every third scenario twice
#   ci/gate/scenarios.sh all    every scenario twice but the longest, and predictions on one thread and on two, as ci/slow/tests.sh does
set -euo pipefail
cd "$(dirname "$0")/../.."
case ${1:-} in
    "") of=3 predicted=as_expected ;;
    all) of=1 predicted=as_expected_twice ;;
    *) echo "usage: ci/gate/scenarios.sh [all]" >&2; exit 2 ;;
esac
echo "+ cargo build --locked --release --bin pageout"
cargo build --locked --release --bin pageout
export pageout=${CARGO_TARGET_DIR:-target}/release/pageout
results=$(mktemp -d)
export results
trap 'rm -rf "$results"' EXIT

ends_well() {
    "$pageout" run "$1" --json > /dev/null || return 255
    echo "$1: ends well"
}

same_bytes() {
    local scenario=$1 at
    at=$(mktemp -d -p "$results")
    for try in first second; do
        "$pageout" run "$scenario" --json > "$at/$try" || return 255
    done
    if ! cmp "$at/first" "$at/second"; then
        echo "$scenario differs from run to run" >&2
        return 255 # which makes xargs stop
    fi
    echo "$scenario: same bytes each time"
}

# Each of its variants is a run.
as_expected() {
    "$pageout" compare "$1" --json --jobs 1 > /dev/null || return 255
    echo "$1: as expected"
}

# The same, one after the other and side by side.
as_expected_twice() {
    local scenario=$1 at
    at=$(mktemp -d -p "$results")
    for jobs in 1 2; do
        "$pageout" compare "$scenario" --json --jobs "$jobs" > "$at/$jobs" || return 255
    done
    cmp "$at/1" "$at/2" || return 255
    echo "$scenario: as expected, same bytes each time"
}
export -f ends_well same_bytes as_expected as_expected_twice

# Calls a function with each scenario on its input, as many at a time as there are CPUs.
each() {
    xargs -P "$(nproc)" -I{} bash -euo pipefail -c "$1 {}"
}

longest=scenarios/mglru-v4/fio-io-uring-small.toml
others=$(printf '%s\n' scenarios/*.toml scenarios/live/*.toml scenarios/mglru-v4/*-small.toml | grep -vx "$longest")
ends_well "$longest" &
awk "NR % $of == 0" <<< "$others" | each same_bytes
awk "NR % $of != 0" <<< "$others" | each ends_well
wait $!
# The mechanisms of the two families in all combinations, and each turned alone.
mixed=(scenarios/heap-index-data.toml --repeat 2 --json --set 'task.db.object.*.workload.ops=8_000')
for command in crossover ablate; do
    for jobs in 1 2; do
        "$pageout" "$command" "${mixed[@]}" --set kernel.profile=mglru@6.12 --jobs "$jobs" > "$results/$jobs"
    done
    cmp "$results/1" "$results/2"
    echo "$command: every combination ends well, same bytes on one thread and on two"
done
printf '%s\n' scenarios/regressions/*.toml | each as_expected
printf '%s\n' scenarios/predictions/*.toml | each "$predicted"
