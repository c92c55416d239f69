#!/usr/bin/env bash
# The simulator against the recorded runs of a real kernel, within their tolerances.
set -euo pipefail
cd "$(dirname "$0")/.."
set -x
cargo run --locked --release --bin pageout -- validate ground-truth
