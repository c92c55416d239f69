#!/usr/bin/env bash
# Records loads on this machine, in cgroups of its own, and compares each with its twin. Needs root, tracefs, Linux 6.12 and python3; where one is
# missing it says so and is left out (exit code 77). ci/twin.sh [LIMIT_MIB...]: at these limits instead of 32, 48, 64 and 96 MiB. REPEATS=1 for a look, PAGEOUT=FILE for a
# program that is built already.
set -euo pipefail
cd "$(dirname "$0")/.."
pageout=${PAGEOUT:-}
if [[ -z $pageout ]]; then
    cargo build --release --quiet
    pageout=$PWD/target/release/pageout
fi
limits=("${@:-}")
[[ -n ${limits[0]} ]] || limits=(32 48 64 96)
repeats=${REPEATS:-3}

left_out() { echo "left out: $1"; exit 77; }
command -v python3 > /dev/null || left_out "there is no python3"
"$pageout" record --check --json | python3 -c '
import json, sys
needed = {"tracefs instance", "filemap:mm_filemap_get_pages", "filemap:mm_filemap_add_to_page_cache", "memory.stat"}
missing = [s["source"] for s in json.load(sys.stdin)["sources"] if s["source"] in needed and not s["is_there"]]
sys.exit(", ".join(missing) or 0)' || left_out "this machine or user lacks what is named above"

if [[ -d /sys/fs/cgroup/memory ]]; then parent=/sys/fs/cgroup/memory limit_file=memory.limit_in_bytes; else parent=/sys/fs/cgroup limit_file=memory.max; fi
work=$(mktemp -d "$PWD/target/twin.XXXXXX")
group=$parent/pageout-twin-$$
mkdir "$group" || left_out "no cgroup can be made below $parent"
trap 'rmdir "$group" 2> /dev/null || true; rm -rf "$work"' EXIT
[[ -e $group/$limit_file ]] || left_out "cgroups below $parent have no $limit_file"

load=ci/twin/load.py
python3 -I -S "$load" make "$work/data" 65536
python3 -I "$load" make-database "$work/database" 120000
python3 -I -S "$load" make-sources "$work/sources" 40

# One recording and its twin: name, limit in MiB, command.
one() {
    local name=$1 limit=$2
    shift 2
    echo $((limit << 20)) > "$group/$limit_file"
    python3 -I -S "$load" forget "$work/data" "$work/database" "$work/sources"
    rm -rf "$work/rec"
    "$pageout" record --quiet --into "$work/rec" --cgroup "$group" -- "$@" > /dev/null
    "$pageout" twin "$work/rec" --json | python3 -I -S "$load" compare "$name, $limit MiB"
}

for ((repeat = 1; repeat <= repeats; repeat++)); do
    for limit in "${limits[@]}"; do
        one "reads" "$limit" python3 -I -S "$load" read "$work/data" 65536 300000 1
        one "reads, read ahead" "$limit" python3 -I -S "$load" ahead "$work/data" 65536 300000 1
        one "mapped" "$limit" python3 -I -S "$load" mapped "$work/data" 65536 300000 1
        one "writes with fsync" "$limit" python3 -I -S "$load" write "$work/data" 65536 300000 1
        one "SQLite" "$limit" python3 -I "$load" sqlite "$work/database" 60000 1
        if command -v cc > /dev/null; then
            one "compile" "$limit" sh -c "for source in $work/sources/*.c; do cc -c -o $work/object.o \$source; done"
        fi
        one "two processes, one file" "$limit" sh -c "python3 -I -S $load read $work/data 65536 150000 1 & python3 -I -S $load read $work/data 65536 150000 2 & wait"
    done
done
