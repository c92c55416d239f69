#!/usr/bin/env bash
# Checks that relative links of all Markdown files exist, as do paths in `code` that begin with a folder of this repository, and that
# ci/README.md lists every script.
set -euo pipefail
cd "$(dirname "$0")/../.."

missing=0
checked=0
while IFS= read -r -d '' page; do
    folder=$(dirname "$page")
    # [text](path), without anchors; other schemes are the web's business.
    links=$(sed '/^```/,/^```/d' "$page" | grep -oE '\]\([^)[:space:]]+\)' | sed -E 's/^\]\(//; s/\)$//; s/#.*$//' | grep -vE '^([a-z]+:|$)' || true)
    # `crates/engine/src/step.rs`, `ci/slow/fuzz.sh`; not patterns or places in a file.
    paths=$(grep -oE '`(crates|ci|\.ci|docs|fuzz|scenarios|ground-truth|examples)/[A-Za-z0-9_./-]*`' "$page" | tr -d '`' || true)
    for path in $links; do
        checked=$((checked + 1))
        if [[ ! -e $folder/$path ]]; then
            echo "$page: ($path) leads nowhere" >&2
            missing=$((missing + 1))
        fi
    done
    for path in $paths; do
        checked=$((checked + 1))
        if [[ ! -e $path ]]; then
            echo "$page: \`$path\` does not exist" >&2
            missing=$((missing + 1))
        fi
    done
done < <(find . \( -name target -o -name .git -o -name node_modules \) -prune -o -name '*.md' -print0)
for script in ci/*/*.sh; do
    # A row of the table of its folder.
    if ! sed -n "/^## .$(basename "$(dirname "$script")")/,/^## /p" ci/README.md | grep -q "^| .$(basename "$script"). |"; then
        echo "ci/README.md: no row for $script" >&2
        missing=$((missing + 1))
    fi
done
for script in ci/*.sh; do
    if ! sed -n '/^## Recording/,$p' ci/README.md | grep -q "^| .$(basename "$script"). |"; then
        echo "ci/README.md: no row for $script" >&2
        missing=$((missing + 1))
    fi
done
echo "$checked links and paths checked, $missing missing"
[[ $missing -eq 0 ]]
