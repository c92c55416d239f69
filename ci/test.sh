#!/usr/bin/env bash
# All tests, the documentation's examples included; those of the Python package are those of ci/python.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
set -x
cargo test --locked
