#!/usr/bin/env bash
# Tests reports (`--report`) in a headless Chromium, in a light and in a dark theme, without a network. Every chart is drawn, and the browser's
# console stays empty. It also tests zoom, keyboard, copying, print, a narrow screen, and the rules of accessibility.
#
#   ci/gate/pages.sh                  reports of scenarios, one of each command that has reports
#   ci/gate/pages.sh PAGE.html...     these reports, with the tests that apply to any report
#
# Installs Debian's Chromium if there is none and the system permits it.
set -euo pipefail
root=$(realpath "$(dirname "$0")/../..")

find_browser() {
    command -v chromium || command -v chromium-browser || command -v google-chrome || true
}
CHROMIUM=$(find_browser)
if [[ -z $CHROMIUM ]] && command -v apt-get > /dev/null; then
    as_root=()
    [[ $EUID -eq 0 ]] || as_root=(sudo)
    { "${as_root[@]}" apt-get update -q && "${as_root[@]}" apt-get install -qy --no-install-recommends chromium; } > /dev/null || true
    CHROMIUM=$(find_browser)
fi
if [[ -z $CHROMIUM ]] || ! command -v npm > /dev/null; then
    echo "no Chromium or no npm here, and none can be installed: reports were not tested" >&2
    # .ci/run continues and reports the skipped step: a change of the engine alone does not need a browser.
    exit 77
fi
PAGES=$(mktemp -d)
trap 'rm -rf "$PAGES"' EXIT
export CHROMIUM PAGES

if [[ $# -gt 0 ]]; then
    cp -- "$@" "$PAGES"
else
    cd "$root"
    echo "+ cargo build --locked --release --bin pageout"
    cargo build --locked --release --bin pageout
    # page NAME ARGUMENTS...: the page that `pageout ARGUMENTS` writes.
    page() {
        "$pageout" "${@:2}" --quiet --report "$PAGES/$1.html" > /dev/null 2> "$PAGES/$1.said" || {
            cat "$PAGES/$1.said" >&2
            return 255 # which makes xargs stop
        }
    }
    export -f page
    export pageout=${CARGO_TARGET_DIR:-target}/release/pageout
    # As many at a time as there are CPUs, the longest first.
    xargs -d '\n' -P "$(nproc)" -I{} bash -euo pipefail -c 'page {}' <<- 'END'
		run run scenarios/whole-machine.toml
		tiers run scenarios/hot-set-on-slow-memory.toml
		damon run scenarios/damon-two-nodes.toml --variant temporal
		compare compare scenarios/writeback-from-reclaim.toml
		ablate ablate scenarios/heap-index-data.toml --repeat 2 --set 'task.db.object.*.workload.ops=20_000'
		replay replay ground-truth/evictions/fr-zipf120.classic.t.u32.zst --trace-format words --memory 10%,30%,60%
		advise-tier advise-tier scenarios/demotion.toml --ratio 1:1,1:3 --device cxl-1.1
		reproduce reproduce mglru --experiment drift --scale small --seeds 2
		tour tour ci/gate/pages/tour.toml
		twin twin crates/lab/tests/fixtures/twin/reads --ask memory=-5%,policy=mglru@6.12
		vmscan-report vmscan-report ground-truth/ftrace/ft-glmix.mglru.t.txt.zst
	END
fi
cd "$root/ci/gate/pages"
npm ci --silent
node --test pages.test.mjs
