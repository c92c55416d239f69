#!/usr/bin/env python3
"""Checks that README.md, scenarios/README.md and the pages of docs/ (without docs/spec) show the program's current output.

    ci/gate/commands.py PAGEOUT [PAGE.md...]            fails, and shows the differences
    ci/gate/commands.py PAGEOUT --write [PAGE.md...]    replaces the outputs by current ones

A ```console block has commands behind "$ ", continued by a backslash at the end of a line, each with its output below. A line "..." matches
any number of lines. Both output streams are compared, in the order in which they were written. A command without output below it must
succeed. Lines of progress are not compared.

Commands of a page run one after the other, in a folder with scenarios/, ground-truth/, docs/ and crates/. So a command can read files of
an earlier one. One page per CPU runs at the same time. A block after a line <!-- not run: REASON --> is not run, but counted. An exit code
other than 0 is in a comment: "$ pageout run bad.toml   # exit code 2".
"""

import difflib
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    "README.md",
    *sorted(str(page.relative_to(ROOT)) for page in (ROOT / "docs").rglob("*.md") if "spec" not in page.parts),
    "scenarios/README.md",
]
LEFT_OUT = "..."
NOT_RUN = re.compile(r"<!-- not run: (.+) -->$")
EXIT_CODE = re.compile(r"\s+# exit code (\d+)$")
# Progress, and announcements of the time to come: a slow machine prints them, a fast one does not.
PROGRESS = re.compile(r".+: \d+% done, .+ left$|.+: [\d,]+ done, [\d min]+ s$|\d+ runs of ratios, devices and sources.*: about ")


@dataclass
class Shown:
    """A command of a page, and what the page shows of its output."""

    line: int
    command: list[str]
    output: list[str]


@dataclass
class Block:
    """The lines of a page between two fences."""

    begin: int
    end: int
    not_run: str | None


def blocks(lines: list[str]) -> list[Block]:
    found, begin = [], None
    for number, line in enumerate(lines):
        if begin is None and line == "```console":
            begin = number + 1
        elif begin is not None and line == "```":
            reason = next((above for above in reversed(lines[: begin - 1]) if above), "")
            told = NOT_RUN.match(reason)
            found.append(Block(begin, number, told and told[1]))
            begin = None
    return found


def commands(lines: list[str], block: Block) -> list[Shown]:
    found: list[Shown] = []
    continues = False
    for number in range(block.begin, block.end):
        line = lines[number]
        if continues or line.startswith("$ "):
            if not continues:
                found.append(Shown(number + 1, [], []))
            found[-1].command.append(line)
            continues = line.endswith("\\")
        elif found:
            found[-1].output.append(line)
        else:
            raise SystemExit(f"line {number + 1}: output without a command above it")
    return found


def run(pageout: str, folder: str, shown: Shown) -> tuple[list[str], str | None]:
    """What the command prints, and what is wrong with how it ends."""
    line = " ".join(part.removesuffix("\\").strip() for part in shown.command).removeprefix("$ ")
    told = EXIT_CODE.search(line)
    expected = int(told[1]) if told else 0
    line = EXIT_CODE.sub("", line)
    for name in ("pageout ", "cargo run --release -- "):
        if line.startswith(name):
            line = f"{shlex.quote(pageout)} {line.removeprefix(name)}"
            break
    else:
        return [], "is no command of pageout"
    # As a user without a terminal would see it, whatever terminal this runs in.
    environment = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "NO_COLOR", "CLICOLOR_FORCE")}
    ended = subprocess.run(
        ["bash", "-c", line], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True
    )
    wrong = None if ended.returncode == expected else f"ends with exit code {ended.returncode}, not {expected}"
    printed = (line.rstrip() for line in ended.stdout.rstrip("\n").split("\n"))
    return [line for line in printed if not PROGRESS.match(line)], wrong


def segments(output: list[str]) -> list[list[str]]:
    """The runs of lines between those that say that something is left out."""
    found: list[list[str]] = [[]]
    for line in output:
        if line.strip() == LEFT_OUT:
            found.append([])
        else:
            found[-1].append(line)
    return found


def is_shown(output: list[str], printed: list[str]) -> bool:
    first, *rest = segments(output)
    if not rest:
        return printed == first
    *middle, last = rest
    if printed[: len(first)] != first:
        return False
    at = len(first)
    for segment in middle:
        places = range(at, len(printed) - len(segment) + 1)
        begin = next((place for place in places if printed[place : place + len(segment)] == segment), None)
        if begin is None:
            return False
        at = begin + len(segment)
    return len(printed) - at >= len(last) and printed[len(printed) - len(last) :] == last


def aligned(kept: list[str], printed: list[str]) -> list[int]:
    """For each line that is kept the printed one that has its place: in the same order, as like it as can be, whatever the digits."""

    @cache
    def likeness(left: str, right: str) -> float:
        return difflib.SequenceMatcher(None, left, right, autojunk=False).ratio()

    def plain(line: str) -> str:
        return re.sub(r"[0-9][0-9,.]*", "0", re.sub(r"\s+", " ", line))

    left, right = [plain(line) for line in kept], [plain(line) for line in printed]
    best = [[0.0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for row in range(1, len(left) + 1):
        for column in range(1, len(right) + 1):
            same = kept[row - 1] == printed[column - 1]
            matched = best[row - 1][column - 1] + likeness(left[row - 1], right[column - 1]) + (0.01 if same else 0.0)
            best[row][column] = max(matched, best[row][column - 1], best[row - 1][column])
    places, row, column = [-1] * len(left), len(left), len(right)
    while row and column:
        if best[row][column] == best[row][column - 1]:
            column -= 1
        elif best[row][column] == best[row - 1][column]:
            row -= 1
        else:
            row, column = row - 1, column - 1
            places[row] = column
    return places


def rewritten(output: list[str], printed: list[str]) -> list[str]:
    """The output as it is now, with what was left out left out."""
    if LEFT_OUT not in (line.strip() for line in output):
        return printed
    kept = [line for line in output if line.strip() != LEFT_OUT]
    if not kept:
        return output
    places = aligned(kept, printed)
    result, at, next_kept, gap = [], 0, 0, ""
    for line in output:
        if line.strip() == LEFT_OUT:
            gap = line
            continue
        place = places[next_kept]
        next_kept += 1
        if place < 0:
            continue
        if gap and place > at:
            result.append(gap)
        elif not gap:
            # Lines that have come between two that are both shown are shown.
            result += printed[at:place]
        result.append(printed[place])
        at, gap = place + 1, ""
    if gap and at < len(printed):
        result.append(gap)
    elif not gap:
        result += printed[at:]
    return result


def check(pageout: str, page: Path, folder: str, is_to_write: bool) -> tuple[int, int, int]:
    """How many commands of a page were run, how many are in blocks that are not, and how many outputs are not what is printed."""
    lines = page.read_text().split("\n")
    name = page.relative_to(ROOT) if page.is_relative_to(ROOT) else page
    written: list[str] = []
    done = ran = left_out = stale = 0
    for block in blocks(lines):
        written += lines[done : block.begin]
        done = block.begin
        found = commands(lines, block)
        if block.not_run:
            left_out += len(found)
            continue
        for shown in found:
            began = time.monotonic()
            printed, wrong = run(pageout, folder, shown)
            ran += 1
            seconds = time.monotonic() - began
            if seconds > 1:
                print(f"{name}:{shown.line}: {seconds:.1f} s")
            written += shown.command
            if wrong:
                stale += 1
                print(f"{name}:{shown.line}: `{' '.join(shown.command)}` {wrong}", *printed, sep="\n", file=sys.stderr)
                written += shown.output
                continue
            # A blank line parts two commands; it is the page's, not the program's.
            output = "\n".join(shown.output).rstrip("\n").split("\n") if any(shown.output) else []
            blank = shown.output[len(output) :]
            if not output or is_shown(output, printed):
                written += shown.output
                continue
            now = rewritten(output, printed)
            written += now + blank
            if is_to_write and is_shown(now, printed):
                print(f"{name}:{shown.line}: rewritten")
                continue
            stale += 1
            difference = difflib.unified_diff(output, now, f"{name}:{shown.line}, as shown", "as printed", lineterm="")
            print(f"{name}:{shown.line}: `{' '.join(shown.command)}` prints something else", *difference, sep="\n", file=sys.stderr)
        done = block.end
    written += lines[done:]
    if is_to_write and written != lines:
        page.write_text("\n".join(written))
    return ran, left_out, stale


def main() -> None:
    arguments = sys.argv[1:]
    is_to_write = "--write" in arguments
    if is_to_write:
        arguments.remove("--write")
    if not arguments:
        sys.exit(__doc__)
    pageout, pages = str(Path(arguments[0]).resolve()), arguments[1:] or PAGES

    def checked(page: str) -> tuple[int, int, int]:
        with tempfile.TemporaryDirectory() as folder:
            for name in ("scenarios", "ground-truth", "docs", "crates"):
                Path(folder, name).symlink_to(ROOT / name)
            return check(pageout, Path(ROOT, page), folder, is_to_write)

    # The longest page first, so that it doesn't end alone.
    pages = sorted(pages, key=lambda page: -Path(ROOT, page).stat().st_size)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        ran, left_out, stale = (sum(numbers) for numbers in zip(*pool.map(checked, pages)))
    print(f"{ran} commands of the documentation run, {left_out} not, as their pages say; {stale} outputs are not as shown")
    if stale:
        sys.exit(1 if is_to_write else "ci/gate/commands.sh --write puts them right; look at the difference before you commit it")


if __name__ == "__main__":
    main()
