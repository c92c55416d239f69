#!/usr/bin/env python3
"""Figures of recordings of damon-host/record.py, and of replays of them: what DAMON found of memory whose accesses are known.

    ci/figures/damon-host/compare.py FOLDER... [--skip 12]

trace.txt is the kernel's, replay-SEED.txt are those of `replay_host`. Only frames of the recording program count, each with its region.
`right`: bytes whose count is within 1 of the samples in which they were touched. `pure`: bytes in regions with at most 5 % other bytes. The
first windows, --skip, are left out: the memory was new. Cells are median (min-max) over folders; of the replays of a folder the median counts.
"""

import argparse
import bisect
import pathlib
import re
import statistics
from collections import Counter, defaultdict

PAGE = 4096
PURE = 0.95
LINE = re.compile(r"(\d+\.\d+): (?:damon:)?damon_aggregated: target_id=\d+ nr_regions=(\d+) (\d+)-(\d+): (\d+) (\d+)")


def windows(path: pathlib.Path) -> list[tuple[float, list[tuple[int, int, int, int]]]]:
    """Complete windows: the time, and regions as (start, end, nr_accesses, age)."""
    found, wanted = [], 0
    for line in open(path):
        if not (match := LINE.search(line)):
            continue
        if wanted == 0:
            found.append((float(match[1]), []))
            wanted = int(match[2])
        found[-1][1].append(tuple(int(match[at]) for at in range(3, 7)))
        wanted -= 1
    if wanted and found:
        found.pop()
    # A recording begins in the middle of a window if its first lines are those of one.
    return [one for one in found if one[1]]


class Frames:
    """Address ranges of classes, in order."""

    def __init__(self, path: pathlib.Path):
        rows = [line.strip().split(",") for line in open(path)][1:]
        self.ranges = [(int(first) * PAGE, int(end) * PAGE, name) for first, end, name in rows]
        self.starts = [start for start, _, _ in self.ranges]
        self.bytes = Counter()
        for start, end, name in self.ranges:
            self.bytes[name] += end - start

    def within(self, start: int, end: int) -> Counter:
        """Bytes of each class within a range."""
        found = Counter()
        at = max(0, bisect.bisect_right(self.starts, start) - 1)
        while at < len(self.ranges) and self.ranges[at][0] < end:
            first, last, name = self.ranges[at]
            if (overlap := min(last, end) - max(first, start)) > 0:
                found[name] += overlap
            at += 1
        return found


def expected(folder: pathlib.Path, times: list[float], samples: int) -> dict[str, float]:
    """Samples of a window in which a class was touched, in the mean over the windows that end at these times."""
    touched = defaultdict(list)
    for line in list(open(folder / "touches.csv"))[1:]:
        name, start, _ = line.split(",")
        touched[name].append(int(start) / 1e9)
    means = {}
    for name, when in touched.items():
        hits = total = 0
        for before, after in zip(times, times[1:]):
            length = (after - before) / samples
            for at in range(samples):
                left = bisect.bisect_left(when, before + at * length)
                hits += left < len(when) and when[left] < before + (at + 1) * length
                total += 1
        means[name] = hits / total * samples if total else 0.0
    return means


def figures(folder: pathlib.Path, trace: str, skip: int) -> dict[str, dict[str, float]]:
    """By class: what the windows of a trace found of it."""
    files = dict(line.strip().split(": ", 1) for line in open(folder / "kdamond.txt") if ": " in line.strip())
    sample_us, aggr_us = (int(files[f"monitoring_attrs/intervals/{key}"]) for key in ("sample_us", "aggr_us"))
    frames = Frames(folder / "frames.csv")
    seen = windows(folder / trace)[skip:]
    touched = expected(folder, [time for time, _ in seen], aggr_us // sample_us)
    sums: dict[str, Counter] = defaultdict(Counter)
    for _, found in seen:
        for start, end, count, age in found:
            for name, size in frames.within(start, end).items():
                sums[name].update({"nr_accesses": size * count, "age": size * age, "regions": size / (end - start), "bytes": size})
                if size >= PURE * (end - start):
                    sums[name]["pure"] += size
                if abs(count - touched.get(name, 0.0)) <= 1:
                    sums[name]["right"] += size
    return {
        name: {
            "touched": touched.get(name, 0.0),
            "nr_accesses": of["nr_accesses"] / of["bytes"],
            "right": 100 * of["right"] / of["bytes"],
            "pure": 100 * of["pure"] / of["bytes"],
            "regions": of["regions"] / len(seen) / (frames.bytes[name] / 2**30),
            "age": of["age"] / of["bytes"],
        }
        for name, of in sorted(sums.items(), key=lambda pair: -touched.get(pair[0], 0.0))
    }


COLUMNS = {"nr_accesses": 2, "right": 0, "pure": 0, "regions": 0, "age": 1}


def spread(values: list[float], digits: int) -> str:
    form = f".{digits}f"
    return f"{statistics.median(values):{form}} ({min(values):{form}}-{max(values):{form}})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    parser.add_argument("--skip", type=int, default=12)
    asked = parser.parse_args()
    kernel = [figures(folder, "trace.txt", asked.skip) for folder in asked.folders]
    replays = [[figures(folder, path.name, asked.skip) for path in sorted(folder.glob("replay-*.txt"))] for folder in asked.folders]
    print("| class | touched in samples | | nr_accesses | right, % | pure, % | regions per GiB | age |")
    print("|---" * 8 + "|")
    for name in kernel[0]:
        touched = spread([one[name]["touched"] for one in kernel], 1)

        def row(what: str, cell) -> None:
            print(f"| {name} | {touched} | {what} | {' | '.join(cell(column, digits) for column, digits in COLUMNS.items())} |")

        def medians(column: str) -> list[float]:
            return [statistics.median(run[name][column] for run in runs) for runs in replays]

        def inside(column: str) -> int:
            ranges = [[run[name][column] for run in runs] for runs in replays]
            return sum(min(of) <= one[name][column] <= max(of) for one, of in zip(kernel, ranges))

        row("kernel", lambda column, digits: spread([one[name][column] for one in kernel], digits))
        if all(replays):
            row("replay", lambda column, digits: spread(medians(column), digits))
            row("replay less kernel", lambda column, digits: spread([own - one[name][column] for own, one in zip(medians(column), kernel)], digits))
            row("kernel within replays", lambda column, _: f"{inside(column)} of {len(kernel)}")


if __name__ == "__main__":
    main()
