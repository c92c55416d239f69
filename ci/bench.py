"""Runs our benchmark and libCacheSim's LRU in turn, and prints medians, spreads and ratios as a Markdown table."""

import statistics
import subprocess
import sys
import time

import libcachesim

PAGES = 1 << 20
ACCESSES = 20_000_000
PEERS = {"all resident": PAGES + 64, "30 %": PAGES * 3 // 10}


def peer(path: str, size: int) -> float:
    """Million accesses a second of libCacheSim's LRU holding `size` objects."""
    parameters = libcachesim.ReaderInitParam(ignore_obj_size=True)
    reader = libcachesim.TraceReader(path, libcachesim.TraceType.ORACLE_GENERAL_TRACE, parameters)
    cache = libcachesim.LRU(cache_size=size)
    start = time.perf_counter()
    cache.process_trace(reader)
    return ACCESSES / (time.perf_counter() - start) / 1e6


def ours() -> dict[str, float]:
    """One round of our benchmark."""
    command = ["cargo", "bench", "-q", "-p", "pageout-sim", "--bench", "budgets", "--", "--tsv"]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return {name: float(rate) for name, rate in (line.split("\t") for line in lines if "\t" in line)}


def main(path: str, rounds: int) -> None:
    rates: dict[str, list[float]] = {}
    for _ in range(rounds):
        for name, rate in ours().items():
            rates.setdefault(name, []).append(rate)
        for memory, size in PEERS.items():
            rates.setdefault(f"libCacheSim LRU, {memory}", []).append(peer(path, size))
    median = {name: statistics.median(values) for name, values in rates.items()}
    bare = median["bare walk over page words"]
    print("| | M accesses/s | least to largest | time, bare walk = 1 | times libCacheSim |")
    print("|---|---|---|---|---|")
    for name, values in rates.items():
        memory = next((memory for memory in PEERS if memory in name), None)
        times = f"{median[name] / median[f'libCacheSim LRU, {memory}']:.2f}" if memory else ""
        spread = f"{min(values):.1f} to {max(values):.1f}"
        print(f"| {name} | {median[name]:.1f} | {spread} | {bare / median[name]:.2f} | {times} |")


main(sys.argv[1], int(sys.argv[2]))
