#!/usr/bin/env bash
# All tests, the documentation's examples included.
set -euo pipefail
cd "$(dirname "$0")/.."
set -x
cargo test --locked --workspace
