#!/usr/bin/env bash
# Builds the WebAssembly module in crates/play, makes a page with it, and tests the page in a headless Chromium.
#
#   ci/play.sh            all of it
#   ci/play.sh module     the module only: target/play/module.b64, which `pageout play` of this checkout uses, and releases embed
set -euo pipefail
root=$(realpath "$(dirname "$0")/..")
cd "$root"
target=${CARGO_TARGET_DIR:-target}

if ! rustup target list --installed 2> /dev/null | grep -qx wasm32-unknown-unknown; then
    echo "no Rust target wasm32-unknown-unknown here: run \`rustup target add wasm32-unknown-unknown\`" >&2
    exit 77
fi
echo "+ cargo build --locked --profile play --package pageout-play --target wasm32-unknown-unknown"
cargo build --locked --profile play --package pageout-play --target wasm32-unknown-unknown
mkdir -p "$target/play"
gzip -9 -n -c "$target/wasm32-unknown-unknown/play/pageout_play.wasm" | base64 -w 0 > "$target/play/module.b64.part"
mv "$target/play/module.b64.part" "$target/play/module.b64"
echo "module: $(stat -c %s "$target/wasm32-unknown-unknown/play/pageout_play.wasm") bytes, packed $(stat -c %s "$target/play/module.b64") bytes"
if [[ ${1:-} == module ]]; then
    exit
fi

echo "+ cargo test --locked --package pageout-play"
cargo test --locked --package pageout-play

CHROMIUM=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
if [[ -z $CHROMIUM ]] || ! command -v npm > /dev/null; then
    echo "no Chromium or no npm here: the page was not tested" >&2
    exit 77
fi
echo "+ cargo build --locked --release --bin pageout"
cargo build --locked --release --bin pageout
PAGES=$(mktemp -d)
trap 'rm -rf "$PAGES"' EXIT
PAGEOUT=$(realpath "$target/release/pageout")
export CHROMIUM PAGES PAGEOUT
"$PAGEOUT" play --out "$PAGES/play.html" --no-open
cd ci/gate/pages
npm ci --silent
node --test play.test.mjs
