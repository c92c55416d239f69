"""What a policy of one's own costs: SIEVE (over arrays CLOCK) in each way beside the same built in, in one run.

Usage, with the wheel installed and crates/python/tests on PYTHONPATH: own-policy.py SIEVE.so [PROGRAM]
SIEVE.so is crates/plugin/benches/sieve.c as a library (cc -O2 -fPIC -shared -Icrates/plugin/include); PROGRAM one that `new-policy` has written, with
`("my-sieve", |_| Box::new(pageout_policy::Sieve::default()))` among its policies. Zipf 0.99 over 1 M ids, memory for a tenth; medians of so many rounds in turn, in CPU time."""

import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

import pageout as po
from policies import BulkClock, Fifo, Sieve

ROUNDS = int(os.environ.get("ROUNDS", 5))
library, program = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None

ranks = np.arange(1, 1_000_001, dtype=np.float64) ** -0.99
random = np.random.default_rng(42)
drawn = np.searchsorted(np.cumsum(ranks) / ranks.sum(), random.random(10_000_000)).astype(np.uint32)
ids = random.permutation(1_000_000).astype(np.uint32)[drawn]
dense = np.unique(ids, return_inverse=True)[1].astype(np.uint32)
long, short = po.trace(pages=dense), po.trace(pages=np.unique(dense[:2_000_000], return_inverse=True)[1].astype(np.uint32))


def in_process(trace, policy):
    begun = time.process_time()
    result = po.replay(trace, policy=policy, memory="10%", jobs=1, exact=True, allow_plugins=True)
    return (time.process_time() - begun) / len(trace) * 1e9, int(result["misses"][0])


def of_program(policy):
    """Eight more sizes that are hardly another one: what they take is simulating alone."""
    def run(sizes):
        memory = ",".join(f"{10 + at / 1000}%" for at in range(sizes))
        begun = time.perf_counter()
        words = [program, "replay", file.name, "--trace-format", "pages-u32", "--policy", policy, "--memory", memory, "--jobs", "1", "--exact", "--quiet"]
        subprocess.run(words, check=True, capture_output=True)
        return time.perf_counter() - begun
    return (run(9) - run(1)) / 8 / len(long) * 1e9, None


ways = [
    ("sieve, built in", "long", lambda: in_process(long, "sieve")),
    ("sieve, shared library in C", "long", lambda: in_process(long, library)),
    ("sieve, built in, 2 M accesses", "short", lambda: in_process(short, "sieve")),
    ("sieve, class in Python, 2 M accesses", "short", lambda: in_process(short, Sieve)),
    ("fifo, class in Python, 2 M accesses", "short", lambda: in_process(short, Fifo)),
    ("clock, built in, 2 M accesses", "short", lambda: in_process(short, "clock")),
    ("clock, numpy, 1,024 victims a call, 2 M accesses", "short", lambda: in_process(short, BulkClock)),
]
if program:
    file = tempfile.NamedTemporaryFile(suffix=".u32")
    dense.tofile(file.name)
    ways += [
        ("sieve, built in, by the program", "program", lambda: of_program("sieve")),
        ("sieve, own in Rust, by the program", "program", lambda: of_program("my-sieve")),
    ]
times, misses = {name: [] for name, _, _ in ways}, {}
for _ in range(ROUNDS):
    for name, _, run in ways:
        ns, missed = run()
        times[name].append(ns)
        misses.setdefault(name, missed)
base = {}
print("| way | ns an access | least to largest | beside the same built in | misses |\n|---|---|---|---|---|")
for name, group, _ in ways:
    median = statistics.median(times[name])
    if "built in" in name:
        base[group] = median
    missed = "" if misses[name] is None else f"{misses[name]:,}"
    print(f"| {name} | {median:.1f} | {min(times[name]):.1f} to {max(times[name]):.1f} | {median / base[group]:.1f} | {missed} |")
