#!/usr/bin/env bash
# Measures the cost of a custom policy, in each way, and of the Python hooks of libCacheSim 0.3.5 (PyPI): ci/figures/own-policy.py. Not part of .ci/run: the wheel and the project
# that `new-policy` writes are built first, with a release of all of pageout each. `ci/figures/own-policy.sh DIR` takes the environment that `ci/slow/python.sh --keep DIR` has left, and
# leaves the project there.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
work=${1:?"ci/figures/own-policy.sh DIR, after ci/slow/python.sh --keep DIR"}
fresh=$(cd "$work" && pwd)/fresh/bin
set -x
"$fresh/pip" install --quiet 'libcachesim==0.3.5'
cc -O2 -fPIC -shared -Icrates/plugin/include -o "$work/sieve.so" crates/plugin/benches/sieve.c
rm -rf "$work/my-sieve"
(cd "$work" && "$fresh/pageout" new-policy my-sieve --pageout "$root")
sed -i 's/policy::MySieve::make/|_| Box::new(pageout_policy::Sieve::default())/' "$work/my-sieve/src/main.rs"
(cd "$work/my-sieve" && cargo build --quiet --release)
PYTHONPATH=crates/python/tests "$fresh/python" ci/figures/own-policy.py "$work/sieve.so" "$work/my-sieve/target/release/my-sieve"
