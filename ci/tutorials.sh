#!/usr/bin/env bash
# Runs the commands of the tutorials as written, in a fresh clone of the last commit: installation, the tutorials of docs/tutorials, and how-to pages whose
# commands need no other machine. Commands that need root are skipped without it, with a remark. Not part of .ci/run.
#
#   ci/tutorials.sh [PAGE.md...]                    builds the program in the clone
#   PAGEOUT=FILE ci/tutorials.sh [PAGE.md...]       with this program; nothing but the reader's own programs is built
set -euo pipefail
cd "$(dirname "$0")/.."
for tool in git python3 cargo cc make patch; do
    command -v "$tool" > /dev/null || { echo "$tool is not installed" >&2; exit 77; }
done
pages=("$@")
[[ $# -gt 0 ]] || pages=(docs/start/install.md docs/tutorials/*.md docs/howto/run-report.md docs/howto/validate.md)
[[ -z $(git status --porcelain) ]] || echo "note: changes that are not committed are not in the clone; pages are read from here"
# Outside of this folder: a package of the reader must not become a member of this workspace.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
git clone --quiet . "$scratch/pageout"
if [[ -z ${PAGEOUT-} && ${pages[0]} != docs/start/install.md ]]; then
    (cd "$scratch/pageout" && env -u CARGO_TARGET_DIR cargo build --release --locked)
fi
python3 ci/book/tutorials.py "${PAGEOUT-}" "$scratch/pageout" "${pages[@]}"
