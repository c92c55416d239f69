#!/usr/bin/env bash
# The English of docs, comments, messages and scenarios: no more house phrases, long sentences and long paragraphs than ci/gate/prose.toml
# allows in each folder. UPDATE=1 lowers the limits after a cleanup. docs/contributing/language.md has the rules.
set -euo pipefail
cd "$(dirname "$0")/../.."
command -v python3 > /dev/null || {
    echo "not run: python3 is missing" >&2
    exit 77
}
echo "+ ci/gate/prose.py $*"
exec python3 ci/gate/prose.py "$@"
