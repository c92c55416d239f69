#!/usr/bin/env python3
"""Draws the diagrams of README and the book as SVG: architecture, page-life, hit-path, event-loop.

    ci/figures/diagrams.py            writes them
    ci/figures/diagrams.py --check    fails if a committed one differs from what this script draws

Needs Python alone. Each diagram has a ground of its own and follows the reader's light or dark setting.
"""

import sys
from html import escape
from pathlib import Path

PICTURES = Path(__file__).resolve().parents[2] / "docs/pictures"
STYLE = """
.ground{fill:#fff}.box{fill:#f3f6fb;stroke:#5b7aa6}.act{fill:#fff4e5;stroke:#b3721d}.out{fill:#eef7ee;stroke:#4b8a4b}
.line{fill:none;stroke:#444;stroke-width:1.5}.tip{fill:#444}text{fill:#1d2733}.small{fill:#566273}
@media (prefers-color-scheme:dark){.ground{fill:#161b22}.box{fill:#1c2a3f;stroke:#7ea3d8}.act{fill:#3a2a14;stroke:#dba55a}
.out{fill:#17301b;stroke:#7cc07c}.line{stroke:#b6c0cc}.tip{fill:#b6c0cc}text{fill:#e6edf3}.small{fill:#aab6c4}}
rect.box,rect.act,rect.out{stroke-width:1.5}text{font:14px system-ui,sans-serif;text-anchor:middle}.small{font-size:12px}.left{text-anchor:start}
""".strip().replace("\n", "")


class Diagram:
    """Boxes, and arrows between points."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self.size, self.title = (width, height), title
        self.parts: list[str] = []

    def box(self, x: int, y: int, width: int, height: int, text: str, note: str = "", kind: str = "box") -> None:
        """A box with a line of text, and lines of a note below it."""
        self.parts.append(f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="6"/>')
        notes = note.split("\n") if note else []
        top = y + height / 2 + 5 - 8 * len(notes)
        self.text(x + width / 2, top, text)
        for number, line in enumerate(notes):
            self.text(x + width / 2, top + 17 + 15 * number, line, "small")

    def text(self, x: float, y: float, text: str, kind: str = "") -> None:
        name = f' class="{kind}"' if kind else ""
        self.parts.append(f'<text{name} x="{x:g}" y="{y:g}">{escape(text)}</text>')

    def arrow(self, *points: tuple[int, int], text: str = "", at: tuple[int, int] | None = None, kind: str = "small") -> None:
        """A line through the points with a tip at its end."""
        path = " ".join(f"{x},{y}" for x, y in points)
        self.parts.append(f'<polyline class="line" points="{path}"/>')
        (x0, y0), (x, y) = points[-2:]
        dx, dy = (x > x0) - (x < x0), (y > y0) - (y < y0)
        tip = [(x, y), (x - 8 * dx - 4 * dy, y - 8 * dy - 4 * dx), (x - 8 * dx + 4 * dy, y - 8 * dy + 4 * dx)]
        self.parts.append(f'<polygon class="tip" points="{" ".join(f"{a},{b}" for a, b in tip)}"/>')
        if text and at:
            self.text(*at, text, kind)

    def svg(self) -> str:
        width, height = self.size
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">',
                f"<title>{escape(self.title)}</title>",
                f"<style>{STYLE}</style>",
                f'<rect class="ground" width="{width}" height="{height}" rx="8"/>',
                *self.parts,
                "</svg>\n",
            ]
        )


def architecture() -> Diagram:
    d = Diagram(860, 330, "Scenarios and traces go into a host, which calls the engine; counters, times and reports come out")
    d.box(20, 40, 170, 56, "scenario", "machine, cgroups, tasks")
    d.box(20, 130, 170, 56, "trace", "recorded accesses")
    d.box(20, 220, 170, 56, "program", "links the page cache")
    d.box(300, 60, 220, 100, "sim: simulated machine", "virtual clock, event queue,\nCPUs, devices, costs", "act")
    d.box(300, 206, 220, 84, "live: page cache", "real memory and files", "act")
    d.box(600, 116, 240, 140, "engine", "lists, refaults, reclaim,\nwriteback, memory tiers:\ndecides, does no I/O")
    d.box(600, 20, 240, 56, "counters, times, reports", "pgscan, workingset_refault_file, PSI", "out")
    d.arrow((190, 68), (245, 68), (245, 95), (300, 95))
    d.arrow((190, 158), (245, 158), (245, 125), (300, 125))
    d.arrow((190, 248), (300, 248))
    d.arrow((520, 135), (600, 135), text="accesses", at=(560, 128))
    d.arrow((600, 152), (520, 152), text="operations", at=(560, 168))
    d.arrow((520, 222), (600, 222), text="accesses", at=(560, 215))
    d.arrow((600, 240), (520, 240), text="operations", at=(560, 256))
    d.arrow((410, 60), (410, 48), (600, 48))
    d.text(410, 186, "hosts: act, decide nothing", "small")
    d.text(720, 276, "the same rules for both hosts", "small")
    return d


def page_life() -> Diagram:
    d = Diagram(860, 400, "A page of a file from its first read to its refault under the classic LRU")
    d.box(20, 30, 140, 56, "miss", "not in memory", "act")
    d.box(200, 30, 140, 56, "readahead", "which pages to read", "act")
    d.box(380, 30, 140, 56, "allocate, charge", "may reclaim first", "act")
    d.box(560, 30, 140, 56, "CPU's batch", "31 pages wait")
    d.box(480, 160, 220, 60, "inactive list", "first use sets REFERENCED")
    d.box(130, 160, 220, 60, "active list", "second use activates")
    d.box(480, 300, 220, 60, "evicted", "a shadow with the list's age stays", "out")
    d.arrow((160, 58), (200, 58))
    d.arrow((340, 58), (380, 58))
    d.arrow((520, 58), (560, 58))
    d.arrow((630, 86), (630, 160), text="head", at=(652, 128))
    d.arrow((480, 178), (350, 178), text="second use", at=(415, 171))
    d.arrow((350, 204), (480, 204), text="aging", at=(415, 221))
    d.arrow((590, 220), (590, 300), text="scan at the tail: not used", at=(672, 264))
    d.arrow((480, 320), (200, 320), (200, 220), text="refault within the active size", at=(340, 313))
    d.arrow((480, 344), (60, 344), (60, 86), text="read again later: refault without activation", at=(270, 362))
    d.arrow((700, 180), (770, 180), (770, 204), (700, 204), text="used:", at=(800, 188))
    d.text(800, 204, "kept", "small")
    return d


def hit_path() -> Diagram:
    d = Diagram(860, 250, "A hit writes one word of its page; reclaim reads it later")
    d.box(20, 40, 140, 60, "access", "task reads page 17", "act")
    d.box(220, 40, 190, 60, "table of the file", "page 17: in memory?")
    d.box(470, 40, 190, 60, "page word", "mark: used; young bit above")
    d.box(720, 40, 120, 60, "done", "no lock, no list", "out")
    d.arrow((160, 70), (220, 70))
    d.arrow((410, 70), (470, 70), text="yes", at=(440, 62))
    d.arrow((660, 70), (720, 70))
    d.box(220, 160, 190, 56, "miss path", "allocate, read, add to a list", "act")
    d.arrow((315, 100), (315, 160), text="no", at=(332, 134))
    d.box(470, 160, 190, 56, "reclaim", "reads the mark when it scans")
    d.arrow((565, 160), (565, 100), text="later", at=(588, 134))
    return d


def event_loop() -> Diagram:
    d = Diagram(860, 300, "The simulator's event loop")
    d.box(20, 100, 160, 64, "event queue", "in order of time", "act")
    d.box(240, 100, 170, 64, "take the earliest", "the clock moves to it", "act")
    d.box(470, 100, 160, 64, "engine", "decides one step")
    d.box(690, 100, 150, 64, "Step", "done, again, or wait", "out")
    d.box(470, 216, 160, 60, "carry out Ops", "read, write, free", "act")
    d.box(240, 216, 170, 60, "devices", "compute each end", "act")
    d.arrow((180, 132), (240, 132))
    d.arrow((410, 132), (470, 132), text="access or completion", at=(440, 92))
    d.arrow((630, 132), (690, 132))
    d.arrow((550, 164), (550, 216), text="Ops", at=(570, 194))
    d.arrow((470, 246), (410, 246))
    d.arrow((240, 246), (100, 246), (100, 164), text="completion at a later time", at=(170, 286))
    d.arrow((765, 100), (765, 48), (100, 48), (100, 100), text="the task's next access, after work (counts x costs), a delay, or a wake-up", at=(430, 40))
    return d


def main() -> None:
    drawn = {"architecture": architecture, "page-life": page_life, "hit-path": hit_path, "event-loop": event_loop}
    stale = []
    for name, draw in drawn.items():
        path, svg = PICTURES / f"{name}.svg", draw().svg()
        if sys.argv[1:] != ["--check"]:
            path.write_text(svg)
        elif not path.is_file() or path.read_text() != svg:
            stale.append(path.name)
    if stale:
        sys.exit(f"not as drawn: {', '.join(stale)}; run ci/figures/diagrams.py")


if __name__ == "__main__":
    main()
