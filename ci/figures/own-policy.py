"""The cost of a custom policy: SIEVE (over arrays CLOCK) in each way next to the built-in one, and by the Python hooks of libCacheSim, in one run. Fails if
misses differ that must be equal, or if a way exceeds its limit. `ci/figures/own-policy.sh` starts it.

Usage, with the wheel and libcachesim installed and crates/python/tests on PYTHONPATH: own-policy.py SIEVE.so [PROGRAM]
SIEVE.so is crates/plugin/benches/sieve.c as a library. PROGRAM is one that `new-policy` has written, with `my-sieve` among its policies; without it its rows
are left out. Zipf 0.99 over 1 M ids, memory for a tenth; medians of ROUNDS alternating rounds, in CPU time."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

import libcachesim
import pageout as po
from policies import BulkClock, Fifo, HookedSieve, Nominating, Sieve

ROUNDS = int(os.environ.get("ROUNDS", 5))
library, *program = sys.argv[1:]

ranks = np.arange(1, 1_000_001, dtype=np.float64) ** -0.99
random = np.random.default_rng(42)
drawn = np.searchsorted(np.cumsum(ranks) / ranks.sum(), random.random(10_000_000)).astype(np.uint32)
ids = random.permutation(1_000_000).astype(np.uint32)[drawn]
dense = np.unique(ids, return_inverse=True)[1].astype(np.uint32)
few = np.unique(dense[:2_000_000], return_inverse=True)[1].astype(np.uint32)
long, short = po.trace(pages=dense), po.trace(pages=few)
work = tempfile.TemporaryDirectory()
in_file, general = os.path.join(work.name, "a.u32"), os.path.join(work.name, "a.oracleGeneral")
dense.tofile(in_file)
requests = np.zeros(len(few), dtype=[("time", "<u4"), ("id", "<u8"), ("size", "<u4"), ("next", "<i8")])
requests["id"], requests["size"], requests["next"] = few, 1, -1
requests.tofile(general)


def in_process(trace, policy):
    begun = time.process_time()
    result = po.replay(trace, policy=policy, memory="10%", jobs=1, exact=True, allow_plugins=True)
    return (time.process_time() - begun) / len(trace) * 1e9, int(result["misses"][0])


def of_program(policy):
    """Eight more sizes that are hardly another one: what they take is simulating alone."""
    def run(sizes):
        memory = ",".join(f"{10 + at / 1000}%" for at in range(sizes))
        words = [*program, "replay", in_file, "--trace-format", "pages-u32", "--policy", policy, "--memory", memory, "--jobs", "1", "--exact", "--json"]
        before = os.times()
        told = subprocess.run(words, check=True, capture_output=True).stdout
        after = os.times()
        took = sum(after[2:4]) - sum(before[2:4])
        return took, json.loads(told)["traces"][0]["cells"][0]["misses"]
    one, missed = run(1)
    return (run(9)[0] - one) / 8 / len(long) * 1e9, missed


def of_libcachesim(make):
    reader = libcachesim.TraceReader(general, libcachesim.TraceType.ORACLE_GENERAL_TRACE, libcachesim.ReaderInitParam(ignore_obj_size=True))
    cache = make(round(short.distinct_pages / 10))
    begun = time.process_time()
    ratio, _ = cache.process_trace(reader)
    return (time.process_time() - begun) / len(short) * 1e9, round(ratio * len(short))


def hooked(size):
    hooks = HookedSieve(short.distinct_pages)
    return libcachesim.PluginCache(
        cache_size=size, cache_init_hook=lambda parameters: hooks, cache_hit_hook=HookedSieve.hit, cache_miss_hook=HookedSieve.miss,
        cache_eviction_hook=HookedSieve.evict, cache_remove_hook=HookedSieve.remove, cache_free_hook=lambda data: None, hashpower=20,
    )


#: Each way, the way that it is compared with, and the maximum ratio of their times.
ways = [
    ("sieve, built in", None, None, lambda: in_process(long, "sieve")),
    ("sieve, shared library in C", "sieve, built in", 2, lambda: in_process(long, library)),
    ("sieve, built in, by the program", None, None, lambda: of_program("sieve")),
    ("sieve, own in Rust (`dyn`), by the program", "sieve, built in, by the program", 2, lambda: of_program("my-sieve")),
    ("sieve, built in, 2 M accesses", None, None, lambda: in_process(short, "sieve")),
    ("sieve, class in Python, 2 M accesses", "sieve, built in, 2 M accesses", 30, lambda: in_process(short, Sieve)),
    ("fifo, built in, 2 M accesses", None, None, lambda: in_process(short, "fifo")),
    ("fifo, class in Python, 2 M accesses", "fifo, built in, 2 M accesses", None, lambda: in_process(short, Fifo)),
    ("fifo, class in Python that nominates, 2 M accesses", "fifo, built in, 2 M accesses", None, lambda: in_process(short, Nominating)),
    ("clock, built in, 2 M accesses", None, None, lambda: in_process(short, "clock")),
    ("clock, numpy, 1,024 victims a call, 2 M accesses", "clock, built in, 2 M accesses", 4, lambda: in_process(short, BulkClock)),
    ("sieve, libCacheSim built in, 2 M accesses", None, None, lambda: of_libcachesim(lambda size: libcachesim.Sieve(cache_size=size, hashpower=20))),
    ("sieve, libCacheSim's Python hooks, 2 M accesses", "sieve, class in Python, 2 M accesses", None, lambda: of_libcachesim(hooked)),
]
#: The minimum ratio of the time of libCacheSim's hooks to that of a class here.
HOOKS = 4
ways = [way for way in ways if program or "by the program" not in way[0]]
times, misses = {name: [] for name, *_ in ways}, {}
for _ in range(ROUNDS):
    for name, _, _, run in ways:
        ns, missed = run()
        times[name].append(ns)
        assert misses.setdefault(name, missed) == missed, f"{name}: {missed} misses, and {misses[name]} the first time"
median = {name: statistics.median(all) for name, all in times.items()}
print("| way | ns an access | least to largest | times | beside | misses |\n|---|---|---|---|---|---|")
wrong = []
for name, beside, most, _ in ways:
    ratio = median[name] / median[beside] if beside else None
    told = f"{ratio:.1f} | {beside.removesuffix(', 2 M accesses')}" if beside else " | "
    print(f"| {name} | {median[name]:.1f} | {min(times[name]):.1f} to {max(times[name]):.1f} | {told} | {misses[name]:,} |")
    if most and ratio > most:
        wrong.append(f"{name}: {ratio:.2f} times, and at most {most} are asked for")
    if "hooks" in name and ratio < HOOKS:
        wrong.append(f"{name}: {ratio:.2f} times, and {HOOKS} at least are asked for")
    policy, length = name.split(",")[0], "2 M" if "2 M" in name else "10 M"
    if "numpy" not in name and "libCacheSim" not in name and misses[name] != misses.setdefault((policy, length), misses[name]):
        wrong.append(f"{name}: {misses[name]} misses, and {misses[policy, length]} built in")
sys.exit("\n".join(wrong) or None)
