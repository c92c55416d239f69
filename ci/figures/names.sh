#!/usr/bin/env bash
# Calls the compiler for Cargo (RUSTC_WRAPPER). Names of functions then depend on package and version alone. Cargo would mix target, features
# and profile into them, and the profile of one build would match no function of another.
set -euo pipefail
args=()
for one in "$@"; do
    case $one in
        metadata=*) one=metadata=${CARGO_PKG_NAME:?}-${CARGO_PKG_VERSION:?} ;;
    esac
    args+=("$one")
done
exec "${args[@]}"
