#!/usr/bin/env python3
"""The tables of docs/results/data/premature-oom.md.

    ci/figures/premature-oom.py map [PAGEOUT] [VARIANT]    kills by size of the group and turnover between two flushes
    ci/figures/premature-oom.py cost [PAGEOUT]             what each remedy changes in the shipped scenarios
"""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SCENARIO = "scenarios/regressions/premature-oom.toml"
FLUSH_PERIOD_S = 2.016
PERIODS = 10
SEEDS = range(1, 9)
SIZES = [50, 100, 200, 400, 800, 1600, 3200]
TURNOVERS = [1, 2, 3, 4, 6, 8, 12, 16, 32, 64]
# The scenario's: pages accessed by page of the limit, share of the accesses that miss, and the time of an access without the think time.
SPREAD = 1024 / 400
MISSES = 0.63
ACCESS_S = 4.9e-6

REMEDIES = [
    ("stat_flush", "6.12", "6.1"),
    ("drain_before_giving_up", "false", "true"),
    ("force_active_anon", "false", "true"),
    ("flush_after_failure", "false", "true"),
]
REPEAT = 5
SHOWN = {"misses": "misses", "pgscan": "scanned", "pgdeactivate": "deactivated", "throughput_per_s": "accesses a second"}


def is_killed(pageout: str, variant: str, pages: int, turnover: int, seed: int) -> bool:
    think_s = FLUSH_PERIOD_S * MISSES / (turnover * pages) - ACCESS_S
    settings = {
        "until": f"{PERIODS * FLUSH_PERIOD_S:.3f}s",
        "kernel.memcg.stat_flush_phase": f"{(seed - 1) * FLUSH_PERIOD_S / len(SEEDS):.3f}s",
        "memcg./job.memory.max": f"{pages} pages",
        "task.job.think_time": f"{max(0, round(think_s * 1e9))}ns",
        "task.job.object.0.size": f"{round(pages * SPREAD)} pages",
        "task.job.object.0.workload.ops": "1000000000",
    }
    command = [pageout, "run", SCENARIO, "--quiet", "--seed", str(seed), "--variant", variant]
    command += [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    ended = subprocess.run(command, capture_output=True, text=True)
    if ended.returncode not in (0, 1) or (ended.returncode == 1) != ("out of memory in /job" in ended.stderr):
        sys.exit(f"{' '.join(command)}\n{ended.stderr}")
    return ended.returncode == 1


def print_map(pageout: str, variant: str) -> None:
    cells = [(pages, turnover, seed) for pages in SIZES for turnover in TURNOVERS for seed in SEEDS]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        killed = list(pool.map(lambda cell: is_killed(pageout, variant, *cell), cells))
    print(f"| pages | {' | '.join(map(str, TURNOVERS))} |")
    print(f"|---|{'---|' * len(TURNOVERS)}")
    for pages in SIZES:
        row = [
            sum(dead for (size, by, _), dead in zip(cells, killed) if (size, by) == (pages, turnover))
            for turnover in TURNOVERS
        ]
        print(f"| {pages:,} | {' | '.join(map(str, row))} |")


def result(pageout: str, scenario: Path, settings: list[str]) -> dict:
    """The result of a run without the number of statistics flushes, which the remedies change."""
    command = [pageout, "run", str(scenario), "--json", "--quiet"]
    command += [word for setting in settings for word in ("--set", setting)]
    ended = subprocess.run(command, capture_output=True, text=True)
    if ended.returncode != 0:
        # A known bug may end in a kill, with a remedy against another or without.
        return {"failed": ended.stderr[ended.stderr.find("error:") :]}
    figures = json.loads(ended.stdout)
    del figures["work"]["stat_flushes"]
    return figures


def differences(pageout: str, scenario: Path, remedy: tuple[str, str, str]) -> list[str]:
    name, base, turned = remedy
    command = [pageout, "compare", str(scenario), "--all", "--json", "--quiet", "--repeat", str(REPEAT)]
    command += ["--vary", f"kernel.reclaim.{name}={base},{turned}"]
    ended = subprocess.run(command, capture_output=True, text=True)
    if ended.returncode != 0:
        return ["ends in a kill, with or without it"]
    after = json.loads(ended.stdout)["variants"][1]["metrics"]
    told = []
    for key, cell in after.items():
        group, figure = key.rsplit(": ", 1)
        change = cell.get("difference_percent")
        if figure in SHOWN and group != "/proc/vmstat" and change and not cell["within_noise"]:
            told.append(f"{group}: {SHOWN[figure]} {change:+.2f} %")
    return told or ["differs, by no more than noise"]


def print_cost(pageout: str) -> None:
    scenarios = sorted([*Path("scenarios").glob("*.toml"), *Path("scenarios/regressions").glob("*.toml")])
    scenarios = [path for path in scenarios if str(path) != SCENARIO]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        settings = [[]] + [[f"kernel.reclaim.{name}={turned}"] for name, _, turned in REMEDIES]
        cells = [(scenario, setting) for scenario in scenarios for setting in settings]
        results = list(pool.map(lambda cell: result(pageout, *cell), cells))
    for column, remedy in enumerate(REMEDIES, 1):
        print(f"\nreclaim.{remedy[0]} = {remedy[2]}", flush=True)
        same = 0
        for row, scenario in enumerate(scenarios):
            base, turned = results[row * len(settings)], results[row * len(settings) + column]
            if base == turned:
                same += 1
                continue
            for line in differences(pageout, scenario, remedy):
                print(f"  {scenario.stem}: {line}", flush=True)
        print(f"  {same} of {len(scenarios)} scenarios: every figure the same")


if __name__ == "__main__":
    os.chdir(Path(__file__).parents[2])
    pageout = sys.argv[2] if len(sys.argv) > 2 else "target/release/pageout"
    match sys.argv[1:]:
        case ["map", *rest] if len(rest) < 3:
            print_map(pageout, rest[1] if len(rest) == 2 else "linux")
        case ["cost", *rest] if len(rest) < 2:
            print_cost(pageout)
        case _:
            sys.exit(__doc__)
