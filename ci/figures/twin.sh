#!/usr/bin/env bash
# Records loads on this machine, in cgroups of its own, compares each with its twin, and prints the table of docs/results/data/twin.md.
# Needs root, tracefs, Linux 6.12 and python3; if one is missing the script reports that and is skipped (exit code 77).
# Usage: ci/figures/twin.sh [LIMIT_MIB...]. Default limits are 32, 48, 64 and 96 MiB; the compile always has its own.
# The argument `cost` measures the cost of recording instead. REPEATS=1 for one run instead of three, LOADS="sqlite" for some of the
# loads, PAGEOUT=FILE for a program that is built already, KEEP=FOLDER to keep the recordings.
set -euo pipefail
cd "$(dirname "$0")/../.."
pageout=${PAGEOUT:-}
if [[ -z $pageout ]]; then
    cargo build --release --quiet
    pageout=$PWD/target/release/pageout
fi
limits=("${@:-}")
[[ -n ${limits[0]} ]] || limits=(32 48 64 96)
# Compilers hold 25 MiB, and read 4 of 8.
compile_limits=(26 28 30 48)
repeats=${REPEATS:-3}

left_out() { echo "left out: $1"; exit 77; }
command -v python3 > /dev/null || left_out "there is no python3"
"$pageout" record --check --json | python3 -c '
import json, sys
needed = {"tracefs instance", "filemap:mm_filemap_get_pages", "filemap:mm_filemap_add_to_page_cache", "memory.stat"}
missing = [s["source"] for s in json.load(sys.stdin)["sources"] if s["source"] in needed and not s["is_there"]]
sys.exit(", ".join(missing) or 0)' || left_out "this machine or user lacks what is named above"

if [[ -d /sys/fs/cgroup/memory ]]; then parent=/sys/fs/cgroup/memory limit_file=memory.limit_in_bytes; else parent=/sys/fs/cgroup limit_file=memory.max; fi
mkdir -p target
work=$(mktemp -d "$PWD/target/twin.XXXXXX")
keep=${KEEP:-$work/rec}
group=$parent/pageout-twin-$$
mkdir "$group" || left_out "no cgroup can be made below $parent"
trap 'rmdir "$group" 2> /dev/null || true; rm -rf "$work"' EXIT
[[ -e $group/$limit_file ]] || left_out "cgroups below $parent have no $limit_file"

load=ci/figures/twin/load.py
pages=65536 accesses=100000
python3 -I -S "$load" make "$work/data" "$pages"
if [[ ${limits[0]} == cost ]]; then
    python3 -S ci/figures/twin/cost.py "$pageout" "$work/data" "$pages"
    exit
fi
python3 -I "$load" make-database "$work/database" 120000
python3 -I -S "$load" make-sources "$work/sources" 40

# A recording and its twin: name, limit in MiB, command.
one() {
    local name=$1 limit=$2 rec=$keep/${1// /-}-$2-$repeat
    shift 2
    [[ -z ${LOADS:-} || " $LOADS " == *" $name "* ]] || return 0
    echo $((limit << 20)) > "$group/$limit_file"
    python3 -I -S "$load" forget "$work/data" "$work/database" "$work/sources"
    rm -rf "$rec"
    mkdir -p "$keep"
    "$pageout" record --quiet --into "$rec" --cgroup "$group" -- "$@" > /dev/null
    # A twin that can't be simulated reports the reason, and its row shows it.
    "$pageout" twin "$rec" --json > "$work/twin.json" || true
    python3 -I -S "$load" compare "$name" "$limit" "$work/found" < "$work/twin.json"
    [[ -n ${KEEP:-} ]] || rm -rf "$rec"
}

for ((repeat = 1; repeat <= repeats; repeat++)); do
    for limit in "${limits[@]}"; do
        for mode in read ahead mapped write; do
            one "$mode" "$limit" python3 -I -S "$load" "$mode" "$work/data" "$pages" "$accesses" 1
        done
        one sqlite "$limit" python3 -I "$load" sqlite "$work/database" 20000 1
        one two "$limit" sh -c "python3 -I -S $load read $work/data $pages $((accesses / 2)) 1 & python3 -I -S $load read $work/data $pages $((accesses / 2)) 2 & wait"
    done
    command -v cc > /dev/null || continue
    for limit in "${compile_limits[@]}"; do
        # The compiler is in memory already, as on a machine that has just compiled something: others pay for it.
        cat "$(cc -print-prog-name=cc1)" > /dev/null
        one compile "$limit" sh -c "for source in $work/sources/*.c; do cc -c -o $work/object.o \$source; done"
    done
done
python3 -I -S "$load" table "$work/found"
