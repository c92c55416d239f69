#!/usr/bin/env bash
# The lints, and with them the bans that keep the engine and the simulator deterministic (clippy.toml).
set -euo pipefail
cd "$(dirname "$0")/../.."
set -x
cargo clippy --locked --workspace --all-targets -- -D warnings
