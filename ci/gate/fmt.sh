#!/usr/bin/env bash
# The layout of the code, by rustfmt.
set -euo pipefail
cd "$(dirname "$0")/../.."
set -x
cargo fmt --all --check
cargo fmt --manifest-path fuzz/Cargo.toml --check
