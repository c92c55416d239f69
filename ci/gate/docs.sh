#!/usr/bin/env bash
# The documentation, private items included: no broken link, no malformed example. A crate whose examples `cargo test` skips (`doctest = false`) has
# none.
set -euo pipefail
cd "$(dirname "$0")/../.."
skipped=$(git ls-files '*Cargo.toml' | xargs grep -l '^doctest = false')
for manifest in $skipped; do
    # The first line of each block of code: rustdoc takes it for Rust if it names no other language.
    git ls-files "$(dirname "$manifest")/src/*.rs" | xargs awk '
        FNR == 1 { inside = 0 }
        /^ *\/\/[\/!] *```/ {
            inside = !inside
            language = $0
            sub(/^ *\/\/[\/!] *```/, "", language)
            if (inside && language ~ /^ *($|rust|no_run|should_panic|compile_fail|ignore|edition)/) {
                print FILENAME ":" FNR ": found an example that is never run, expected a block of another language" > "/dev/stderr"
                print "help: name the language (text), or remove `doctest = false` from '"$manifest"'" > "/dev/stderr"
                found = 1
            }
        }
        END { exit found }'
done
set -x
RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps --document-private-items
