#!/usr/bin/env python3
"""Records what a running kdamond of physical memory finds of known accesses.

    ci/figures/damon-host/record.py FOLDER [--seconds 240] [--pages huge|base] [--order virtual|frames]

A kdamond must run already (operations paddr): this only reads its settings and its tracepoint. The memory is private and anonymous, in
segments of four classes in turn, by virtual addresses or by frames. `hot` is touched every 100 ms, `busy` every second, `warm` every three
seconds, `cold` never.

    run.json       the load
    kdamond.txt    files of the kdamond's context
    frames.csv     frames that were the same before and after, by class
    touches.csv    times at which each class was touched, CLOCK_MONOTONIC
    trace.txt      damon_aggregated and damos_before_apply, on the same clock

Frame numbers require root.
"""

import argparse
import array
import ctypes
import json
import mmap
import os
import pathlib
import platform
import sys
import threading
import time

PERIOD_MS = {"hot": 100, "busy": 1_000, "warm": 3_000, "cold": 0}
PAGE = 4096
HUGE = 2 << 20
PRESENT = 1 << 63
FRAME = (1 << 55) - 1
ADMIN = pathlib.Path("/sys/kernel/mm/damon/admin/kdamonds")
TRACING = pathlib.Path("/sys/kernel/tracing")
EVENTS = ("damon_aggregated", "damos_before_apply")


def settings() -> dict[str, str]:
    """The files of the first kdamond of physical memory that runs."""
    for kdamond in sorted(ADMIN.glob("[0-9]*")):
        if (kdamond / "state").read_text().strip() != "on":
            continue
        context = kdamond / "contexts/0"
        if (context / "operations").read_text().strip() == "paddr":
            files = sorted(path for path in context.rglob("*") if path.is_file() and os.access(path, os.R_OK))
            return {str(path.relative_to(context)): path.read_text().strip() for path in files}
    sys.exit(f"{ADMIN}: found no kdamond of physical memory that is on, expected one\nhelp: start one, with operations paddr")


class Tracer:
    """An instance of ftrace with DAMON's events, written to a file until it is closed."""

    def __init__(self, to: pathlib.Path):
        self.folder = TRACING / "instances" / f"damon-host-{os.getpid()}"
        self.folder.mkdir()
        (self.folder / "trace_clock").write_text("mono")
        (self.folder / "buffer_size_kb").write_text("16384")
        self.is_over = False
        self.to = to
        self.thread = threading.Thread(target=self.copy)
        self.thread.start()
        for event in EVENTS:
            (self.folder / f"events/damon/{event}/enable").write_text("1")

    def copy(self) -> None:
        pipe = os.open(self.folder / "trace_pipe", os.O_RDONLY | os.O_NONBLOCK)
        with open(self.to, "wb") as out:
            while True:
                is_last = self.is_over
                try:
                    while data := os.read(pipe, 1 << 20):
                        out.write(data)
                except BlockingIOError:
                    pass
                if is_last:
                    break
                time.sleep(0.2)
        os.close(pipe)

    def close(self) -> int:
        """Ends the instance, and returns the number of events that were lost."""
        for event in EVENTS:
            (self.folder / f"events/damon/{event}/enable").write_text("0")
        self.is_over = True
        self.thread.join()
        lost = 0
        for stats in self.folder.glob("per_cpu/cpu*/stats"):
            lines = dict(line.split(": ", 1) for line in stats.read_text().splitlines() if ": " in line)
            lost += int(lines["overrun"]) + int(lines["dropped events"])
        self.folder.rmdir()
        return lost


class Memory:
    """Private memory whose units, huge pages or pages, belong to classes."""

    def __init__(self, class_bytes: int, segment: int, is_huge: bool, pool_bytes: int):
        self.wanted, self.segment = class_bytes * len(PERIOD_MS), segment
        self.size = max(pool_bytes, self.wanted)
        self.step = HUGE if is_huge else PAGE
        self.map = mmap.mmap(-1, self.size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.map.madvise(mmap.MADV_HUGEPAGE if is_huge else mmap.MADV_NOHUGEPAGE)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.map))
        if is_huge and self.address % HUGE:
            sys.exit("the mapping is not aligned to 2 MiB, so it would not have whole huge pages")
        for at in range(0, self.size, self.step):
            self.map[at] = 1

    def assign(self, by_frame: bool) -> None:
        """Gives segments to the classes in turn, in the order of addresses or of frames."""
        units = range(0, self.wanted, self.step)
        if by_frame:
            units = self.longest_runs()
        per_segment = self.segment // self.step
        self.units: dict[str, list] = {name: [] for name in PERIOD_MS}
        self.class_at: dict[int, str] = {}
        for at in range(0, len(units), per_segment):
            name = list(PERIOD_MS)[at // per_segment % len(PERIOD_MS)]
            segment = list(units[at : at + per_segment])
            self.class_at.update((unit // HUGE, name) for unit in segment)
            if by_frame:
                self.units[name] += [slice(unit, unit + 1) for unit in segment]
            else:
                self.units[name].append(slice(segment[0], segment[-1] + 1, self.step))

    def longest_runs(self) -> list[int]:
        """Units in the order of frames, from the longest runs of frames; the others are freed."""
        frames = self.frames()
        order = sorted(range(0, self.size, self.step), key=lambda at: frames[at // PAGE])
        runs: list[list[int]] = []
        for at in order:
            if runs and frames[at // PAGE] == frames[runs[-1][-1] // PAGE] + self.step // PAGE:
                runs[-1].append(at)
            else:
                runs.append([at])
        kept: set[int] = set()
        for run in sorted(runs, key=len, reverse=True):
            kept.update(run[: self.wanted // self.step - len(kept)])
        for at in order:
            if at not in kept:
                self.map.madvise(mmap.MADV_DONTNEED, at, self.step)
        return [at for at in order if at in kept]

    def class_of(self, at: int) -> str | None:
        return self.class_at.get(at // HUGE)

    def touch(self, name: str) -> None:
        for unit in self.units[name]:
            self.map[unit]

    def frames(self) -> array.array:
        """The frame of each page; 0 if it has none."""
        count = self.size // PAGE
        found = array.array("Q")
        with open("/proc/self/pagemap", "rb", buffering=0) as pagemap:
            pagemap.seek(self.address // PAGE * 8)
            while len(found) < count:
                found.frombytes(pagemap.read(min(1 << 20, (count - len(found)) * 8)))
        return array.array("Q", (entry & FRAME if entry & PRESENT else 0 for entry in found))

    def huge_bytes(self) -> int:
        """Bytes in huge pages."""
        is_ours = False
        for line in open("/proc/self/smaps"):
            first = line.split()[0]
            if "-" in first and not first.endswith(":"):
                start, end = (int(part, 16) for part in first.split("-"))
                is_ours = start <= self.address < end
            elif is_ours and first == "AnonHugePages:":
                return int(line.split()[1]) << 10
        return 0


def touch_in_time(memory: Memory, seconds: int, to: pathlib.Path) -> None:
    """Touches each class at multiples of its period."""
    start = time.monotonic_ns()
    due = {name: start for name, period in PERIOD_MS.items() if period}
    with open(to, "w") as out:
        out.write("class,start_ns,end_ns\n")
        while True:
            name = min(due, key=due.__getitem__)
            if due[name] - start >= seconds * 10**9:
                return
            time.sleep(max(0, due[name] - time.monotonic_ns()) / 1e9)
            began = time.monotonic_ns()
            memory.touch(name)
            ended = time.monotonic_ns()
            out.write(f"{name},{began},{ended}\n")
            period = PERIOD_MS[name] * 10**6
            # A touch that is a whole period late is left out.
            due[name] += period * max(1, -(-(ended - due[name]) // period))


def write_frames(memory: Memory, before: array.array, after: array.array, to: pathlib.Path) -> int:
    """Writes runs of frames of one class, in the order of frames, and returns how many pages moved."""
    there = [(old, new, at) for at, (old, new) in enumerate(zip(before, after)) if old and memory.class_of(at * PAGE)]
    same = sorted((old, at) for old, new, at in there if old == new)
    runs: list[list] = []
    for frame, at in same:
        name = memory.class_of(at * PAGE)
        if runs and runs[-1][1] == frame and runs[-1][2] == name:
            runs[-1][1] = frame + 1
        else:
            runs.append([frame, frame + 1, name])
    with open(to, "w") as out:
        out.write("first,end,class\n")
        out.writelines(f"{first},{end},{name}\n" for first, end, name in runs)
    return len(there) - len(same)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seconds", type=int, default=240)
    parser.add_argument("--pages", choices=("huge", "base"), default="huge")
    parser.add_argument("--class-mib", type=int, default=768)
    parser.add_argument("--segment-mib", type=int, default=64)
    parser.add_argument("--order", choices=("virtual", "frames"), default="virtual")
    parser.add_argument("--pool-mib", type=int, default=8192, help="memory of which the longest runs of frames are kept, for frames")
    asked = parser.parse_args()
    by_frame = asked.order == "frames"
    if by_frame and asked.pages == "base":
        parser.error("--order frames: expected --pages huge")
    if asked.class_mib % asked.segment_mib or asked.segment_mib % 2 or asked.class_mib <= 0:
        parser.error("--class-mib: expected a multiple of --segment-mib, which is a multiple of 2")
    kdamond = settings()
    asked.folder.mkdir(parents=True)
    memory = Memory(asked.class_mib << 20, asked.segment_mib << 20, asked.pages == "huge", (asked.pool_mib << 20) * by_frame)
    memory.assign(by_frame)
    before = memory.frames()
    if not any(before):
        sys.exit("/proc/self/pagemap: found no frame numbers\nhelp: run as root")
    tracer = Tracer(asked.folder / "trace.txt")
    try:
        touch_in_time(memory, asked.seconds, asked.folder / "touches.csv")
    finally:
        lost = tracer.close()
    moved = write_frames(memory, before, memory.frames(), asked.folder / "frames.csv")
    run = {
        "kernel": platform.release(),
        "memory_kib": int(open("/proc/meminfo").readline().split()[1]),
        "pages": asked.pages,
        "order": asked.order,
        "period_ms": PERIOD_MS,
        "class_bytes": asked.class_mib << 20,
        "segment_bytes": asked.segment_mib << 20,
        "huge_bytes": memory.huge_bytes(),
        "moved_pages": moved,
        "lost_events": lost,
    }
    (asked.folder / "kdamond.txt").write_text("".join(f"{file}: {value}\n" for file, value in kdamond.items()))
    (asked.folder / "run.json").write_text(json.dumps(run, indent=1) + "\n")
    print(f"{asked.folder}: {moved} pages moved, {lost} events lost, {run['huge_bytes'] >> 20} MiB in huge pages")


if __name__ == "__main__":
    main()
