"""Runs our benchmarks and libCacheSim's LRU in turn, and prints medians, spreads and ratios as Markdown tables."""

import json
import resource
import statistics
import subprocess
import sys
import time

import libcachesim

PAGES = 1 << 20
ACCESSES = 20_000_000
PEERS = {"all resident": PAGES + 64, "30 %": PAGES * 3 // 10}
PEER = "libCacheSim LRU"


def peer(path: str, size: int, hashpower: int = 24) -> tuple[float, float]:
    """Seconds and CPU seconds of libCacheSim's LRU holding `size` objects, with reading; the hash table is its default unless said."""
    begun, used = time.perf_counter(), time.process_time()
    parameters = libcachesim.ReaderInitParam(ignore_obj_size=True)
    reader = libcachesim.TraceReader(path, libcachesim.TraceType.ORACLE_GENERAL_TRACE, parameters)
    libcachesim.LRU(cache_size=size, hashpower=hashpower).process_trace(reader)
    return time.perf_counter() - begun, time.process_time() - used


def ours(benchmark: str) -> dict[str, float]:
    """One round of our benchmark."""
    lines = subprocess.run([benchmark, "--tsv"], check=True, capture_output=True, text=True).stdout.splitlines()
    return {name: float(rate) for name, rate in (line.split("\t") for line in lines if "\t" in line)}


def replay(pageout: str, trace: str, memory: str, policy: str = "classic@6.12", more: tuple[str, ...] = ()) -> tuple[float, float, dict]:
    """Seconds and CPU seconds of the whole process, and its result."""

    def used() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    begun, used_before = time.perf_counter(), used()
    command = [pageout, "replay", trace, "--memory", memory, "--policy", policy, "--json", *more]
    if "@" in policy:
        command += ["--read-ahead-kb", "0"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return time.perf_counter() - begun, used() - used_before, json.loads(output)


def budgets(rounds: int, benchmark: str, path: str) -> None:
    """Accesses in memory: the engine, and the machine around it."""
    rates: dict[str, list[float]] = {}
    for _ in range(rounds):
        for name, rate in ours(benchmark).items():
            rates.setdefault(name, []).append(rate)
        for memory, size in PEERS.items():
            seconds, _ = peer(path, size)
            rates.setdefault(f"{PEER}, {memory}", []).append(ACCESSES / seconds / 1e6)
    median = {name: statistics.median(values) for name, values in rates.items()}
    bare = median["bare walk over page words"]
    print("| | M accesses/s | least to largest | time, bare walk = 1 | times libCacheSim |")
    print("|---|---|---|---|---|")
    for name, values in rates.items():
        memory = next((memory for memory in PEERS if memory in name), None)
        times = f"{median[name] / median[f'{PEER}, {memory}']:.2f}" if memory else ""
        spread = f"{min(values):.1f} to {max(values):.1f}"
        print(f"| {name} | {median[name]:.1f} | {spread} | {bare / median[name]:.2f} | {times} |")


def process(rounds: int, pageout: str, stem: str) -> None:
    """Times what a user waits for: from a trace in a file to the answer on the terminal."""
    rows = {}
    for command, more in {"`pageout replay`": (), "`pageout replay --untimed`": ("--untimed",)}.items():
        for sizes, memory in {"": "30%", ", five sizes": "10%,20%,30%,40%,50%"}.items():
            rows[f"{command}, oracleGeneral{sizes}"] = ("oracleGeneral", memory, more)
            rows[f"{command}, `.pgt`{sizes}"] = ("pgt", memory, more)
    seconds: dict[str, list[float]] = {PEER: []}
    cpu: dict[str, list[float]] = {PEER: []}
    for _ in range(rounds):
        for name, (suffix, memory, more) in rows.items():
            wall, used, result = replay(pageout, f"{stem}.{suffix}", memory, more=more)
            seconds.setdefault(name, []).append(wall)
            cpu.setdefault(name, []).append(used)
            if memory == "30%":
                size = result["points"][0]["memory_pages"]
        wall, used = peer(f"{stem}.oracleGeneral", size)
        seconds[PEER].append(wall)
        cpu[PEER].append(used)
    print("| | s | least to largest | CPU s | least to largest | times libCacheSim | by CPU time |")
    print("|---|---|---|---|---|---|---|")
    for name, walls in seconds.items():
        used = cpu[name]
        wall_median, cpu_median = statistics.median(walls), statistics.median(used)
        print(
            f"| {name} | {wall_median:.2f} | {min(walls):.2f} to {max(walls):.2f}"
            f" | {cpu_median:.2f} | {min(used):.2f} to {max(used):.2f}"
            f" | {statistics.median(seconds[PEER]) / wall_median:.2f} | {statistics.median(cpu[PEER]) / cpu_median:.2f} |"
        )


def textbook(rounds: int, pageout: str, stem: str, benchmark: str) -> None:
    """Textbook policies: accesses in memory, and the whole process. libCacheSim's hash table has the size of the trace."""
    rows = {
        "`--policy lru`, oracleGeneral": ("oracleGeneral", "30%", "lru"),
        "`--policy lru`, `.pgt`": ("pgt", "30%", "lru"),
        "`--policy lru`, 100 sizes, `.pgt`": ("pgt", "1%..100%/100", "lru"),
        "`--policy opt`, `.pgt`": ("pgt", "30%", "opt"),
        "`--policy classic@6.12`, oracleGeneral": ("oracleGeneral", "30%", "classic@6.12"),
    }
    seconds: dict[str, list[float]] = {PEER: []}
    in_memory: dict[str, list[float]] = {}
    for _ in range(rounds):
        for name, (suffix, memory, policy) in rows.items():
            wall, _, result = replay(pageout, f"{stem}.{suffix}", memory, policy)
            seconds.setdefault(name, []).append(wall)
            if name.startswith("`--policy lru`, oracle"):
                trace = result["traces"][0]
                size, hashpower = trace["cells"][0]["memory_pages"], trace["distinct_pages"].bit_length()
                accesses = trace["accesses"]
        seconds[PEER].append(peer(f"{stem}.oracleGeneral", size, hashpower)[0])
        printed = subprocess.run([benchmark, "--bench", "--goals"], check=True, capture_output=True, text=True).stdout
        for line in printed.splitlines()[1:]:
            *name, ns, _ = line.split()
            in_memory.setdefault(" ".join(name), []).append(float(ns))
    ours = {name: statistics.median(values) for name, values in in_memory.items()}
    lru = next(ns for name, ns in ours.items() if name.startswith("lru misses"))
    theirs = statistics.median(seconds[PEER]) / accesses * 1e9
    print(f"\nIn memory, ns an access; {PEER} with its reading: {theirs:.0f}\n")
    print(f"| | ns | least to largest | lru = 1 | times {PEER} |")
    print("|---|---|---|---|---|")
    for name, values in in_memory.items():
        spread = f"{min(values):.1f} to {max(values):.1f}"
        print(f"| {name} | {ours[name]:.1f} | {spread} | {ours[name] / lru:.2f} | {theirs / ours[name]:.1f} |")
    print("\nThe whole process\n")
    print("| | s | least to largest | times libCacheSim |")
    print("|---|---|---|---|")
    for name, walls in seconds.items():
        median = statistics.median(walls)
        print(f"| {name} | {median:.2f} | {min(walls):.2f} to {max(walls):.2f} | {statistics.median(seconds[PEER]) / median:.2f} |")


if sys.argv[1] == "textbook":
    textbook(int(sys.argv[2]), *sys.argv[3:])
elif sys.argv[1] == "budgets":
    budgets(int(sys.argv[2]), sys.argv[3], sys.argv[4])
else:
    process(int(sys.argv[2]), sys.argv[3], sys.argv[4])
