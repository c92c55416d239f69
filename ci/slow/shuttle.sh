#!/usr/bin/env bash
# Tests the live page cache with the real engine under random thread schedules (shuttle): ci/slow/shuttle.sh [SCHEDULES of each kind, default 300].
set -euo pipefail
cd "$(dirname "$0")/../.."
set -x
ORDERS="${1:-300}" cargo test --locked -p pageout-shuttle
