#!/usr/bin/env bash
# Builds the wheel of the Python package, installs it into a fresh environment without a compiler, and tests it. Tests: unit tests, the project that
# `new-policy --python` writes, the stubs, both notebooks, a sweep on Ray. `ci/slow/python.sh --keep DIR` keeps the environment and the wheel in
# DIR. Not part of .ci/run: the wheel is a second release build.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
if [[ ${1:-} == --keep ]]; then
    work=$(mkdir -p "$2" && cd "$2" && pwd)
else
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
fi
set -x
python3 -m venv "$work/build"
"$work/build/bin/pip" install --quiet 'maturin>=1.16,<2'
(cd crates/python && "$work/build/bin/maturin" build --quiet --locked --out "$work/wheels")
python3 -m venv "$work/fresh"
fresh=$work/fresh/bin
# Nothing but Python and numpy: a compiler would not be found.
PATH=$fresh "$fresh/pip" install --quiet --only-binary :all: "$work"/wheels/pageout-*.whl
ls -l "$work"/wheels
cd "$work"
PATH=$fresh "$fresh/pageout" --version
PATH=$fresh PYTHONPATH=$root/crates/python/tests "$fresh/python" -m unittest -v test_pageout
rm -rf "$work/project" && mkdir "$work/project" && cd "$work/project"
PATH=$fresh "$fresh/pageout" new-policy mine --python
(cd mine && PATH=$fresh "$fresh/python" mine.py "$root/ground-truth/sequences/shift.u32.zst")
# Data frames, charts, notebooks and Ray are extras.
"$fresh/pip" install --quiet polars altair vl-convert-python nbclient nbformat ipykernel ray mypy
PYTHONPATH=$root/crates/python/tests "$fresh/python" -m unittest -v test_pageout.Results
"$fresh/python" "$root/ci/slow/notebooks.py" "$root" "$work"
printf '[mypy]\ndisable_error_code = import-untyped, import-not-found\n' > "$work/mypy.ini"
(cd "$work" && "$fresh/python" -m mypy.stubtest pageout --mypy-config-file mypy.ini)
"$fresh/python" "$root/ci/slow/on-ray.py" "$work/ray"
