#!/usr/bin/env bash
# Kills a process that writes through the page cache at 200 random points for each backend, and a store at 200. Not part of .ci/run: up to
# ten minutes.
set -euo pipefail
cd "$(dirname "$0")/../.."
set -x
cargo test --locked -p pageout --test crash killed_at -- --ignored --nocapture
cargo run --locked -p pageout --example key-value "${CARGO_TARGET_DIR:-target}/tmp" 200
