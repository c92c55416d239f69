#!/usr/bin/env python3
"""How often `~` misses a difference that is none: runs of one scenario, each with its own seed, are paired at random.

    ci/figures/null-pairs.py PAGEOUT RUNS SCENARIO...

Two such samples differ only by chance, so a 95 % interval should leave out 0 for one in twenty. The interval is that of
`crates/lab/src/result/spread.rs`. Figures with few values are listed separately: percentiles, which are those of buckets, and counts of
rare events.
"""

import json
import math
import random
import statistics
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

T = {2: 12.706, 3: 4.303, 5: 2.776, 10: 2.262}
DRAWS = 400


def figures(pageout: str, scenario: str, seed: int) -> dict[str, float]:
    """All numbers of a run, by where they stand in its JSON."""
    command = [pageout, "run", scenario, "--json", "-q", "--seed", str(seed)]
    found: dict[str, float] = {}

    def walk(value, path: str) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                walk(inner, f"{path}/{key}")
        elif isinstance(value, list):
            for number, inner in enumerate(value):
                walk(inner, f"{path}/{number}")
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            found[path] = value

    walk(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout), "")
    return found


def escapes(values: list[float], seeds: int, rng: random.Random) -> float:
    """Share of null differences, of as many pairs as seeds, that are left unmarked."""
    unmarked = 0
    for _ in range(DRAWS):
        drawn = rng.sample(values, 2 * seeds)
        differences = [left - right for left, right in zip(drawn[:seeds], drawn[seeds:])]
        half_width = T[seeds] * statistics.stdev(differences) / math.sqrt(seeds)
        is_same = not any(differences)
        unmarked += not is_same and abs(statistics.fmean(differences)) > half_width
    return unmarked / DRAWS


def main() -> None:
    pageout, runs, scenarios = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    rng = random.Random(1)
    shares: dict[tuple[str, int], list[float]] = {}
    for scenario in scenarios:
        with ThreadPoolExecutor(max_workers=2) as pool:
            of_runs = list(pool.map(lambda seed: figures(pageout, scenario, seed), range(1, runs + 1)))
        for name in of_runs[0]:
            values = [run[name] for run in of_runs if name in run]
            if len(values) < runs or len(set(values)) == 1 or name.endswith("/seed"):
                continue
            kind = "many values" if len(set(values)) > runs * 0.8 else "few values"
            for seeds in T:
                shares.setdefault((kind, seeds), []).append(escapes(values, seeds, rng))
    print("| seeds | figures | left unmarked, mean | of the worst figure |")
    print("|---|---|---|---|")
    for (kind, seeds), of_figures in sorted(shares.items(), reverse=True):
        mean, worst = statistics.fmean(of_figures), max(of_figures)
        print(f"| {seeds} | {len(of_figures)} of {kind} | {mean:.1%} | {worst:.1%} |")


if __name__ == "__main__":
    main()
