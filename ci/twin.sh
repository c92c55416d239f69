#!/usr/bin/env bash
# Records ten loads at three limits each, asks the twin of one recording for the other limits, and prints the table of
# docs/results/data/twin-limits.md: predicted next to recorded, losses included.
# Needs root, tracefs, Linux 6.12, python3 and cc; if one is missing the script reports that and is skipped (exit code 77).
# Usage: ci/twin.sh [LOAD...]. `ci/twin.sh cost [LOAD...]` measures what recording the loads without hits costs instead.
# REPEATS=1 for one run instead of three, ROUNDS=3 for three rounds of the cost instead of five. PAGEOUT=FILE for a program that is built
# already, KEEP=FOLDER to keep the recordings, FOLDER=DIR for files on another file system.
set -euo pipefail
cd "$(dirname "$0")/.."
left_out() { echo "left out: $1"; exit 77; }
command -v python3 > /dev/null || left_out "there is no python3"
command -v cc > /dev/null || left_out "there is no cc"
pageout=${PAGEOUT:-}
if [[ -z $pageout ]]; then
    cargo build --release --quiet
    pageout=${CARGO_TARGET_DIR:-$PWD/target}/release/pageout
fi
"$pageout" record --check --json 2> /dev/null | python3 -c '
import json, sys
needed = {"tracefs instance", "filemap:mm_filemap_get_pages", "memory.stat"}
missing = [s["source"] for s in json.load(sys.stdin)["sources"] if s["source"] in needed and not s["is_there"]]
sys.exit(", ".join(missing) or 0)' || left_out "this machine or user lacks what is named above"

loads=("$@")
[[ $# -gt 0 ]] || loads=(sqlite search compile kv-mmap imports log tenants heap sequential fork)
mkdir -p target
work=$(mktemp -d "${FOLDER:-$PWD/target}/twin-limits.XXXXXX")
trap 'rm -rf "$work"' EXIT
if [[ ${loads[0]} == cost ]]; then
    PYTHONPATH=ci/twin python3 ci/twin/cost.py "$pageout" "$work" "${ROUNDS:-5}" "${loads[@]:1}"
    exit
fi
found=$work/found
for load in "${loads[@]}"; do
    read -ra limits < <(python3 -I -S ci/twin/loads.py limits "$load")
    for ((repeat = 1; repeat <= ${REPEATS:-3}; repeat++)); do
        # Fresh files: a load may change them.
        rm -rf "$work/files"
        mkdir "$work/files"
        python3 -I ci/twin/loads.py make "$load" "$work/files"
        rec=${KEEP:-$work/rec}/$load-$repeat
        rm -rf "$rec"
        for limit in "${limits[@]}"; do
            [[ $load != compile ]] || cat "$(cc -print-prog-name=cc1)" > /dev/null
            "$pageout" record --quiet --into "$rec" --stat-every 250ms --limits "${limit}M" --cold "$work/files" \
                -- python3 -I ci/twin/loads.py run "$load" "$work/files" > "$work/told" 2>&1 || { cat "$work/told"; exit 1; }
            mv "$rec" "$rec.one"
            mkdir -p "$rec.all"
            mv "$rec.one/${limit}M" "$rec.all/"
            rmdir "$rec.one"
        done
        mv "$rec.all" "$rec"
        python3 -I ci/twin/table.py compare "$pageout" "$rec" "$load" "$found" "${limits[@]}"
        [[ -n ${KEEP:-} ]] || rm -rf "$rec"
    done
done
python3 -I ci/twin/table.py print "$found"
