#!/usr/bin/env bash
# Tests the live crate beyond its unit tests: random operations compared with a model for 20 minutes (MINUTES). Then the same on a device whose
# requests are short, late and out of order. Miri checks undefined behaviour, the thread sanitizer data races. `cargo test` covers all orders of
# its gates (loom), and ci/slow/shuttle.sh random orders of the complete cache. Miri and the sanitizer need a nightly toolchain (components miri,
# rust-src), and are skipped without one. Not part of .ci/run: a quarter of an hour.
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=$((${MINUTES:-20} * 15))
(set -x; PAGEOUT_DIFFERENTIAL_SECONDS=$seconds cargo test --locked -p pageout --test differential -- --nocapture)
(set -x; PAGEOUT_FAILING="match=pageout-differential short=20 reorder=20 delay_ms=1 seed=7" PAGEOUT_DIFFERENTIAL_SECONDS=$seconds \
    cargo test --locked -p pageout --features failing --test differential -- --nocapture)

# The same device below programs in C and below SQLite, whose results are to be the usual ones.
for one in ci/slow/bindings.sh "ci/slow/sqlite.sh target/sqlite-failing shell"; do
    (set -x; PAGEOUT_FAILING="short=20 reorder=20 delay_ms=1 seed=7" PAGEOUT_PROFILE=dev $one) || [[ $? -eq 77 ]]
done

has() { rustup component list --toolchain nightly --installed 2> /dev/null | grep -q "^$1"; }

# What makes no system call that Miri does not know: copies, rings, statistics, and what gates and holds say.
if has miri; then
    (set -x; cargo +nightly miri test --locked -p pageout --lib -- copy:: ring:: stats::)
else
    echo "LEFT OUT: Miri (rustup component add miri --toolchain nightly)"
fi

# The sanitizer has to see std, too. What the kernel writes it does not see, nor what a copy reads: those are loom's.
if has rust-src; then
    target=$(rustc -vV | sed -n 's/^host: //p')
    # A device may read a page during a write to it: the page is dirty again, and is written again. loom covers those writes, too.
    suppressions=$(mktemp)
    trap 'rm -f "$suppressions"' EXIT
    echo 'race:pageout::arena::Arena>::write_from' > "$suppressions"
    export RUSTFLAGS=-Zsanitizer=thread TSAN_OPTIONS="halt_on_error=1 suppressions=$suppressions" CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/tsan
    (set -x; cargo +nightly test --locked -p pageout -Zbuild-std --target "$target" --lib)
    (set -x; cargo +nightly test --locked -p pageout -Zbuild-std --target "$target" --test suite -- reads:: pending:: writes::)
else
    echo "LEFT OUT: the thread sanitizer (rustup component add rust-src --toolchain nightly)"
fi
