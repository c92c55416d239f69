#!/usr/bin/env bash
# Checks that the documentation shows the program's current output, in every ```console block of README.md, docs/ and scenarios/README.md.
#
#   ci/gate/commands.sh [PAGE.md...]            fails if an output differs
#   ci/gate/commands.sh --write [PAGE.md...]    replaces the outputs by current ones
set -euo pipefail
cd "$(dirname "$0")/../.."
echo "+ cargo build --locked --release --bin pageout"
cargo build --locked --release --bin pageout
python3 ci/gate/commands.py "${CARGO_TARGET_DIR:-target}/release/pageout" "$@"
