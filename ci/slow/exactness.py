"""Replays a trace under each textbook policy here and in libCacheSim, and prints the misses of both as a Markdown table."""

import json
import subprocess
import sys

import libcachesim

POLICIES = {"lru": libcachesim.LRU, "sieve": libcachesim.Sieve}
BATCHES = ["kernel.folio_batch=1", "kernel.charge_stock=1", "kernel.reclaim_batch=1"]


def ours(pageout: str, work: str, policy: str, objects: int) -> tuple[int, int]:
    """Misses and accesses."""
    settings = [f"kernel.profile={policy}", f"memcg.0.memory.max={4 * objects}KiB", *BATCHES]
    command = [pageout, "run", f"{work}/trace.toml", "--json"]
    command += [word for setting in settings for word in ("--set", setting)]
    task = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["tasks"][0]
    return task["major"], task["accesses"]


def peer(work: str, policy: str, objects: int, accesses: int) -> int:
    """Misses of libCacheSim, which tells their ratio."""
    parameters = libcachesim.ReaderInitParam(ignore_obj_size=True)
    path = f"{work}/trace.oracleGeneral"
    reader = libcachesim.TraceReader(path, libcachesim.TraceType.ORACLE_GENERAL_TRACE, parameters)
    ratio, _ = POLICIES[policy](cache_size=objects).process_trace(reader)
    return round(ratio * accesses)


def main(pageout: str, work: str, sizes: list[int]) -> None:
    equal = True
    print("| policy | objects | accesses | misses here | misses of libCacheSim |")
    print("|---|---|---|---|---|")
    for policy in POLICIES:
        for objects in sizes:
            misses, accesses = ours(pageout, work, policy, objects)
            peers = peer(work, policy, objects, accesses)
            equal &= misses == peers
            print(f"| {policy} | {objects:,} | {accesses:,} | {misses:,} | {peers:,} |")
    sys.exit(0 if equal else "the misses differ")


main(sys.argv[1], sys.argv[2], [int(size) for words in sys.argv[3:] for size in words.split()])
