#!/usr/bin/env bash
# The documentation, private items included: no broken link, no malformed example.
set -euo pipefail
cd "$(dirname "$0")/../.."
set -x
RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps --document-private-items
