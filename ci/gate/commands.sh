#!/usr/bin/env bash
# What the documentation shows of commands is what they print: every ```console block of README.md, docs/ and scenarios/README.md.
#
#   ci/gate/commands.sh [PAGE.md...]            fails where an output is not as shown
#   ci/gate/commands.sh --write [PAGE.md...]    puts what is printed now in its place
set -euo pipefail
cd "$(dirname "$0")/../.."
echo "+ cargo build --locked --release --bin pageout"
cargo build --locked --release --bin pageout
python3 ci/gate/commands.py "${CARGO_TARGET_DIR:-target}/release/pageout" "$@"
