#!/usr/bin/env bash
# Checks that the simulator compiles to WebAssembly, for the page of `pageout play`. ci/play.sh builds the page and tests it.
set -euo pipefail
cd "$(dirname "$0")/../.."
target=wasm32-unknown-unknown
if ! rustup target list --installed 2> /dev/null | grep -qx "$target" && ! rustup target add "$target" > /dev/null 2>&1; then
    echo "no Rust target $target here, and it cannot be installed: the page's module was not checked" >&2
    exit 77
fi
set -x
cargo check --locked --package pageout-play --target "$target"
