"""Compares misses of `pageout replay` with those of libCacheSim, policy by policy, and prints a Markdown table. Fails where they differ."""

import json
import subprocess
import sys

import libcachesim

SHARES = [0.01, 0.1, 0.2]
# pageout's policy, libCacheSim's, and the allowed difference as a share of libCacheSim's misses. TOLD: printed only, as the reason of the difference is unknown.
EQUAL, CLOSE, TOLD = 0.0, 0.01, float("inf")
POLICIES = [
    ("fifo", libcachesim.FIFO, EQUAL),
    ("lru", libcachesim.LRU, EQUAL),
    ("clock", libcachesim.Clock, EQUAL),
    ("sieve", libcachesim.Sieve, EQUAL),
    ("lfu", libcachesim.LFU, EQUAL),
    ("arc", libcachesim.ARC, EQUAL),
    ("opt", libcachesim.Belady, EQUAL),
    ("2q", libcachesim.TwoQ, CLOSE),
    ("lirs", libcachesim.LIRS, CLOSE),
    ("hyperbolic", libcachesim.Hyperbolic, CLOSE),
    ("s3-fifo:fill=1", libcachesim.S3FIFO, CLOSE),
    ("w-tinylfu:protected=0.75,segments=4,sample=20,count=255,ties=1", libcachesim.WTinyLFU, TOLD),
    ("mq", libcachesim.MQ, TOLD),
    ("lhd", libcachesim.LHD, TOLD),
    ("lecar", libcachesim.LeCaR, TOLD),
    ("cacheus", libcachesim.Cacheus, TOLD),
    ("clock-pro", libcachesim.ClockPro, TOLD),
]


def ours(pageout: str, trace: str, memory: str, policies: str) -> dict:
    """What replay finds out of the trace."""
    command = [pageout, "replay", trace, "--ignore-size", "--memory", memory, "--policy", policies, "--json", "--quiet"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["traces"][0]


def theirs(kind: type, trace: str, size: int, accesses: int, distinct: int) -> int:
    """Misses that libCacheSim finds, with a hash table of the trace's size."""
    parameters = libcachesim.ReaderInitParam(ignore_obj_size=True)
    reader = libcachesim.TraceReader(trace, libcachesim.TraceType.ORACLE_GENERAL_TRACE, parameters)
    cache = kind(cache_size=size, hashpower=max(distinct.bit_length(), 10))
    return round(cache.process_trace(reader)[0] * accesses)


def compare(pageout: str, trace: str) -> int:
    """Prints the table of a trace; says how many rows are too far apart."""
    known = ours(pageout, trace, "100%", "lru")
    accesses, distinct = known["accesses"], known["distinct_pages"]
    sizes = [max(round(distinct * share), 2) for share in SHARES]
    names = ",".join(name for name, _, _ in POLICIES)
    memory = ",".join(f"{size}pages" for size in sizes)
    cells = {(cell["policy"], cell["memory_pages"]): cell["misses"] for cell in ours(pageout, trace, memory, names)["cells"]}
    print(f"\n{trace}: {accesses:,} accesses, {distinct:,} pages\n")
    print("| | pages | misses | libCacheSim | diff |")
    print("|---|---:|---:|---:|---:|")
    wrong = 0
    for name, kind, apart in POLICIES:
        for size in sizes:
            mine, other = cells[name, size], theirs(kind, trace, size, accesses, distinct)
            is_wrong = abs(mine - other) > apart * other
            wrong += is_wrong
            verdict = " **too far**" if is_wrong else " (told alone)" if apart == TOLD else ""
            print(f"| {name} | {size:,} | {mine:,} | {other:,} | {(mine - other) / other:+.3%}{verdict} |", flush=True)
    return wrong


found = sum(compare(sys.argv[1], trace) for trace in sys.argv[2:])
if found:
    sys.exit(f"{found} differ by more than they may")
