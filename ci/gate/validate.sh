#!/usr/bin/env bash
# Compares the simulator with recorded runs of a real kernel, within their tolerances. docs/results/fidelity.md lists the runs that fail, and
# the known reasons.
#
#   ci/gate/validate.sh        of repeated runs the first and those with traces
#   ci/gate/validate.sh all    all runs, as ci/slow/tests.sh does
set -euo pipefail
cd "$(dirname "$0")/../.."
runs=('*.1' '*.t' '*.f*' 'tmpfs.*')
case ${1:-} in
    "") ;;
    all) runs=('*') ;;
    *) echo "usage: ci/gate/validate.sh [all]" >&2; exit 2 ;;
esac
set -x
cargo run --locked --release --bin pageout -- validate ground-truth "${runs[@]}" \
    --expect-short fr-zipf099.classic.t \
    --expect-short mm-zipf099.classic.t \
    --expect-short an-zipf-disk-noflush.classic.1 \
    --expect-short tmpfs.classic.2 \
    --expect-short tmpfs.mglru.2
# Readahead, to the page.
cargo run --locked --release --bin pageout -- validate ground-truth/readahead
# Killed or not, and what reclaim looked at before: docs/results/premature-oom.md.
cargo run --locked --release --bin pageout -- validate ground-truth/oom
# A whole machine without cgroups. gl-zipf090.classic.2 is left out: it is on the edge of its tolerance.
cargo run --locked --release --bin pageout -- validate ground-truth/machine \
    'ft-global.*' gl-zipf090.classic.1 gl-zipf090.classic.3 'gl-zipf090.mglru.*' \
    --expect-short ft-global.classic.t \
    --expect-short ft-global.mglru.t \
    --expect-short gl-zipf090.mglru.1 \
    --expect-short gl-zipf090.mglru.2 \
    --expect-short gl-zipf090.mglru.3
# Memory tiering: pages promoted and hint faults.
cargo run --locked --release --bin pageout -- validate ground-truth/tiering
# zswap in front of a disk: what is stored, loaded and written back.
cargo run --locked --release --bin pageout -- validate ground-truth/zswap
# A file that is read and written: dirty pages, who writes them, and what reclaim makes of them.
cargo run --locked --release --bin pageout -- validate ground-truth/dirty
# What was predicted before the kernel ran: docs/results/data/predictions.md.
cargo run --locked --release --bin pageout -- validate ground-truth/predictions
# A mapping with readahead, with all that decides recorded.
cargo run --locked --release --bin pageout -- validate ground-truth/inputs
# A whole machine from the state in which it was found.
cargo run --locked --release --bin pageout -- validate ground-truth/machine-inputs \
    --expect-short gl-mixb.classic.f1 \
    --expect-short gl-mixb.mglru.f2 \
    --expect-short gl-mixb.mglru.s1
# Large folios, event by event, and anonymous ones by their figures: docs/results/folios.md names what is missing.
cargo run --locked --release --bin pageout -- validate ground-truth/folios \
    --expect-short d-writes/ext4-huge-file-folio-dirty-truncated \
    --expect-short d-writes/xfs-append-131072b \
    --expect-short f-anonymous/limit-touch-in-order-16k-advised
