#!/usr/bin/env bash
# The live page cache with the real engine, in orders of its threads that shuttle draws: ci/slow/shuttle.sh [ORDERS of each kind, 300 by default].
set -euo pipefail
cd "$(dirname "$0")/../.."
set -x
ORDERS="${1:-300}" cargo test --locked -p pageout-shuttle
